//! What an operator can do to a circuit.

use tripwit::raw::{AttachError, Mode, Moved, Snapshot, State};

use super::answer::{Answer, Command, Did, differences};
use super::case::Case;
use super::circuit::Circuit;
use super::problem::{Checked, ensure_of};
use super::words;

impl Circuit<'_> {
    /// An operator opens the circuit.
    pub(crate) fn trip(&mut self, wait: Option<u64>) -> Checked<Answer> {
        self.see_time();
        let moved = self.instance.trip(self.number, wait)?;
        self.moved(Command::Trip(wait), &moved)
    }

    /// An operator closes the circuit.
    pub(crate) fn reset(&mut self) -> Checked<Answer> {
        self.see_time();
        let before = self.lease.generation;
        let moved = self.instance.reset(self.number)?;
        let answer = self.moved(Command::Reset, &moved)?;
        self.starts_generation("a reset", before)?;
        Ok(answer)
    }

    /// An operator says who decides.
    pub(crate) fn set_mode(&mut self, mode: Mode) -> Checked<Answer> {
        self.see_time();
        let (before, changes) = (self.lease, self.mode != mode);
        self.mode = mode;
        let moved = self.instance.set_mode(self.number, mode)?;
        let answer = self.moved(Command::SetMode(mode), &moved)?;
        if changes {
            self.starts_generation("a change of mode", before.generation)?;
        } else {
            self.subject.mind(ensure_of!(
                Case::Modes,
                before.generation == self.lease.generation,
                "a mode that is set already changes nothing",
                || "a new generation".into(),
            ))?;
        }
        Ok(answer)
    }

    /// Changes the settings.
    pub(crate) fn configure(&mut self, settings: &str) -> Checked<Result<Answer, AttachError>> {
        self.see_time();
        match self.instance.configure(self.number, settings)? {
            Ok(moved) => Ok(Ok(self.moved(Command::Configure, &moved)?)),
            Err(error) => {
                self.did("configure", &super::problem::refusal(&error));
                Ok(Err(error))
            }
        }
    }

    /// One cool-down cycle.
    pub(crate) fn cool_down(&mut self) -> Checked<Answer> {
        self.see_time();
        let (before, lease) = (self.look()?, self.lease);
        let all = self.instance.cool_down()?;
        self.subject.mind(ensure_of!(
            Case::CoolDown,
            all.iter().all(|(circuit, _)| *circuit == self.number) && all.len() <= 1,
            "at most the one circuit that there is, once",
            || {
                format!(
                    "circuits {:?}",
                    all.iter().map(|(circuit, _)| circuit).collect::<Vec<_>>()
                )
            },
        ))?;
        let Some((_, moved)) = all.first() else {
            self.did("cool-down", "no circuit changed");
            let (after, now) = (self.look()?, self.instance.lease_of(self.number)?);
            let same = before == after && (lease.state, lease.generation) == (now.state, now.generation);
            self.subject.mind(ensure_of!(
                Case::CoolDown,
                same,
                "a circuit that is not returned has not changed",
                || differences(&before, &after).unwrap_or_else(|| words::lease(&now)),
            ))?;
            return Ok(Answer {
                did: Did::Cooled(false),
                ..Answer::NOTHING
            });
        };
        let did = Did::Cooled(true);
        self.after(Command::CoolDown, &did, moved.lease, moved.transition)?;
        let after = self.look()?;
        self.subject.mind(ensure_of!(
            Case::CoolDown,
            before.cooldown_count.is_some() && before != after,
            "only circuits that count cycles, and whose count or lease changed, are returned",
            || {
                format!(
                    "a {} circuit was, with cool-down count {:?}, then {:?}",
                    words::state(before.state),
                    before.cooldown_count,
                    after.cooldown_count
                )
            },
        ))?;
        Ok(self.answer(did, moved.transition))
    }

    /// Copies the circuit.
    pub(crate) fn save(&mut self) -> Checked<Snapshot> {
        self.see_time();
        let snapshot = self.instance.save(self.number)?;
        self.did("save", "");
        Ok(snapshot)
    }

    /// Opens the circuit.
    pub(crate) fn open(&mut self) -> Checked {
        self.trip(None)?;
        ensure_of!(
            Case::Operator,
            self.lease.state == State::Open,
            "trip opens the circuit",
            || format!("it is {}", words::state(self.lease.state)),
        )
    }

    /// Opens the circuit and waits until it is half-open, with one probe under way. `false`: no clock decides.
    pub(crate) fn half_open(&mut self) -> Checked<bool> {
        self.open()?;
        for _ in 0..8 {
            let Some(left) = self.look()?.retry_after else {
                return Ok(false);
            };
            self.advance(left);
            self.acquire()?;
            if self.lease.state == State::HalfOpen {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sees that a new generation has begun.
    pub(crate) fn starts_generation(&self, what: &str, before: u64) -> Checked {
        self.subject.mind(ensure_of!(
            Case::Generations,
            self.lease.generation > before,
            format!("{what} starts a new generation, above {before}"),
            || format!("generation {}", self.lease.generation),
        ))
    }

    fn moved(&mut self, command: Command, moved: &Moved) -> Checked<Answer> {
        self.after(command, &Did::Nothing, moved.lease, moved.transition)?;
        Ok(self.answer(Did::Nothing, moved.transition))
    }
}
