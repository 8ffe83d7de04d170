//! Exporters that block, panic or call the breaker back.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tracing::Level;
use tripwit::{Breaker, State};

use crate::support::{Log, Pipeline, consecutive};

/// Does something with the name of each span.
struct Doing<F>(F);

impl<F> std::fmt::Debug for Doing<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Doing")
    }
}

impl<F: Fn(&str) + Send + Sync> SpanExporter for Doing<F> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter().for_each(|span| (self.0)(&span.name));
        Ok(())
    }
}

fn exporting(work: impl Fn(&str) + Send + Sync + 'static) -> Pipeline {
    Pipeline::with(|tracers, _| tracers.with_simple_exporter(Doing(work)))
}

/// An exporter that says when it is asked to export `slow trip`, and waits to be released.
fn blocking() -> (Pipeline, Receiver<()>, Sender<()>) {
    let (entered, has_entered) = channel();
    let (release, released) = channel();
    let released = Mutex::new(released);
    let pipeline = exporting(move |name| {
        if name == "slow trip" {
            entered.send(()).unwrap();
            let _ = released.lock().unwrap().recv();
        }
    });
    (pipeline, has_entered, release)
}

#[test]
fn an_exporter_that_blocks_holds_up_the_one_call_that_emits() {
    let (pipeline, has_entered, release) = blocking();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let (slow, other) = (
        breakers.breaker("slow").unwrap(),
        breakers.breaker("other").unwrap(),
    );
    std::thread::scope(|threads| {
        // Dropped before the threads are waited for, so that a failed assertion releases them.
        let release = release;
        threads.spawn(|| slow.trip());
        has_entered.recv().unwrap();
        other.trip();
        assert!(other.acquire().is_err() && slow.acquire().is_err());
        other.reset();
        assert!(other.acquire().is_ok());
        assert_eq!(breakers.tripped(), ["slow"]);
        let circuits = pipeline.values("tripwit.circuit_breaker.circuits");
        assert_eq!(
            circuits["circuit_breaker.state=open"], 1.0,
            "metrics are read meanwhile"
        );
        release.send(()).unwrap();
    });
    let names: Vec<_> = pipeline
        .spans
        .get_finished_spans()
        .unwrap()
        .iter()
        .map(|span| span.name.to_string())
        .collect();
    assert_eq!(names, ["slow trip", "other trip", "other reset"]);
}

#[test]
fn an_exporter_that_panics_stops_nothing() {
    let pipeline = exporting(|_| panic!("an exporter's own"));
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    let log = Log::from(Level::INFO);
    log.during(|| {
        sms.trip();
        assert_eq!(sms.state(), State::Open);
        sms.reset();
    });
    assert_eq!(sms.state(), State::Closed);
    assert!(sms.acquire().is_ok());
    assert_eq!(log.messages().len(), 2, "the log goes on");
}

#[test]
fn an_exporter_may_call_the_breaker() {
    let breaker: Arc<OnceLock<Breaker>> = Arc::default();
    let own = breaker.clone();
    let pipeline = exporting(move |name| {
        let breaker = own.get().unwrap();
        if name == "sms trip" {
            assert_eq!(breaker.state(), State::Open);
            breaker.reset();
        }
    });
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    breaker.set(sms.clone()).unwrap();
    sms.trip();
    assert_eq!(sms.state(), State::Closed);
    assert_eq!(pipeline.spans.get_finished_spans().unwrap().len(), 2);
}

#[test]
fn what_does_not_fit_into_the_queue_is_counted_and_warned_of_once() {
    let (pipeline, has_entered, release) = blocking();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let (slow, other) = (
        breakers.breaker("slow").unwrap(),
        breakers.breaker("other").unwrap(),
    );
    let log = Log::from(Level::WARN);
    std::thread::scope(|threads| {
        let release = release;
        threads.spawn(|| log.during(|| slow.trip()));
        has_entered.recv().unwrap();
        // A span, a line and a move each; line and move of `slow` are still to be told.
        for _ in 0..1_000 {
            other.trip();
            other.reset();
        }
        assert_eq!(breakers.dropped_telemetry(), 6_000 + 2 - 4_096);
        release.send(()).unwrap();
    });
    let warnings: Vec<_> = log
        .messages()
        .into_iter()
        .filter(|message| !message.starts_with("Circuit breaker tripped"))
        .collect();
    assert_eq!(
        warnings,
        ["More log lines, spans and moves than can be queued; some are dropped"]
    );
    let dropped = pipeline.values("tripwit.circuit_breaker.dropped_entries");
    assert_eq!(dropped[""], breakers.dropped_telemetry() as f64);
    other.trip();
    assert_eq!(breakers.dropped_telemetry(), 1_906, "there is room again");
}
