//! Another policy, or other settings, while circuits are in use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tripwit::settings::{Consecutive, Outbox, Window};
use tripwit::{
    Breaker, Breakers, Clock, Failure, ManualClock, Mode, Policy, RejectionReason, Settings, SettingsTable,
    State, Status, SwapError,
};

use crate::support::{circuits, fine, moves, refused, touchy, touchy_circuits};
use crate::telemetry::logged;

const WAIT: Duration = Duration::from_secs(5);

/// `consecutive`, compiled once more: another policy as far as the host can tell, and the same by name.
fn consecutive_again() -> Policy {
    static POLICY: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(|| {
        Policy::from_bytes(include_bytes!("../../components/consecutive.wasm")).unwrap()
    });
    POLICY.clone()
}

fn faulty() -> Policy {
    static POLICY: std::sync::LazyLock<Policy> =
        std::sync::LazyLock::new(|| Policy::from_bytes(include_bytes!("../guests/faulty.wasm")).unwrap());
    POLICY.clone()
}

fn left(breaker: &Breaker) -> Option<Duration> {
    breaker.acquire().unwrap_err().retry_after()
}

#[test]
fn the_same_policy_loses_nothing() {
    let (breakers, clock) = touchy_circuits();
    let (counted, open) = (
        breakers.breaker("counted").unwrap(),
        breakers.breaker("open").unwrap(),
    );
    counted.call_blocking(refused).unwrap_err();
    counted
        .acquire()
        .unwrap()
        .failure(Failure::new().cause("refused"));
    counted.reset();
    counted
        .acquire()
        .unwrap()
        .failure(Failure::new().cause("too slow"));
    open.trip();
    clock.advance(Duration::from_secs(2));
    let before = (counted.status(), open.status());

    let (heard, _subscription) = moves(&breakers);
    breakers.swap(consecutive_again(), touchy()).unwrap();

    assert_eq!((counted.status(), open.status()), before);
    assert_eq!(*heard.lock().unwrap(), [], "a swap moves nothing");
    assert_eq!(left(&open), Some(Duration::from_secs(3)));
    assert_eq!(counted.state(), State::Closed);
    counted.call_blocking(refused).unwrap_err();
    assert_eq!(
        counted.state(),
        State::Open,
        "the failure before the swap was the first of two"
    );
    clock.advance(Duration::from_secs(3));
    open.call_blocking(fine).unwrap();
    assert_eq!(open.state(), State::Closed);
    assert_eq!(breakers.faults(), 0);
}

#[test]
fn another_policy_takes_over_state_and_mode_by_the_rules_of_the_docs() {
    let (breakers, clock) = touchy_circuits();
    let at = |key: &str| breakers.breaker(key).unwrap();
    let (closed, open, probing, forced) = (at("closed"), at("open"), at("probing"), at("forced"));
    probing.trip();
    clock.advance(WAIT);
    let _probe = probing.acquire().unwrap();
    assert_eq!(probing.state(), State::HalfOpen);
    open.trip();
    forced.set_mode(Mode::ForcedOpen);

    breakers
        .swap(
            Policy::outbox().unwrap(),
            SettingsTable::new(Outbox::default().cooldown_count(3)),
        )
        .unwrap();
    assert_eq!(breakers.policy().description().name, "outbox");
    assert_eq!(breakers.tripped(), ["open", "probing"]);
    assert_eq!(open.status().cooldown_count, Some(3), "a full round of cycles");
    assert_eq!((closed.state(), forced.mode()), (State::Closed, Mode::ForcedOpen));
    breakers.cool_down();
    assert_eq!(open.status().cooldown_count, Some(2));

    breakers.swap(Policy::consecutive().unwrap(), touchy()).unwrap();
    assert_eq!(
        breakers.tripped(),
        ["open", "probing"],
        "no swap closes a circuit"
    );
    assert_eq!(left(&open), Some(WAIT), "cycles are no time: the full wait");
    assert_eq!(
        forced.acquire().unwrap_err().reason(),
        RejectionReason::ForcedOpen
    );
    clock.advance(WAIT);
    open.call_blocking(fine).unwrap();
    assert_eq!(open.state(), State::Closed);
}

#[test]
fn a_window_goes_over_with_what_it_holds_and_what_was_kept_back() {
    let settings = Window::default()
        .window_calls(20)
        .minimum_calls(10)
        .failure_rate(50.0);
    let clock = ManualClock::new();
    let breakers = Breakers::builder(Policy::window().unwrap())
        .settings(settings.clone())
        .clock(clock)
        .build()
        .unwrap();
    let breaker = breakers.breaker("a").unwrap();
    (0..5).for_each(|_| breaker.call_blocking(fine).unwrap());
    for _ in 0..3 {
        breaker.call_blocking(refused).unwrap_err();
    }
    (0..2).for_each(|_| breaker.call_blocking(fine).unwrap());
    let again = Policy::from_bytes(include_bytes!("../../components/window.wasm")).unwrap();
    breakers.swap(again, settings.clone()).unwrap();
    let counts = breaker.status().counts;
    assert_eq!((counts.successes, counts.failures), (7, 3));

    breakers.swap(Policy::consecutive().unwrap(), touchy()).unwrap();
    breaker.call_blocking(refused).unwrap_err();
    assert_eq!(breaker.state(), State::Closed, "the successes broke the row");
    breakers.swap(Policy::window().unwrap(), settings).unwrap();
    breaker.call_blocking(refused).unwrap_err();
    assert_eq!(
        breaker.state(),
        State::Closed,
        "too few calls went over for a verdict"
    );
}

#[test]
fn calls_under_way_end_against_their_old_generation() {
    let (breakers, clock) = touchy_circuits();
    let breaker = breakers.breaker("a").unwrap();
    let (one, other) = (breaker.acquire().unwrap(), breaker.acquire().unwrap());
    breakers.swap(consecutive_again(), touchy()).unwrap();
    one.failure(Failure::new());
    other.failure(Failure::new());
    let status = breaker.status();
    assert_eq!((status.state, status.counts.failures), (State::Closed, 0));
    assert_eq!(status.stale_results, 2);

    breaker.trip();
    clock.advance(WAIT);
    let probe = breaker.acquire().unwrap();
    assert_eq!(
        breaker.acquire().unwrap_err().reason(),
        RejectionReason::ProbeLimit
    );
    breakers.swap(Policy::consecutive().unwrap(), touchy()).unwrap();
    let second = breaker.acquire().unwrap();
    probe.success();
    assert_eq!(
        breaker.state(),
        State::HalfOpen,
        "it was the other instance's probe"
    );
    second.success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn new_circuits_get_the_settings_and_the_policy_that_took_over() {
    let (breakers, _clock) = touchy_circuits();
    breakers
        .swap(
            Policy::outbox().unwrap(),
            SettingsTable::new(Outbox::default().cooldown_count(7))
                .for_key("one", Outbox::default().cooldown_count(1))
                .for_prefix("some:", Outbox::default().cooldown_count(4)),
        )
        .unwrap();
    for (key, cycles) in [("one", 1), ("some:a", 4), ("else", 7)] {
        let breaker = breakers.breaker(key).unwrap();
        breaker.trip();
        assert_eq!(breaker.status().cooldown_count, Some(cycles), "{key}");
    }
    let error = breakers.breaker_with("new", touchy()).unwrap_err();
    assert!(error.to_string().contains("/"), "{error}");
}

#[test]
fn own_settings_stay_with_the_same_policy_and_go_with_another() {
    let (breakers, _clock) = touchy_circuits();
    let own = Consecutive::default().failure_threshold(1);
    let breaker = breakers.breaker_with("own", own.clone()).unwrap();
    breakers.swap(consecutive_again(), touchy()).unwrap();
    breakers.breaker_with("own", own.clone()).unwrap();
    breakers.reconfigure(touchy().failure_threshold(9)).unwrap();
    breakers.breaker_with("own", own.clone()).unwrap();
    breaker.call_blocking(refused).unwrap_err();
    assert_eq!(breaker.state(), State::Open);

    breakers.swap(Policy::outbox().unwrap(), "{}").unwrap();
    assert_eq!(breaker.state(), State::Open);
    breakers
        .swap(consecutive_again(), touchy().failure_threshold(3))
        .unwrap();
    breakers.breaker_with("own", own).unwrap_err();
}

#[test]
fn other_settings_keep_what_still_means_something() {
    let (breakers, clock) = touchy_circuits();
    let at = |key: &str| breakers.breaker(key).unwrap();
    let (counted, open, same) = (at("counted"), at("open"), at("same"));
    counted.call_blocking(refused).unwrap_err();
    open.trip();
    clock.advance(Duration::from_secs(1));
    let (void, counts) = (counted.acquire().unwrap(), same.acquire().unwrap());
    breakers
        .reconfigure(SettingsTable::new(touchy().failure_threshold(3)).for_key("same", touchy()))
        .unwrap();

    assert_eq!(left(&open), Some(Duration::from_secs(4)));
    void.failure(Failure::new());
    counts.failure(Failure::new());
    assert_eq!(
        same.status().counts.failures,
        1,
        "its settings are what they were"
    );
    assert_eq!(counted.status().stale_results, 1);
    counted.call_blocking(refused).unwrap_err();
    assert_eq!(counted.state(), State::Closed, "two of three");
    counted.call_blocking(refused).unwrap_err();
    assert_eq!(counted.state(), State::Open);

    let new = at("new");
    new.call_blocking(refused).unwrap_err();
    new.call_blocking(refused).unwrap_err();
    assert_eq!(new.state(), State::Closed);
}

/// Everything that a refused swap must leave as it was.
fn picture(breakers: &Breakers) -> String {
    format!("{:?} {:?}", breakers.policy(), breakers.statuses())
}

#[test]
fn a_candidate_that_fails_on_trial_changes_nothing_and_the_error_says_where() {
    let (breakers, _clock) = touchy_circuits();
    let at = |key: &str| breakers.breaker(key).unwrap();
    at("trap:restore").trip();
    let permit = at("plain");
    let permit = permit.acquire().unwrap();
    let before = picture(&breakers);

    let refusals: [(Result<(), SwapError>, &[&str]); 5] = [
        (
            breakers.swap(Policy::outbox().unwrap(), touchy()),
            &["every key", "/"],
        ),
        (
            breakers.swap(
                consecutive_again(),
                SettingsTable::new("{}").for_key("x", r#"{"failure_threshold":0}"#),
            ),
            &["key \"x\"", "/failure_threshold"],
        ),
        (
            breakers.swap(faulty(), touchy()),
            &["on trial", "trap:restore", "`restore`", "unreachable"],
        ),
        (
            breakers.reconfigure(r#"{"open_for":"never"}"#),
            &["every key", "/open_for"],
        ),
        (
            breakers.reconfigure(SettingsTable::new("{}").for_prefix("web", "no")),
            &["prefix \"web\""],
        ),
    ];
    for (refusal, words) in refusals {
        let error = refusal.unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error:?} lacks {word:?}");
        }
    }
    assert_eq!(picture(&breakers), before);
    assert_eq!(breakers.faults(), 0, "a candidate's faults are its own");
    permit.failure(Failure::new());
    assert_eq!(at("plain").status().counts.failures, 1, "calls under way count");
}

#[test]
fn a_circuit_whose_own_settings_another_version_refuses_is_named() {
    let (breakers, _clock) = touchy_circuits();
    breakers.breaker("trap:configure").unwrap();
    breakers.swap(faulty(), touchy()).unwrap();
    let error = breakers
        .reconfigure(touchy().failure_threshold(3))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("trap:configure") && error.contains("`configure`"),
        "{error}"
    );
}

#[test]
fn what_fails_after_the_trial_is_a_fault_of_the_new_policy() {
    let (breakers, _clock) = touchy_circuits();
    let bad = breakers.breaker("trap:settle").unwrap();
    let open = breakers.breaker("open").unwrap();
    open.trip();
    breakers.swap(faulty(), touchy()).unwrap();
    assert_eq!(breakers.faults(), 0);
    for _ in 0..3 {
        bad.call_blocking(refused).unwrap_err();
    }
    assert_eq!(breakers.faults(), 3);
    assert_eq!(left(&open), Some(WAIT), "the others go on");
    assert!(bad.status().at_fault);

    bad.set_mode(Mode::ForcedOpen);
    breakers.swap(Policy::consecutive().unwrap(), touchy()).unwrap();
    assert!(!bad.status().at_fault, "a swap is a clean slate");
    assert_eq!(bad.mode(), Mode::ForcedOpen, "what an operator said stays");
    bad.set_mode(Mode::Automatic);
    bad.call_blocking(refused).unwrap_err();
    bad.call_blocking(refused).unwrap_err();
    assert_eq!(bad.state(), State::Open);
}

#[test]
fn an_instance_that_fails_while_it_hands_over_loses_no_open_circuit() {
    let clock = ManualClock::new();
    let breakers = Breakers::builder(faulty())
        .settings(touchy())
        .clock(clock.clone())
        .shards(1)
        .build()
        .unwrap();
    let at = |key: &str| breakers.breaker(key).unwrap();
    let (before, bad, after) = (at("before"), at("trap:detach"), at("after"));
    for breaker in [&before, &bad, &after] {
        breaker.trip();
    }
    clock.advance(Duration::from_secs(1));
    breakers.swap(Policy::consecutive().unwrap(), touchy()).unwrap();
    assert_eq!(breakers.faults(), 1, "the fault of the one that went");
    for breaker in [&before, &bad, &after] {
        assert_eq!(left(breaker), Some(Duration::from_secs(4)), "{}", breaker.key());
    }
    assert_eq!(breakers.policy().description().name, "consecutive");
    let new = at("new");
    new.call_blocking(fine).unwrap();
    breakers.swap(consecutive_again(), touchy()).unwrap();
    assert_eq!(left(&after), Some(Duration::from_secs(4)));
}

/// Asks for a swap whenever it is read while it is armed.
#[derive(Clone, Default)]
struct Meddling {
    armed: Arc<AtomicBool>,
    breakers: Arc<Mutex<Option<Breakers>>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Clock for Meddling {
    fn monotonic(&self) -> u64 {
        if self.armed.swap(false, Ordering::Relaxed) {
            let breakers = self.breakers.lock().unwrap().clone().unwrap();
            for answer in [
                breakers.swap(consecutive_again(), touchy()),
                breakers.reconfigure(touchy()),
            ] {
                self.said.lock().unwrap().push(answer.unwrap_err().to_string());
            }
        }
        1
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[test]
fn a_swap_in_the_midst_of_a_swap_is_refused_and_neither_hangs() {
    let clock = Meddling::default();
    let breakers = Breakers::builder(Policy::consecutive().unwrap())
        .clock(clock.clone())
        .build()
        .unwrap();
    *clock.breakers.lock().unwrap() = Some(breakers.clone());
    for swap in [
        Box::new(|| breakers.swap(consecutive_again(), touchy())) as Box<dyn Fn() -> Result<(), SwapError>>,
        Box::new(|| breakers.reconfigure(touchy())),
    ] {
        clock.armed.store(true, Ordering::Relaxed);
        swap().unwrap();
        let said = std::mem::take(&mut *clock.said.lock().unwrap());
        assert_eq!(said.len(), 2);
        assert!(said.iter().all(|said| said.contains("under way")), "{said:?}");
    }
    clock.breakers.lock().unwrap().take();
}

#[test]
fn a_swap_is_logged_and_counted_in_the_policies_own_words() {
    let (builder, _clock) = circuits(touchy());
    let breakers = builder.build().unwrap();
    let lines = logged(|| breakers.swap(Policy::outbox().unwrap(), "{}").unwrap());
    let lines: Vec<_> = lines.iter().filter(|line| line.target == "tripwit").collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].level, "INFO");
    assert!(
        lines[0].fields["message"].starts_with("Policy consecutive ")
            && lines[0].fields["message"].contains("swapped for outbox "),
        "{lines:?}"
    );
    assert_eq!(
        lines[0].fields["digest"],
        Policy::outbox().unwrap().digest().to_string()
    );
}

/// What two threads do while policies are swapped under them.
struct Load {
    breakers: Breakers,
    stop: AtomicBool,
    /// Calls that an open circuit admitted.
    leaks: AtomicU64,
    /// Results reported to a circuit that only counts.
    reported: AtomicU64,
    probes: AtomicU64,
}

impl Load {
    fn run(&self) {
        let at = |key: &str| self.breakers.breaker(key).unwrap();
        let (open, counting, probed) = (at("open"), at("counting"), at("probed"));
        let mut round = 0_u64;
        while !self.stop.load(Ordering::Relaxed) {
            round += 1;
            if open.acquire().is_ok() {
                self.leaks.fetch_add(1, Ordering::Relaxed);
            }
            match counting.acquire().unwrap() {
                permit if round.is_multiple_of(8) => permit.failure(Failure::new()),
                permit => permit.success(),
            }
            self.reported.fetch_add(1, Ordering::Relaxed);
            if let Ok(permit) = probed.acquire() {
                self.probes.fetch_add(1, Ordering::Relaxed);
                drop(permit);
            }
            // Circuits come and go meanwhile.
            at(&format!("key {}", round % 300)).call_blocking(fine).unwrap();
        }
    }

    /// Swaps between two policies so many times, while two threads call. Gives the status of the circuit that only
    /// counts, and how many results were reported to it.
    fn swaps(times: u32, policies: [(Policy, Settings); 2]) -> (Status, u64) {
        let clock = ManualClock::new();
        let [(policy, settings), _] = policies.clone();
        let breakers = Breakers::builder(policy)
            .settings(settings)
            .clock(clock.clone())
            .max_circuits(200)
            .shards(2)
            .build()
            .unwrap();
        let at = |key: &str| breakers.breaker(key).unwrap();
        let (open, counting, probed) = (at("open"), at("counting"), at("probed"));
        probed.trip();
        clock.advance(WAIT);
        drop(probed.acquire().unwrap());
        open.trip_for(Duration::from_secs(3_600));
        let load = Self {
            breakers: breakers.clone(),
            stop: AtomicBool::new(false),
            leaks: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            probes: AtomicU64::new(0),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| load.run());
            scope.spawn(|| load.run());
            let [one, other] = &policies;
            for (round, (policy, settings)) in (0..times).zip([other, one].into_iter().cycle()) {
                if let Err(error) = breakers.swap(policy.clone(), settings.clone()) {
                    load.stop.store(true, Ordering::Relaxed);
                    panic!("swap {round}: {error}");
                }
            }
            load.stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(load.leaks.into_inner(), 0, "calls that an open circuit admitted");
        assert!(load.probes.into_inner() > 0);
        assert_eq!(probed.state(), State::HalfOpen);
        assert_eq!(probed.status().counts.probes_in_flight, 0);
        drop(probed.acquire().unwrap());
        assert_eq!(breakers.faults(), 0);
        (counting.status(), load.reported.into_inner())
    }
}

fn patient() -> Settings {
    Consecutive::default()
        .failure_threshold(1_000_000)
        .open_for(WAIT)
        .probe_timeout(Duration::from_secs(3_600))
        .into()
}

/// Counts everything of a day, and never opens.
fn patient_window() -> Settings {
    Window::default()
        .window_time(Duration::from_secs(24 * 3_600))
        .failure_rate(100.0)
        .minimum_calls(1_000_000)
        .open_for(WAIT)
        .probe_timeout(Duration::from_secs(3_600))
        .into()
}

#[test]
fn a_thousand_swaps_between_two_policies_under_load_admit_nothing_that_is_open() {
    let (status, reported) = Load::swaps(
        1_000,
        [
            (Policy::consecutive().unwrap(), patient()),
            (Policy::window().unwrap(), patient_window()),
        ],
    );
    assert_eq!(status.state, State::Closed);
    let counted = u64::from(status.counts.successes) + u64::from(status.counts.failures);
    assert!(counted + status.stale_results <= reported, "{status:?}");
}

#[test]
fn swaps_of_the_same_policy_under_load_count_each_result_once_or_as_stale() {
    let again = Policy::from_bytes(include_bytes!("../../components/window.wasm")).unwrap();
    let (status, reported) = Load::swaps(
        200,
        [
            (Policy::window().unwrap(), patient_window()),
            (again, patient_window()),
        ],
    );
    let counted = u64::from(status.counts.successes) + u64::from(status.counts.failures);
    assert_eq!(counted + status.stale_results, reported, "{status:?}");
}
