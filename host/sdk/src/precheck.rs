//! What can be told of a component without compiling it: what it is, what it wants, which contract it speaks.

use wasmparser::{Encoding, Parser, Payload};

use crate::bounds::{Bounds, Excess};
use crate::error::PolicyError;
use crate::limits::Limits;

const WANTED: &str = "tripwit:breaker/policy@0.1.x";
macro_rules! allowed {
    () => {
        "tripwit:breaker/types, log and spans @0.1.x, and wasi:clocks/monotonic-clock and wall-clock @0.2.x"
    };
}
const ALLOWED: &str = allowed!();
/// What is said of an interface that a sandbox has.
const ALLOWED_IN_SANDBOX: &str = concat!(
    allowed!(),
    ", unless the loader's `wasi` is on: a sandbox with nothing in it"
);
/// The packages of WASI that a sandbox has.
const SANDBOX: [&str; 6] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// What a component asks for and speaks.
#[derive(Debug)]
pub(crate) struct Interfaces {
    /// What it imports, in its own order.
    pub(crate) imports: Vec<String>,
    /// The contract's interface that it exports.
    pub(crate) contract: String,
}

/// Refuses what cannot be a policy of this contract. `wasi`: it gets a sandbox of WASI.
pub(crate) fn check(bytes: &[u8], limits: &Limits, wasi: bool) -> Result<Interfaces, PolicyError> {
    if bytes.len() > limits.file {
        return Err(PolicyError::TooLarge {
            size: bytes.len() as u64,
            limit: limits.file as u64,
        });
    }
    if !Parser::is_component(bytes) {
        return Err(PolicyError::NotAComponent {
            found: kind(bytes).into(),
        });
    }
    let surface = read(bytes, limits)?;
    for import in &surface.imports {
        judge_import(import, wasi)?;
    }
    Ok(Interfaces {
        contract: judge_exports(&surface.exports)?.to_owned(),
        imports: surface.imports,
    })
}

fn kind(bytes: &[u8]) -> &'static str {
    if Parser::is_core_wasm(bytes) {
        "a core WebAssembly module"
    } else if bytes.is_empty() {
        "empty"
    } else if bytes.starts_with(b"\0asm") {
        "WebAssembly of an unknown kind"
    } else {
        "no WebAssembly at all"
    }
}

#[derive(Default)]
struct Surface {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// The names that the component itself imports and exports, without those of what is nested in it, unless there is too
/// much to compile.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "four of some thirty payloads matter here"
)]
fn read(bytes: &[u8], limits: &Limits) -> Result<Surface, Excess> {
    let mut surface = Surface::default();
    let mut bounds = Bounds::new(limits);
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        bounds.add(&payload)?;
        match payload {
            Payload::Version { encoding, .. } => {
                debug_assert!(depth > 0 || encoding == Encoding::Component, "looked at before");
                depth += 1;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    surface.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    surface.exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(surface)
}

fn judge_import(import: &str, wasi: bool) -> Result<(), PolicyError> {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    match interface {
        "tripwit:breaker/types" | "tripwit:breaker/log" | "tripwit:breaker/spans" => {
            if is_of(version, "0.1.") {
                return Ok(());
            }
            Err(PolicyError::ContractVersion {
                found: Some(import.to_owned()),
                wanted: WANTED,
            })
        }
        "wasi:clocks/monotonic-clock" | "wasi:clocks/wall-clock" if is_of(version, "0.2.") => Ok(()),
        _ if SANDBOX.iter().any(|package| interface.starts_with(package)) && is_of(version, "0.2.") => {
            if wasi {
                return Ok(());
            }
            Err(PolicyError::ForeignImport {
                import: import.to_owned(),
                allowed: ALLOWED_IN_SANDBOX,
            })
        }
        _ => Err(PolicyError::ForeignImport {
            import: import.to_owned(),
            allowed: ALLOWED,
        }),
    }
}

/// The contract's interface among the exports.
fn judge_exports(exports: &[String]) -> Result<&str, PolicyError> {
    let found = exports
        .iter()
        .find(|export| export.starts_with("tripwit:breaker/policy"));
    let is_wanted = |export: &&String| {
        let version = export.strip_prefix("tripwit:breaker/policy@");
        version.is_some_and(|version| is_of(version, "0.1."))
    };
    found
        .filter(is_wanted)
        .map(String::as_str)
        .ok_or_else(|| PolicyError::ContractVersion {
            found: found.cloned(),
            wanted: WANTED,
        })
}

/// Whether a version is a release of the series. Pre-releases match only exactly, so none is.
fn is_of(version: &str, series: &str) -> bool {
    version
        .strip_prefix(series)
        .is_some_and(|patch| patch.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8]) -> Result<Interfaces, PolicyError> {
        super::check(bytes, &Limits::default(), false)
    }

    fn component(wat: &str) -> Vec<u8> {
        wat::parse_str(wat).unwrap()
    }

    #[test]
    fn bytes_that_are_no_component_are_named() {
        let found = |bytes: &[u8]| match check(bytes) {
            Err(PolicyError::NotAComponent { found }) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(found(b""), "empty");
        assert_eq!(found(b"#!/bin/sh"), "no WebAssembly at all");
        assert_eq!(found(&component("(module)")), "a core WebAssembly module");
        assert_eq!(found(b"\0asm\xff\0\0\0"), "WebAssembly of an unknown kind");
    }

    #[test]
    fn a_component_cut_short_is_damaged() {
        let whole = component(r#"(component (import "wasi:io/poll@0.2.0" (instance)))"#);
        let cut = whole.get(..whole.len() - 3).unwrap();
        assert!(
            matches!(check(cut), Err(PolicyError::Damaged { .. })),
            "{:?}",
            check(cut)
        );
    }

    #[test]
    fn a_foreign_import_is_named() {
        for import in [
            "wasi:cli/environment@0.2.0",
            "wasi:clocks/monotonic-clock@0.3.0",
            "tripwit:other/types@0.1.0",
        ] {
            let bytes = component(&format!(r#"(component (import "{import}" (instance)))"#));
            match check(&bytes) {
                Err(PolicyError::ForeignImport { import: named, .. }) => assert_eq!(named, import),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_sandbox_lets_wasi_in_and_nothing_beyond_it() {
        let judged = |import: &str, wasi| {
            let bytes = component(&format!(
                r#"(component (import "{import}" (instance)) (instance $i)
                    (export "tripwit:breaker/policy@0.1.0" (instance $i)))"#
            ));
            super::check(&bytes, &Limits::default(), wasi)
        };
        for import in [
            "wasi:io/poll@0.2.12",
            "wasi:cli/environment@0.2.0",
            "wasi:sockets/tcp@0.2.3",
        ] {
            assert!(judged(import, true).is_ok(), "{import}");
            let refused = judged(import, false).unwrap_err().to_string();
            assert!(refused.contains("`wasi` is on"), "{refused}");
        }
        for import in [
            "wasi:http/outgoing-handler@0.2.12",
            "wasi:io/poll@0.3.0",
            "wasi:iodine/poll@0.2.0",
        ] {
            let refused = judged(import, true).unwrap_err().to_string();
            assert!(
                refused.contains(import) && !refused.contains("`wasi`"),
                "{refused}"
            );
        }
    }

    #[test]
    fn an_import_of_a_nested_component_is_not_its_own() {
        let bytes = component(
            r#"(component
                (component (import "wasi:cli/environment@0.2.0" (instance)))
                (instance $i)
                (export "tripwit:breaker/policy@0.1.7" (instance $i)))"#,
        );
        assert!(check(&bytes).is_ok(), "{:?}", check(&bytes));
    }

    #[test]
    fn another_version_of_the_contract_is_named() {
        let version = |bytes: &[u8]| match check(bytes) {
            Err(PolicyError::ContractVersion { found, .. }) => found,
            other => panic!("{other:?}"),
        };
        let exports = r#"(component (instance $i) (export "tripwit:breaker/policy@0.2.0" (instance $i)))"#;
        assert_eq!(
            version(&component(exports)).as_deref(),
            Some("tripwit:breaker/policy@0.2.0")
        );
        let imports = r#"(component (import "tripwit:breaker/types@0.2.0" (instance)))"#;
        assert_eq!(
            version(&component(imports)).as_deref(),
            Some("tripwit:breaker/types@0.2.0")
        );
        let pre = r#"(component (instance $i) (export "tripwit:breaker/policy@0.1.0-rc.1" (instance $i)))"#;
        assert_eq!(
            version(&component(pre)).as_deref(),
            Some("tripwit:breaker/policy@0.1.0-rc.1")
        );
        assert_eq!(version(&component("(component)")), None);
    }
}
