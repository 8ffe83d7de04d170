//! A policy's instance twice: natively and as a component.

use std::fmt;

use anyhow::{Result, ensure};
use tripwit::ManualClock;

use crate::guest::Guest;
use crate::verb::PolicyName;
use crate::{component, native};

pub(super) struct Pair {
    native: Box<dyn Guest>,
    component: Box<dyn Guest>,
}

impl Pair {
    pub(super) fn start(policy: PolicyName, clock: &ManualClock) -> Result<Self> {
        Ok(Self::of(
            native::start(policy, clock)?,
            component::start(policy, clock)?,
        ))
    }

    fn of(native: Box<dyn Guest>, component: Box<dyn Guest>) -> Self {
        Self { native, component }
    }

    /// Does something with both, which must answer the same and tell the same.
    pub(super) fn both<T: PartialEq + fmt::Debug>(
        &mut self,
        what: &str,
        ask: impl Fn(&mut dyn Guest) -> Result<T>,
    ) -> Result<T> {
        let native = ask(self.native.as_mut())?;
        let component = ask(self.component.as_mut())?;
        same(what, &native, &component)?;
        let told = (self.native.take_told(), self.component.take_told());
        same("what is told", &told.0, &told.1)?;
        Ok(native)
    }

    /// Everything that can be seen of a circuit, and of the instance. Moves nothing.
    pub(super) fn look_at(&mut self, circuit: u32) -> Result<()> {
        self.both("inspect", |guest| guest.inspect(circuit))?;
        self.both("save", |guest| guest.save(circuit))?;
        self.both("tripped", |guest| guest.tripped())?;
        self.both("lease-of", |guest| guest.lease_of(circuit)).map(drop)
    }
}

fn same<T: PartialEq + fmt::Debug>(what: &str, native: &T, component: &T) -> Result<()> {
    ensure!(
        native == component,
        "{what}: the native core answers {native:?}, the component {component:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runner::clock;

    /// Two that are alike but for their clocks, the second of which is late.
    fn pair(late: impl Fn(&ManualClock)) -> Pair {
        let (on_time, other) = (clock(), clock());
        late(&other);
        let start = |clock| native::start(PolicyName::Consecutive, clock).unwrap();
        Pair::of(start(&on_time), start(&other))
    }

    fn difference<T: PartialEq + fmt::Debug>(
        pair: &mut Pair,
        ask: impl Fn(&mut dyn Guest) -> Result<T>,
    ) -> String {
        pair.both("it", ask).unwrap_err().to_string()
    }

    #[test]
    fn a_nanosecond_of_difference_is_found() {
        let mut pair = pair(|clock| clock.advance(Duration::from_nanos(1)));
        // A timestamp of the circuit, which attaching does not show.
        pair.both("attach", |guest| guest.attach("key", "{}"))
            .unwrap()
            .unwrap();
        let found = difference(&mut pair, |guest| guest.inspect(0));
        assert!(found.starts_with("it: the native core answers"), "{found}");
        let found = difference(&mut pair, |guest| guest.trip(0, None));
        assert!(found.contains("transition: Some"), "{found}");
    }

    #[test]
    fn what_is_told_is_compared_too() {
        let mut pair = pair(|_| {});
        pair.both("attach", |guest| guest.attach("key", "{}"))
            .unwrap()
            .unwrap();
        // One of them has tripped before, and said so.
        pair.component.trip(0, None).unwrap();
        let found = difference(&mut pair, |_| Ok(()));
        assert!(found.starts_with("what is told: "), "{found}");
    }
}
