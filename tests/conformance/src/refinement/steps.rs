//! What is drawn at random: steps, and what comes with them.

use fastrand::Rng;
use tripwit_core::{Lease, Mode, Nanoseconds, Outcome, Report};

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    PassTime,
    SetWall,
    Attach,
    Refused,
    Restart,
    CoolDown,
    /// With one of the circuits.
    With(Event),
}

/// What happens to a circuit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Acquire,
    Settle,
    SettleSuccesses,
    Configure,
    Detach,
    TakeOver,
    Command(Command),
}

/// What an operator does with one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Trip,
    Reset,
    SetMode,
    Look,
}

impl Action {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        match rng.u16(..400) {
            0 => Self::Restart,
            1..=2 => Self::SetWall,
            3..=4 => Self::Refused,
            5..=10 => Self::Attach,
            11..=25 => Self::CoolDown,
            26..=95 => Self::PassTime,
            event => Self::With(match event {
                96..=97 => Event::Detach,
                98..=101 => Event::Configure,
                102..=105 => Event::TakeOver,
                106..=120 => Event::SettleSuccesses,
                121..=124 => Event::Command(Command::Trip),
                125..=127 => Event::Command(Command::Reset),
                128..=135 => Event::Command(Command::SetMode),
                136..=145 => Event::Command(Command::Look),
                146..=250 => Event::Acquire,
                _ => Event::Settle,
            }),
        }
    }
}

pub(super) fn report(rng: &mut Rng, lease: &Lease) -> Report {
    let limit = lease.slow_after.or(lease.call_timeout).unwrap_or(1_000_000);
    let outcomes = [
        Outcome::Success,
        Outcome::Success,
        Outcome::Failure,
        Outcome::Failure,
        Outcome::Timeout,
        Outcome::Ignored,
    ];
    Report {
        outcome: rng.choice(outcomes).unwrap_or(Outcome::Success),
        took: rng
            .choice([
                None,
                Some(0),
                Some(limit),
                Some(limit.saturating_add(1)),
                Some(u64::MAX),
            ])
            .flatten(),
        retry_after: rng.bool().then(|| wait(rng)).flatten(),
        cause: rng.bool().then(|| cause(rng)),
    }
}

/// Some are longer than is kept, and end within a character.
fn cause(rng: &mut Rng) -> String {
    match rng.u8(..4) {
        0 => "refused".to_owned(),
        1 => String::new(),
        2 => "ä€😀".repeat(40),
        _ => "x".repeat(rng.usize(200..300)),
    }
}

/// None, little, much, or more than there is.
pub(super) fn wait(rng: &mut Rng) -> Option<Nanoseconds> {
    match rng.u8(..8) {
        0 => Some(0),
        1..=3 => Some(rng.u64(..5) * 1_000_000),
        4 => Some(rng.u64(..100_000_000_000)),
        5 => Some(u64::MAX),
        _ => None,
    }
}

/// Mostly the policy decides.
pub(super) fn mode(rng: &mut Rng) -> Mode {
    match rng.u8(..8) {
        0 => Mode::ForcedOpen,
        1 => Mode::Disabled,
        2 => Mode::Shadow,
        _ => Mode::Automatic,
    }
}

/// Some are as long as may be, or not ASCII.
pub(super) fn key(number: usize) -> String {
    match number {
        0 => "orders".to_owned(),
        1 => "größe/注文 {}\"".to_owned(),
        2 => "k".repeat(512),
        _ => format!("key {number}"),
    }
}

/// A key and settings that no policy takes.
pub(super) fn nonsense(rng: &mut Rng) -> (String, &'static str) {
    let key = rng
        .choice([String::new(), "k".repeat(513), "nobody".to_owned()])
        .unwrap_or_default();
    let broken = [
        "",
        "[]",
        "{",
        "null",
        r#"{"no_such_setting": 1}"#,
        r#"{"open_for": -1, "cooldown_count": -1}"#,
        r#"{"failure_threshold": 1e999}"#,
        "{\"a\":\u{0}}",
    ];
    (key, rng.choice(broken).unwrap_or_default())
}
