//! Whatever is wrong with a component, with settings or with a key has an error of its own, and leaves nothing behind.

use std::error::Error;
use std::time::Duration;

use tripwit::settings::Consecutive;
use tripwit::{AttachError, Breakers, BuildError, Loader, Policy, PolicyError};

use crate::support::{circuits, touchy_circuits};

fn refused(bytes: &[u8]) -> PolicyError {
    match Policy::from_bytes(bytes) {
        Err(error) => error,
        Ok(policy) => panic!("{policy:?} was taken"),
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent.wasm");
    let error = Policy::from_file(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot read the policy {}", path.display())
    );
    assert!(error.source().is_some());
}

#[test]
fn a_policy_loads_from_a_file_with_the_same_digest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("consecutive.wasm");
    std::fs::write(&path, include_bytes!("../../components/consecutive.wasm")).unwrap();
    let (loaded, shipped) = (Policy::from_file(&path).unwrap(), Policy::consecutive().unwrap());
    assert_eq!(loaded.digest(), shipped.digest());
    assert_eq!(
        (loaded.digest().to_string().len(), &*loaded.description().name),
        (71, "consecutive")
    );
}

#[test]
fn bytes_that_are_no_component_are_told_from_each_other() {
    assert!(matches!(refused(b"{}"), PolicyError::NotAComponent { .. }));
    let module = wat::parse_str("(module)").unwrap();
    let error = refused(&module).to_string();
    assert!(
        error.starts_with("the policy is a core WebAssembly module, not a WebAssembly component"),
        "{error}"
    );
    let shipped: &[u8] = include_bytes!("../../components/consecutive.wasm");
    let half = shipped.get(..shipped.len() / 2).unwrap();
    assert!(matches!(refused(half), PolicyError::Damaged { .. }));
    assert!(matches!(
        refused(&vec![0; (32 << 20) + 1]),
        PolicyError::TooLarge { .. }
    ));
}

#[test]
fn a_component_with_foreign_imports_is_refused_by_name() {
    let wat = r#"(component
        (import "wasi:filesystem/preopens@0.2.12" (instance))
        (instance $i) (export "tripwit:breaker/policy@0.1.0" (instance $i)))"#;
    match refused(&wat::parse_str(wat).unwrap()) {
        PolicyError::ForeignImport { import, .. } => assert_eq!(import, "wasi:filesystem/preopens@0.2.12"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_component_of_another_contract_is_refused_with_what_it_has() {
    let wat = r#"(component (instance $i) (export "tripwit:breaker/policy@0.2.0" (instance $i)))"#;
    let error = refused(&wat::parse_str(wat).unwrap()).to_string();
    assert_eq!(
        error,
        "the policy has tripwit:breaker/policy@0.2.0; this host needs tripwit:breaker/policy@0.1.x"
    );
}

#[test]
fn a_component_whose_types_are_not_the_contracts_is_refused_by_the_linker() {
    let wat = r#"(component (instance $i) (export "tripwit:breaker/policy@0.1.0" (instance $i)))"#;
    assert!(matches!(
        refused(&wat::parse_str(wat).unwrap()),
        PolicyError::Link(_)
    ));
}

#[test]
fn settings_are_refused_by_field_when_circuits_are_made() {
    for (json, field) in [
        (r#"{"failure_threshold":0}"#, "/failure_threshold"),
        (r#"{"open_for":"soon"}"#, "/open_for"),
        (r#"{"opne_for":"1s"}"#, "/opne_for"),
        ("[", ""),
    ] {
        let built = Breakers::builder(Policy::consecutive().unwrap())
            .settings_for("sms", json)
            .build();
        match built.unwrap_err() {
            BuildError::Settings {
                for_what,
                field: named,
                problem,
            } => {
                assert_eq!((&*for_what, &*named), ("key \"sms\"", field), "{json}: {problem}");
                assert!(!problem.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn settings_of_every_key_and_of_prefixes_are_tried_too() {
    let builder = || Breakers::builder(Policy::outbox().unwrap());
    let for_what = |built: Result<Breakers, BuildError>| match built.unwrap_err() {
        BuildError::Settings { for_what, .. } => for_what,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        for_what(builder().settings("{\"cooldown_count\":-1}").build()),
        "every key"
    );
    assert_eq!(
        for_what(builder().settings_for_prefix("web", "{\"x\":1}").build()),
        "prefix \"web\""
    );
    let error = builder().settings_for("", "{}").build().unwrap_err();
    assert!(matches!(error, BuildError::Key { .. }), "{error:?}");
}

#[test]
fn numbers_out_of_range_are_refused() {
    let builder = || circuits(Consecutive::default()).0;
    let what = |built: Result<Breakers, BuildError>| match built.unwrap_err() {
        BuildError::OutOfRange { what, .. } => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(builder().shards(0).build()), "shards");
    assert_eq!(what(builder().shards(65).build()), "shards");
    assert_eq!(what(builder().max_circuits(0).build()), "max_circuits");
    assert_eq!(what(builder().max_memory(1 << 20).build()), "max_memory");
}

#[test]
fn keys_are_checked_and_leave_nothing_behind() {
    let (breakers, _clock) = touchy_circuits();
    for key in [String::new(), "k".repeat(513)] {
        assert!(matches!(breakers.breaker(&key), Err(AttachError::Key { .. })));
    }
    assert!(breakers.is_empty());
    assert!(breakers.breaker(&"k".repeat(512)).is_ok());
}

#[test]
fn settings_refused_for_one_key_leave_nothing_behind() {
    let (builder, _clock) = circuits(Consecutive::default());
    let breakers = builder.max_circuits(1).build().unwrap();
    match breakers.breaker_with("sms", r#"{"probes":1001}"#) {
        Err(AttachError::Settings { key, field, .. }) => assert_eq!((&*key, &*field), ("sms", "/probes")),
        other => panic!("{other:?}"),
    }
    assert!(breakers.is_empty());
    assert!(
        breakers.breaker_with("sms", r#"{"probes":1000}"#).is_ok(),
        "its place is free, and so is its key"
    );
}

#[test]
fn one_key_has_one_set_of_settings() {
    let (breakers, _clock) = touchy_circuits();
    let settings = r#"{"open_for":"90s"}"#;
    let first = breakers.breaker_with("sms", settings).unwrap();
    assert!(breakers.breaker_with("sms", settings).is_ok());
    assert!(
        breakers.breaker_with("sms", r#"{ "open_for": "1m30s" }"#).is_ok(),
        "the same in other words"
    );
    let error = breakers.breaker_with("sms", r#"{"open_for":"91s"}"#).unwrap_err();
    assert_eq!(error, AttachError::Conflict { key: "sms".into() });
    assert!(matches!(
        breakers.breaker_with("sms", r#"{"open_for":9}"#),
        Err(AttachError::Settings { .. })
    ));
    assert!(
        breakers.breaker("sms").is_ok(),
        "who asks for no settings takes what there is"
    );
    drop(first);
    assert_eq!(breakers.len(), 1);
}

#[test]
fn the_most_particular_settings_count() {
    let (builder, _clock) = circuits(Consecutive::default().failure_threshold(1));
    let breakers = builder
        .settings_for_prefix("webhook:", Consecutive::default().failure_threshold(2))
        .settings_for("webhook:a", Consecutive::default().failure_threshold(3))
        .build()
        .unwrap();
    for (key, threshold) in [("email", 1), ("webhook:b", 2), ("webhook:a", 3)] {
        let breaker = breakers.breaker(key).unwrap();
        let calls = (1..=5).take_while(|_| {
            breaker
                .acquire()
                .map(|it| it.failure(tripwit::Failure::new()))
                .is_ok()
        });
        assert_eq!(calls.count(), threshold, "{key}");
    }
}

#[test]
fn limits_of_the_loader_are_held_and_the_error_names_the_one_to_raise() {
    let bytes = include_bytes!("../../components/consecutive.wasm").as_slice();
    let refused = |loader: Loader| loader.bytes(bytes).unwrap_err();
    let error = refused(Policy::loader().max_file_size(65_536));
    assert!(matches!(error, PolicyError::TooLarge { limit: 65_536, .. }));
    assert!(error.to_string().contains("`max_file_size`"), "{error}");
    for (loader, wanted) in [
        (Policy::loader().max_code_size(65_536), "max_code_size"),
        (Policy::loader().max_function_size(1_024), "max_function_size"),
    ] {
        let error = refused(loader);
        match error {
            PolicyError::TooCostly { setting, .. } => assert_eq!(setting, Some(wanted)),
            _ => panic!("{error:?}"),
        }
        assert!(
            error.to_string().contains(&format!("unless `{wanted}`")),
            "{error}"
        );
    }
    // What is as large as may be is taken.
    let exact = Policy::loader().max_file_size(bytes.len());
    assert!(exact.bytes(bytes).is_ok());
    assert!(matches!(
        Policy::loader().max_file_size(bytes.len() - 1).bytes(bytes),
        Err(PolicyError::TooLarge { .. })
    ));
}

#[test]
fn limits_out_of_range_are_refused_before_anything_is_read() {
    type Set = fn(Loader, usize) -> Loader;
    let time: Set = |loader, millis| loader.max_compile_time(Duration::from_millis(millis as u64));
    let limits: [(&str, Set, usize, usize, &str); 5] = [
        (
            "max_file_size",
            Loader::max_file_size,
            64 << 10,
            256 << 20,
            "64 KiB to 256 MiB",
        ),
        (
            "max_code_size",
            Loader::max_code_size,
            64 << 10,
            64 << 20,
            "64 KiB to 64 MiB",
        ),
        (
            "max_function_size",
            Loader::max_function_size,
            1 << 10,
            1 << 20,
            "1 KiB to 1 MiB",
        ),
        (
            "max_memory",
            Loader::max_memory,
            2 << 20,
            4 << 30,
            "2 MiB to 4 GiB",
        ),
        ("max_compile_time", time, 1_000, 3_600_000, "1s to 1h"),
    ];
    for (wanted, set, least, most, range) in limits {
        let error = |limit| set(Policy::loader(), limit).file("no such file").unwrap_err();
        for beyond in [least - 1, most + 1] {
            let error = error(beyond);
            assert!(
                matches!(error, PolicyError::OutOfRange { what, .. } if what == wanted),
                "{error:?}"
            );
            assert!(error.to_string().contains(range), "{error}");
        }
        for limit in [least, most] {
            assert!(
                matches!(error(limit), PolicyError::Read { .. }),
                "{wanted} {limit}"
            );
        }
    }
}

#[test]
fn the_memory_that_a_policy_is_loaded_with_is_that_of_its_instances() {
    // An instance of a shipped policy needs a little more than one megabyte before any circuit.
    let policy = Policy::loader().max_memory(2 << 20).consecutive().unwrap();
    let full = |breakers: Breakers| {
        let all: Vec<_> = (0..20_000)
            .map_while(|number| breakers.breaker(&number.to_string()).ok())
            .collect();
        all.len() < 20_000
    };
    let builder = || {
        Breakers::builder(policy.clone())
            .shards(1)
            .clock(tripwit::ManualClock::new())
    };
    assert!(full(builder().build().unwrap()));
    assert!(!full(builder().max_memory(64 << 20).build().unwrap()));
}
