//! A made-up night: calls to three upstreams, two of which are down for a while, and the logs that would be written of it.

use fastrand::Rng;

/// 2026-01-01T00:00:00Z, in milliseconds since the Unix epoch.
pub(crate) const MIDNIGHT: u64 = 1_767_225_600_000;

/// One call. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) status: u16,
    pub(crate) upstream: &'static str,
}

/// An hour of calls, in the order in which they ended, which is that of their lines.
pub(crate) fn calls(seed: u64) -> Vec<Call> {
    let mut rng = Rng::with_seed(seed);
    let mut calls = Vec::new();
    let mut now = MIDNIGHT;
    while now < MIDNIGHT + 3_600_000 {
        now += rng.u64(0..400);
        let upstream = ["payments", "search", "mail"][rng.usize(0..3)];
        let minute = (now - MIDNIGHT) / 60_000;
        let (bad, slowest) = match (upstream, minute) {
            ("payments", 10..14) => (0.98, 900),
            ("mail", 30..45) => (0.6, 15_000),
            _ => (0.02, 300),
        };
        let status = if rng.f64() < bad {
            [500, 502, 503, 504][rng.usize(0..4)]
        } else {
            [200, 200, 200, 200, 304, 404, 429, 499][rng.usize(0..8)]
        };
        calls.push(Call {
            begin: now,
            end: now + rng.u64(0..slowest),
            status,
            upstream,
        });
    }
    calls.sort_by_key(|call| call.end);
    calls
}

/// Each call as it can be read back from a log that has times of the end in whole seconds.
pub(crate) fn by_seconds_of_the_end(calls: &[Call]) -> Vec<Call> {
    let seconds = |call: &Call| Call {
        begin: call.end / 1_000 * 1_000 - (call.end - call.begin),
        end: call.end / 1_000 * 1_000,
        ..call.clone()
    };
    calls.iter().map(seconds).collect()
}

/// Each call as it can be read back from a log that has times of the beginning in whole seconds.
pub(crate) fn by_seconds_of_the_beginning(calls: &[Call]) -> Vec<Call> {
    let seconds = |call: &Call| Call {
        begin: call.begin / 1_000 * 1_000,
        end: call.begin / 1_000 * 1_000 + (call.end - call.begin),
        ..call.clone()
    };
    calls.iter().map(seconds).collect()
}

fn written(calls: &[Call], line: impl Fn(&Call) -> String) -> String {
    calls.iter().map(|call| line(call) + "\n").collect()
}

/// As web servers write times. The night is within an hour.
fn server_time(milliseconds: u64) -> String {
    let seconds = (milliseconds - MIDNIGHT) / 1_000;
    format!(
        "01/Jan/2026:{:02}:{:02}:{:02} +0000",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn iso_time(milliseconds: u64) -> String {
    let seconds = (milliseconds - MIDNIGHT) / 1_000;
    format!(
        "2026-01-01T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        milliseconds % 1_000
    )
}

fn took(call: &Call) -> u64 {
    call.end - call.begin
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000)
}

/// nginx's combined layout and the fields that its users commonly add.
pub(crate) fn nginx(calls: &[Call]) -> String {
    written(calls, |call| {
        let took = seconds(took(call));
        format!(
            r#"192.0.2.7 - - [{}] "GET /api/{}?id=7 HTTP/1.1" {} 512 "-" "agent \x22one\x22" rt={took} ua="{}" us="{}" urt="{took}""#,
            server_time(call.end),
            call.upstream,
            call.status,
            call.upstream,
            call.status
        )
    })
}

/// Apache's combined layout, with the virtual host before it and the microseconds after it.
pub(crate) fn apache(calls: &[Call]) -> String {
    written(calls, |call| {
        format!(
            r#"{}.Example:443 192.0.2.7 - frank [{}] "GET / HTTP/1.1" {} - "-" "agent \"one\"" {}"#,
            call.upstream,
            server_time(call.begin),
            call.status,
            took(call) * 1_000
        )
    })
}

/// The layout of `apache`.
pub(crate) const APACHE_LAYOUT: &str = r#"%v %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %D"#;

/// JSON lines.
pub(crate) fn json(calls: &[Call]) -> String {
    written(calls, |call| {
        format!(
            r#"{{"time": "{}", "status": {}, "request_time": {}, "upstream": "{}", "other": [1]}}"#,
            iso_time(call.end),
            call.status,
            seconds(took(call)),
            call.upstream
        )
    })
}

/// CSV with names of its own.
pub(crate) fn csv(calls: &[Call]) -> String {
    let lines = written(calls, |call| {
        format!(
            "\"{}\",{},{},{}",
            call.upstream,
            call.end,
            took(call),
            call.status
        )
    });
    format!("target,ended,millis,code\n{lines}")
}

/// A layout of one's own, in nginx's words.
pub(crate) fn own(calls: &[Call]) -> String {
    written(calls, |call| {
        format!(
            "{} {} {} {}",
            seconds(call.end),
            call.upstream,
            call.status,
            seconds(took(call))
        )
    })
}

/// The layout of `own`.
pub(crate) const OWN_LAYOUT: &str = "$msec $upstream_addr $upstream_status $upstream_response_time";
