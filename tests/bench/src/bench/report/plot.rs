//! The results as a bar chart.

use std::path::Path;

use anyhow::{Context, Result};
use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text, Title};

use crate::results::{Results, Row};
use crate::subject::Subject;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 76.0;
const BAR: f64 = 13.0;
const STEP: f64 = 18.0;
const PANEL_GAP: f64 = 34.0;
/// The least and the most that is drawn, in nanoseconds.
const RANGE: (f64, f64) = (1.0, 10_000.0);
/// Where lines are.
const TICKS: [(f64, &str); 5] = [
    (1.0, "1 ns"),
    (10.0, "10 ns"),
    (100.0, "100 ns"),
    (1_000.0, "1 µs"),
    (10_000.0, "10 µs"),
];

const INK: &str = "#24292f";
const FAINT: &str = "#6e7781";
const GRID: &str = "#e4e7eb";
const OURS: &str = "#1f6feb";
const THEIRS: &str = "#8c959f";
const NOBODYS: &str = "#c8ccd1";

/// Draws what calls cost on one thread, a panel for each kind of call, on a logarithmic scale.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write(path: &Path, results: &Results) -> Result<()> {
    let panels: Vec<_> = results
        .by_name()
        .into_iter()
        .filter_map(|(name, rows)| panel(name, rows))
        .collect();
    svg::save(path, &draw(&panels)).with_context(|| format!("cannot write the plot {}", path.display()))
}

/// The rows that are held against a bare call.
fn panel<'a>(name: &'a str, rows: Vec<&'a Row>) -> Option<(&'a str, Vec<&'a Row>)> {
    let alone: Vec<_> = rows.into_iter().filter(|row| row.threads == 1).collect();
    let has = |subject| alone.iter().any(|row| row.subject == subject);
    (has(Subject::Bare) && has(Subject::Tripwit)).then_some((name, alone))
}

fn draw(panels: &[(&str, Vec<&Row>)]) -> Document {
    let heights = panels
        .iter()
        .map(|(_, rows)| rows.len() as f64 * STEP + PANEL_GAP);
    let height = TOP + heights.sum::<f64>();
    let mut document = Document::new()
        .set("viewBox", format!("0 0 {WIDTH} {height:.0}"))
        .set("width", WIDTH)
        .set("height", format!("{height:.0}"))
        .set("font-family", "system-ui, sans-serif")
        .set("font-size", 12)
        .add(rectangle(0.0, 0.0, WIDTH, height, "#ffffff"))
        .add(
            text(
                20.0,
                28.0,
                "Nanoseconds a call, the call itself included; less is better",
                INK,
            )
            .set("font-size", 16),
        );
    for (ns, label) in TICKS {
        document = document.add(text(x(ns), 50.0, label, FAINT).set("text-anchor", "middle"));
    }
    let mut top = TOP;
    for (name, rows) in panels {
        document = document.add(text(20.0, top, name, INK).set("font-weight", 600));
        document = document.add(bars(rows, top + 8.0));
        top += rows.len() as f64 * STEP + PANEL_GAP;
    }
    document
}

fn bars(rows: &[&Row], top: f64) -> Group {
    let bottom = top + rows.len() as f64 * STEP;
    let mut group = Group::new();
    for (ns, _) in TICKS {
        group = group.add(
            Line::new()
                .set("x1", round(x(ns)))
                .set("y1", round(top))
                .set("x2", round(x(ns)))
                .set("y2", round(bottom))
                .set("stroke", GRID),
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = top + index as f64 * STEP;
        let colour = match row.subject {
            Subject::Tripwit => OURS,
            Subject::Bare => NOBODYS,
            Subject::Recloser
            | Subject::FailsafeConsecutive
            | Subject::FailsafeDefault
            | Subject::TowerResilience
            | Subject::TokioTimeout => THEIRS,
        };
        let label = if row.policy.is_empty() {
            row.subject.name().to_owned()
        } else {
            format!("{}: {}", row.subject.name(), row.policy)
        };
        let spread = format!(
            "{:.1} ns, quartiles {:.1} to {:.1}",
            row.time.ns, row.time.low, row.time.high
        );
        let end = x(row.time.ns);
        group = group
            .add(text(LEFT - 8.0, y + BAR - 2.0, &label, INK).set("text-anchor", "end"))
            .add(rectangle(LEFT, y, end - LEFT, BAR, colour).add(Title::new(spread)))
            .add(text(end + 6.0, y + BAR - 2.0, &shown(row.time.ns), FAINT));
    }
    group
}

/// Where a number of nanoseconds is on the scale.
fn x(ns: f64) -> f64 {
    let (least, most) = (RANGE.0.ln(), RANGE.1.ln());
    let share = (ns.clamp(RANGE.0, RANGE.1).ln() - least) / (most - least);
    LEFT + (WIDTH - LEFT - RIGHT) * share
}

fn shown(ns: f64) -> String {
    if ns < 99.95 {
        format!("{ns:.1}")
    } else {
        format!("{ns:.0}")
    }
}

fn text(x: f64, y: f64, content: &str, colour: &str) -> Text {
    Text::new(content)
        .set("x", round(x))
        .set("y", round(y))
        .set("fill", colour)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(x))
        .set("y", round(y))
        .set("width", round(width))
        .set("height", round(height))
        .set("fill", colour)
}

fn round(length: f64) -> String {
    format!("{length:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Spread;

    fn row(subject: Subject, ns: f64) -> Row {
        Row {
            name: "healthy".into(),
            subject,
            threads: 1,
            policy: "a <policy>".into(),
            time: Spread {
                ns,
                low: ns,
                high: ns,
            },
            ratio: None,
        }
    }

    #[test]
    fn a_bar_is_ten_times_as_much_each_quarter_of_the_scale() {
        let rows = [row(Subject::Bare, 10.0), row(Subject::Tripwit, 100.0)];
        let drawn = draw(&[("healthy", rows.iter().collect())]).to_string();
        for part in [
            "width=\"140.0\"",
            "width=\"280.0\"",
            "a &lt;policy&gt;",
            "healthy",
        ] {
            assert!(drawn.contains(part), "{part} is missing in {drawn}");
        }
    }
}
