//! The faults, and the setting that chooses one.

use alloc::{
    format,
    string::{String, ToString},
};

use serde_json::Value;
use tripwit_core::{Consecutive, Policy, SettingsError};

macro_rules! faults {
    ($($fault:ident = $name:literal),+ $(,)?) => {
        /// What goes wrong.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) enum Fault {
            #[default]
            $($fault),+
        }

        const NAMES: &[(&str, Fault)] = &[$(($name, Fault::$fault)),+];
    };
}

faults! {
    None = "none",
    Silent = "silent",
    LyingLease = "lying-lease",
    LongLease = "long-lease",
    LeakedProbe = "leaked-probe",
    DoubleSettle = "double-settle",
    LateResult = "late-result",
    OlderGeneration = "older-generation",
    ClockUnderflow = "clock-underflow",
    EarlyWait = "early-wait",
    RestartedWait = "restarted-wait",
    HiddenMove = "hidden-move",
    UntoldMove = "untold-move",
    ToldTwice = "told-twice",
    LoggedTwice = "logged-twice",
    SpanWithoutMove = "span-without-move",
    WrongEdge = "wrong-edge",
    WrongCause = "wrong-cause",
    LostWait = "lost-wait",
    LostMode = "lost-mode",
    ForeignDetail = "foreign-detail",
    UncheckedSettings = "unchecked-settings",
    WrongPointer = "wrong-pointer",
    IgnoredMode = "ignored-mode",
    DisabledShadow = "disabled-shadow",
    MovingInspect = "moving-inspect",
    EndlessHalfOpen = "endless-half-open",
    ShorterWait = "shorter-wait",
    TouchedByCycles = "touched-by-cycles",
    MixedKeys = "mixed-keys",
    Remembered = "remembered",
}

/// The schema of `consecutive`, with `fault` added.
pub(crate) fn schema() -> String {
    let names: alloc::vec::Vec<String> = NAMES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let fault = format!(
        r#""properties":{{"fault":{{"type":"string","enum":[{}],"default":"none","description":"What goes wrong."}},"#,
        names.join(",")
    );
    Consecutive::schema().replacen("\"properties\":{", &fault, 1)
}

/// Takes `fault` out of settings: the fault, and the settings of `consecutive`.
pub(crate) fn split(text: &str) -> Result<(Fault, String), SettingsError> {
    let Ok(Value::Object(settings)) = serde_json::from_str(text) else {
        // `consecutive` says what is wrong.
        return Ok((Fault::None, text.to_string()));
    };
    let Some(value) = settings.get("fault") else {
        return Ok((Fault::None, text.to_string()));
    };
    let known = NAMES.iter().find(|(name, _)| value == *name);
    let (name, fault) =
        known.ok_or_else(|| SettingsError::new("fault", "no such fault; the schema lists them"))?;
    Ok((*fault, without(text, name).unwrap_or_else(|| text.to_string())))
}

/// A JSON text without `"fault": "name"`. (Writing JSON anew would bring a writer into the component.)
fn without(text: &str, name: &str) -> Option<String> {
    let (before, rest) = text.split_once("\"fault\"")?;
    let (_, after) = rest.split_once(&format!("\"{name}\""))?;
    Some(match after.trim_start().strip_prefix(',') {
        Some(after) => format!("{before}{after}"),
        None => format!("{}{after}", before.trim_end().trim_end_matches(',')),
    })
}
