//! What happens to whom, and when: the time line of the run.

use std::fmt;
use std::time::Duration;

use crate::channels::Channel;

/// Real time between two incidents.
pub(crate) const INCIDENT_EVERY: Duration = Duration::from_secs(5);
/// How many incidents the run raises.
pub(crate) const INCIDENTS: u32 = 33;
/// Real time between two passes over the failed records.
pub(crate) const PASS_EVERY: Duration = Duration::from_secs(15);

/// How a provider answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It delivers.
    Well,
    /// HTTP 503.
    Unavailable,
    /// HTTP 429, with the seconds of its Retry-After.
    Busy(u64),
    /// HTTP 200, with a body that says that nothing was sent.
    NotSent,
    /// It takes the request and never answers.
    Hanging,
    /// It closes each connection at once.
    Refusing,
    /// It delivers every second request, and answers the others with HTTP 429.
    Flaky,
}

impl fmt::Display for Mood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Well => write!(f, "is well"),
            Self::Unavailable => write!(f, "answers 503"),
            Self::Busy(seconds) => write!(f, "answers 429, Retry-After: {seconds}"),
            Self::NotSent => write!(f, "answers 200 with 'not sent'"),
            Self::Hanging => write!(f, "hangs"),
            Self::Refusing => write!(f, "closes every connection"),
            Self::Flaky => write!(f, "answers 429 every other time"),
        }
    }
}

/// One provider, and what it goes through.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) channel: Channel,
    /// As its customers write it.
    pub(crate) host: &'static str,
    /// Where notifications go, and every how many incidents one goes there.
    pub(crate) paths: &'static [(&'static str, u32)],
    /// Each mood with the real second at which it begins; well before the first.
    pub(crate) moods: &'static [(u64, Mood)],
    /// Whether its circuit is meant to open, and to close again.
    pub(crate) opens: bool,
}

/// The path whose receiver has gone for good: HTTP 410 whatever the mood.
pub(crate) const GONE: &str = "/gone";

/// Everyone who takes part.
pub(crate) const PLANS: [Plan; 7] = [
    Plan {
        channel: Channel::Email,
        host: "email.localhost",
        paths: &[("/send", 1)],
        moods: &[(20, Mood::Unavailable), (80, Mood::Well)],
        opens: true,
    },
    Plan {
        channel: Channel::Sms,
        host: "sms.localhost",
        paths: &[("/send", 1)],
        moods: &[(25, Mood::NotSent), (75, Mood::Well)],
        opens: true,
    },
    Plan {
        channel: Channel::Push,
        host: "push.localhost",
        paths: &[("/phone", 1), ("/laptop", 1)],
        moods: &[(20, Mood::Hanging), (90, Mood::Well)],
        opens: true,
    },
    Plan {
        channel: Channel::WhatsApp,
        host: "whatsapp.localhost",
        paths: &[("/send", 1)],
        moods: &[(40, Mood::Busy(20)), (65, Mood::Hanging), (95, Mood::Well)],
        opens: true,
    },
    Plan {
        channel: Channel::Webhook,
        host: "Hooks-A.localhost",
        paths: &[("/team", 1), ("/audit", 1)],
        moods: &[(20, Mood::Refusing), (40, Mood::Hanging), (100, Mood::Well)],
        opens: true,
    },
    Plan {
        channel: Channel::Webhook,
        host: "127.0.0.1",
        paths: &[("/team", 1), (GONE, 10)],
        moods: &[(50, Mood::Flaky), (80, Mood::Well)],
        opens: false,
    },
    Plan {
        channel: Channel::Slack,
        host: "slack.localhost",
        paths: &[("/post", 1)],
        moods: &[(30, Mood::Busy(10)), (50, Mood::Busy(600)), (58, Mood::Well)],
        opens: false,
    },
];

impl Plan {
    /// The mood at so long, in real time, after the start.
    pub(crate) fn mood_at(&self, elapsed: Duration) -> Mood {
        let begun = |begins: u64| Duration::from_secs(begins) <= elapsed;
        self.moods
            .iter()
            .rev()
            .find(|(begins, _)| begun(*begins))
            .map_or(Mood::Well, |(_, mood)| *mood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mood_lasts_until_the_next_one_begins() {
        let [email, ..] = &PLANS;
        assert_eq!(email.mood_at(Duration::ZERO), Mood::Well);
        assert_eq!(email.mood_at(Duration::from_millis(19_999)), Mood::Well);
        assert_eq!(email.mood_at(Duration::from_secs(20)), Mood::Unavailable);
        assert_eq!(email.mood_at(Duration::from_millis(79_999)), Mood::Unavailable);
        assert_eq!(email.mood_at(Duration::from_secs(80)), Mood::Well);
    }

    #[test]
    fn everyone_is_well_in_the_end_and_within_the_time_of_the_incidents() {
        let end = INCIDENT_EVERY * INCIDENTS;
        for plan in &PLANS {
            assert_eq!(plan.mood_at(end), Mood::Well, "{}", plan.host);
        }
    }
}
