//! Lines in a layout, as nginx's `log_format` and Apache's `LogFormat` describe it.

use super::fields::Fields;
use super::role::{Meaning, Names, Role, known};
use crate::time::Unit;

/// What nginx and Apache write by default, up to where the two and their variants differ. What follows is looked through for fields with a name.
pub(super) const NGINX: &str =
    r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent"#;
/// The same, in Apache's words; its time is that of the request's beginning.
pub(super) const APACHE: &str = r#"%h %l %u %t "%r" %>s %b"#;

/// A layout, ready to read lines with.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    parts: Vec<Part>,
    /// What the named fields mean that may follow.
    names: Names,
    /// Whether anything may follow at all.
    open_ended: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    Field(Option<Meaning>),
}

impl Layout {
    /// Reads a layout of nginx or of Apache.
    ///
    /// # Errors
    ///
    /// When it is neither, or says too little.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let layout = Self {
            parts: parts(text)?,
            names: Names::default(),
            open_ended: false,
        };
        if layout.has(Role::Time) && (layout.has(Role::Status) || layout.has(Role::UpstreamStatus)) {
            Ok(layout)
        } else {
            Err("a layout needs a time and a status: $time_local and $status as nginx writes them, or %t and %>s as Apache does".into())
        }
    }

    /// What nginx and Apache write by default, and fields with a name that follow.
    pub(super) fn combined(text: &str, names: Names) -> Result<Self, String> {
        Ok(Self {
            names,
            open_ended: true,
            ..Self::new(text)?
        })
    }

    fn has(&self, role: Role) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Field(Some(meaning)) if meaning.role == role))
    }

    /// Reads a line.
    pub(super) fn read<'a>(&self, line: &'a str) -> Result<Fields<'a>, String> {
        let mut fields = Fields::default();
        let mut rest = line;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Literal(text) => {
                    rest = rest
                        .strip_prefix(text.as_str())
                        .ok_or_else(|| format!("{text:?} is missing before {:?}", start_of(rest)))?;
                }
                Part::Field(meaning) => {
                    let end = match parts.peek() {
                        Some(Part::Literal(next)) => find(rest, next)
                            .ok_or_else(|| format!("{next:?} is missing in {:?}", start_of(rest)))?,
                        _ if self.open_ended => rest.find(' ').unwrap_or(rest.len()),
                        _ => rest.len(),
                    };
                    let (text, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
                    if let Some(meaning) = meaning {
                        fields.put(*meaning, text);
                    }
                    rest = after;
                }
            }
        }
        if self.open_ended {
            named(rest, &self.names, &mut fields);
        }
        Ok(fields)
    }
}

fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}

/// Where a literal begins. A quote behind a backslash that is not itself behind one is no beginning.
fn find(text: &str, literal: &str) -> Option<usize> {
    // Literals are short, so looking for the first character is faster than looking for the whole.
    let first = literal.chars().next()?;
    let is_there = |at: usize| text.get(at..).is_some_and(|rest| rest.starts_with(literal));
    let is_escaped = |at: usize| {
        let before = text.bytes().take(at).rev();
        before.take_while(|byte| *byte == b'\\').count() % 2 == 1
    };
    text.match_indices(first)
        .map(|(at, _)| at)
        .find(|at| is_there(*at) && !(first == '"' && is_escaped(*at)))
}

/// Takes what is written as `name=value` or `name="value"`, between quoted texts and other words.
fn named<'a>(text: &'a str, names: &Names, fields: &mut Fields<'a>) {
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find([' ', '"', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let value = after.strip_prefix('=').unwrap_or(after);
        let (value, next) = match value.strip_prefix('"') {
            Some(quoted) => {
                let end = find(quoted, "\"").unwrap_or(quoted.len());
                let (value, next) = quoted.split_at_checked(end).unwrap_or((quoted, ""));
                (value, next.strip_prefix('"').unwrap_or(next))
            }
            None => value
                .split_at_checked(value.find(' ').unwrap_or(value.len()))
                .unwrap_or((value, "")),
        };
        if let (true, Some(meaning)) = (after.starts_with('='), names.of(word)) {
            fields.put(meaning, value);
        }
        rest = next.trim_start();
    }
}

fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts: Vec<Part> = Vec::new();
    let mut rest = text;
    let literal = |parts: &mut Vec<Part>, text: &str| match parts.last_mut() {
        Some(Part::Literal(last)) => last.push_str(text),
        _ => parts.push(Part::Literal(text.to_owned())),
    };
    while let Some(at) = rest.find(['$', '%']) {
        let (before, sign) = rest.split_at_checked(at).unwrap_or((rest, ""));
        if !before.is_empty() {
            literal(&mut parts, before);
        }
        if let Some(after) = sign.strip_prefix("%%") {
            literal(&mut parts, "%");
            rest = after;
            continue;
        }
        let (meaning, after) = if let Some(variable) = sign.strip_prefix('$') {
            nginx(variable)
        } else {
            apache(sign)?
        };
        if matches!(parts.last(), Some(Part::Field(_))) {
            return Err(format!("nothing stands between two fields, before {sign:?}"));
        }
        parts.push(Part::Field(meaning));
        rest = after;
    }
    if !rest.is_empty() {
        literal(&mut parts, rest);
    }
    Ok(parts)
}

fn nginx(variable: &str) -> (Option<Meaning>, &str) {
    let (name, after) = match variable.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
        Some(braced) => braced,
        None => {
            let end = variable
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(variable.len());
            variable.split_at_checked(end).unwrap_or((variable, ""))
        }
    };
    (known(name), after)
}

/// One directive: `%`, conditions and `<` or `>`, perhaps `{...}`, and a letter.
fn apache(directive: &str) -> Result<(Option<Meaning>, &str), String> {
    let unfinished = || format!("the directive {:?} is not finished", start_of(directive));
    let rest = directive
        .trim_start_matches('%')
        .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '!' | ',' | '<' | '>'));
    let (argument, rest) = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or_else(unfinished)?,
        None => ("", rest),
    };
    let letter = rest.chars().next().ok_or_else(unfinished)?;
    let mut after = rest.get(letter.len_utf8()..).unwrap_or_default();
    if letter == '^' {
        // Two more letters: trailers, connection times.
        after = after.get(2..).ok_or_else(unfinished)?;
    }
    let meaning = |role, unit, begin| {
        Some(Meaning {
            role,
            unit,
            begin,
            rank: 0,
        })
    };
    let meaning = match (letter, argument) {
        ('t', format) => Some(apache_time(format)?),
        ('s', _) => meaning(Role::Status, None, false),
        ('D', _) | ('T', "us") => meaning(Role::Took, Some(Unit::Microseconds), false),
        ('T', "ms") => meaning(Role::Took, Some(Unit::Milliseconds), false),
        ('T', _) => meaning(Role::Took, Some(Unit::Seconds), false),
        ('r' | 'U', _) => meaning(Role::Path, None, false),
        ('v' | 'V', _) => meaning(Role::Host, None, false),
        ('i', name) if name.eq_ignore_ascii_case("host") => meaning(Role::Host, None, false),
        ('e', "BALANCER_WORKER_NAME" | "BALANCER_NAME") => meaning(Role::Upstream, None, false),
        ('o', name) if name.eq_ignore_ascii_case("retry-after") => {
            meaning(Role::RetryAfter, Some(Unit::Seconds), false)
        }
        _ => None,
    };
    Ok((meaning, after))
}

fn apache_time(format: &str) -> Result<Meaning, String> {
    let (begin, format) = match format.split_once(':') {
        Some(("begin", format)) => (true, format),
        Some(("end", format)) => (false, format),
        _ if format == "end" => (false, ""),
        _ => (true, format),
    };
    let unit = match format {
        "" | "begin" => None,
        "sec" => Some(Unit::Seconds),
        "msec" => Some(Unit::Milliseconds),
        "usec" => Some(Unit::Microseconds),
        other => {
            return Err(format!(
                "times of the shape {other:?} cannot be read; of Apache's times %t, and sec, msec and usec in braces can"
            ));
        }
    };
    Ok(Meaning {
        role: Role::Time,
        unit,
        begin,
        rank: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(fields: &'a Fields<'_>) -> Vec<(&'static str, &'a str)> {
        Role::ALL
            .into_iter()
            .filter_map(|role| Some((role.name(), fields.field(role)?.text.as_ref())))
            .collect()
    }

    #[test]
    fn lines_as_nginx_and_apache_write_them_are_read_and_named_fields_after_them() {
        let layout = Layout::combined(NGINX, Names::new(Vec::new())).unwrap();
        let line = r#"192.0.2.7 - - [02/Jan/2026:15:04:05 +0000] "GET /a?b HTTP/1.1" 502 10 "http://example.com/x=\"y" "curl rt=9" rt=0.250 ua="10.0.0.1:80, 10.0.0.2:80" urt="0.1, 0.15" urt=7 odd"#;
        assert_eq!(
            texts(&layout.read(line).unwrap()),
            [
                ("time", "02/Jan/2026:15:04:05 +0000"),
                ("status", "502"),
                ("took", "0.250"),
                ("upstream", "10.0.0.1:80, 10.0.0.2:80"),
                ("upstream-took", "0.1, 0.15"),
                ("path", "GET /a?b HTTP/1.1"),
            ]
        );
        let common = r#"h - frank [02/Jan/2026:15:04:05 +0000] "GET / \"quoted\" HTTP/1.0" 200 -"#;
        let read = layout.read(common).unwrap();
        assert_eq!(read.text(Role::Path), Some(r#"GET / \"quoted\" HTTP/1.0"#));
    }

    #[test]
    fn a_layout_of_ones_own_is_read_in_nginx_words() {
        let layout = Layout::new("$msec|$upstream_addr|$upstream_status|${upstream_response_time}|$host$")
            .unwrap_err();
        assert!(layout.contains("nothing stands between"), "{layout}");
        let layout =
            Layout::new("$msec|$upstream_addr|$upstream_status|${upstream_response_time}|$host").unwrap();
        let read = layout.read("1767225600.5|10.0.0.1:80|-|0.1|example.com").unwrap();
        assert_eq!(
            texts(&read),
            [
                ("time", "1767225600.5"),
                ("upstream", "10.0.0.1:80"),
                ("upstream-status", ""),
                ("upstream-took", "0.1"),
                ("host", "example.com"),
            ]
        );
        let error = layout.read("1767225600.5|10.0.0.1:80").unwrap_err();
        assert!(error.contains("\"|\" is missing"), "{error}");
    }

    #[test]
    fn a_layout_of_ones_own_is_read_in_apaches_words() {
        let layout =
            Layout::new(r#"%v %!200,304{User-agent}i %h %{end:usec}t %>s %D 100%% "%r" %{Retry-After}o"#)
                .unwrap();
        let read = layout
            .read(r#"example.com curl ::1 1767225600000000 503 1500 100% "GET / HTTP/1.1" 30"#)
            .unwrap();
        let time = read.field(Role::Time).unwrap();
        assert_eq!((time.begin, time.unit), (false, Some(Unit::Microseconds)));
        assert_eq!(read.field(Role::Took).unwrap().unit, Some(Unit::Microseconds));
        assert_eq!(read.text(Role::RetryAfter), Some("30"));
        assert!(Layout::new("%{%Y}t %s").unwrap_err().contains("cannot be read"));
        assert!(
            Layout::new("%t")
                .unwrap_err()
                .contains("needs a time and a status")
        );
        assert!(Layout::new("%{x").unwrap_err().contains("not finished"));
        assert!(Layout::new(APACHE).unwrap().has(Role::Time));
    }
}
