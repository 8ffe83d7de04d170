//! The table of policies and settings in README.md, made from the policies' own schemas.

use anyhow::{Context, Result};
use serde_json::Value;
use tripwit_core::{Consecutive, Outbox, Policy, Window};

const BEGIN: &str = "<!-- settings:begin -->\n";
const END: &str = "<!-- settings:end -->";

/// README.md with the table as it should be.
pub(crate) fn with_settings(readme: &str) -> Result<String> {
    let (before, rest) = readme
        .split_once(BEGIN)
        .with_context(|| format!("README.md has no line {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("README.md has no line {END}"))?;
    let tables = table::<Consecutive>()? + &table::<Window>()? + &table::<Outbox>()?;
    Ok(format!("{before}{BEGIN}{tables}{END}{after}"))
}

fn table<P: Policy>() -> Result<String> {
    let schema: Value =
        serde_json::from_str(&P::schema()).with_context(|| format!("schema of {}", P::NAME))?;
    let mut table = format!("\n**`{}`**: {}\n\n", P::NAME, P::SUMMARY);
    table += "| setting | default | range | meaning |\n|---|---|---|---|\n";
    for field in P::FIELDS {
        let name = field.name();
        table += &row(
            name,
            schema
                .pointer(&format!("/properties/{name}"))
                .context("a field without a schema")?,
        );
    }
    Ok(table + "\n")
}

fn row(name: &str, field: &Value) -> String {
    let text = |name: &str| match field.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let bound = |number: &str, duration: &str| {
        if field.get(number).is_some() {
            text(number)
        } else {
            text(duration)
        }
    };
    let nullable = field.get("type").is_some_and(Value::is_array);
    let range = format!(
        "{} to {}{}",
        bound("minimum", "x-minimum"),
        bound("maximum", "x-maximum"),
        if nullable { ", null" } else { "" }
    );
    let default = if field.get("default").is_some() {
        format!("`{}`", text("default"))
    } else {
        String::new()
    };
    format!("| `{name}` | {default} | {range} | {} |\n", text("description"))
}
