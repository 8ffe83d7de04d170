//! A lease as a component hands it out, held against the rules of the contract.

use crate::bindings::tripwit::breaker::types as wit;
use crate::lease::{Lease, Standing, Successes};

impl Lease {
    /// Takes what a component handed out, or says why it makes no sense.
    ///
    /// `now` is the reading that the component was given, `before` the generation of its last lease for this circuit.
    pub(crate) fn check(from: &wit::Lease, now: u64, before: Option<u64>) -> Result<Self, String> {
        let standing = match from.standing {
            wit::Standing::Admit(ticket) => Standing::Admit(ticket),
            wit::Standing::Pass => Standing::Pass,
            wit::Standing::Reject(reason) => Standing::Reject(reason.into()),
            wit::Standing::Ask => Standing::Ask,
        };
        if let Some(until) = from.until
            && until <= now
            && standing != Standing::Ask
        {
            return Err(format!(
                "a lease that ended at {until} ns, handed out at {now} ns"
            ));
        }
        let successes = match from.successes {
            wit::SuccessReporting::Each => Successes::Each,
            wit::SuccessReporting::UpTo(allowance) if allowance.successes == 0 => {
                return Err("a lease that lets no success be kept back under `up-to`".into());
            }
            wit::SuccessReporting::UpTo(allowance) => Successes::UpTo {
                count: allowance.successes,
                before: allowance.before,
            },
            wit::SuccessReporting::Never => Successes::Never,
        };
        if let Some(before) = before
            && from.generation < before
        {
            return Err(format!(
                "generation {} after generation {before}",
                from.generation
            ));
        }
        Ok(Self {
            mode: from.mode.into(),
            state: from.state.into(),
            generation: from.generation,
            standing,
            until: from.until,
            successes,
            slow_after: from.slow_after,
            call_timeout: from.call_timeout,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_out() -> wit::Lease {
        wit::Lease {
            mode: wit::Mode::Automatic,
            generation: 3,
            state: wit::State::Open,
            standing: wit::Standing::Reject(wit::RejectionReason::Open),
            until: Some(10),
            successes: wit::SuccessReporting::Never,
            slow_after: None,
            call_timeout: None,
        }
    }

    #[test]
    fn a_rejection_holds_until_its_end_and_no_longer() {
        let lease = Lease::check(&handed_out(), 9, Some(3)).unwrap();
        assert!(lease.rejects_at(9));
        assert!(!lease.rejects_at(10));
    }

    #[test]
    fn a_lease_that_has_run_out_makes_no_sense_unless_it_says_ask() {
        assert!(
            Lease::check(&handed_out(), 10, None)
                .unwrap_err()
                .contains("ended at 10 ns")
        );
        let asks = wit::Lease {
            standing: wit::Standing::Ask,
            ..handed_out()
        };
        assert!(Lease::check(&asks, 10, None).is_ok());
    }

    #[test]
    fn a_generation_that_goes_down_makes_no_sense() {
        assert!(
            Lease::check(&handed_out(), 0, Some(4))
                .unwrap_err()
                .contains("generation 3 after")
        );
    }

    #[test]
    fn an_allowance_of_nothing_makes_no_sense() {
        let nothing = wit::SuccessReporting::UpTo(wit::Allowance {
            successes: 0,
            before: None,
        });
        assert!(
            Lease::check(
                &wit::Lease {
                    successes: nothing,
                    ..handed_out()
                },
                0,
                None
            )
            .is_err()
        );
    }
}
