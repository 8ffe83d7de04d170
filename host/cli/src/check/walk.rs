//! Random walks, and what they are taken for.

use std::fmt;

use fastrand::Rng;
use tripwit::raw::{Mode, Outcome, State, Status};

use super::circuit::Circuit;
use super::play;
use super::problem::{Checked, Problem};
use super::step::Step;
use super::subject::{History, Subject, Watch};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
/// Walks for each of the settings.
const WALKS: u64 = 8;
/// Steps of a walk.
const STEPS: usize = 240;
/// As often a walk is taken again to make it shorter.
const SHORTER: usize = 400;

/// What a walk is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Play {
    /// What must hold after every answer.
    Plain,
    /// Whether looking moves anything.
    Looks,
    /// Whether void tickets change anything.
    VoidTickets,
    /// Whether shadow decides otherwise than automatic.
    Shadow,
    /// Whether a circuit that was taken over goes on as the one that was saved.
    TakenOver,
    /// What must hold, with a clock that steps back.
    StepsBack,
    /// Whether deciding by leases gives the same as asking.
    Leases,
}

/// A walk: what happens to a circuit with these settings.
#[derive(Clone, Debug)]
struct Walk {
    settings: String,
    steps: Vec<Step>,
    /// It comes out otherwise with another seed.
    draws: bool,
    /// How many moves the circuit made.
    moves: usize,
}

/// The walks of a check.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    walks: Vec<Walk>,
}

impl Walks {
    /// Walks, from the subject's seed, those that come to no end left out. The first that breaks a promise is handed out too, as short as can be.
    pub(crate) fn new(subject: &Subject) -> (Self, Option<(Problem, History)>) {
        let (mut walks, mut first) = (Vec::new(), None);
        let mut rng = Rng::with_seed(subject.seed);
        for settings in &subject.settings {
            for _ in 0..WALKS {
                let mut walk = Walk {
                    settings: settings.clone(),
                    steps: Vec::new(),
                    draws: false,
                    moves: 0,
                };
                subject.watch.set(Watch::Nothing);
                let walker = Walker::new(subject, settings, rng.fork());
                let came_through = walker.and_then(|walker| walker.walk(&mut walk)).is_ok();
                walk.draws = play::draws(subject, settings, &walk.steps).unwrap_or(false);
                subject.watch.set(Watch::All);
                if first.is_none()
                    && let Err(problem) = walk.taken(subject, Play::Plain)
                {
                    let problem = walk.clone().shortened(subject, Play::Plain, problem);
                    first = Some((problem, subject.history()));
                }
                if came_through {
                    walks.push(walk);
                }
            }
        }
        (Self { walks }, first)
    }

    /// Takes every walk. The problem that is found first is shown by as short a walk as can be found.
    pub(crate) fn play(&self, subject: &Subject, play: Play) -> Checked<String> {
        for walk in &self.walks {
            if let Err(problem) = walk.taken(subject, play) {
                return Err(walk.clone().shortened(subject, play, problem));
            }
        }
        Ok(self.to_string())
    }

    /// How many come out otherwise with another seed.
    pub(crate) fn drawing(&self) -> usize {
        self.walks.iter().filter(|walk| walk.draws).count()
    }
}

impl fmt::Display for Walks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moves: usize = self.walks.iter().map(|walk| walk.moves).sum();
        write!(
            f,
            "{} random walks of {STEPS} steps, {moves} moves in all",
            self.walks.len()
        )
    }
}

impl Walk {
    fn taken(&self, subject: &Subject, play: Play) -> Checked {
        play::take(subject, &self.settings, &self.steps, play, self.draws)
    }

    /// Leaves out steps for as long as the same promise is broken, and takes what is left once more.
    fn shortened(mut self, subject: &Subject, play: Play, problem: Problem) -> Problem {
        let mut tries = 0;
        let mut chunk = self.steps.len();
        while chunk > 0 {
            let mut at = 0;
            while at < self.steps.len() && tries < SHORTER {
                tries += 1;
                let end = (at + chunk).min(self.steps.len());
                let mut shorter = self.clone();
                shorter.steps.drain(at..end);
                match shorter.taken(subject, play) {
                    Err(found) if found.case == problem.case => self = shorter,
                    Err(_) | Ok(()) => at = end,
                }
            }
            chunk /= 2;
        }
        self.taken(subject, play).err().unwrap_or(problem)
    }
}

/// How the dependency does.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Well,
    Failing,
    Mixed,
}

/// Takes a walk step by step, and looks where it is going.
struct Walker<'s> {
    circuit: Circuit<'s>,
    rng: Rng,
    mood: Mood,
    mood_left: usize,
}

impl<'s> Walker<'s> {
    fn new(subject: &'s Subject, settings: &str, rng: Rng) -> Checked<Self> {
        Ok(Self {
            circuit: Circuit::new(subject, settings)?,
            rng,
            mood: Mood::Failing,
            mood_left: 0,
        })
    }

    /// Every step is written down before it is taken.
    fn walk(mut self, walk: &mut Walk) -> Checked {
        while walk.steps.len() < STEPS {
            let status = self.circuit.look()?;
            let step = self.choose(&status);
            walk.steps.push(step);
            let answer = self.circuit.step(step)?;
            walk.moves += usize::from(answer.transition.is_some());
        }
        Ok(())
    }

    fn choose(&mut self, status: &Status) -> Step {
        if self.mood_left == 0 {
            self.mood = self.pick(&[Mood::Well, Mood::Failing, Mood::Failing, Mood::Mixed]);
            self.mood_left = self.rng.usize(3..60);
        }
        self.mood_left -= 1;
        if status.mode != Mode::Automatic && self.rng.u32(0..100) < 20 {
            return Step::SetMode(Mode::Automatic);
        }
        let out = self.circuit.permits.len();
        let waits = status.state == State::Open || (status.state == State::HalfOpen && out > 2);
        match self.rng.u32(0..100) {
            0 => Step::Trip(None),
            1 => Step::Trip(Some(self.rng.u64(1..100 * SECOND))),
            2 => Step::Reset,
            3..5 => {
                Step::SetMode(self.pick(&[Mode::Automatic, Mode::ForcedOpen, Mode::Disabled, Mode::Shadow]))
            }
            5..9 => Step::CoolDown,
            9..45 if waits => Step::Advance(self.time(status)),
            9..18 => Step::Advance(self.time(status)),
            18..60 if out > 0 => Step::End(self.rng.usize(0..out), self.outcome()),
            _ if out > 4 => Step::End(0, self.outcome()),
            _ => Step::Acquire,
        }
    }

    fn outcome(&mut self) -> Outcome {
        match (self.mood, self.rng.u32(0..20)) {
            (_, 0) => Outcome::Ignored,
            (Mood::Well, 1) => Outcome::Failure,
            (Mood::Failing, 1) => Outcome::Success,
            (Mood::Failing, 2..4) => Outcome::Timeout,
            (Mood::Well, _) | (Mood::Mixed, 1..11) => Outcome::Success,
            (Mood::Failing | Mood::Mixed, _) => Outcome::Failure,
        }
    }

    /// A length of time at which something may happen, or just not.
    fn time(&mut self, status: &Status) -> u64 {
        let lease = &self.circuit.lease;
        let now = self.circuit.now();
        let until = lease.until.map(|until| until.saturating_sub(now));
        let mut times = vec![
            MILLISECOND,
            self.rng.u64(1..2 * SECOND),
            self.rng.u64(1..90 * SECOND),
        ];
        for time in [until, status.retry_after, lease.slow_after, lease.call_timeout]
            .into_iter()
            .flatten()
        {
            times.extend([time.saturating_sub(1), time, time, time.saturating_add(1)]);
        }
        self.pick(&times).clamp(1, 1_000_000 * SECOND)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let place = self.rng.usize(0..from.len());
        #[expect(
            clippy::indexing_slicing,
            reason = "the place is below the length; lists are never empty"
        )]
        from[place]
    }
}
