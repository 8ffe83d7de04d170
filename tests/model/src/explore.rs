//! Every state that there is, and every event in each.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use tripwit_core::{Mode, Nanoseconds, Policy};

use crate::event::{End, Event, MILLISECOND};
use crate::reference::Reference;
use crate::run::Run;

/// What makes the number of states finite. Everything else is walked to the end.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At most so many permits are out.
    pub permits: usize,
    /// A window holds at most so many calls: where only time ends it, it could hold any number.
    pub recorded: usize,
    /// How calls end.
    pub ends: &'static [End],
    /// The clock is at most so far behind. Milliseconds.
    pub behind: u64,
    /// Within so many calls the circuit must find back to closed.
    pub calls_to_close: usize,
}

/// What was explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// States.
    pub states: usize,
    /// Events, each in a state of its own.
    pub events: u64,
    /// So many events lead to the state that is the farthest.
    pub depth: u32,
    /// The longest way back to closed. Nanoseconds.
    pub longest_recovery: Nanoseconds,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            states,
            events,
            depth,
            longest_recovery,
        } = self;
        write!(
            f,
            "{states} states, the farthest {depth} events away, and {events} events; closed again after at most {} ms",
            longest_recovery / MILLISECOND
        )
    }
}

/// Explores all states that a run can come to, breadth first, so that what goes wrong is shown by a shortest path.
///
/// # Errors
///
/// The first difference or broken rule, and the events that lead to it.
pub fn explore<P: Policy, R: Reference>(start: Run<P, R>, bounds: Bounds) -> Result<Explored, String> {
    let mut known = HashSet::from([digest(&start)]);
    let mut paths: Vec<(usize, Event)> = Vec::new();
    let mut explored = Explored {
        states: 1,
        ..Explored::default()
    };
    // Number 0 is the start; the state with number n was reached by the path at n - 1.
    let mut layer = vec![(0, start)];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for (number, run) in layer {
            let at =
                |event: Option<Event>, problem: String| format!("{}: {problem}", path(&paths, number, event));
            let recovery = run
                .recovers(bounds.calls_to_close)
                .map_err(|problem| at(None, problem))?;
            explored.longest_recovery = explored.longest_recovery.max(recovery);
            for event in events(run.permits(), bounds.ends) {
                let mut then = run.clone();
                then.step(event).map_err(|problem| at(Some(event), problem))?;
                explored.events += 1;
                let within = then.permits() <= bounds.permits
                    && then.recorded() <= bounds.recorded
                    && then.behind() <= bounds.behind * MILLISECOND;
                if within && known.insert(digest(&then)) {
                    next.push((number, event, then));
                }
            }
        }
        layer = next
            .into_iter()
            .map(|(from, event, run)| {
                paths.push((from, event));
                (paths.len(), run)
            })
            .collect();
        explored.states += layer.len();
        if explored.states > MOST_STATES {
            return Err(format!(
                "more than {MOST_STATES} states: something that does not matter tells them apart, and `shape` does not know it"
            ));
        }
        explored.depth += u32::from(!layer.is_empty());
    }
    Ok(explored)
}

/// Many more than there are under any setting that is small.
const MOST_STATES: usize = 200_000;

/// Everything that can happen while so many permits are out.
fn events(permits: usize, ends: &[End]) -> impl Iterator<Item = Event> + use<'_> {
    let endings = (0..permits).flat_map(|permit| ends.iter().map(move |end| Event::Settle(permit, *end)));
    ANY_TIME.into_iter().chain(endings)
}

const ANY_TIME: [Event; 13] = [
    Event::Advance(1),
    Event::StepBack(1),
    Event::Acquire,
    Event::Trip(None),
    Event::Trip(Some(3)),
    Event::Reset,
    Event::SetMode(Mode::Automatic),
    Event::SetMode(Mode::ForcedOpen),
    Event::SetMode(Mode::Disabled),
    Event::SetMode(Mode::Shadow),
    Event::CoolDown,
    Event::TakeOver(0),
    Event::TakeOver(1),
];

fn path(paths: &[(usize, Event)], number: usize, last: Option<Event>) -> String {
    let mut events: Vec<_> = last.into_iter().collect();
    let mut at = number;
    while let Some((from, event)) = at.checked_sub(1).and_then(|place| paths.get(place)) {
        events.push(*event);
        at = *from;
    }
    let texts: Vec<_> = events.iter().rev().map(ToString::to_string).collect();
    format!("after {}", texts.join(", "))
}

/// 128 bits, so that no two states of any number that can be walked have the same.
fn digest<P: Policy, R: Reference>(run: &Run<P, R>) -> u128 {
    let key = run.key();
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        key.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
