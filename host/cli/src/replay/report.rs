//! What came of a replay, for people.

use comfy_table::{CellAlignment, Table, presets};
use tripwit::Operation;

use super::command::Made;
use super::run::{Circuit, Replayed};
use crate::terminal::{FAINT, NOTICE, STRONG, paint};
use crate::time;
use crate::timeline::{Move, Track};

/// As many moves of a circuit are shown; JSON has more.
const MOVES_SHOWN: usize = 6;

/// The whole report.
pub(super) fn of(made: &Made<'_>, replayed: &Replayed) -> String {
    let mut text = heading(made, replayed);
    let shown = ranked(replayed);
    let (shown, others) = shown.split_at(made.top.min(shown.len()));
    text += &table(made, replayed, shown);
    text += "\n";
    if !others.is_empty() {
        let failed: u64 = others.iter().map(|(_, circuit)| circuit.results.failed).sum();
        text += &format!(
            "{} more circuits with {} failures are counted in `all`; --top and --json show them\n",
            grouped(others.len() as u64),
            grouped(failed)
        );
    }
    for (number, circuit) in shown {
        text += &moves(made, replayed, *number, circuit);
    }
    for note in notes(made, replayed) {
        text += &format!("{} {note}\n", paint(NOTICE, "note:"));
    }
    text.trim_end().to_owned()
}

/// The circuits and their numbers, those with the most failures first.
pub(super) fn ranked(replayed: &Replayed) -> Vec<(usize, &Circuit)> {
    let mut all: Vec<_> = replayed.circuits.iter().enumerate().collect();
    all.sort_by(|(_, one), (_, other)| {
        (other.results.failed, other.results.sum(), &one.key).cmp(&(
            one.results.failed,
            one.results.sum(),
            &other.key,
        ))
    });
    all
}

/// What a policy is called in the report: its number where there are several, and as it was named.
pub(super) fn title(made: &Made<'_>, lane: usize) -> String {
    let text = made.candidates.get(lane).map_or("", |candidate| &candidate.text);
    if made.candidates.len() > 1 {
        format!("{} {text}", lane + 1)
    } else {
        text.to_owned()
    }
}

fn heading(made: &Made<'_>, replayed: &Replayed) -> String {
    let circuits = match replayed.circuits.len() {
        1 => "1 circuit".to_owned(),
        several => format!("{} circuits", grouped(several as u64)),
    };
    format!(
        "{}: {} lines, {}\n{} calls by {} in {circuits}, {} to {} UTC\nfailures: {}, and calls with an error; ignored: {}\n\n",
        paint(STRONG, &made.logs),
        grouped(replayed.lines),
        replayed.format,
        grouped(replayed.calls),
        replayed.by,
        time::date_and_time(replayed.from),
        time::date_and_time(replayed.to),
        made.failures,
        made.ignored,
    )
}

fn table(made: &Made<'_>, replayed: &Replayed, shown: &[(usize, &Circuit)]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "circuit",
        "calls",
        "failed",
        "policy",
        "failures spared",
        "failures made",
        "good rejected",
        "timed out",
        "trips",
        "re-trips",
        "time open",
        "in the end",
    ]);
    for (number, circuit) in shown {
        for (place, lane) in replayed.lanes.iter().enumerate() {
            if let Some(track) = lane.tracks().get(*number) {
                let first = place == 0;
                let log = (
                    first,
                    circuit.key.as_str(),
                    circuit.results.sum(),
                    circuit.results.failed,
                );
                let end = if track.half_open + track.open == 0 && track.trips == 0 {
                    String::new()
                } else {
                    track.state.to_string()
                };
                table.add_row(row(
                    log,
                    &title(made, place),
                    &Sums::of(std::iter::once(track)),
                    end,
                ));
            }
        }
    }
    if replayed.circuits.len() > 1 {
        let all = || replayed.circuits.iter().map(|circuit| &circuit.results);
        let calls = all().map(|results| results.sum()).sum();
        let failed = all().map(|results| results.failed).sum();
        for (place, lane) in replayed.lanes.iter().enumerate() {
            let log = (place == 0, "all", calls, failed);
            let sums = Sums::of(lane.tracks().iter());
            table.add_row(row(log, &title(made, place), &sums, String::new()));
        }
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        if !matches!(place, 0 | 3 | 11) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// What is shown of one circuit, or of several together.
#[derive(Debug, Default)]
struct Sums {
    spared: u64,
    made: u64,
    good_rejected: u64,
    timed_out: u64,
    trips: u64,
    re_trips: u64,
    open: u64,
}

impl Sums {
    fn of<'a>(tracks: impl Iterator<Item = &'a Track>) -> Self {
        tracks.fold(Self::default(), |sum, track| Self {
            spared: sum.spared + track.counts.rejected.failed,
            made: sum.made + track.counts.made.failed,
            good_rejected: sum.good_rejected + track.counts.rejected.good,
            timed_out: sum.timed_out + track.counts.timed_out.sum(),
            trips: sum.trips + track.trips,
            re_trips: sum.re_trips + track.re_trips,
            open: sum.open + track.open,
        })
    }
}

fn row(
    (first, key, calls, failed): (bool, &str, u64, u64),
    policy: &str,
    sums: &Sums,
    end: String,
) -> Vec<String> {
    let of_the_log = |text: String| if first { text } else { String::new() };
    vec![
        of_the_log(printable(key)),
        of_the_log(grouped(calls)),
        of_the_log(grouped(failed)),
        policy.to_owned(),
        grouped(sums.spared),
        grouped(sums.made),
        grouped(sums.good_rejected),
        grouped(sums.timed_out),
        grouped(sums.trips),
        grouped(sums.re_trips),
        time::lasting(sums.open),
        end,
    ]
}

fn moves(made: &Made<'_>, replayed: &Replayed, number: usize, circuit: &Circuit) -> String {
    let mut text = String::new();
    for (place, lane) in replayed.lanes.iter().enumerate() {
        let Some(track) = lane.tracks().get(number).filter(|track| !track.moves.is_empty()) else {
            continue;
        };
        text += &format!(
            "\n{} {}\n",
            paint(STRONG, &printable(&circuit.key)),
            paint(FAINT, &title(made, place))
        );
        for step in track.moves.iter().take(MOVES_SHOWN) {
            text += &format!("  {}  {}\n", time::date_and_time(step.at), told(step));
        }
        let more = track.moves.len().saturating_sub(MOVES_SHOWN) as u64 + track.moves_left_out;
        if more > 0 {
            text += &format!("  and {} more; --json has them\n", grouped(more));
        }
    }
    text
}

/// A move in words.
pub(crate) fn told(step: &Move) -> String {
    let name = match step.operation {
        Operation::Trip => "trip",
        Operation::ReTrip => "re-trip",
        Operation::HalfOpen => "half-open",
        Operation::Reset => "reset",
    };
    match (step.wait, step.cooldown_count) {
        (Some(wait), _) => format!("{name}, open for {}", time::lasting(wait)),
        (None, Some(cycles)) if step.operation != Operation::Reset => {
            format!("{name}, open for {cycles} cool-down cycles")
        }
        (None, _) => name.to_owned(),
    }
}

fn notes(made: &Made<'_>, replayed: &Replayed) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, text: &str| {
        if count > 0 {
            notes.push(format!("{} {text}", grouped(count)));
        }
    };
    note(
        replayed.ungrouped,
        &format!(
            "lines have nothing to group by ({}) and were left out",
            replayed.by
        ),
    );
    note(
        replayed.beyond,
        "calls were left out: there are more circuits than --max-circuits allows",
    );
    note(
        replayed.late,
        "calls are out of order by more than --longest; each counts as begun when the last one before it began",
    );
    for (place, lane) in replayed.lanes.iter().enumerate() {
        note(
            lane.faults(),
            &format!(
                "times the component of {} failed: what it shows here is not what it decides",
                title(made, place)
            ),
        );
    }
    let bad = &replayed.bad;
    if bad.count > 0 {
        let mut text = format!(
            "{} lines could not be used and were left out:",
            grouped(bad.count)
        );
        for (log, line, problem) in &bad.shown {
            text += &format!("\n  {log}, line {line}: {}", printable(problem));
        }
        let more = bad.count - bad.shown.len() as u64;
        if more > 0 {
            text += &format!("\n  and {} more", grouped(more));
        }
        notes.push(text);
    }
    notes
}

/// A text of the log without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
    }
}
