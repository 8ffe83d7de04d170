//! What a policy says about itself.

use std::collections::BTreeSet;

use tripwit::ManualClock;
use tripwit::raw::{Description, Instance};

use crate::check::circuit::{Circuit, KEY};
use crate::check::problem::{Checked, ensure, refusal};
use crate::check::ran::Ran;
use crate::check::schema::Schema;
use crate::check::subject::Subject;

pub(in crate::check) fn description(subject: &Subject) -> Checked<Ran> {
    subject.begin("{}");
    let clock = ManualClock::new();
    let mut instance = subject.start(&clock)?;
    let first = instance.describe()?;
    subject.did(format!("describe: {} {}", first.name, first.version));
    well_formed(&first)?;
    let schema = Schema::read(&first.settings_schema);
    ensure!(schema.is_ok(), "a settings-schema that is JSON Schema", || {
        schema.as_ref().err().cloned().unwrap_or_default()
    })?;
    if let Ok(schema) = &schema {
        accepted(subject, &mut instance, schema)?;
    }
    let mut used = Circuit::new(subject, subject.main_settings())?;
    used.open()?;
    for (when, again) in [
        ("asked twice", instance.describe()?),
        ("asked of an instance that was used", used.instance.describe()?),
    ] {
        ensure!(
            again == first,
            format!("the same description when {when}"),
            || format!("{again:?}"),
        )?;
    }
    Ok(Ran::done(format!(
        "{} bytes of schema",
        first.settings_schema.len()
    )))
}

fn well_formed(said: &Description) -> Checked {
    let words = |name: &str| {
        name.split('-').all(|word| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
    };
    ensure!(
        words(&said.name),
        "a name of lower-case words joined by hyphens",
        || format!("{:?}", said.name),
    )?;
    let release = said.version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = release.split('.').collect();
    let numbers = parts.len() == 3 && parts.iter().all(|part| part.parse::<u64>().is_ok());
    ensure!(
        numbers,
        "a version as semantic versioning writes it, such as 1.2.3",
        || format!("{:?}", said.version),
    )?;
    ensure!(!said.summary.trim().is_empty(), "a summary", || "none".into())?;
    let names: BTreeSet<&str> = said.extra.iter().map(|field| field.name.as_str()).collect();
    ensure!(
        names.len() == said.extra.len(),
        "each name of `extra` once",
        || format!("{:?}", said.extra),
    )
}

/// The defaults fit the schema, and are taken whether they are written or not.
fn accepted(subject: &Subject, instance: &mut Instance, schema: &Schema) -> Checked {
    let defaults = schema.defaults();
    ensure!(
        schema.fits(&defaults),
        "defaults that fit their own schema",
        || defaults.to_string(),
    )?;
    let empty = serde_json::json!({});
    if !schema.fits(&empty) {
        subject.note("has settings without a default, so {} is not tried");
        return Ok(());
    }
    for (key, settings) in [(KEY, empty), ("written out", defaults)] {
        subject.did(format!("attach with {settings}"));
        let attached = instance.attach(key, &settings.to_string())?;
        ensure!(attached.is_ok(), "the defaults accepted", || {
            attached.as_ref().err().map(refusal).unwrap_or_default()
        })?;
    }
    Ok(())
}
