//! The channels, and the circuits that guard them.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::Url;
use tripwit::settings::Consecutive;
use tripwit::{Breakers, Policy};
use tripwit_examples::scale::Scale;

/// A way to reach somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    Email,
    Sms,
    Push,
    WhatsApp,
    Webhook,
    /// Not guarded: it has retries of its own.
    Slack,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Push => "push",
            Self::WhatsApp => "whatsapp",
            Self::Webhook => "webhook",
            Self::Slack => "slack",
        })
    }
}

impl Channel {
    /// The circuit that a call to `url` goes through; none for a channel without one.
    ///
    /// A provider's key is its channel. A webhook's is its host name, in lower case, without port and path: the host is
    /// what fails as a whole. `webhook` alone would let one customer's dead host silence everyone's; a key a path would never
    /// see enough failures.
    pub(crate) fn circuit(self, url: &Url) -> anyhow::Result<Option<String>> {
        match self {
            Self::Email | Self::Sms | Self::Push | Self::WhatsApp => Ok(Some(self.to_string())),
            Self::Webhook => {
                let host = url
                    .host_str()
                    .with_context(|| format!("{url} names no host to call"))?;
                Ok(Some(format!("{self}:{}", host.to_ascii_lowercase())))
            }
            Self::Slack => Ok(None),
        }
    }
}

/// The longest of the waits below, in real seconds.
const LONGEST_OPEN_SECS: u64 = 60;

/// How long a circuit is open at most.
pub(crate) fn longest_wait(scale: Scale) -> Duration {
    scale.secs(LONGEST_OPEN_SECS)
}

/// The circuits of all guarded channels, each with its channel's settings.
pub(crate) fn breakers(scale: Scale) -> anyhow::Result<Breakers> {
    let guard = |failures, open_secs, call_secs| {
        Consecutive::default()
            .failure_threshold(failures)
            .open_for(scale.secs(open_secs))
            .call_timeout(scale.secs(call_secs))
            .success_threshold(2)
    };
    let breakers = Breakers::builder(Policy::consecutive()?)
        .settings(guard(5, 30, 10))
        .settings_for("email", guard(5, LONGEST_OPEN_SECS, 15))
        .settings_for("sms", guard(3, 30, 10))
        .settings_for("whatsapp", guard(3, 30, 10))
        .settings_for("push", guard(10, 30, 5))
        .settings_for_prefix("webhook:", guard(3, LONGEST_OPEN_SECS, 10))
        .build()?;
    Ok(breakers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circuit(channel: Channel, url: &str) -> Option<String> {
        channel
            .circuit(&url.parse().expect("a URL"))
            .expect("a circuit or none")
    }

    #[test]
    fn a_webhook_circuit_is_the_lower_case_host_name_without_port_and_path() {
        let key = Some("webhook:hooks.example.com".to_owned());
        assert_eq!(circuit(Channel::Webhook, "http://hooks.example.com/team"), key);
        assert_eq!(
            circuit(Channel::Webhook, "https://Hooks.Example.COM:8443/audit?day=1#x"),
            key
        );
        assert_eq!(
            circuit(Channel::Webhook, "http://user:secret@hooks.example.com"),
            key
        );
    }

    #[test]
    fn other_hosts_have_other_circuits_be_they_names_or_addresses() {
        assert_eq!(
            circuit(Channel::Webhook, "http://127.0.0.1:81/a").as_deref(),
            Some("webhook:127.0.0.1")
        );
        assert_eq!(
            circuit(Channel::Webhook, "http://[::1]:81/a").as_deref(),
            Some("webhook:[::1]")
        );
        assert_eq!(
            circuit(Channel::Webhook, "http://localhost/a").as_deref(),
            Some("webhook:localhost")
        );
    }

    #[test]
    fn a_webhook_without_a_host_is_an_error_that_names_the_url() {
        let url = "data:text/plain,hello".parse().expect("a URL");
        let error = Channel::Webhook.circuit(&url).expect_err("there is no host");
        assert_eq!(error.to_string(), "data:text/plain,hello names no host to call");
    }

    #[test]
    fn a_provider_has_one_circuit_and_slack_has_none() {
        assert_eq!(
            circuit(Channel::Sms, "http://sms.example.com/send").as_deref(),
            Some("sms")
        );
        assert_eq!(
            circuit(Channel::WhatsApp, "http://a.example.com/1").as_deref(),
            Some("whatsapp")
        );
        assert_eq!(circuit(Channel::Slack, "http://slack.example.com/post"), None);
    }

    #[test]
    fn the_settings_of_every_channel_are_accepted_at_every_scale() {
        for scale in [1, 30, 100] {
            breakers(Scale::new(scale)).expect("the policy takes these settings");
        }
    }
}
