//! Lines for people, coloured on a terminal only.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};

/// A heading.
pub(crate) const STRONG: Style = Style::new().bold();
/// What explains, and may be overlooked.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Good news.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Worth a look.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();
/// Bad news.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints on standard output. A reader that went away (`| head`) is no reason to stop.
pub(crate) fn say(text: &str) {
    let mut out = anstream::stdout().lock();
    let gone = writeln!(out, "{text}").and_then(|()| out.flush());
    drop(gone);
}

/// Prints on standard error what went wrong.
pub(crate) fn complain(text: &str) {
    let mut err = anstream::stderr().lock();
    let gone = writeln!(err, "{BAD}error{BAD:#}: {text}");
    drop(gone);
}

/// `text` in `style`.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// One line on standard error that is written over, where that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
        }
    }

    /// Shows what is being done now.
    pub(crate) fn show(&self, text: &str) {
        if self.shown {
            let mut err = anstream::stderr().lock();
            let gone = write!(err, "\r\u{1b}[2K{text} ...").and_then(|()| err.flush());
            drop(gone);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let mut err = anstream::stderr().lock();
            let gone = write!(err, "\r\u{1b}[2K").and_then(|()| err.flush());
            drop(gone);
        }
    }
}
