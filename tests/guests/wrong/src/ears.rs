//! What surrounds the circuits: the component's imports, bent.

use tripwit_policy::{Host, Line, Span, component::Imports};

use crate::fault::Fault;

/// The imports, and the fault of the circuit that is asked.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    pub(crate) fault: Fault,
    /// The latest reading of the clock.
    pub(crate) latest: u64,
}

impl Host for Ears {
    fn monotonic(&mut self) -> u64 {
        let now = Imports.monotonic();
        let back = self.latest.saturating_sub(now);
        if back > 0 && self.fault == Fault::ClockUnderflow {
            core::arch::wasm32::unreachable();
        }
        if back > 0 && self.fault == Fault::EarlyWait {
            return self.latest.saturating_add(back);
        }
        self.latest = self.latest.max(now);
        now
    }

    fn wall(&mut self) -> u64 {
        Imports.wall()
    }

    fn log(&mut self, line: Line) {
        match self.fault {
            Fault::Silent => {}
            Fault::LoggedTwice => {
                Imports.log(line.clone());
                Imports.log(line);
            }
            _ => Imports.log(line),
        }
    }

    fn export_span(&mut self, span: Span) {
        let half_open = span.name.ends_with(" half_open");
        match self.fault {
            Fault::Silent => {}
            Fault::UntoldMove if half_open => {}
            Fault::ToldTwice => {
                Imports.export_span(span.clone());
                Imports.export_span(span);
            }
            _ => Imports.export_span(span),
        }
    }
}

/// A span of a move that was not made.
pub(crate) fn made_up(key: &str, at: u64) -> Span {
    Span {
        name: alloc::format!("{key} trip"),
        at,
        attributes: alloc::vec::Vec::new(),
    }
}
