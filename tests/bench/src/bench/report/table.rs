//! The results as tables, which are both plain text and Markdown.

use comfy_table::{CellAlignment, Table, presets};

use crate::results::{Figure, Row};
use crate::targets::Target;

/// What calls cost.
pub(crate) fn rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Table {
    let mut table = new(["subject", "policy", "threads", "ns", "quartiles", "to bare"], 2);
    for row in rows {
        let quartiles = format!("{} to {}", number(row.time.low), number(row.time.high));
        table.add_row([
            row.subject.name().to_owned(),
            row.policy.clone(),
            row.threads.to_string(),
            number(row.time.ns),
            quartiles,
            row.ratio.map_or_else(String::new, number),
        ]);
    }
    table
}

/// Other figures.
pub(crate) fn figures(figures: &[Figure]) -> Table {
    let mut table = new(["figure", "value", "unit"], 1);
    for figure in figures {
        table.add_row([figure.name, &number(figure.value), figure.unit]);
    }
    table
}

/// The targets, and whether they are met.
pub(crate) fn targets(targets: &[Target]) -> Table {
    let mut table = new(["target", "at most", "measured", "unit", ""], 1);
    for target in targets {
        let (measured, verdict) = match target.measured {
            Some(measured) if target.is_met() => (number(measured), "met"),
            Some(measured) => (number(measured), "**missed**"),
            None => (String::new(), "**not measured**"),
        };
        table.add_row([
            &target.what,
            &number(target.limit),
            &measured,
            target.unit,
            verdict,
        ]);
    }
    table
}

/// So many columns of text on the left; the others hold numbers.
fn new<const N: usize>(header: [&str; N], texts: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(texts) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Three digits or more, with commas between thousands.
fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_more() {
        for (value, text) in [
            (0.0, "0"),
            (0.123, "0.12"),
            (9.99, "9.99"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-123_456.0, "-123,456"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
