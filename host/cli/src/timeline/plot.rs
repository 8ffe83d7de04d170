//! Error rate and state over time, as SVG.

use std::path::Path;

use anyhow::{Context, Result};
use svg::Document;
use svg::node::element::{Circle, Group, Line, Path as Shape, Rectangle, Text, Title};
use tripwit::State;

use super::bins::Bins;
use super::track::Move;
use crate::time::{self, SECOND};

const WIDTH: f64 = 1_040.0;
const LEFT: f64 = 230.0;
const RIGHT: f64 = 48.0;
const TOP: f64 = 56.0;
const RATE_HEIGHT: f64 = 84.0;
const BAND_HEIGHT: f64 = 18.0;
const BAND_GAP: f64 = 6.0;
const PANEL_GAP: f64 = 34.0;
const AXIS_HEIGHT: f64 = 34.0;
const LEGEND_HEIGHT: f64 = 12.0;
/// As many characters of a label fit left of the plot.
const LABEL: usize = 26;
/// As many characters of the title fit above it.
const TITLE: usize = 64;
/// An error rate is drawn by so many bins at most, so that each is wide enough to see.
const BINS: u64 = 280;

const INK: &str = "#24292f";
const FAINT: &str = "#6e7781";
const GRID: &str = "#e4e7eb";
const RATE: &str = "#b3404a";
const CLOSED: &str = "#b7dfc0";
const HALF_OPEN: &str = "#f2b64b";
const OPEN: &str = "#d9534f";
const UNKNOWN: &str = "#c8ccd1";

/// Panels one above the other, over one stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// What is shown.
    pub(crate) title: String,
    /// Where the stretch begins, in nanoseconds since the Unix epoch.
    pub(crate) from: u64,
    /// Where it ends.
    pub(crate) to: u64,
    /// Whether times are counted from the beginning.
    pub(crate) elapsed: bool,
    /// From above to below.
    pub(crate) panels: Vec<Panel>,
}

/// One circuit: its error rate, and its state under each policy.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// The circuit.
    pub(crate) title: String,
    /// Calls and failures over time, where the error rate is shown.
    pub(crate) bins: Option<Bins>,
    /// Policies, from above to below.
    pub(crate) bands: Vec<Band>,
}

/// One circuit under one policy.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    /// The policy.
    pub(crate) label: String,
    /// The circuit's moves; it begins closed.
    pub(crate) moves: Vec<Move>,
    /// Whether there were moves after those.
    pub(crate) cut_off: bool,
    /// Single calls: when, what for a colour, and a text.
    pub(crate) marks: Vec<(u64, Mark, String)>,
}

/// How a single call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Made, and ended well.
    Good,
    /// Made, and ended badly.
    Bad,
    /// Made, and says nothing.
    Neutral,
    /// Not made.
    Rejected,
}

impl Plot {
    /// Writes the plot to a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.draw().to_string())
            .with_context(|| format!("cannot write the plot {}", path.display()))
    }

    fn draw(&self) -> Document {
        let height = TOP
            + self
                .panels
                .iter()
                .map(|panel| panel.height() + PANEL_GAP)
                .sum::<f64>()
            + AXIS_HEIGHT
            + LEGEND_HEIGHT;
        let mut document = Document::new()
            .set("viewBox", format!("0 0 {WIDTH} {height:.0}"))
            .set("width", WIDTH)
            .set("height", format!("{height:.0}"))
            .set("font-family", "system-ui, sans-serif")
            .set("font-size", 12)
            .add(rectangle(0.0, 0.0, WIDTH, height, "#ffffff"))
            .add(
                label(20.0, 28.0, &clip(&self.title, TITLE), INK)
                    .set("font-size", 16)
                    .set("font-weight", 600),
            );
        let mut y = TOP;
        for panel in &self.panels {
            document = document.add(self.panel(panel, y));
            y += panel.height() + PANEL_GAP;
        }
        document.add(self.axis(y - PANEL_GAP + 6.0)).add(legend(
            y - PANEL_GAP + AXIS_HEIGHT + 10.0,
            self.panels.iter().any(Panel::has_marks),
        ))
    }

    fn panel(&self, panel: &Panel, top: f64) -> Group {
        let mut group = Group::new()
            .add(label(20.0, top + 12.0, &clip(&panel.title, LABEL), INK).set("font-weight", 600));
        let mut y = top;
        for at in self.ticks().1 {
            group = group.add(line(self.x(at), top, self.x(at), top + panel.height(), GRID));
        }
        if let Some(bins) = &panel.bins {
            group = group.add(self.rate(bins, y));
            y += RATE_HEIGHT + BAND_GAP;
        } else {
            y += BAND_HEIGHT;
        }
        for band in &panel.bands {
            let marks = if band.marks.is_empty() { 0.0 } else { BAND_HEIGHT };
            group = group
                .add(self.marks(band, y))
                .add(self.band(band, y + marks))
                .add(
                    label(20.0, y + marks + 13.0, &clip(&band.label, LABEL), FAINT)
                        .add(Title::new(clean(&band.label))),
                );
            y += marks + BAND_HEIGHT + BAND_GAP;
        }
        group
    }

    /// The error rate, a step for each bin.
    fn rate(&self, bins: &Bins, top: f64) -> Group {
        let mut bins = bins.clone();
        bins.widen_to(self.to.saturating_sub(self.from) / BINS);
        let bottom = top + RATE_HEIGHT;
        let mut group = Group::new();
        for percent in [0, 50, 100] {
            let y = bottom - RATE_HEIGHT * f64::from(percent) / 100.0;
            group = group
                .add(line(LEFT, y, WIDTH - RIGHT, y, GRID))
                .add(label(LEFT - 8.0, y + 4.0, &format!("{percent} %"), FAINT).set("text-anchor", "end"));
        }
        let mut steps = String::new();
        for (from, to, bin) in bins.filled().filter(|(_, _, bin)| bin.failures > 0) {
            let rate = bin.failures as f64 / bin.calls as f64;
            let (left, right) = (self.x(from), self.x(to.min(self.to)).max(self.x(from) + 0.5));
            let y = bottom - RATE_HEIGHT * rate;
            steps += &format!("M{left:.2} {bottom:.2}V{y:.2}H{right:.2}V{bottom:.2}Z");
        }
        let each = format!("error rate of each {}", time::lasting(bins.width()));
        group
            .add(
                Shape::new()
                    .set("d", steps)
                    .set("fill", RATE)
                    .set("fill-opacity", 0.75)
                    .add(Title::new(each.clone())),
            )
            .add(label(20.0, top + 30.0, &each, FAINT))
            .add(line(LEFT, bottom, WIDTH - RIGHT, bottom, FAINT))
    }

    fn band(&self, band: &Band, top: f64) -> Group {
        let mut group = Group::new();
        let mut stretch = |from: u64, to: u64, colour: &str, what: &str| {
            let (left, right) = (self.x(from), self.x(to));
            let text = format!(
                "{what} for {}, from {}",
                time::lasting(to.saturating_sub(from)),
                self.instant(from)
            );
            // Also what is very short is to be seen.
            let width = if what == "closed" {
                right - left
            } else {
                (right - left).max(1.0)
            };
            let drawn = rectangle(left, top, width.max(0.0), BAND_HEIGHT, colour).add(Title::new(text));
            group = std::mem::take(&mut group).add(drawn);
        };
        let (mut since, mut state) = (self.from, State::Closed);
        let mut later = Vec::new();
        for step in &band.moves {
            if step.after != state {
                later.push((since, step.at, state));
                (since, state) = (step.at, step.after);
            }
        }
        if band.cut_off {
            stretch(since, self.to, UNKNOWN, "not recorded any further");
        } else {
            later.push((since, self.to, state));
        }
        // What comes later lies above: so the short stretches of the other states are seen on that of closed.
        later.sort_by_key(|(_, _, state)| match state {
            State::Closed => 0,
            State::HalfOpen => 1,
            State::Open => 2,
        });
        for (from, to, state) in later {
            let colour = match state {
                State::Closed => CLOSED,
                State::Open => OPEN,
                State::HalfOpen => HALF_OPEN,
            };
            stretch(from, to, colour, &state.to_string());
        }
        group
    }

    fn marks(&self, band: &Band, top: f64) -> Group {
        let mut group = Group::new();
        // Of calls at one place that which says most lies above.
        let mut marks: Vec<_> = band.marks.iter().collect();
        marks.sort_by_key(|(_, mark, _)| match mark {
            Mark::Neutral => 0,
            Mark::Good => 1,
            Mark::Bad => 2,
            Mark::Rejected => 3,
        });
        for (at, mark, text) in marks {
            // Rejected calls have a row of their own: they come right after those that opened the circuit.
            let (fill, edge, y) = match mark {
                Mark::Good => ("#3a9d5d", "#3a9d5d", 4.5),
                Mark::Bad => (OPEN, OPEN, 4.5),
                Mark::Neutral => (UNKNOWN, FAINT, 4.5),
                Mark::Rejected => ("#ffffff", FAINT, 13.5),
            };
            group = group.add(
                Circle::new()
                    .set("cx", format!("{:.2}", self.x(*at)))
                    .set("cy", top + y)
                    .set("r", 3.5)
                    .set("fill", fill)
                    .set("stroke", edge)
                    .add(Title::new(clean(text))),
            );
        }
        group
    }

    fn axis(&self, top: f64) -> Group {
        let (step, ticks) = self.ticks();
        let mut group = Group::new();
        for at in ticks {
            let text = if self.elapsed {
                time::lasting(at - self.from)
            } else {
                time::format(at, shape(step))
            };
            group = group.add(label(self.x(at), top + 12.0, &text, FAINT).set("text-anchor", "middle"));
        }
        let range = if self.elapsed {
            format!("{} in all", time::lasting(self.to.saturating_sub(self.from)))
        } else {
            format!(
                "{} to {} UTC",
                time::date_and_time(self.from),
                time::date_and_time(self.to)
            )
        };
        group.add(label(WIDTH - 20.0, 28.0, &range, FAINT).set("text-anchor", "end"))
    }

    /// Round times, so that there are not too many, and how far apart they are.
    fn ticks(&self) -> (u64, Vec<u64>) {
        let length = self.to.saturating_sub(self.from);
        let step = STEPS
            .iter()
            .copied()
            .find(|step| length / step <= 9)
            .unwrap_or_else(|| (length / 9).max(1));
        let origin = if self.elapsed { self.from } else { 0 };
        let first = origin + (self.from - origin).div_ceil(step) * step;
        let step_by = usize::try_from(step).unwrap_or(usize::MAX);
        (step, (first..=self.to).step_by(step_by).collect())
    }

    fn x(&self, at: u64) -> f64 {
        let length = self.to.saturating_sub(self.from).max(1) as f64;
        let gone = at.clamp(self.from, self.to.max(self.from)) - self.from;
        LEFT + (WIDTH - LEFT - RIGHT) * gone as f64 / length
    }

    fn instant(&self, at: u64) -> String {
        if self.elapsed {
            time::lasting(at.saturating_sub(self.from))
        } else {
            time::date_and_time(at)
        }
    }
}

impl Panel {
    fn has_marks(&self) -> bool {
        self.bands.iter().any(|band| !band.marks.is_empty())
    }

    fn height(&self) -> f64 {
        let above = if self.bins.is_some() {
            RATE_HEIGHT + BAND_GAP
        } else {
            BAND_HEIGHT
        };
        let band = |band: &Band| {
            let marks = if band.marks.is_empty() { 0.0 } else { BAND_HEIGHT };
            marks + BAND_HEIGHT + BAND_GAP
        };
        above + self.bands.iter().map(band).sum::<f64>()
    }
}

fn legend(top: f64, marks: bool) -> Group {
    let mut group = Group::new();
    let mut x = LEFT;
    for (colour, text) in [(CLOSED, "closed"), (HALF_OPEN, "half-open"), (OPEN, "open")] {
        group = group
            .add(rectangle(x, top - 10.0, 12.0, 12.0, colour))
            .add(label(x + 18.0, top, text, INK));
        x += 96.0;
    }
    if marks {
        let all = "dots are calls: green ended well, red failed, grey says nothing, hollow was rejected";
        group = group.add(label(x, top, all, FAINT));
    }
    group
}

fn label(x: f64, y: f64, text: &str, colour: &str) -> Text {
    Text::new(clean(text))
        .set("x", format!("{x:.2}"))
        .set("y", format!("{y:.2}"))
        .set("fill", colour)
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, colour: &str) -> Line {
    Line::new()
        .set("x1", format!("{x1:.2}"))
        .set("y1", format!("{y1:.2}"))
        .set("x2", format!("{x2:.2}"))
        .set("y2", format!("{y2:.2}"))
        .set("stroke", colour)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", format!("{x:.2}"))
        .set("y", format!("{y:.2}"))
        .set("width", format!("{width:.2}"))
        .set("height", format!("{height:.2}"))
        .set("fill", colour)
}

/// A text without what XML cannot hold.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

fn shape(step: u64) -> &'static str {
    match step {
        0..SECOND => "%H:%M:%S.%3f",
        SECOND..MINUTE => "%H:%M:%S",
        MINUTE..DAY => "%b %d %H:%M",
        _ => "%Y-%m-%d",
    }
}

const MS: u64 = SECOND / 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How far apart ticks may be.
const STEPS: [u64; 31] = [
    MS,
    2 * MS,
    5 * MS,
    10 * MS,
    20 * MS,
    50 * MS,
    100 * MS,
    200 * MS,
    500 * MS,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    30 * DAY,
    365 * DAY,
];

#[cfg(test)]
mod tests {
    use tripwit::Operation;

    use super::*;

    fn plot(panels: Vec<Panel>) -> String {
        Plot {
            title: "a <title> & \"more\"".into(),
            from: 0,
            to: 100 * SECOND,
            elapsed: true,
            panels,
        }
        .draw()
        .to_string()
    }

    fn step(at: u64, operation: Operation, after: State) -> Move {
        Move {
            at: at * SECOND,
            operation,
            after,
            wait: None,
            cooldown_count: None,
        }
    }

    #[test]
    fn each_state_is_drawn_for_as_long_as_it_lasted() {
        let band = Band {
            label: "policy".into(),
            moves: vec![
                step(25, Operation::Trip, State::Open),
                step(75, Operation::HalfOpen, State::HalfOpen),
                step(75, Operation::Reset, State::Closed),
            ],
            cut_off: false,
            marks: vec![(SECOND, Mark::Rejected, "rejected".into())],
        };
        let drawn = plot(vec![Panel {
            title: "circuit\u{1}".into(),
            bins: None,
            bands: vec![band],
        }]);
        for text in [
            "closed for 25s, from 0s",
            "open for 50s, from 25s",
            "half-open for 0s, from 1m15s",
            "closed for 25s, from 1m15s",
            "rejected",
            "a &lt;title&gt; &amp; \"more\"",
            "circuit\u{fffd}",
        ] {
            assert!(drawn.contains(text), "{text} is missing in {drawn}");
        }
        assert!(
            drawn.contains("width=\"381.00\""),
            "half of the width is open: {drawn}"
        );
    }

    #[test]
    fn a_call_that_failed_is_seen_whatever_else_came_at_the_same_time() {
        let at = SECOND;
        let band = Band {
            label: "policy".into(),
            moves: Vec::new(),
            cut_off: false,
            marks: vec![
                (at, Mark::Bad, "failed".into()),
                (at, Mark::Good, "ok".into()),
                (at, Mark::Rejected, "rejected".into()),
            ],
        };
        let drawn = plot(vec![Panel {
            title: String::new(),
            bins: None,
            bands: vec![band],
        }]);
        let place = |text: &str| drawn.find(text).unwrap();
        assert!(
            place(">ok<") < place(">failed<"),
            "what is drawn last lies above: {drawn}"
        );
        let row = |text: &str| {
            let circle = drawn[..place(text)].rfind("cy=").unwrap();
            drawn[circle..].split('"').nth(1).unwrap().to_owned()
        };
        assert_ne!(row(">failed<"), row(">rejected<"));
    }

    #[test]
    fn an_error_rate_is_a_step_for_each_bin() {
        let mut bins = Bins::new(0, SECOND);
        for at in 0..100 {
            bins.add(at * SECOND, at >= 50);
        }
        let drawn = plot(vec![Panel {
            title: "circuit".into(),
            bins: Some(bins),
            bands: Vec::new(),
        }]);
        assert!(drawn.contains("error rate of each 1s"), "{drawn}");
        let (all, none) = (TOP, TOP + RATE_HEIGHT);
        assert_eq!(drawn.matches(&format!("V{all:.2}H")).count(), 50, "{drawn}");
        assert_eq!(drawn.matches(&format!("V{none:.2}H")).count(), 0, "{drawn}");
    }
}
