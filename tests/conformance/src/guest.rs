//! A policy's instance as the contract has it, in the kit's words: natively, or as a component.

use anyhow::Result;
use serde_json::{Map, Value};
use tripwit::ManualClock;
use tripwit_core::{Lease, Mode, Nanoseconds, Report, Ticket};
use tripwit_policy::{Admission, AttachError, Attachment, Moved, Settlement, Setup, Snapshot, Status};

use crate::told::Told;
use crate::verb::PolicyName;

/// What a policy says about itself.
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) settings_schema: String,
    pub(crate) extra: Map<String, Value>,
}

/// What can be seen of a circuit, with what only its policy has to say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inspection {
    pub(crate) status: Status,
    pub(crate) extra: Map<String, Value>,
}

/// One instance. The outer error of each function is a fault: a trap, or a circuit that is not attached.
pub(crate) trait Guest {
    fn describe(&mut self) -> Result<Description>;
    fn prepare(&mut self, setup: &Setup) -> Result<()>;
    fn attach(&mut self, key: &str, settings: &str) -> Result<Result<Attachment, AttachError>>;
    fn configure(&mut self, circuit: u32, settings: &str) -> Result<Result<Moved, AttachError>>;
    fn detach(&mut self, circuit: u32) -> Result<()>;
    fn acquire(&mut self, circuit: u32) -> Result<Admission>;
    fn settle(&mut self, circuit: u32, ticket: Ticket, report: &Report) -> Result<Settlement>;
    fn settle_successes(&mut self, circuit: u32, ticket: Ticket, count: u32) -> Result<Moved>;
    fn lease_of(&mut self, circuit: u32) -> Result<Lease>;
    fn trip(&mut self, circuit: u32, wait: Option<Nanoseconds>) -> Result<Moved>;
    fn reset(&mut self, circuit: u32) -> Result<Moved>;
    fn set_mode(&mut self, circuit: u32, mode: Mode) -> Result<Moved>;
    fn cool_down(&mut self) -> Result<Vec<(u32, Moved)>>;
    fn inspect(&mut self, circuit: u32) -> Result<Inspection>;
    fn tripped(&mut self) -> Result<Vec<String>>;
    fn save(&mut self, circuit: u32) -> Result<Snapshot>;
    fn restore(
        &mut self,
        snapshot: &Snapshot,
        settings: &str,
        age: Nanoseconds,
    ) -> Result<Result<Attachment, AttachError>>;
    /// What it told since this was last called.
    fn take_told(&mut self) -> Told;
}

/// Makes an instance of a policy, on this clock.
pub(crate) type Start = fn(PolicyName, &ManualClock) -> Result<Box<dyn Guest>>;
