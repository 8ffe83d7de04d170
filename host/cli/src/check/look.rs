//! Looking at a circuit, in every way that there is.

use tripwit::raw::{Lease, Snapshot, Standing, State, Status};

use super::answer::differences;
use super::case::Case;
use super::circuit::{Circuit, KEY, Permit};
use super::problem::{Checked, ensure_of};
use super::words;

impl Circuit<'_> {
    /// Looks at the circuit by `inspect`, and holds what it shows against what is known.
    pub(crate) fn look(&mut self) -> Checked<Status> {
        let status = self.instance.inspect(self.number)?;
        let judged = self.judge_status(&status);
        self.subject.mind(judged)?;
        Ok(status)
    }

    fn judge_status(&mut self, status: &Status) -> Checked {
        let told = self.instance.heard().told.len();
        ensure_of!(Case::Moves, told == 0, "inspect tells nothing", || {
            format!("{told} log lines or spans")
        })?;
        ensure_of!(Case::Keys, status.key == KEY, format!("key {KEY:?}"), || {
            format!("key {:?}", status.key)
        })?;
        ensure_of!(
            Case::Modes,
            status.mode == self.mode,
            format!("mode {}", words::mode(self.mode)),
            || format!("inspect shows {}", words::mode(status.mode)),
        )?;
        ensure_of!(
            Case::Queries,
            status.state == self.lease.state,
            format!(
                "inspect shows {}, as the lease has it",
                words::state(self.lease.state)
            ),
            || words::state(status.state).into(),
        )?;
        ensure_of!(
            Case::Queries,
            status.retry_after.is_none() || status.state == State::Open,
            "retry-after only while open",
            || {
                format!(
                    "{} and retry-after {}",
                    words::state(status.state),
                    words::optional_time(status.retry_after)
                )
            },
        )?;
        ensure_of!(
            Case::Moves,
            status.since == self.since,
            format!("since the last change of state, at {}", self.since),
            || format!("since {}", status.since),
        )?;
        let counts = &status.counts;
        ensure_of!(
            Case::Queries,
            counts.timeouts <= counts.failures,
            "time-outs are among the failures",
            || format!("{counts:?}"),
        )?;
        let most = self.probes_under_way();
        ensure_of!(
            Case::Permits,
            counts.probes_in_flight as usize <= most,
            format!("at most {most} probes in flight"),
            || format!("{} are counted", counts.probes_in_flight),
        )
    }

    /// How many probes can be in flight at the most.
    fn probes_under_way(&self) -> usize {
        let lease = &self.lease;
        let counts = |permit: &&Permit| permit.probe && permit.generation == lease.generation;
        match lease.state {
            State::HalfOpen => self.permits.iter().filter(counts).count(),
            State::Closed | State::Open => 0,
        }
    }

    /// Looks in every way that there is, and sees that looking changes nothing.
    pub(crate) fn look_around(&mut self) -> Checked<Status> {
        let before = self.look()?;
        let lease = self.instance.lease_of(self.number)?;
        let tripped = self.instance.tripped()?;
        let snapshot = self.instance.save(self.number)?;
        let again = self.instance.describe()?;
        let after = self.look()?;
        let changed = differences(&before, &after);
        self.subject.mind(ensure_of!(
            Case::Queries,
            changed.is_none(),
            "looking changes nothing",
            || changed.unwrap_or_default(),
        ))?;
        self.subject.mind(ensure_of!(
            Case::Description,
            again.name == self.subject.policy.description().name,
            "the same description",
            || format!("now the name is {:?}", again.name),
        ))?;
        let named: &[&str] = match before.state {
            State::Closed => &[],
            State::Open | State::HalfOpen => &[KEY],
        };
        self.subject.mind(ensure_of!(
            Case::Queries,
            tripped == named,
            format!("tripped names {named:?}"),
            || format!("{tripped:?}"),
        ))?;
        self.subject.mind(judge_snapshot(&before, &snapshot))?;
        self.subject.mind(self.judge_lease_of(&lease))?;
        self.lease = lease;
        Ok(before)
    }

    fn judge_lease_of(&self, lease: &Lease) -> Checked {
        let held = &self.lease;
        ensure_of!(
            Case::Queries,
            (lease.generation, lease.state, lease.mode) == (held.generation, held.state, held.mode),
            format!(
                "the lease of generation {}: {}",
                held.generation,
                words::lease(held)
            ),
            || {
                let lease_of = words::lease(lease);
                format!(
                    "lease-of answers one of generation {}: {lease_of}",
                    lease.generation
                )
            },
        )?;
        let holds = held.until.is_none_or(|until| self.latest.max(self.now()) < until);
        ensure_of!(
            Case::Leases,
            !holds || held.standing == Standing::Ask || held.standing == lease.standing,
            words::lease(held),
            || format!("lease-of answers {}", words::lease(lease)),
        )
    }
}

/// A snapshot says what inspect shows.
fn judge_snapshot(before: &Status, snapshot: &Snapshot) -> Checked {
    let same = (
        snapshot.state,
        snapshot.mode,
        snapshot.retry_after,
        snapshot.cooldown_count,
        snapshot.since,
    ) == (
        before.state,
        before.mode,
        before.retry_after,
        before.cooldown_count,
        before.since,
    );
    ensure_of!(
        Case::Snapshots,
        same && snapshot.key == KEY,
        "the snapshot says what inspect shows: key, state, mode, wait, cycles, since",
        || {
            format!(
                "{} with wait {}, cycles {:?}, mode {}",
                words::state(snapshot.state),
                words::optional_time(snapshot.retry_after),
                snapshot.cooldown_count,
                words::mode(snapshot.mode)
            )
        },
    )
}
