//! Makes a component of a core module, and holds it against what the design allows.

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::WorldItem;

/// What a component may import: interface and functions.
const ALLOWED_IMPORTS: [(&str, &[&str]); 5] = [
    ("wasi:clocks/monotonic-clock@0.2.12", &["now"]),
    ("wasi:clocks/wall-clock@0.2.12", &["now"]),
    ("tripwit:breaker/types@0.1.0", &[]),
    ("tripwit:breaker/log@0.1.0", &["log"]),
    ("tripwit:breaker/spans@0.1.0", &["export-span"]),
];
/// What it exports.
const EXPORT: &str = "tripwit:breaker/policy@0.1.0";

/// Wraps a core module that carries its world.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        // Names of the wrapping's own parts, for whoever reads its disassembly: 2.7 KB.
        .debug_names(false)
        .module(module)?
        .encode()
        .context("cannot make a component")
}

/// Fails where a component imports what it may not, exports something else, or is too large.
pub(crate) fn check(component: &[u8], max_size: usize) -> Result<()> {
    ensure!(
        component.len() <= max_size,
        "{} bytes; {max_size} are the most",
        component.len()
    );
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component)? else {
        bail!("not a component");
    };
    let world = resolve.worlds.get(world).context("no world")?;
    for (key, item) in &world.imports {
        let name = resolve.name_world_key(key);
        let Some((_, functions)) = ALLOWED_IMPORTS.iter().find(|(allowed, _)| *allowed == name) else {
            bail!("imports {name}, which no breaker may");
        };
        let WorldItem::Interface { id, .. } = item else {
            continue;
        };
        let interface = resolve.interfaces.get(*id).context("no interface")?;
        for function in interface.functions.keys() {
            ensure!(
                functions.contains(&function.as_str()),
                "imports {name}/{function}, which no breaker may"
            );
        }
    }
    let exports: Vec<String> = world
        .exports
        .keys()
        .map(|key| resolve.name_world_key(key))
        .collect();
    ensure!(
        exports == [EXPORT],
        "exports {exports:?} where it should export {EXPORT}"
    );
    Ok(())
}

/// SHA-256, in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
