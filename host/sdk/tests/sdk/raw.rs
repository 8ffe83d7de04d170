//! The functions of a component, without a host around them.

use std::path::Path;
use std::time::Duration;

use tripwit::raw::{AttachError, Decision, Instance, Mode, Outcome, Report, Setup, State, Told};
use tripwit::{Instrumentation, ManualClock, Policy};

fn consecutive() -> (Instance, ManualClock) {
    let clock = ManualClock::new();
    let policy = Policy::consecutive().unwrap();
    let instance = Instance::start(&policy, clock.clone(), &Setup::default()).unwrap();
    (instance, clock)
}

#[test]
fn every_function_of_the_contract_can_be_called() {
    let (mut instance, clock) = consecutive();
    let settings = r#"{"failure_threshold": 1, "open_for": "5s"}"#;
    let circuit = instance.attach("orders", settings).unwrap().unwrap().circuit;
    let Decision::Admit(ticket) = instance.acquire(circuit).unwrap().decision else {
        panic!("a new circuit is closed");
    };
    let failure = Report {
        outcome: Outcome::Failure,
        took: None,
        retry_after: None,
        cause: None,
    };
    let settled = instance.settle(circuit, ticket, &failure).unwrap();
    assert!(settled.counted && settled.lease.state == State::Open);
    assert_eq!(
        instance.settle_successes(circuit, ticket, 1).unwrap().transition,
        None
    );
    assert_eq!(instance.tripped().unwrap(), ["orders"]);
    clock.advance(Duration::from_secs(5));
    assert_eq!(instance.inspect(circuit).unwrap().retry_after, Some(0));
    assert_eq!(
        instance.set_mode(circuit, Mode::Shadow).unwrap().lease.mode,
        Mode::Shadow
    );
    assert!(instance.configure(circuit, "{}").unwrap().is_ok());
    assert_eq!(instance.trip(circuit, Some(1)).unwrap().transition, None);
    let snapshot = instance.save(circuit).unwrap();
    instance.detach(circuit).unwrap();
    let restored = instance.restore(&snapshot, "{}", 0).unwrap().unwrap();
    assert_eq!(instance.lease_of(restored.circuit).unwrap().state, State::Open);
    assert!(instance.reset(restored.circuit).unwrap().transition.is_some());
    assert_eq!(instance.cool_down().unwrap(), []);
    assert_eq!(instance.describe().unwrap().name, "consecutive");
    assert!(instance.memory() > 0);
}

#[test]
fn what_a_component_tells_is_heard_once() {
    let (mut instance, _clock) = consecutive();
    let circuit = instance.attach("orders", "{}").unwrap().unwrap().circuit;
    let setup = Setup {
        instrumentation: Instrumentation::NONE,
        ..Setup::default()
    };
    instance.prepare(&setup).unwrap();
    instance.trip(circuit, None).unwrap();
    let heard = instance.heard();
    let [Told::Span { name, attributes, .. }, Told::Line { message, .. }] = heard.told.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!((name.as_str(), attributes.len()), ("orders trip", 0));
    assert!(
        message.starts_with("Circuit breaker tripped for topic orders"),
        "{message}"
    );
    assert_eq!(instance.heard(), tripwit::raw::Heard::default());
}

#[test]
fn a_refusal_is_an_answer_and_a_trap_a_fault() {
    let (mut instance, _clock) = consecutive();
    let refused = instance.attach("", "{}").unwrap();
    assert!(matches!(refused, Err(AttachError::Key(_))), "{refused:?}");
    let faulty = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/faulty.wasm");
    let policy = Policy::from_file(faulty).unwrap();
    let mut instance = Instance::start(&policy, ManualClock::new(), &Setup::default()).unwrap();
    let fault = instance.attach("trap:attach", "{}").unwrap_err();
    assert_eq!(fault.call, "attach");
    assert!(fault.to_string().starts_with("`attach`: "), "{fault}");
}
