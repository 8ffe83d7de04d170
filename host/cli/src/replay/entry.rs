//! From the fields of a line to the calls that it tells of.

use std::borrow::Cow;

use super::fields::Fields;
use super::role::Role;
use super::status::Statuses;
use crate::time;
use crate::timeline::Ended;

/// What calls are grouped by: each group is a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// What was called. Each attempt at an upstream is a call of its own.
    Upstream,
    /// The host name that was asked for.
    Host,
    /// So many first parts of the path.
    Path(usize),
    /// Nothing: there is one circuit.
    All,
}

/// Reads what to group by.
///
/// # Errors
///
/// When it is none.
pub(super) fn by(text: &str) -> Result<By, String> {
    match text {
        "upstream" => Ok(By::Upstream),
        "host" => Ok(By::Host),
        "path" => Ok(By::Path(1)),
        "all" => Ok(By::All),
        _ => text
            .strip_prefix("path:")
            .and_then(|parts| parts.parse().ok())
            .filter(|parts| (1..=16).contains(parts))
            .map(By::Path)
            .ok_or_else(|| "group by upstream, host, path, path:2 (up to 16 parts) or all".into()),
    }
}

impl By {
    /// What the fields of a line allow: upstream, else host, else path.
    pub(super) fn found(fields: &Fields<'_>) -> Self {
        let known = [
            (Role::Upstream, Self::Upstream),
            (Role::Host, Self::Host),
            (Role::Path, Self::Path(1)),
        ];
        known
            .into_iter()
            .find(|(role, _)| fields.field(*role).is_some())
            .map_or(Self::All, |(_, by)| by)
    }
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upstream => f.write_str("upstream"),
            Self::Host => f.write_str("host"),
            Self::Path(1) => f.write_str("path"),
            Self::Path(parts) => write!(f, "path:{parts}"),
            Self::All => f.write_str("all"),
        }
    }
}

/// One call that a line tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) ended: Ended,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<u64>,
}

/// How lines are understood.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) by: By,
    pub(super) failures: Statuses,
    pub(super) ignored: Statuses,
    /// Whether the time of a line is that of the call's beginning; none for what the format says.
    pub(super) time_is_begin: Option<bool>,
    /// The last time that was read, and what it came to: lines of one second write it alike.
    last_time: (String, u64),
}

impl Reading {
    pub(super) fn new(by: By, failures: Statuses, ignored: Statuses, time_is_begin: Option<bool>) -> Self {
        Self {
            by,
            failures,
            ignored,
            time_is_begin,
            last_time: Default::default(),
        }
    }

    /// The calls that a line tells of: none where it has no group, one for each attempt where it is grouped by upstream. The error says what is wrong.
    pub(super) fn calls<'a>(&mut self, fields: &'a Fields<'_>) -> Result<Vec<Told<'a>>, String> {
        let (at, begins) = self.time(fields)?;
        let status = status(fields, Role::Status)?;
        let took = length(fields, Role::Took)?;
        let retry_after = retry_after(fields);
        let attempts = lengths(fields)?;
        if self.by == By::Upstream {
            return self.attempts(fields, (at, begins), status, took, &attempts);
        }
        let took = attempts
            .iter()
            .copied()
            .flatten()
            .reduce(u64::saturating_add)
            .or(took)
            .unwrap_or(0);
        let Some(key) = key(self.by, fields) else {
            return Ok(Vec::new());
        };
        let status = match status {
            Some(status) => status,
            None => statuses(fields)?.last().copied().flatten(),
        };
        let (begin, end) = stretch(at, begins, took);
        Ok(vec![Told {
            key,
            begin,
            end,
            ended: self.judge(fields, status)?,
            status,
            retry_after,
        }])
    }

    /// One call for each upstream that was tried, one after the other.
    fn attempts<'a>(
        &self,
        fields: &'a Fields<'_>,
        (at, begins): (u64, bool),
        overall: Option<Option<u16>>,
        took: Option<u64>,
        lengths: &[Option<u64>],
    ) -> Result<Vec<Told<'a>>, String> {
        let tried: Vec<&str> = list(fields.text(Role::Upstream).unwrap_or_default()).collect();
        let statuses = statuses(fields)?;
        let length = |place: usize| {
            let measured = lengths.get(place).copied().flatten();
            measured
                .or_else(|| took.filter(|_| tried.len() == 1))
                .unwrap_or(0)
        };
        let total = (0..tried.len()).map(length).fold(0, u64::saturating_add);
        let (mut begin, _) = stretch(at, begins, total);
        let mut calls = Vec::with_capacity(tried.len());
        for (place, key) in tried.iter().enumerate() {
            let end = begin.saturating_add(length(place));
            let is_last = place + 1 == tried.len();
            let own = statuses.get(place).copied().flatten();
            let status = own.or_else(|| overall.flatten().filter(|_| is_last));
            calls.push(Told {
                key: Cow::Borrowed(key),
                begin,
                end,
                ended: if is_last {
                    self.judge(fields, status)?
                } else {
                    self.judge_status(status)
                },
                status,
                retry_after: retry_after(fields).filter(|_| is_last),
            });
            begin = end;
        }
        Ok(calls)
    }

    fn judge(&self, fields: &Fields<'_>, status: Option<u16>) -> Result<Ended, String> {
        let has_status = [Role::Status, Role::UpstreamStatus]
            .into_iter()
            .any(|role| fields.field(role).is_some());
        let failed = fields.text(Role::Error).is_some();
        match (has_status, fields.field(Role::Error).is_some()) {
            (false, false) => Err("no status and no error field".into()),
            (false, true) if !failed => Ok(Ended::Success),
            _ => Ok(match self.judge_status(status) {
                Ended::Success if failed => Ended::Failure,
                judged @ (Ended::Success | Ended::Failure | Ended::Timeout | Ended::Ignored) => judged,
            }),
        }
    }

    fn judge_status(&self, status: Option<u16>) -> Ended {
        if self.ignored.has(status) {
            Ended::Ignored
        } else if self.failures.has(status) {
            Ended::Failure
        } else {
            Ended::Success
        }
    }

    /// When the call ended or began, and which of the two.
    fn time(&mut self, fields: &Fields<'_>) -> Result<(u64, bool), String> {
        let field = fields.field(Role::Time).ok_or("no time")?;
        let begins = self.time_is_begin.unwrap_or(field.begin);
        if self.last_time.0 != field.text {
            let at = time::timestamp(&field.text, field.unit)
                .ok_or_else(|| format!("the time {:?} cannot be read", field.text))?;
            self.last_time = (field.text.clone().into_owned(), at);
        }
        Ok((self.last_time.1, begins))
    }
}

/// From when to when a call ran.
fn stretch(at: u64, begins: bool, took: u64) -> (u64, u64) {
    if begins {
        (at, at.saturating_add(took))
    } else {
        (at.saturating_sub(took), at)
    }
}

/// A status; the inner none where there is a field for it and it holds none.
fn status(fields: &Fields<'_>, role: Role) -> Result<Option<Option<u16>>, String> {
    match fields.field(role) {
        None => Ok(None),
        Some(field) => read_status(&field.text).map(Some),
    }
}

fn read_status(text: &str) -> Result<Option<u16>, String> {
    if text.is_empty() || text == "-" {
        return Ok(None);
    }
    match text.parse::<u16>() {
        Ok(0) => Ok(None),
        Ok(status) if status <= 999 => Ok(Some(status)),
        _ => Err(format!("the status {text:?} is none")),
    }
}

fn statuses(fields: &Fields<'_>) -> Result<Vec<Option<u16>>, String> {
    list(fields.text(Role::UpstreamStatus).unwrap_or_default())
        .map(read_status)
        .collect()
}

fn length(fields: &Fields<'_>, role: Role) -> Result<Option<u64>, String> {
    let Some(field) = fields.field(role).filter(|field| !field.text.is_empty()) else {
        return Ok(None);
    };
    read_length(&field.text, field.unit, role).map(Some)
}

fn lengths(fields: &Fields<'_>) -> Result<Vec<Option<u64>>, String> {
    let unit = fields.field(Role::UpstreamTook).and_then(|field| field.unit);
    list(fields.text(Role::UpstreamTook).unwrap_or_default())
        .map(|text| match text {
            "-" => Ok(None),
            text => read_length(text, unit, Role::UpstreamTook).map(Some),
        })
        .collect()
}

fn read_length(text: &str, unit: Option<time::Unit>, role: Role) -> Result<u64, String> {
    time::duration(text, unit).ok_or_else(|| {
        if unit.is_none() && text.parse::<f64>().is_ok() {
            format!(
                "{text} has no unit; say which by --map {}=FIELD:ms, or s, us or ns",
                role.name()
            )
        } else {
            format!("{text:?} is no length of time")
        }
    })
}

/// How long the other side asked to be left alone. It may be a date too (RFC 9110, section 10.2.3), which is not heeded.
fn retry_after(fields: &Fields<'_>) -> Option<u64> {
    let field = fields.field(Role::RetryAfter)?;
    time::duration(&field.text, field.unit)
}

/// The parts of what nginx writes where it tried several upstreams: commas between servers, colons between groups of them.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(", ")
        .flat_map(|part| part.split(" : "))
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// The group of a line; none where it has none.
fn key<'a>(by: By, fields: &'a Fields<'_>) -> Option<Cow<'a, str>> {
    match by {
        By::All => Some(Cow::Borrowed("all")),
        By::Upstream => fields.text(Role::Upstream).map(Cow::Borrowed),
        By::Host => fields.text(Role::Host).map(host),
        By::Path(parts) => fields.text(Role::Path).and_then(|path| prefix(path, parts)),
    }
}

/// A host name in lower case, without its port.
fn host(text: &str) -> Cow<'_, str> {
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => text,
    };
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// The first parts of a path, given the path, a URL or a whole request line.
fn prefix(text: &str, parts: usize) -> Option<Cow<'_, str>> {
    let target = match text.split_once(' ') {
        Some((_, rest)) => rest.split(' ').next().unwrap_or_default(),
        None => text,
    };
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| rest.get(at..).unwrap_or("/")),
        None => target,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return None;
    }
    let end = path
        .match_indices('/')
        .nth(parts)
        .map_or(path.len(), |(at, _)| at);
    path.get(..end).map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::role::known;
    use crate::replay::status::statuses;
    use crate::time::SECOND;

    fn fields<'a>(pairs: &[(&str, &'a str)]) -> Fields<'a> {
        let mut fields = Fields::default();
        for (name, text) in pairs {
            fields.put(known(name).unwrap(), *text);
        }
        fields
    }

    fn reading(by: By) -> Reading {
        Reading::new(by, statuses("5xx,none").unwrap(), statuses("499").unwrap(), None)
    }

    #[test]
    fn a_call_begins_so_long_before_its_end_as_it_took() {
        let fields = fields(&[
            ("msec", "100.500"),
            ("status", "200"),
            ("request_time", "2"),
            ("upstream_response_time", "0.25"),
            ("host", "A.example:8080"),
        ]);
        let calls = reading(By::Host).calls(&fields).unwrap();
        assert_eq!(
            calls,
            [Told {
                key: "a.example".into(),
                begin: 100 * SECOND + SECOND / 4,
                end: 100 * SECOND + SECOND / 2,
                ended: Ended::Success,
                status: Some(200),
                retry_after: None,
            }],
            "the upstream's time is the one that counts"
        );
    }

    #[test]
    fn each_upstream_that_was_tried_is_a_call_with_its_own_status_and_time() {
        let fields = fields(&[
            ("msec", "100"),
            ("status", "200"),
            ("upstream_addr", "10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80"),
            ("upstream_status", "502, 504 : 200"),
            ("upstream_response_time", "1, 2 : 3"),
        ]);
        let calls = reading(By::Upstream).calls(&fields).unwrap();
        let brief: Vec<_> = calls
            .iter()
            .map(|call| {
                (
                    call.key.as_ref(),
                    call.begin / SECOND,
                    call.end / SECOND,
                    call.ended,
                )
            })
            .collect();
        assert_eq!(
            brief,
            [
                ("10.0.0.1:80", 94, 95, Ended::Failure),
                ("10.0.0.2:80", 95, 97, Ended::Failure),
                ("10.0.0.3:80", 97, 100, Ended::Success),
            ]
        );
    }

    #[test]
    fn a_line_that_reached_no_upstream_tells_of_no_call() {
        let fields = fields(&[("msec", "100"), ("status", "200"), ("upstream_addr", "-")]);
        assert_eq!(reading(By::Upstream).calls(&fields), Ok(Vec::new()));
    }

    #[test]
    fn an_upstream_without_a_status_is_judged_by_the_lines_own() {
        let pairs = [("msec", "100"), ("upstream_addr", "a"), ("upstream_status", "-")];
        let ended = |status| {
            let fields = fields(&[pairs.as_slice(), &[("status", status)]].concat());
            reading(By::Upstream).calls(&fields).unwrap()[0].ended
        };
        assert_eq!(ended("499"), Ended::Ignored);
        assert_eq!(ended("502"), Ended::Failure);
        assert_eq!(ended("000"), Ended::Failure, "there was no answer at all");
    }

    #[test]
    fn an_error_is_a_failure_whatever_the_status() {
        let ended = |pairs: &[(&str, &'static str)]| {
            let fields = fields(&[&[("msec", "100")], pairs].concat());
            reading(By::All).calls(&fields).map(|calls| calls[0].ended)
        };
        assert_eq!(
            ended(&[("error", "reset"), ("status", "200")]),
            Ok(Ended::Failure)
        );
        assert_eq!(ended(&[("error", "-"), ("status", "200")]), Ok(Ended::Success));
        assert_eq!(ended(&[("error", "")]), Ok(Ended::Success));
        assert_eq!(ended(&[("error", "reset")]), Ok(Ended::Failure));
        assert_eq!(
            ended(&[("error", "closed"), ("status", "499")]),
            Ok(Ended::Ignored)
        );
        assert_eq!(ended(&[]), Err("no status and no error field".into()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let problem = |pairs: &[(&str, &'static str)]| reading(By::All).calls(&fields(pairs)).unwrap_err();
        assert_eq!(problem(&[("status", "200")]), "no time");
        assert!(problem(&[("time", "noon"), ("status", "200")]).contains("\"noon\""));
        assert!(problem(&[("msec", "1"), ("status", "ok")]).contains("\"ok\""));
        let error = problem(&[("msec", "1"), ("status", "200"), ("duration", "12")]);
        assert!(error.contains("--map took=FIELD:ms"), "{error}");
    }

    #[test]
    fn a_path_is_cut_to_its_first_parts() {
        for (text, parts, prefix) in [
            ("GET /api/v1/users?id=7 HTTP/1.1", 1, Some("/api")),
            ("/api/v1/users", 2, Some("/api/v1")),
            ("/api", 3, Some("/api")),
            ("https://a.example/api/v1#x", 1, Some("/api")),
            ("https://a.example", 1, Some("/")),
            ("/", 1, Some("/")),
            ("CONNECT a.example:443 HTTP/1.1", 1, None),
            ("\\x16\\x03", 1, None),
        ] {
            assert_eq!(super::prefix(text, parts).as_deref(), prefix, "{text}");
        }
    }

    #[test]
    fn groups_are_read_as_they_are_written() {
        for text in ["upstream", "host", "path", "path:2", "all"] {
            assert_eq!(by(text).unwrap().to_string(), text);
        }
        assert!(by("path:0").is_err() && by("colour").is_err());
    }
}
