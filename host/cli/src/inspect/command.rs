//! The subcommand.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use tripwit::{FieldValue, Policy};

use super::settings::{Setting, settings, text};
use crate::candidate::find;
use crate::load::Loading;
use crate::terminal::{self, FAINT, STRONG, paint};

/// Shows what a policy is: name, version, digest, size, imports, version of the contract, and its settings with defaults and ranges.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripwit inspect consecutive
  tripwit inspect mine.wasm
  tripwit inspect mine.wasm --json | jq -r .digest

Exit codes: 0 it is a policy; 2 it cannot be read, or is none.")]
pub(crate) struct Arguments {
    /// The component, or the name of a shipped policy: consecutive, outbox or window
    #[arg(value_name = "FILE|NAME")]
    policy: String,
    /// Print it as JSON, the settings' schema included
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    loading: Loading,
}

/// Prints what a policy is.
///
/// # Errors
///
/// When it cannot be read, is no policy, or its schema is no JSON.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let policy = find(&arguments.policy, &arguments.loading)?;
    let schema: Value = serde_json::from_str(&policy.description().settings_schema)
        .with_context(|| format!("{}: the schema of its settings is no JSON", arguments.policy))?;
    terminal::say(&if arguments.json {
        format!("{:#}", as_json(&policy, &schema))
    } else {
        as_text(&policy, &settings(&schema))
    });
    Ok(ExitCode::SUCCESS)
}

fn as_text(policy: &Policy, settings: &[Setting]) -> String {
    let said = policy.description();
    let mut text = format!(
        "{} {}\n{}\n\n",
        paint(STRONG, &said.name),
        said.version,
        said.summary
    );
    let mut line = |what: &str, value: &str| {
        text += &format!("{}  {value}\n", paint(FAINT, &format!("{what:<9}")));
    };
    line("digest", &policy.digest().to_string());
    line("size", &format!("{} bytes", policy.size()));
    line("contract", policy.contract());
    for (place, import) in policy.imports().iter().enumerate() {
        line(if place == 0 { "imports" } else { "" }, import);
    }
    for (name, value) in &said.extra {
        line(name, &value.to_string());
    }
    if settings.is_empty() {
        return text + "\nno settings";
    }
    text + "\n" + &table(settings)
}

fn table(settings: &[Setting]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["setting", "default", "range", "meaning"]);
    for setting in settings {
        table.add_row([
            &setting.name,
            &text(Some(&setting.default)).unwrap_or_default(),
            &setting.range,
            &setting.meaning,
        ]);
    }
    table.trim_fmt()
}

fn as_json(policy: &Policy, schema: &Value) -> Value {
    let said = policy.description();
    let extra: serde_json::Map<String, Value> = said
        .extra
        .iter()
        .map(|(name, value)| {
            let value = match value {
                FieldValue::Text(text) => json!(text),
                FieldValue::Integer(number) => json!(number),
                FieldValue::Number(number) => json!(number),
                FieldValue::Boolean(yes) => json!(yes),
            };
            (name.clone(), value)
        })
        .collect();
    let settings: Vec<Value> = settings(schema)
        .into_iter()
        .map(|setting| {
            json!({
                "name": setting.name,
                "default": setting.default,
                "range": setting.range,
                "meaning": setting.meaning,
                "schema": setting.schema,
            })
        })
        .collect();
    json!({
        "name": said.name,
        "version": said.version,
        "summary": said.summary,
        "digest": policy.digest().to_string(),
        "bytes": policy.size(),
        "contract": policy.contract(),
        "imports": policy.imports(),
        "extra": extra,
        "settings": settings,
        "settings_schema": schema,
    })
}
