//! WASI for components that were made of other languages and bring more imports along than a policy needs: a sandbox with
//! nothing in it.
//!
//! What can be answered at once and with nothing is: the clocks, no environment, no arguments, no folders, random numbers that are no
//! secret. Whatever else is called, to read, write, open, connect or wait, traps. A policy is called under its shard's lock, and
//! often from a thread of an asynchronous runtime: there is no way to wait there.

use wasmtime::bail;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, LinkerInstance, ResourceType, Val};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::{insecure, random};
use wasmtime_wasi::random::Deterministic;

use crate::instance::Host;

/// The most random bytes that are handed out at once.
const MAX_RANDOM: u64 = 64 << 10;

/// Random numbers that are the same in every instance.
pub(crate) fn without_chance(wasi: &mut WasiCtxBuilder) {
    let bytes = || Deterministic::new((0..=u8::MAX).collect());
    wasi.secure_random(bytes())
        .insecure_random(bytes())
        .max_random_size(MAX_RANDOM);
}

/// Links what the component imports of WASI, whatever its version of 0.2. (`define_unknown_imports_as_traps` would not do: it
/// overlooks what is linked under another version than the component's.)
pub(crate) fn link(linker: &mut Linker<Host>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    for (import, item) in component.component_type().imports(&engine) {
        if let (true, ComponentItem::ComponentInstance(interface)) = (import.starts_with("wasi:"), item.ty) {
            let mut instance = linker.instance(import)?;
            for (name, item) in interface.exports(&engine) {
                match item.ty {
                    ComponentItem::ComponentFunc(_) => link_function(&mut instance, import, name)?,
                    // Of none is ever one handed out.
                    ComponentItem::Resource(_) => {
                        instance.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                    }
                    ComponentItem::CoreFunc(_)
                    | ComponentItem::Module(_)
                    | ComponentItem::Component(_)
                    | ComponentItem::ComponentInstance(_)
                    | ComponentItem::Type(_) => {}
                }
            }
        }
    }
    Ok(())
}

fn link_function(instance: &mut LinkerInstance<'_, Host>, import: &str, name: &str) -> wasmtime::Result<()> {
    let interface = import.split('@').next().unwrap_or(import);
    let called = format!("{interface}#{name}");
    instance.func_new(name, move |mut store, _, arguments, results| {
        let Some(answer) = answer(store.data_mut(), &called, arguments)? else {
            bail!("it calls `{called}`, and there is nothing of that kind in its sandbox");
        };
        if let Some(result) = results.first_mut() {
            *result = answer;
        }
        Ok(())
    })
}

/// What can be answered at once.
fn answer(host: &mut Host, called: &str, arguments: &[Val]) -> wasmtime::Result<Option<Val>> {
    let date = |date: wall_clock::Datetime| {
        Val::Record(vec![
            ("seconds".into(), Val::U64(date.seconds)),
            ("nanoseconds".into(), Val::U32(date.nanoseconds)),
        ])
    };
    let list = |bytes: Vec<u8>| Val::List(bytes.into_iter().map(Val::U8).collect());
    let length = || match arguments {
        [Val::U64(length)] => *length,
        _ => 0,
    };
    Ok(Some(match called {
        "wasi:clocks/monotonic-clock#now" => Val::U64(monotonic_clock::Host::now(&mut host.clocks())?),
        "wasi:clocks/monotonic-clock#resolution" => {
            Val::U64(monotonic_clock::Host::resolution(&mut host.clocks())?)
        }
        "wasi:clocks/wall-clock#now" => date(wall_clock::Host::now(&mut host.clocks())?),
        "wasi:clocks/wall-clock#resolution" => date(wall_clock::Host::resolution(&mut host.clocks())?),
        "wasi:cli/environment#get-environment"
        | "wasi:cli/environment#get-arguments"
        | "wasi:filesystem/preopens#get-directories" => Val::List(Vec::new()),
        "wasi:cli/environment#initial-cwd" => Val::Option(None),
        "wasi:random/random#get-random-bytes" => {
            list(random::Host::get_random_bytes(host.random(), length())?)
        }
        "wasi:random/random#get-random-u64" => Val::U64(random::Host::get_random_u64(host.random())?),
        "wasi:random/insecure#get-insecure-random-bytes" => list(insecure::Host::get_insecure_random_bytes(
            host.random(),
            length(),
        )?),
        "wasi:random/insecure#get-insecure-random-u64" => {
            Val::U64(insecure::Host::get_insecure_random_u64(host.random())?)
        }
        "wasi:random/insecure-seed#insecure-seed" => Val::Tuple(vec![Val::U64(0), Val::U64(0)]),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize};

    use wasmtime::Store;
    use wasmtime::component::Val;

    use super::*;
    use crate::clock::ManualClock;
    use crate::engine::{DEADLINE_TICKS, engine};

    /// What the function `f` of a component comes to in the sandbox.
    fn call(wat: &str, results: usize) -> wasmtime::Result<Vec<Val>> {
        let engine = engine()?;
        let component = Component::new(&engine, wat::parse_str(wat)?)?;
        let mut linker = Linker::new(&engine);
        crate::instance::link(&mut linker, Some(&component))?;
        let clock = Arc::new(ManualClock::new());
        let reading = Arc::new(AtomicU64::new(7));
        let host = Host::new(clock, &reading, 1 << 20, &Arc::new(AtomicUsize::new(0)));
        let mut store = Store::new(&engine, host);
        store.set_epoch_deadline(DEADLINE_TICKS);
        let instance = linker.instantiate(&mut store, &component)?;
        let f = instance.get_func(&mut store, "f").unwrap();
        let mut out = vec![Val::Bool(false); results];
        f.call(&mut store, &[], &mut out)?;
        Ok(out)
    }

    fn list_of(interface: &str, function: &str, element: &str) -> String {
        format!(
            r#"(component
                (import "{interface}" (instance $i
                    {element}
                    (export "{function}" (func (result (list $e))))))
                (core module $memory (memory (export "memory") 1)
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64)))
                (core instance $memory (instantiate $memory))
                (core func $lowered (canon lower (func $i "{function}")
                    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
                (core module $reader
                    (import "m" "memory" (memory 1))
                    (import "i" "f" (func $f (param i32)))
                    (func (export "f") (result i32)
                        (call $f (i32.const 8)) (i32.load (i32.const 12))))
                (core instance $reader (instantiate $reader
                    (with "m" (instance $memory))
                    (with "i" (instance (export "f" (func $lowered))))))
                (func (export "f") (result u32) (canon lift (core func $reader "f"))))"#
        )
    }

    #[test]
    fn there_is_no_environment_no_argument_and_no_folder() {
        let pair = "(type $e (tuple string string))";
        let text = "(type $e string)";
        for (interface, function, element) in [
            ("wasi:cli/environment@0.2.3", "get-environment", pair),
            ("wasi:cli/environment@0.2.3", "get-arguments", text),
        ] {
            let found = call(&list_of(interface, function, element), 1).unwrap();
            assert_eq!(found, [Val::U32(0)], "{function}");
        }
    }

    #[test]
    fn the_clock_is_the_hosts() {
        let wat = r#"(component
            (import "wasi:clocks/monotonic-clock@0.2.3" (instance $i (export "now" (func (result u64)))))
            (core func $lowered (canon lower (func $i "now")))
            (core module $m (import "i" "f" (func $f (result i64))) (func (export "f") (result i64) (call $f)))
            (core instance $m (instantiate $m (with "i" (instance (export "f" (func $lowered))))))
            (func (export "f") (result u64) (canon lift (core func $m "f"))))"#;
        assert_eq!(call(wat, 1).unwrap(), [Val::U64(7)]);
    }

    #[test]
    fn random_numbers_are_the_same_in_every_instance() {
        let wat = r#"(component
            (import "wasi:random/random@0.2.3" (instance $i (export "get-random-u64" (func (result u64)))))
            (core func $lowered (canon lower (func $i "get-random-u64")))
            (core module $m (import "i" "f" (func $f (result i64))) (func (export "f") (result i64) (call $f)))
            (core instance $m (instantiate $m (with "i" (instance (export "f" (func $lowered))))))
            (func (export "f") (result u64) (canon lift (core func $m "f"))))"#;
        assert_eq!(call(wat, 1).unwrap(), call(wat, 1).unwrap());
    }

    #[test]
    fn whoever_waits_or_opens_something_is_trapped() {
        let waits = r#"(component
            (import "wasi:io/poll@0.2.0" (instance $poll
                (export "pollable" (type $pollable (sub resource)))
                (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
            (alias export $poll "pollable" (type $pollable))
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
                (export "pollable" (type $p (eq $pollable)))
                (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
            (core func $subscribe (canon lower (func $clock "subscribe-duration")))
            (core func $block (canon lower (func $poll "[method]pollable.block")))
            (core module $m
                (import "i" "subscribe" (func $subscribe (param i64) (result i32)))
                (import "i" "block" (func $block (param i32)))
                (func (export "f") (call $block (call $subscribe (i64.const 3600000000000)))))
            (core instance $m (instantiate $m (with "i" (instance
                (export "subscribe" (func $subscribe)) (export "block" (func $block))))))
            (func (export "f") (canon lift (core func $m "f"))))"#;
        let told = format!("{:#}", call(waits, 0).unwrap_err());
        assert!(
            told.contains("`wasi:clocks/monotonic-clock#subscribe-duration`"),
            "{told}"
        );

        let connects = r#"(component
            (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $i
                (export "create-tcp-socket" (func (param "family" u8)))))
            (core func $create (canon lower (func $i "create-tcp-socket")))
            (core module $m (import "i" "f" (func $f (param i32))) (func (export "f") (call $f (i32.const 0))))
            (core instance $m (instantiate $m (with "i" (instance (export "f" (func $create))))))
            (func (export "f") (canon lift (core func $m "f"))))"#;
        let told = format!("{:#}", call(connects, 0).unwrap_err());
        assert!(told.contains("tcp-create-socket"), "{told}");
    }
}
