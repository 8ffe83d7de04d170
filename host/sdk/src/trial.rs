//! What a policy must pass on an instance that is thrown away, before anything depends on it.

use std::sync::Arc;

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::clock::Pace;
use crate::env::Env;
use crate::error::{BuildError, MAX_KEY, SwapError, check_key};
use crate::handover::Way;
use crate::instance::Fault;
use crate::regime::Regime;
use crate::settings::Settings;
use crate::shard::Shard;
use crate::table::SettingsTable;

/// Tries every settings text on an instance that is thrown away.
pub(crate) fn try_settings(env: &Env, regime: &Regime) -> Result<(), BuildError> {
    let mut trial = regime.start(env, &Arc::default()).map_err(faulty)?;
    let mut check = |for_what: String, key: &str, settings: &Settings| match trial
        .attach(key, settings.as_str())
        .map_err(faulty)?
    {
        Ok(attachment) => trial.detach(attachment.circuit).map_err(faulty),
        Err(wit::AttachError::Settings(error)) => Err(BuildError::Settings {
            for_what,
            field: error.field,
            problem: error.problem,
        }),
        Err(wit::AttachError::Key(problem)) => Err(BuildError::Key {
            key: key.into(),
            problem,
        }),
        Err(
            error @ (wit::AttachError::Conflict
            | wit::AttachError::Full(_)
            | wit::AttachError::Snapshot(_)
            | wit::AttachError::Other(_)),
        ) => Err(BuildError::Settings {
            for_what,
            field: String::new(),
            problem: format!("{error:?}"),
        }),
    };
    let SettingsTable {
        every,
        keys,
        prefixes,
    } = &regime.settings;
    check("every key".into(), "trial", every)?;
    // In order, so that of several errors the same one is found each time.
    let mut keys: Vec<_> = keys.iter().collect();
    keys.sort_by_key(|(key, _)| *key);
    for (key, settings) in keys {
        check_key(key).map_err(|problem| BuildError::Key {
            key: key.clone(),
            problem,
        })?;
        check(format!("key {key:?}"), key, settings)?;
    }
    for (prefix, settings) in prefixes {
        if prefix.len() > MAX_KEY {
            let problem = format!(
                "a prefix of keys has at most {MAX_KEY} bytes, this one has {}",
                prefix.len()
            );
            return Err(BuildError::Key {
                key: prefix.clone(),
                problem,
            });
        }
        check(format!("prefix {prefix:?}"), "trial", settings)?;
    }
    Ok(())
}

/// Tries on an instance that is thrown away whether every circuit of a shard can go over.
pub(crate) fn try_circuits(env: &Env, shard: &Shard, regime: &Regime, way: Way) -> Result<(), SwapError> {
    let mut trial = regime.start(env, &Arc::default()).map_err(faulty)?;
    let (mut from, mut more, mut pace) = (0, true, Pace::begin());
    loop {
        let mut copies = Vec::new();
        // What was copied is tried before there is more of it.
        let now = shard.batch(env, |machine, cx, watch| {
            more = machine.copy_batch(cx, &mut from, watch, regime, &mut copies);
            cx.now
        });
        for copy in copies {
            copy.try_on(&mut trial, now, way)
                .map_err(|refusal| refusal.of(&copy.key))?;
        }
        if !more {
            return Ok(());
        }
        pace.make_way();
    }
}

pub(crate) fn faulty(fault: Fault) -> BuildError {
    BuildError::Faulty {
        problem: fault.text(),
    }
}
