//! Lines for people, coloured on a terminal only.

use std::io::Write;

use anstyle::{AnsiColor, Style};

/// What explains, and may be overlooked.
pub const FAINT: Style = Style::new().dimmed();
/// A heading.
pub const STRONG: Style = Style::new().bold();
/// Good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Worth a look.
pub const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Bad news.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints one line, or several at once, on standard output. A reader that went away (`| head`) is no reason to stop.
pub fn say(text: &str) {
    let mut out = anstream::stdout().lock();
    let gone = writeln!(out, "{text}").and_then(|()| out.flush());
    drop(gone);
}

/// Prints what went wrong, on standard error.
pub fn complain(text: &str) {
    let mut err = anstream::stderr().lock();
    let gone = writeln!(err, "{BAD}{text}{BAD:#}");
    drop(gone);
}

/// `text` in `style`.
#[must_use]
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
