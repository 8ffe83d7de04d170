//! Every state within so many steps, and every step from each.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use tripwit_core::{Instant, Lease, Policy};

use crate::difference::{Difference, same};
use crate::host::Host;
use crate::settings::Setting;
use crate::shape::shape;
use crate::step::{Step, Trace, UNIT};

/// States that are reached within so many steps are walked, and one step more from each.
pub const STEPS: usize = 12;

/// The states that were found, each with a shortest path to it.
#[derive(Debug, Default)]
pub struct Walk {
    found: Vec<Found>,
    /// How many steps were taken, each from a state of its own.
    pub steps: u64,
    /// How many of them were calls that ended.
    pub ended: u64,
    /// How many of those ends the circuit was not told of at once.
    pub ended_untold: u64,
    /// How many steps were calls that wanted to begin.
    pub begun: u64,
    /// How many of those the circuit was not asked about.
    pub begun_unasked: u64,
}

#[derive(Debug)]
struct Found {
    from: Option<(usize, Step)>,
    permits: usize,
}

impl Walk {
    /// How many states there are.
    #[must_use]
    pub fn states(&self) -> usize {
        self.found.len()
    }

    /// The states: a shortest path to each, and how many permits are out there.
    pub fn paths(&self) -> impl Iterator<Item = (Vec<Step>, usize)> {
        let all = self.found.iter().enumerate();
        all.map(|(state, found)| (self.path(state), found.permits))
    }

    fn path(&self, state: usize) -> Vec<Step> {
        let mut path = Vec::new();
        let mut at = self.found.get(state);
        while let Some((from, step)) = at.and_then(|found| found.from) {
            path.push(step);
            at = self.found.get(from);
        }
        path.reverse();
        path
    }

    fn count(&mut self, step: Step, asked: bool) {
        self.steps += 1;
        let untold = u64::from(!asked);
        match step {
            Step::Acquire => {
                self.begun += 1;
                self.begun_unasked += untold;
            }
            Step::Success(_) | Step::Failure(_) | Step::Timeout(_) | Step::Ignored(_) => {
                self.ended += 1;
                self.ended_untold += untold;
            }
            Step::Tick
            | Step::Trip
            | Step::TripFor
            | Step::Reset
            | Step::SetMode(_)
            | Step::CoolDown
            | Step::Inspect => {}
        }
    }
}

impl fmt::Display for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} steps from {} states; {} of {} calls began without asking, {} of {} ended without telling at once",
            self.steps,
            self.states(),
            self.begun_unasked,
            self.begun,
            self.ended_untold,
            self.ended,
        )
    }
}

/// Walks a policy, breadth first, so that a difference is shown by a shortest path.
///
/// The leased host takes each lease for what `read` makes of it.
///
/// # Errors
///
/// When the settings are refused; else the first [`Difference`] that is found.
pub fn walk<P: Policy>(setting: &Setting, read: fn(Lease) -> Lease) -> Result<Walk> {
    let settings = Arc::new(P::parse(setting.json)?);
    let start = Both::<P> {
        asking: Host::asking(settings.clone()),
        leased: Host::leased(settings, read),
        now: 0,
    };
    let mut walk = Walk::default();
    let mut known = HashSet::from([start.key(setting)]);
    walk.found.push(Found {
        from: None,
        permits: 0,
    });
    let mut layer = vec![(0, start)];
    for depth in 0..=STEPS {
        let mut next = Vec::new();
        for (from, state) in layer {
            for step in Step::all(state.leased.permits()) {
                let mut then = state.clone();
                let asked = then.step(step).map_err(|problem| {
                    let mut trace = walk.path(from);
                    trace.push(step);
                    let trace = Trace(trace);
                    Difference { trace, problem }
                })?;
                walk.count(step, asked);
                let permits = then.leased.permits();
                if depth == STEPS || permits > setting.permits {
                    continue;
                }
                if known.insert(then.key(setting)) {
                    let from = Some((from, step));
                    next.push((walk.found.len(), then));
                    walk.found.push(Found { from, permits });
                }
            }
        }
        layer = next;
    }
    Ok(walk)
}

/// The two hosts at one moment.
#[derive(Clone)]
struct Both<P: Policy> {
    asking: Host<P>,
    leased: Host<P>,
    now: Instant,
}

impl<P: Policy> Both<P> {
    /// Takes a step with both, and says whether the leased one asked its circuit.
    fn step(&mut self, step: Step) -> Result<bool, String> {
        if step == Step::Tick {
            self.now += UNIT;
        }
        let asked = self.leased.asked;
        let (one, other) = (self.asking.step(step, self.now), self.leased.step(step, self.now));
        alike("answers", &one, &other)?;
        alike("moves", &self.asking.moves(), &self.leased.moves())?;
        self.compare()?;
        Ok(self.leased.asked > asked)
    }

    /// Whether both circuits are the same once everything is handed in.
    fn compare(&self) -> Result<(), String> {
        let now = self.now;
        let mut leased = self.leased.clone();
        leased.hand_in(now);
        alike("moves by what was kept back", &Vec::new(), &leased.moves())?;
        alike("permits", &self.asking.permits, &leased.permits)?;
        alike("states", &self.asking.shown(now), &leased.shown(now))?;
        let (one, other) = (&self.asking.circuit, &leased.circuit);
        alike("leases", &one.lease(now), &other.lease(now))?;
        alike("snapshots", &one.save(now), &other.save(now))?;
        alike("circuits", &self.asking.held(now), &leased.held(now))
    }

    fn key(&self, setting: &Setting) -> String {
        let Self { asking, leased, .. } = self;
        let behind = (leased.kept_back > 0).then_some(&leased.circuit);
        let shown = (
            &asking.circuit,
            behind,
            &leased.lease,
            leased.kept_back,
            &leased.permits,
        );
        let phase = self.now / UNIT % setting.phases;
        shape(
            &format!("phase {phase}, {shown:?}"),
            self.now,
            setting.memory * UNIT,
        )
    }
}

/// What both hosts have must be the same.
fn alike<T: PartialEq + fmt::Debug>(what: &str, asked: &T, leased: &T) -> Result<(), String> {
    same(what, ("when asked each time", asked), ("by leases", leased))
}
