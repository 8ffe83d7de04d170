//! Who plays the scenarios.

use std::fmt;

use anyhow::Result;
use tripwit::ManualClock;

use crate::driver::Driver;
use crate::runner::Player;
use crate::scenario::Scenario;
use crate::verb::PolicyName;
use crate::{component, host, native};

/// Who plays the scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The kit's circuits, compiled into this process.
    Native,
    /// The shipped component, run by wasmtime and nothing else.
    Component,
    /// The host's public API, which decides by leases where it can.
    Host,
    /// The host's public API with leases ignored: it asks the component about each call.
    HostAskingEachTime,
}

impl Subject {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Native,
        Self::Component,
        Self::Host,
        Self::HostAskingEachTime,
    ];

    /// Whether it is the host, which cannot play scenarios for guests only.
    pub(crate) fn is_host(self) -> bool {
        match self {
            Self::Host | Self::HostAskingEachTime => true,
            Self::Native | Self::Component => false,
        }
    }

    pub(crate) fn start(
        self,
        policy: PolicyName,
        scenario: &Scenario,
        clock: &ManualClock,
    ) -> Result<Box<dyn Player>> {
        Ok(match self {
            Self::Native => Box::new(Driver::new(native::start, policy, scenario, clock)?),
            Self::Component => Box::new(Driver::new(component::start, policy, scenario, clock)?),
            Self::Host => Box::new(host::Host::start(policy, scenario, clock, false)?),
            Self::HostAskingEachTime => Box::new(host::Host::start(policy, scenario, clock, true)?),
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Native => "native core",
            Self::Component => "component",
            Self::Host => "host",
            Self::HostAskingEachTime => "host asking each time",
        })
    }
}
