//! What a component tells beside its answers: log lines and spans.

use tripwit::FieldValue;
use tripwit::raw::{Level, Told, Transition};

use super::answer::Command;
use super::case::Case;
use super::circuit::{Circuit, KEY};
use super::problem::{Checked, Problem, ensure_of};
use super::subject::{Subject, Voice};
use super::words;

/// A span: its name, its beginning and its end.
type Span = (String, u64, u64);
/// A log line.
type Line = (Level, String, Vec<(String, FieldValue)>);

impl Circuit<'_> {
    /// One span and one log line for each move, where the policy tells anything at all.
    pub(super) fn judge_told(&mut self, command: Command, transition: Option<&Transition>) -> Checked {
        let (mut spans, mut lines): (Vec<Span>, Vec<Line>) = (Vec::new(), Vec::new());
        for told in self.instance.heard().told {
            match told {
                Told::Span { name, start, end, .. } => spans.push((name, start, end)),
                Told::Line {
                    level,
                    message,
                    fields,
                } => lines.push((level, message, fields)),
            }
        }
        let Some(voice) = self.subject.voice.get() else {
            self.subject.hears(Voice {
                spans: !spans.is_empty(),
                lines: !lines.is_empty(),
            });
            return Ok(());
        };
        judge_spans(&spans, voice, transition)?;
        judge_lines(self.subject, &lines, voice, transition)?;
        let moves = usize::from(transition.is_some());
        if lines.len() > 1 || (lines.len() > moves && !matches!(command, Command::SetMode(_))) {
            let one = lines.last().map(|(_, message, _)| message);
            self.subject
                .note(format!("writes further log lines, such as {one:?}"));
        }
        Ok(())
    }
}

fn judge_spans(spans: &[Span], voice: Voice, transition: Option<&Transition>) -> Checked {
    let moves = usize::from(transition.is_some());
    ensure_of!(
        Case::Moves,
        spans.len() == moves || (!voice.spans && spans.is_empty()),
        format!("{moves} spans, since there were {moves} moves"),
        || format!("{} spans: {spans:?}", spans.len()),
    )?;
    let (Some((name, start, end)), Some(transition)) = (spans.first(), transition) else {
        return Ok(());
    };
    let operation = words::operation(transition.operation);
    let named = name.replace('_', "-");
    ensure_of!(
        Case::Moves,
        named.starts_with(KEY) && named.contains(operation) && start <= end,
        format!("a span named by key and operation, such as \"{KEY} {operation}\", that ends after it began"),
        || format!("{name:?} from {start} to {end}"),
    )
}

fn judge_lines(subject: &Subject, lines: &[Line], voice: Voice, transition: Option<&Transition>) -> Checked {
    let repeated = |place: usize, line: &Line| lines.iter().skip(place + 1).any(|other| other == line);
    let twice = lines
        .iter()
        .enumerate()
        .find(|(place, line)| repeated(*place, line));
    ensure_of!(Case::Moves, twice.is_none(), "a log line once", || {
        format!("twice: {:?}", twice.map(|(_, (_, message, _))| message))
    })?;
    let mut messages = lines.iter().map(|(_, message, _)| message);
    if transition.is_some() {
        let told = !voice.lines || !lines.is_empty();
        messages.for_each(|message| subject.learn_line(message));
        return ensure_of!(Case::Moves, told, "a log line for the move", || "none".into());
    }
    match messages.find(|message| subject.tells_a_move(message)) {
        Some(message) => Err(Problem::of(
            Case::Moves,
            "no log line of a move where there was none",
            message,
        )),
        None => Ok(()),
    }
}
