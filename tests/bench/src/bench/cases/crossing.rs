//! What a call into the component costs by itself.

use anyhow::{Result, bail};
use tripwit::SystemClock;
use tripwit::raw::{Instance, Outcome, Report, Setup, Standing};
use tripwit_bench::{Guarding, Inputs, work};

use crate::group::{Group, Start, blocking};
use crate::guard::{Bare, Ending};
use crate::results::Results;
use crate::runner::{self, Effort};
use crate::subject::Subject;

/// Each function that calls need, on an instance without a host around it.
pub(crate) fn group() -> Result<Group> {
    let mut group = Group::new("crossing", &[1]);
    group.add(Subject::Bare, "", blocking(Bare, &Inputs::healthy()));
    for guarding in [Guarding::Consecutive, Guarding::WindowCount] {
        group.add_named(
            "crossing, acquire",
            guarding,
            start(guarding, |circuit| circuit.acquire()),
        );
        group.add_named(
            "crossing, settle",
            guarding,
            start(guarding, |circuit| circuit.settle(Outcome::Success)),
        );
        let start = start(guarding, |circuit| circuit.settle_successes());
        group.add_named("crossing, settle-successes", guarding, start);
        group.add_named(
            "crossing, lease-of",
            guarding,
            self::start(guarding, |circuit| circuit.lease_of()),
        );
    }
    Ok(group)
}

/// One circuit that is closed, in an instance of its own.
pub(crate) struct Circuit {
    instance: Instance,
    number: u32,
    ticket: u64,
}

impl Circuit {
    /// # Errors
    ///
    /// When the component does not start.
    pub(crate) fn new(guarding: Guarding) -> Result<Self> {
        let mut instance = instance(guarding)?;
        let number = attach(&mut instance, "orders", guarding.settings().as_str())?;
        let Standing::Admit(ticket) = instance.lease_of(number)?.standing else {
            bail!("a new circuit does not admit");
        };
        Ok(Self {
            instance,
            number,
            ticket,
        })
    }

    /// # Errors
    ///
    /// When the component fails, or does not count it.
    pub(crate) fn settle(&mut self, outcome: Outcome) -> Result<()> {
        let report = Report {
            outcome,
            took: None,
            retry_after: None,
            cause: None,
        };
        if !self.instance.settle(self.number, self.ticket, &report)?.counted {
            bail!("a result does not count");
        }
        Ok(())
    }

    /// Two crossings.
    ///
    /// # Errors
    ///
    /// When the component fails.
    pub(crate) fn acquire_and_settle(&mut self) -> Result<()> {
        self.acquire()?;
        self.settle(Outcome::Success)
    }

    fn acquire(&mut self) -> Result<()> {
        self.instance.acquire(self.number)?;
        Ok(())
    }

    fn settle_successes(&mut self) -> Result<()> {
        self.instance.settle_successes(self.number, self.ticket, 1)?;
        Ok(())
    }

    fn lease_of(&mut self) -> Result<()> {
        self.instance.lease_of(self.number)?;
        Ok(())
    }
}

/// An instance without circuits.
///
/// # Errors
///
/// When the component does not start.
pub(crate) fn instance(guarding: Guarding) -> Result<Instance> {
    Ok(Instance::start(
        &guarding.policy()?,
        SystemClock,
        &Setup::default(),
    )?)
}

/// Adds a circuit, and gives its number.
///
/// # Errors
///
/// When the component fails or refuses it.
pub(crate) fn attach(instance: &mut Instance, key: &str, settings: &str) -> Result<u32> {
    match instance.attach(key, settings)? {
        Ok(attached) => Ok(attached.circuit),
        Err(error) => bail!("the component refuses {key}: {error:?}"),
    }
}

/// Crossings one after the other. One that fails shows as a call that was not made.
fn start(guarding: Guarding, cross: fn(&mut Circuit) -> Result<()>) -> Start {
    Box::new(move || {
        let mut circuit = Circuit::new(guarding)?;
        Ok(Box::new(move |calls| {
            let failed = (0..calls).filter(|_| cross(&mut circuit).is_err()).count();
            if failed == 0 {
                Ending::Made
            } else {
                Ending::Rejected
            }
        }))
    })
}

/// The calls of the inputs, and the component told of each with nothing in between.
pub(crate) fn told_of_each(guarding: Guarding, inputs: &Inputs) -> Start {
    let inputs = inputs.clone();
    Box::new(move || {
        let (mut circuit, inputs) = (Circuit::new(guarding)?, inputs.clone());
        Ok(Box::new(move |calls| {
            let mut ending = Ending::Made;
            for input in inputs.each(calls) {
                let outcome = if work(input).is_ok() {
                    Outcome::Success
                } else {
                    Outcome::Failure
                };
                if circuit.settle(outcome).is_err() {
                    ending = Ending::Rejected;
                }
            }
            ending
        }))
    })
}

/// Measures them as what they are.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    results.rows.extend(runner::measure(&group()?, effort)?);
    Ok(())
}
