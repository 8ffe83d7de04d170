//! docs/migrating.md against the policies and the scenarios.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use serde_json::Value;
use tripwit_core::{Consecutive, Outbox, Policy, Window};

const PAGE: &str = include_str!("../../../docs/migrating.md");

/// The settings on the page: the heading that they are under, the policy, the JSON text.
fn blocks() -> Vec<(&'static str, &'static str, &'static str)> {
    PAGE.split("\n## ")
        .skip(1)
        .flat_map(|section| {
            let heading = section.lines().next().unwrap_or_default();
            section.split("\n```json ").skip(1).map(move |block| {
                let (policy, rest) = block.split_once('\n').unwrap();
                let (json, _) = rest.split_once("\n```").unwrap();
                (heading, policy, json)
            })
        })
        .collect()
}

#[test]
fn every_policy_takes_the_settings_that_the_page_gives_it() {
    let blocks = blocks();
    for (heading, policy, json) in &blocks {
        let refused = match *policy {
            "consecutive" => Consecutive::parse(json).err(),
            "window" => Window::parse(json).err(),
            "outbox" => Outbox::parse(json).err(),
            other => panic!("{heading}: there is no policy {other}"),
        };
        assert_eq!(refused, None, "{heading}");
    }
    let headings: Vec<_> = blocks.iter().map(|(heading, ..)| *heading).collect();
    assert_eq!(
        headings,
        [
            "resilience4j",
            "Polly",
            "opossum",
            "gobreaker",
            "Brighter's outbox breaker",
            "OpsKnight"
        ]
    );
}

#[test]
fn scenarios_hold_what_the_page_says_of_resilience4j_and_polly_under_the_settings_that_it_gives() {
    for (heading, scenarios) in [
        ("resilience4j", include_str!("../window-resilience4j.json")),
        ("Polly", include_str!("../window-polly.json")),
    ] {
        let (_, _, json) = blocks().into_iter().find(|(of, ..)| *of == heading).unwrap();
        let settings: Value = serde_json::from_str(json).unwrap();
        let file: Value = serde_json::from_str(scenarios).unwrap();
        let all = file["scenarios"].as_array().unwrap();
        let same = all.iter().filter(|scenario| scenario["settings"] == settings);
        assert!(
            same.count() >= 6,
            "{heading}: the scenarios are under other settings"
        );
    }
}

#[test]
fn opsknights_defaults_are_those_of_consecutive() {
    let (_, _, json) = blocks().into_iter().find(|(of, ..)| *of == "OpsKnight").unwrap();
    assert_eq!(Consecutive::parse(json), Consecutive::parse("{}"));
}

#[test]
fn the_page_names_every_setting() {
    let fields = [Consecutive::FIELDS, Window::FIELDS, Outbox::FIELDS].concat();
    for field in fields {
        let name = format!("`{}`", field.name());
        assert!(PAGE.contains(&name), "{name} is not on the page");
    }
}
