//! What the fields of a log mean, and by which names they are known.

use std::collections::HashMap;

use crate::time::Unit;

/// What a field says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// When the call ended, or began.
    Time,
    /// The status of the answer.
    Status,
    /// How long it took.
    Took,
    /// What was called; a list where several were tried.
    Upstream,
    /// The status that the upstream answered; a list where several were tried.
    UpstreamStatus,
    /// How long the upstream took; a list where several were tried.
    UpstreamTook,
    /// The host name that was asked for.
    Host,
    /// The path that was asked for, or the whole request line or URL.
    Path,
    /// An error; there was none where it is empty.
    Error,
    /// How long the other side asked to be left alone.
    RetryAfter,
}

impl Role {
    /// Every role, in the order of their numbers.
    pub(super) const ALL: [Self; 10] = [
        Self::Time,
        Self::Status,
        Self::Took,
        Self::Upstream,
        Self::UpstreamStatus,
        Self::UpstreamTook,
        Self::Host,
        Self::Path,
        Self::Error,
        Self::RetryAfter,
    ];

    /// How `--map` writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Status => "status",
            Self::Took => "took",
            Self::Upstream => "upstream",
            Self::UpstreamStatus => "upstream-status",
            Self::UpstreamTook => "upstream-took",
            Self::Host => "host",
            Self::Path => "path",
            Self::Error => "error",
            Self::RetryAfter => "retry-after",
        }
    }

    fn is_measured(self) -> bool {
        matches!(
            self,
            Self::Time | Self::Took | Self::UpstreamTook | Self::RetryAfter
        )
    }
}

/// How a field is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// What it says.
    pub(super) role: Role,
    /// The unit of its number, where it is one.
    pub(super) unit: Option<Unit>,
    /// Of a time: whether it is that of the call's beginning.
    pub(super) begin: bool,
    /// Of two fields of one role the one with the lower rank counts.
    pub(super) rank: usize,
}

/// One entry of `--map`: a role, and the field that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// What the field means.
    pub(super) meaning: Meaning,
    /// Its name; for JSON also a JSON Pointer, for CSV also the number of the column.
    pub(super) field: String,
}

/// Reads one entry of `--map`: `ROLE=FIELD`, or `ROLE=FIELD:UNIT`.
///
/// # Errors
///
/// When it is none.
pub(super) fn mapping(text: &str) -> Result<Mapping, String> {
    let roles = || Role::ALL.map(Role::name).join(", ");
    let (role, field) = text
        .split_once('=')
        .ok_or_else(|| format!("write it as ROLE=FIELD; the roles are {}", roles()))?;
    let role = Role::ALL
        .into_iter()
        .find(|known| known.name() == role.trim())
        .ok_or_else(|| format!("{role:?} is no role; the roles are {}", roles()))?;
    let field = field.trim();
    let (field, unit) = match field.rsplit_once(':') {
        Some((name, unit)) if role.is_measured() && Unit::named(unit).is_some() => (name, Unit::named(unit)),
        _ => (field, None),
    };
    if field.is_empty() {
        return Err("name the field after the `=`".into());
    }
    let known = known(field).filter(|known| known.role == role);
    Ok(Mapping {
        meaning: Meaning {
            role,
            unit: unit.or_else(|| known.and_then(|known| known.unit)),
            begin: known.is_some_and(|known| known.begin),
            rank: 0,
        },
        field: field.into(),
    })
}

/// Which fields mean what: those of `--map`, and for the other roles those that go by a well-known name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    mapped: Vec<Mapping>,
    known: HashMap<&'static str, Meaning>,
}

impl Names {
    /// The names, given what is mapped.
    pub(super) fn new(mapped: Vec<Mapping>) -> Self {
        let taken: Vec<Role> = mapped.iter().map(|mapping| mapping.meaning.role).collect();
        let known = KNOWN.iter().enumerate().map(|(rank, known)| {
            let &(name, role, unit, begin) = known;
            let meaning = Meaning {
                role,
                unit,
                begin,
                rank,
            };
            (name, meaning)
        });
        Self {
            known: known
                .filter(|(_, meaning)| !taken.contains(&meaning.role))
                .collect(),
            mapped,
        }
    }

    /// What is mapped.
    pub(super) fn mapped(&self) -> &[Mapping] {
        &self.mapped
    }

    /// What a field of this name means, by `--map` or because it is well known.
    pub(super) fn of(&self, name: &str) -> Option<Meaning> {
        let mapped = self.mapped.iter().find(|mapping| mapping.field == name);
        mapped
            .map(|mapping| mapping.meaning)
            .or_else(|| self.known.get(name).copied())
    }
}

/// What a well-known name means.
pub(super) fn known(name: &str) -> Option<Meaning> {
    let (rank, &(_, role, unit, begin)) = KNOWN.iter().enumerate().find(|(_, (known, ..))| *known == name)?;
    Some(Meaning {
        role,
        unit,
        begin,
        rank,
    })
}

type Known = (&'static str, Role, Option<Unit>, bool);

const S: Option<Unit> = Some(Unit::Seconds);
const MS: Option<Unit> = Some(Unit::Milliseconds);
const US: Option<Unit> = Some(Unit::Microseconds);
const NS: Option<Unit> = Some(Unit::Nanoseconds);

/// Well-known names: nginx's variables, those of its commonly used abbreviations, Traefik's and Envoy's, and plain words. The first of each role
/// beats the others. Names whose unit differs from product to product have none: a number there needs a unit from `--map`.
const KNOWN: &[Known] = &[
    ("msec", Role::Time, S, false),
    ("time_iso8601", Role::Time, None, false),
    ("time_local", Role::Time, None, false),
    ("end_time", Role::Time, None, false),
    ("time", Role::Time, None, false),
    ("timestamp", Role::Time, None, false),
    ("@timestamp", Role::Time, None, false),
    ("ts", Role::Time, None, false),
    ("datetime", Role::Time, None, false),
    ("StartUTC", Role::Time, None, true),
    ("start_time", Role::Time, None, true),
    ("status", Role::Status, None, false),
    ("status_code", Role::Status, None, false),
    ("response_code", Role::Status, None, false),
    ("http_status", Role::Status, None, false),
    ("DownstreamStatus", Role::Status, None, false),
    ("request_time", Role::Took, S, false),
    ("rt", Role::Took, S, false),
    ("Duration", Role::Took, NS, false),
    ("duration_s", Role::Took, S, false),
    ("duration_seconds", Role::Took, S, false),
    ("duration_ms", Role::Took, MS, false),
    ("duration_us", Role::Took, US, false),
    ("duration_ns", Role::Took, NS, false),
    ("latency_s", Role::Took, S, false),
    ("latency_ms", Role::Took, MS, false),
    ("latency_us", Role::Took, US, false),
    ("took_ms", Role::Took, MS, false),
    ("elapsed_ms", Role::Took, MS, false),
    ("response_time_ms", Role::Took, MS, false),
    ("duration", Role::Took, None, false),
    ("latency", Role::Took, None, false),
    ("elapsed", Role::Took, None, false),
    ("took", Role::Took, None, false),
    ("upstream", Role::Upstream, None, false),
    ("upstream_cluster", Role::Upstream, None, false),
    ("ServiceName", Role::Upstream, None, false),
    ("upstream_name", Role::Upstream, None, false),
    ("proxy_host", Role::Upstream, None, false),
    ("upstream_addr", Role::Upstream, None, false),
    ("upstream_host", Role::Upstream, None, false),
    ("ua", Role::Upstream, None, false),
    ("service", Role::Upstream, None, false),
    ("backend", Role::Upstream, None, false),
    ("upstream_status", Role::UpstreamStatus, None, false),
    ("OriginStatus", Role::UpstreamStatus, None, false),
    ("us", Role::UpstreamStatus, None, false),
    ("upstream_response_time", Role::UpstreamTook, S, false),
    ("OriginDuration", Role::UpstreamTook, NS, false),
    ("urt", Role::UpstreamTook, S, false),
    ("ut", Role::UpstreamTook, S, false),
    ("host", Role::Host, None, false),
    ("http_host", Role::Host, None, false),
    ("server_name", Role::Host, None, false),
    ("authority", Role::Host, None, false),
    ("RequestHost", Role::Host, None, false),
    ("vhost", Role::Host, None, false),
    ("path", Role::Path, None, false),
    ("request_uri", Role::Path, None, false),
    ("uri", Role::Path, None, false),
    ("RequestPath", Role::Path, None, false),
    ("url", Role::Path, None, false),
    ("request", Role::Path, None, false),
    ("error", Role::Error, None, false),
    ("err", Role::Error, None, false),
    ("retry_after", Role::RetryAfter, S, false),
    ("upstream_http_retry_after", Role::RetryAfter, S, false),
    ("sent_http_retry_after", Role::RetryAfter, S, false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_a_role_a_field_and_for_times_a_unit() {
        let mapped = mapping("took=latency:ms").unwrap();
        assert_eq!(
            (mapped.meaning.role, mapped.meaning.unit, mapped.field.as_str()),
            (Role::Took, MS, "latency")
        );
        assert_eq!(mapping("upstream=a:ms").unwrap().field, "a:ms");
        assert_eq!(mapping("took=request_time").unwrap().meaning.unit, S);
        assert!(mapping("took").unwrap_err().contains("ROLE=FIELD"));
        assert!(
            mapping("colour=red")
                .unwrap_err()
                .contains("the roles are time, status")
        );
        assert!(mapping("took=").is_err());
    }

    #[test]
    fn a_role_that_is_mapped_goes_by_no_other_name() {
        let names = Names::new(vec![mapping("status=code").unwrap()]);
        assert_eq!(names.of("code").unwrap().role, Role::Status);
        assert_eq!(names.of("status"), None);
        assert_eq!(names.of("time").unwrap().role, Role::Time);
    }
}
