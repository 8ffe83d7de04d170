//! The first subject: the kit's circuits over a host that only remembers.

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use tripwit::{Clock, ManualClock};
use tripwit_core::{Consecutive, Lease, Mode, Nanoseconds, Outbox, Policy, Report, Ticket, Window};
use tripwit_policy::{
    Admission, AttachError, Attachment, Circuits, FieldValue, Host, Level, Line, Moved, Settlement, Setup,
    Snapshot, Span, Timestamp,
};

use crate::guest::{Description, Guest, Inspection};
use crate::told::{self, Told, fields};
use crate::verb::PolicyName;

pub(crate) fn start(policy: PolicyName, clock: &ManualClock) -> Result<Box<dyn Guest>> {
    let surroundings = Surroundings {
        clock: clock.clone(),
        told: Told::default(),
    };
    Ok(match policy {
        PolicyName::Consecutive => Box::new(Circuits::<Consecutive, _>::new(surroundings)),
        PolicyName::Window => Box::new(Circuits::<Window, _>::new(surroundings)),
        PolicyName::Outbox => Box::new(Circuits::<Outbox, _>::new(surroundings)),
    })
}

/// Two clocks that are set by hand, and a list of what was told.
struct Surroundings {
    clock: ManualClock,
    told: Told,
}

impl Host for Surroundings {
    fn monotonic(&mut self) -> u64 {
        self.clock.monotonic()
    }

    fn wall(&mut self) -> Timestamp {
        wall(&self.clock)
    }

    fn log(&mut self, line: Line) {
        let level = match line.level {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
        };
        let fields = fields(line.fields.into_iter().map(|(name, it)| (name.into(), value(it))));
        self.told.log.push(told::Line::new(level, &line.message, fields));
    }

    fn export_span(&mut self, span: Span) {
        let attributes = fields(span.attributes.into_iter().map(|(name, it)| (name, value(it))));
        self.told
            .spans
            .push(told::Span::new(span.name, span.at, span.at, attributes));
    }
}

fn value(from: FieldValue) -> Value {
    match from {
        FieldValue::Text(text) => text.into(),
        FieldValue::Integer(number) => number.into(),
    }
}

/// The wall clock in nanoseconds since the Unix epoch.
pub(crate) fn wall(clock: &ManualClock) -> u64 {
    let since = clock.wall().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

const NO_CIRCUIT: &str = "no circuit has this number";

impl<P: Policy> Guest for Circuits<P, Surroundings> {
    fn describe(&mut self) -> Result<Description> {
        let telemetry = P::TELEMETRY;
        Ok(Description {
            name: P::NAME.into(),
            // All crates of the workspace have one version.
            version: env!("CARGO_PKG_VERSION").into(),
            summary: P::SUMMARY.into(),
            settings_schema: P::schema(),
            extra: fields([
                ("namespace".into(), telemetry.namespace.into()),
                ("instrumentation_scope".into(), telemetry.scope.into()),
            ]),
        })
    }

    fn prepare(&mut self, setup: &Setup) -> Result<()> {
        Self::prepare(self, setup.clone());
        Ok(())
    }

    fn attach(&mut self, key: &str, settings: &str) -> Result<Result<Attachment, AttachError>> {
        Ok(Self::attach(self, key, settings))
    }

    fn configure(&mut self, circuit: u32, settings: &str) -> Result<Result<Moved, AttachError>> {
        Self::configure(self, circuit, settings).context(NO_CIRCUIT)
    }

    fn detach(&mut self, circuit: u32) -> Result<()> {
        Self::detach(self, circuit).context(NO_CIRCUIT)
    }

    fn acquire(&mut self, circuit: u32) -> Result<Admission> {
        Self::acquire(self, circuit).context(NO_CIRCUIT)
    }

    fn settle(&mut self, circuit: u32, ticket: Ticket, report: &Report) -> Result<Settlement> {
        Self::settle(self, circuit, ticket, report).context(NO_CIRCUIT)
    }

    fn settle_successes(&mut self, circuit: u32, ticket: Ticket, count: u32) -> Result<Moved> {
        Self::settle_successes(self, circuit, ticket, count).context(NO_CIRCUIT)
    }

    fn lease_of(&mut self, circuit: u32) -> Result<Lease> {
        Self::lease_of(self, circuit).context(NO_CIRCUIT)
    }

    fn trip(&mut self, circuit: u32, wait: Option<Nanoseconds>) -> Result<Moved> {
        Self::trip(self, circuit, wait).context(NO_CIRCUIT)
    }

    fn reset(&mut self, circuit: u32) -> Result<Moved> {
        Self::reset(self, circuit).context(NO_CIRCUIT)
    }

    fn set_mode(&mut self, circuit: u32, mode: Mode) -> Result<Moved> {
        Self::set_mode(self, circuit, mode).context(NO_CIRCUIT)
    }

    fn cool_down(&mut self) -> Result<Vec<(u32, Moved)>> {
        Ok(Self::cool_down(self))
    }

    fn inspect(&mut self, circuit: u32) -> Result<Inspection> {
        Ok(Inspection {
            status: Self::inspect(self, circuit).context(NO_CIRCUIT)?,
            // The kit has nothing to say beyond the status.
            extra: Map::new(),
        })
    }

    fn tripped(&mut self) -> Result<Vec<String>> {
        Ok(Self::tripped(self))
    }

    fn save(&mut self, circuit: u32) -> Result<Snapshot> {
        Self::save(self, circuit).context(NO_CIRCUIT)
    }

    fn restore(
        &mut self,
        snapshot: &Snapshot,
        settings: &str,
        age: Nanoseconds,
    ) -> Result<Result<Attachment, AttachError>> {
        Ok(Self::restore(self, snapshot, settings, age))
    }

    fn take_told(&mut self) -> Told {
        std::mem::take(&mut self.host().told)
    }
}
