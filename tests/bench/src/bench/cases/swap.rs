//! How long calls wait while policies are exchanged.
//!
//! Two threads call circuits at random, again and again with a pause between two calls; every tenth call fails, and so has to
//! be told to the component. A call that waits keeps its
//! thread from making the next ones, which would have waited too: they are put in, each having waited a pause less
//! than the one before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tripwit::{Breaker, Breakers, Clock, SystemClock};
use tripwit_bench::{Guarding, Inputs, sixteen_byte_key, work};

use super::cold_start::MILLISECOND;
use crate::results::{Results, quantile};
use crate::runner::Effort;

/// How many threads call.
const THREADS: usize = 2;
/// Between two calls of a thread, in nanoseconds. The operating system adds some fifty microseconds.
const PAUSE: u64 = 50_000;
/// How long calls are watched between two swaps.
const CALM: Duration = Duration::from_millis(300);

/// Swaps there and back under load, a tenth of the circuits open.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    let circuits = effort.of(100_000, 10_000);
    let breakers = Guarding::Consecutive.builder()?.max_circuits(circuits).build()?;
    let handles = (0..circuits).map(|number| breakers.breaker(&sixteen_byte_key(number)));
    let handles = handles.collect::<Result<Vec<_>, _>>()?;
    for breaker in handles.iter().step_by(10) {
        breaker.trip();
    }
    let (lengths, waits) = under_load(&breakers, &handles, effort.of(8, 2))?;
    let longest = lengths.iter().copied().max().unwrap_or_default();
    results.figure("swap, circuits", circuits as f64, "circuits");
    results.figure("swap, the longest of them", longest as f64 / MILLISECOND, "ms");
    results.figure(
        "swap, calls that were watched",
        waits.swapping.len() as f64,
        "calls",
    );
    let (calm, swapping) = (sorted(waits.calm), sorted(waits.swapping));
    results.figure(WAIT, quantile(&swapping, 0.999) / MILLISECOND, "ms");
    results.figure("swap, longest call", quantile(&swapping, 1.0) / MILLISECOND, "ms");
    results.figure(
        "no swap, 99.9 % of calls within",
        quantile(&calm, 0.999) / MILLISECOND,
        "ms",
    );
    results.figure("no swap, longest call", quantile(&calm, 1.0) / MILLISECOND, "ms");
    Ok(())
}

/// Swaps so often. Gives the nanoseconds that each took, and what calls took meanwhile.
fn under_load(breakers: &Breakers, handles: &[Breaker], swaps: usize) -> Result<(Vec<u64>, Waits)> {
    let (stop, swapping) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|threads| {
        let load = || call(handles, &stop, &swapping);
        let load: Vec<_> = (0..THREADS).map(|_| threads.spawn(load)).collect();
        let lengths: Result<Vec<u64>> = (0..swaps)
            .map(|number| {
                pause(CALM);
                swap(breakers, number, &swapping)
            })
            .collect();
        stop.store(true, Ordering::Release);
        let mut all = Waits::default();
        for thread in load {
            let Ok(waits) = thread.join() else {
                bail!("a thread panicked")
            };
            all.calm.extend(waits.calm);
            all.swapping.extend(waits.swapping);
        }
        Ok((lengths?, all))
    })
}

fn swap(breakers: &Breakers, number: usize, swapping: &AtomicBool) -> Result<u64> {
    let to = if number.is_multiple_of(2) {
        Guarding::WindowCount
    } else {
        Guarding::Consecutive
    };
    let (policy, start) = (to.policy()?, SystemClock.monotonic());
    swapping.store(true, Ordering::Release);
    let swapped = breakers.swap(policy, to.settings());
    swapping.store(false, Ordering::Release);
    swapped?;
    Ok(SystemClock.monotonic() - start)
}

/// The name of the figure.
pub(crate) const WAIT: &str = "swap, 99.9 % of calls within";

/// What calls took, in nanoseconds.
#[derive(Default)]
struct Waits {
    calm: Vec<u64>,
    swapping: Vec<u64>,
}

fn call(circuits: &[Breaker], stop: &AtomicBool, swapping: &AtomicBool) -> Waits {
    let mut waits = Waits::default();
    let inputs = Inputs::failing(1, 10);
    let mut inputs = inputs.each(u64::MAX);
    while !stop.load(Ordering::Acquire) {
        let circuit = circuits.get(fastrand::usize(..circuits.len()));
        let (Some(circuit), Some(input)) = (circuit, inputs.next()) else {
            break;
        };
        let begun_in_swap = swapping.load(Ordering::Acquire);
        let start = SystemClock.monotonic();
        // Whatever comes of it.
        let _ = circuit.call_blocking(|| work(input));
        let wait = SystemClock.monotonic() - start;
        // A call that a swap caught is its as well.
        if begun_in_swap || swapping.load(Ordering::Acquire) {
            waits.swapping.push(wait);
        } else {
            waits.calm.push(wait);
        }
        pause(Duration::from_nanos(PAUSE));
    }
    waits
}

/// In order, with those put in that were not made.
fn sorted(waits: Vec<u64>) -> Vec<f64> {
    let with_missed = |wait: u64| {
        let missed = (1..=wait / PAUSE).map(move |number| wait - number * PAUSE);
        std::iter::once(wait).chain(missed)
    };
    let mut all: Vec<_> = waits
        .into_iter()
        .flat_map(with_missed)
        .map(|wait| wait as f64)
        .collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

#[expect(
    clippy::disallowed_methods,
    reason = "a load has pauses, and nothing waits for it"
)]
fn pause(length: Duration) {
    std::thread::sleep(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_a_wait_kept_from_being_made_have_waited_too() {
        let waits = sorted(vec![10, 2 * PAUSE + 7]);
        let expected = [7, 10, PAUSE + 7, 2 * PAUSE + 7].map(|wait| wait as f64);
        assert_eq!(waits, expected);
    }
}
