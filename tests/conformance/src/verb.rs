//! What a step does: its verb, and the arguments that belong to it.

use std::num::NonZeroU32;

use anyhow::{Context, bail};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};
use tripwit_core::{Mode, Outcome, parse_duration};

use crate::scenario::{SetupText, no_settings};

/// A time as the files write it: a length, or a point on a clock counted from that clock's zero. Nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) u64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        parse_duration(&text)
            .map(Self)
            .map_err(|error| de::Error::custom(format!("{text:?}: {error}")))
    }
}

/// The value of a verb that needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match bool::deserialize(from)? {
            true => Ok(Self),
            false => Err(de::Error::custom("a verb without a value is written with `true`")),
        }
    }
}

/// How a process ends and another begins.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum Next {
    /// With nothing of the one before.
    Empty(True),
    /// With what that one had saved.
    Of(Kept),
}

/// What is kept from one process to the next.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kept {
    State,
}

/// `true`, or a time.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum Wait {
    Policys(True),
    Own(Time),
}

impl Wait {
    /// The operator's own, in nanoseconds.
    pub(crate) fn own(self) -> Option<u64> {
        match self {
            Self::Policys(True) => None,
            Self::Own(wait) => Some(wait.0),
        }
    }
}

/// How a call ends.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    Success,
    Failure,
    Timeout,
    Ignored,
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        match end {
            End::Success => Self::Success,
            End::Failure => Self::Failure,
            End::Timeout => Self::Timeout,
            End::Ignored => Self::Ignored,
        }
    }
}

/// Who decides.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ModeName {
    Automatic,
    ForcedOpen,
    Disabled,
    Shadow,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Automatic => Self::Automatic,
            ModeName::ForcedOpen => Self::ForcedOpen,
            ModeName::Disabled => Self::Disabled,
            ModeName::Shadow => Self::Shadow,
        }
    }
}

/// Which shipped policy.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyName {
    Consecutive,
    Window,
    Outbox,
}

impl PolicyName {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::Window => "window",
            Self::Outbox => "outbox",
        }
    }
}

/// How an admitted call ended.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settle {
    /// The permit's label.
    pub(crate) value: String,
    pub(crate) outcome: End,
    retry_after: Option<Time>,
    cause: Option<String>,
}

/// A call that is over within its step.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) value: End,
    /// So many such calls, one after the other.
    pub(crate) times: Option<NonZeroU32>,
    retry_after: Option<Time>,
    cause: Option<String>,
}

/// What is known of a failure beside that it is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Details {
    pub(crate) retry_after: Option<u64>,
    pub(crate) cause: Option<String>,
}

impl Settle {
    pub(crate) fn details(&self) -> Details {
        Details::new(self.retry_after, self.cause.as_ref())
    }
}

impl Call {
    /// Makes the call as often as it says. The answer is the last one's; all before must have moved nothing.
    pub(crate) fn repeat(
        &self,
        mut make: impl FnMut(End, Details) -> anyhow::Result<Value>,
    ) -> anyhow::Result<Value> {
        let mut once = || make(self.value, Details::new(self.retry_after, self.cause.as_ref()));
        for place in 1..self.times.map_or(1, NonZeroU32::get) {
            let answer = once()?;
            let moved = answer.get("transition").is_some_and(|it| !it.is_null());
            anyhow::ensure!(!moved, "call {place} already answers {answer}");
        }
        once()
    }
}

impl Details {
    fn new(retry_after: Option<Time>, cause: Option<&String>) -> Self {
        Self {
            retry_after: retry_after.map(|wait| wait.0),
            cause: cause.cloned(),
        }
    }
}

/// A snapshot that is taken over.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restore {
    /// The snapshot's label.
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) age: Time,
    /// By a new instance of this policy.
    pub(crate) policy: Option<PolicyName>,
    pub(crate) settings: Option<Value>,
    /// Fields of the snapshot to change first.
    #[serde(default)]
    pub(crate) with: Map<String, Value>,
}

/// Another policy for every circuit.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Swap {
    pub(crate) value: PolicyName,
    #[serde(default = "no_settings")]
    pub(crate) settings: Value,
}

/// A process that ends, and another that begins.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restart {
    pub(crate) value: Next,
    /// Where the clock of the new one stands.
    pub(crate) at: Option<Time>,
}

/// What a step does. README.md says what each verb means.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Verb {
    Wait {
        value: Time,
    },
    Clock {
        value: Time,
    },
    Wall {
        value: Time,
    },
    Acquire {
        value: String,
    },
    Settle(Settle),
    Call(Call),
    SettleSuccesses {
        value: String,
        count: u32,
    },
    Trip {
        value: Wait,
    },
    Reset {
        #[serde(rename = "value")]
        _value: True,
    },
    Mode {
        value: ModeName,
    },
    CoolDown {
        #[serde(rename = "value")]
        _value: True,
    },
    Tripped {
        #[serde(rename = "value")]
        _value: True,
    },
    Inspect {
        #[serde(rename = "value")]
        _value: True,
    },
    Available {
        #[serde(rename = "value")]
        _value: True,
    },
    Lease {
        #[serde(rename = "value")]
        _value: True,
    },
    Describe {
        #[serde(rename = "value")]
        _value: True,
    },
    Attach {
        value: Value,
    },
    Configure {
        value: Value,
    },
    Detach {
        #[serde(rename = "value")]
        _value: True,
    },
    Prepare {
        value: SetupText,
    },
    Save {
        value: String,
    },
    Restart(Restart),
    Restore(Restore),
    Swap(Swap),
    Reconfigure {
        value: Value,
    },
}

impl Verb {
    /// Takes a step's verb and arguments apart from a map that holds nothing else.
    pub(crate) fn from_map(mut map: Map<String, Value>) -> anyhow::Result<Self> {
        let mut found = map.keys().filter(|key| NAMES.contains(&key.as_str()));
        let (Some(name), None) = (found.next().cloned(), found.next()) else {
            bail!(
                "a step has exactly one verb, and this has the fields {:?}; the verbs are {}",
                map.keys().collect::<Vec<_>>(),
                NAMES.join(", ")
            );
        };
        let value = map.remove(&name).unwrap_or_default();
        map.insert("value".into(), value);
        map.insert("verb".into(), name.clone().into());
        serde_json::from_value(Value::Object(map)).with_context(|| format!("the verb {name}"))
    }

    /// Why the host's public API cannot do this, where it cannot.
    pub(crate) fn beyond_the_host(&self) -> Option<&'static str> {
        match self {
            Self::Lease { .. } => Some("it shows no leases"),
            Self::Save { .. } | Self::Restore(_) => Some("it hands out no snapshots of one circuit"),
            Self::Configure { .. } => Some("it changes the settings of all circuits only"),
            Self::Detach { .. } => Some("it forgets circuits by itself only"),
            Self::SettleSuccesses { .. } => Some("it keeps successes back by itself only"),
            Self::Prepare { .. } => Some("it sets an instance up once"),
            Self::Wait { .. }
            | Self::Clock { .. }
            | Self::Wall { .. }
            | Self::Acquire { .. }
            | Self::Settle(_)
            | Self::Call(_)
            | Self::Trip { .. }
            | Self::Reset { .. }
            | Self::Mode { .. }
            | Self::CoolDown { .. }
            | Self::Tripped { .. }
            | Self::Inspect { .. }
            | Self::Available { .. }
            | Self::Describe { .. }
            | Self::Restart(_)
            | Self::Swap(_)
            | Self::Reconfigure { .. }
            | Self::Attach { .. } => None,
        }
    }
}

/// Settings as the text that a policy reads: an object is written with its names in order, a text is taken as it is.
pub(crate) fn settings_text(settings: &Value) -> String {
    match settings {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            settings.to_string()
        }
    }
}

const NAMES: [&str; 25] = [
    "wait",
    "clock",
    "wall",
    "acquire",
    "settle",
    "call",
    "settle_successes",
    "trip",
    "reset",
    "mode",
    "cool_down",
    "tripped",
    "inspect",
    "available",
    "lease",
    "describe",
    "attach",
    "configure",
    "detach",
    "prepare",
    "save",
    "restore",
    "restart",
    "swap",
    "reconfigure",
];
