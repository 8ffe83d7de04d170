//! A folder whose newest component decides.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tripwit::settings::Outbox;
use tripwit::{Breakers, Digest, Policy, PolicyError, State, Watch, WatchError, Watched};

use crate::support::{circuits, touchy, touchy_circuits};
use crate::telemetry::logged;

const OUTBOX: &[u8] = include_bytes!("../../components/outbox.wasm");
const CONSECUTIVE: &[u8] = include_bytes!("../../components/consecutive.wasm");
const FAULTY: &[u8] = include_bytes!("../guests/faulty.wasm");

/// A folder in which every file is a minute newer than the one before.
struct Folder {
    folder: TempDir,
    minutes: u64,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            minutes: 0,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn drop_in(&mut self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, bytes).unwrap();
        self.minutes += 1;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + 60 * self.minutes);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        path
    }
}

/// Looks until something comes of it, at most twice: what is new is taken at the second look.
fn news(watch: &mut Watch) -> Option<Result<Watched, WatchError>> {
    watch.poll().or_else(|| watch.poll())
}

fn chain(error: &dyn Error) -> String {
    let source = error.source().map(chain);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn name(breakers: &Breakers) -> String {
    breakers.policy().description().name.clone()
}

#[test]
fn a_component_that_is_dropped_in_decides_once_it_looks_the_same_twice() {
    let (breakers, _clock) = touchy_circuits();
    let open = breakers.breaker("open").unwrap();
    open.trip();
    let mut folder = Folder::new();
    let mut watch = Watch::new(&breakers, folder.path());
    assert!(news(&mut watch).is_none(), "an empty folder is no fault");

    folder.drop_in("notes.txt", b"not looked at");
    folder.drop_in("outbox.wasm", &OUTBOX[..1_000]);
    assert!(watch.poll().is_none(), "seen once");
    folder.drop_in("outbox.wasm", OUTBOX);
    assert!(watch.poll().is_none(), "it has changed since");
    assert_eq!(name(&breakers), "consecutive");
    assert_eq!(
        watch.poll().unwrap().unwrap(),
        Watched::Swapped(Digest::of(OUTBOX))
    );
    assert_eq!((name(&breakers), open.state()), ("outbox".into(), State::Open));
    assert!(news(&mut watch).is_none(), "nothing new");

    folder.drop_in("consecutive.wasm", CONSECUTIVE);
    assert!(matches!(news(&mut watch), Some(Ok(Watched::Swapped(_)))));
    assert_eq!(
        (name(&breakers), open.state()),
        ("consecutive".into(), State::Open)
    );

    fs::remove_file(folder.path().join("consecutive.wasm")).unwrap();
    assert!(matches!(news(&mut watch), Some(Ok(Watched::Swapped(_)))));
    assert_eq!(name(&breakers), "outbox", "the newest of the rest");
    fs::remove_file(folder.path().join("outbox.wasm")).unwrap();
    assert!(news(&mut watch).is_none());
    assert_eq!(name(&breakers), "outbox", "nothing to take is no change");
}

#[test]
fn a_bad_file_changes_nothing_and_is_reported_once() {
    let (breakers, _clock) = touchy_circuits();
    breakers.breaker("trap:restore").unwrap().trip();
    let mut folder = Folder::new();
    let mut watch = Watch::new(&breakers, folder.path());
    let cases: [(&str, &[u8], &str); 4] = [
        ("cut.wasm", &OUTBOX[..OUTBOX.len() / 2], "damaged"),
        ("text.wasm", b"hello", "no WebAssembly"),
        ("empty.wasm", b"", "empty"),
        ("trap.wasm", FAULTY, "trap:restore"),
    ];
    for (file, bytes, word) in cases {
        let path = folder.drop_in(file, bytes);
        let mut said = String::new();
        let lines = logged(|| said = chain(&news(&mut watch).unwrap().unwrap_err()));
        assert!(
            said.contains(word) && said.contains(&path.display().to_string()),
            "{said}"
        );
        assert_eq!(lines.iter().filter(|line| line.level == "ERROR").count(), 1);
        assert!(lines[0].fields["problem"].contains(word), "{lines:?}");
        let again = logged(|| (0..4).for_each(|_| assert!(watch.poll().is_none())));
        assert!(again.is_empty(), "{again:?}");
        assert_eq!(name(&breakers), "consecutive");
    }
    folder.drop_in("trap.wasm", OUTBOX);
    assert!(
        matches!(news(&mut watch), Some(Ok(Watched::Swapped(_)))),
        "mended"
    );
}

#[test]
fn only_digests_that_are_allowed_are_taken() {
    let (breakers, _clock) = touchy_circuits();
    let mut folder = Folder::new();
    let shipped = Digest::of(OUTBOX);
    let mut watch = Watch::new(&breakers, folder.path()).allow([shipped, Digest::of(b"other")]);
    folder.drop_in("a.wasm", FAULTY);
    let error = news(&mut watch).unwrap().unwrap_err();
    assert!(
        matches!(
            &error,
            WatchError::Policy {
                source: PolicyError::NotAllowed { found, allowed: 2 },
                ..
            } if *found == Digest::of(FAULTY)
        ),
        "{error:?}"
    );
    folder.drop_in("a.wasm", OUTBOX);
    assert_eq!(news(&mut watch).unwrap().unwrap(), Watched::Swapped(shipped));

    let path = folder.drop_in("b.wasm", CONSECUTIVE);
    let pinned = Policy::loader().allow([shipped]);
    pinned.file(&path).unwrap_err();
    let loaded = pinned.allow([Digest::of(CONSECUTIVE)]).file(&path).unwrap();
    assert_eq!(loaded.digest(), Digest::of(CONSECUTIVE));
}

#[test]
fn settings_come_from_the_file_beside_it_and_stay_with_the_same_policy() {
    let (builder, _clock) = circuits(touchy());
    let breakers = builder
        .settings_for("one", touchy().failure_threshold(1))
        .build()
        .unwrap();
    let mut folder = Folder::new();
    folder.drop_in("policy.json", br#"{"cooldown_count":2}"#);
    folder.drop_in("policy.wasm", OUTBOX);
    let mut watch = Watch::new(&breakers, folder.path().join("policy.wasm"));
    assert!(matches!(news(&mut watch), Some(Ok(Watched::Swapped(_)))));
    let cycles = |key: &str| {
        let breaker = breakers.breaker(key).unwrap();
        breaker.trip();
        breaker.status().cooldown_count
    };
    assert_eq!(cycles("a"), Some(2));

    folder.drop_in("policy.json", br#"{"cooldown_count":5}"#);
    assert_eq!(news(&mut watch).unwrap().unwrap(), Watched::Reconfigured);
    assert_eq!(cycles("b"), Some(5));
    folder.drop_in("policy.json", br#"{"cooldown_count":-1}"#);
    let said = chain(&news(&mut watch).unwrap().unwrap_err());
    assert!(said.contains("/cooldown_count"), "{said}");
    assert_eq!(cycles("c"), Some(5));
    folder.drop_in("policy.json", b"\xff");
    assert!(matches!(news(&mut watch), Some(Err(WatchError::Settings { .. }))));
    fs::remove_file(folder.path().join("policy.json")).unwrap();
    assert_eq!(news(&mut watch).unwrap().unwrap(), Watched::Same);
    assert_eq!(cycles("d"), Some(5), "what there was stays");

    breakers
        .swap(Policy::outbox().unwrap(), Outbox::default().cooldown_count(8))
        .unwrap();
    let mut again = Watch::new(&breakers, folder.path());
    assert_eq!(news(&mut again).unwrap().unwrap(), Watched::Same);
    assert_eq!(cycles("e"), Some(8));
}

#[test]
fn what_cannot_be_seen_is_reported_once_and_waited_for() {
    let (breakers, _clock) = touchy_circuits();
    let folder = Folder::new();
    let missing = folder.path().join("later");
    let mut watch = Watch::new(&breakers, &missing);
    let error = watch.poll().unwrap().unwrap_err();
    assert!(matches!(error, WatchError::Unseen { .. }), "{error:?}");
    assert!(watch.poll().is_none());
    fs::create_dir(&missing).unwrap();
    fs::write(missing.join("outbox.wasm"), OUTBOX).unwrap();
    assert!(matches!(news(&mut watch), Some(Ok(Watched::Swapped(_)))));
}

#[test]
fn a_thread_of_its_own_watches_until_the_handle_goes() {
    let (breakers, _clock) = touchy_circuits();
    let mut folder = Folder::new();
    let (tell, told) = std::sync::mpsc::channel();
    // A circuit is cooled down only by `outbox`: what is heard of it tells which policy decides.
    let watching = Watch::new(&breakers, folder.path())
        .every(Duration::from_millis(10))
        .start()
        .unwrap();
    breakers.breaker("a").unwrap().trip();
    let _subscription = breakers.subscribe(move |event| tell.send(event.transition.cooldown_count).unwrap());
    folder.drop_in("outbox.wasm", OUTBOX);
    let heard = loop {
        breakers.cool_down();
        if let Ok(cycles) = told.recv_timeout(Duration::from_millis(5)) {
            break cycles;
        }
    };
    assert_eq!(heard, Some(0), "the reset after the last cycle");
    assert_eq!(name(&breakers), "outbox");
    drop(watching);
}
