//! What the run promises, held against what it did.

use crate::channels::Channel;
use crate::deliveries::{Record, Status};
use crate::ledger::Entry;
use crate::providers::Provider;
use crate::world::World;

/// What did not come out as promised, a line each.
pub(crate) fn problems(world: &World) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let guarded = world.sender.guarded().entries();
    let unguarded = world.sender.unguarded().entries();
    let records = world.deliveries.records();
    for provider in &world.providers {
        let own = records
            .iter()
            .filter(|record| record.notification.url.port() == Some(provider.address().port()));
        problems.extend(own.filter_map(|record| problem_of_record(record, provider)));

        let circuit = provider.circuit()?;
        let name = circuit
            .clone()
            .unwrap_or_else(|| provider.plan.channel.to_string());
        let entry = if circuit.is_some() {
            guarded.get(&name)
        } else {
            unguarded.get(&name)
        };
        match entry {
            Some(entry) => {
                problems.extend(problems_of_calls(&name, entry, provider));
                problems.extend(problem_of_attempts(&name, entry, &records, provider));
            }
            None => problems.push(format!("{name}: no call was made")),
        }
    }
    let tripped = world.sender.breakers().tripped();
    problems.extend(
        tripped
            .iter()
            .map(|key| format!("{key}: the circuit did not close again")),
    );
    let incomplete = world.transitions.incomplete();
    problems.extend(
        incomplete
            .iter()
            .map(|key| format!("{key}: a transition came without its log line or its span")),
    );

    let webhooks = guarded.iter().filter(|(key, _)| key.starts_with("webhook:"));
    let (mut timeouts, mut restored_open) = (0, false);
    for (_, entry) in webhooks {
        timeouts += entry.timeouts;
        restored_open |= entry.restored_open;
    }
    let cancelled = world.sender.webhooks().cancelled();
    // A circuit that an earlier run left open may wait through all the time in which its host hangs.
    if (timeouts == 0 && !restored_open) || cancelled != timeouts {
        problems.push(format!(
            "webhooks: {timeouts} calls timed out, and {cancelled} were cancelled"
        ));
    }
    Ok(problems)
}

/// Nothing is lost, and what is recorded as sent was delivered.
fn problem_of_record(record: &Record, provider: &Provider) -> Option<String> {
    let notification = &record.notification;
    let delivered = provider.has_delivered(notification.id);
    let what = match &record.status {
        Status::Sent if delivered => return None,
        Status::Sent => "recorded as sent, and never delivered".to_owned(),
        Status::Failed { .. } if record.is_given_up() => return None,
        Status::Failed { reason } => {
            format!(
                "left aside after {} attempts although some are left: {reason}",
                record.attempts
            )
        }
        Status::Pending => "under way and never settled".to_owned(),
    };
    Some(format!(
        "notification {} to {}: {what}",
        notification.id, notification.url
    ))
}

/// The circuits that were meant to open did, unless they were open already, and let no call through that they rejected.
fn problems_of_calls(name: &str, entry: &Entry, provider: &Provider) -> Vec<String> {
    let mut problems = Vec::new();
    if provider.plan.opens {
        if entry.opened == 0 && !entry.restored_open {
            problems.push(format!("{name}: the circuit was meant to open, and did not"));
        } else if entry.recovery.is_none() {
            problems.push(format!("{name}: the circuit opened, and was not seen to close"));
        }
        if entry.spared == 0 {
            problems.push(format!("{name}: the circuit rejected nothing"));
        }
    } else if entry.opened > 0 {
        problems.push(format!("{name}: the circuit was not meant to open, and did"));
    }
    let requests = provider.requests();
    if requests > entry.calls {
        problems.push(format!(
            "{name}: {requests} requests came in by {} calls",
            entry.calls
        ));
    }
    let hanging = provider.hanging();
    if hanging > 0 {
        problems.push(format!(
            "{name}: {hanging} calls still hang at the provider after their time-out"
        ));
    }
    problems
}

/// Where each attempt is one call, there are as many attempts as calls: rejections are none.
fn problem_of_attempts(name: &str, entry: &Entry, records: &[Record], provider: &Provider) -> Option<String> {
    let own = entry.notifications.iter().filter_map(|id| records.get(*id));
    let attempts: u64 = own.map(|record| u64::from(record.attempts)).sum();
    let as_promised = match provider.plan.channel {
        Channel::Email | Channel::Sms | Channel::Push | Channel::WhatsApp => attempts == entry.calls,
        // One attempt is up to three calls.
        Channel::Webhook | Channel::Slack => attempts <= entry.calls,
    };
    (!as_promised).then(|| {
        format!(
            "{name}: {attempts} attempts were counted for {} calls",
            entry.calls
        )
    })
}
