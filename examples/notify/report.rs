//! What is shown and checked at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Table, presets};
use tripwit_examples::terminal::{self, FAINT, STRONG};

use crate::deliveries::{Record, Status};
use crate::ledger::Entry;
use crate::world::World;

/// Prints the table of guarded channels, and below it what needs no table.
pub(crate) fn print(world: &World) {
    let records = world.deliveries.records();
    terminal::say(&terminal::paint(
        STRONG,
        "\nGuarded channels, by the calls that went through a breaker",
    ));
    let guarded = world.sender.guarded().entries();
    terminal::say(&table(&guarded, &records).trim_fmt());
    terminal::say(&terminal::paint(FAINT, LEGEND));
    if guarded.values().any(|entry| entry.restored_open) {
        terminal::say(&terminal::paint(FAINT, RESTORED_LEGEND));
    }

    for (channel, entry) in world.sender.unguarded().entries() {
        let [sent, failed] = outcomes(&entry, &records);
        terminal::say(&format!(
            "\nUnguarded: {channel}, {sent} sent, {failed} failed, by {} calls of which {} failed; it has no circuit, so its \
             provider was spared none.",
            entry.calls, entry.failures
        ));
    }
    let sent = records
        .iter()
        .filter(|record| record.status == Status::Sent)
        .count();
    let given_up = records.iter().filter(|record| record.is_given_up()).count();
    let total = records.len();
    terminal::say(&format!(
        "{total} notifications: {sent} sent, {given_up} failed with no attempt left, {} lost.",
        total - sent - given_up
    ));
}

const LEGEND: &str = "\
sent, failed (no attempt left) and rejected (at least once) are notifications. Calls spared: those that the circuit rejected.
Calls failed: by error, time-out or bad answer; an HTTP 410 is one, and yet no failure to the circuit, since it is not the host's.
Time to recover: from the first opening until the circuit closed again.";

/// Stands behind the times that a circuit opened.
const RESTORED: &str = " + 1";

const RESTORED_LEGEND: &str = "\
+ 1: an earlier run left it open, and it was restored so; its time to recover counts from the start of this run.";

const HEADINGS: [&str; 9] = [
    "circuit",
    "sent",
    "failed",
    "rejected",
    "calls\nmade",
    "calls\nfailed",
    "calls\nspared",
    "times\nopened",
    "time to\nrecover",
];

fn table(entries: &BTreeMap<String, Entry>, records: &[Record]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_header(HEADINGS);
    for (circuit, entry) in entries {
        let [sent, failed] = outcomes(entry, records);
        table.add_row([
            circuit.clone(),
            sent.to_string(),
            failed.to_string(),
            entry.rejected.len().to_string(),
            entry.calls.to_string(),
            entry.failures.to_string(),
            entry.spared.to_string(),
            times_opened(entry),
            entry.recovery.map_or_else(|| "-".to_owned(), seconds),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Openings of this run, and that of an earlier one.
fn times_opened(entry: &Entry) -> String {
    let restored = if entry.restored_open { RESTORED } else { "" };
    format!("{}{restored}", entry.opened)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// How many of the entry's notifications are sent, and how many failed for good.
fn outcomes(entry: &Entry, records: &[Record]) -> [usize; 2] {
    let own = || entry.notifications.iter().filter_map(|id| records.get(*id));
    [
        own().filter(|record| record.status == Status::Sent).count(),
        own().filter(|record| record.is_given_up()).count(),
    ]
}
