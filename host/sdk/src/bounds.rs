//! What compiling a component may cost: an untrusted file must not keep a processor busy for minutes.
//!
//! Compiling cannot be interrupted, only left to itself, so what there is to compile is bounded. That bounds memory, and
//! time but roughly: a function of 16 KiB with loops within loops can take ten seconds. Whoever waits has a limit beside it.

use wasmparser::{ComponentExternalKind, ComponentInstance, FunctionBody, Payload};

use crate::error::PolicyError;
use crate::limits::Limits;

/// How many functions, in all modules.
const MAX_FUNCTIONS: u64 = 20_000;
/// How many local variables in one function, parameters left out.
const MAX_LOCALS: u64 = 1_000;
/// How many functions that are lifted or lowered: one between two components is compiled for each pair.
const MAX_CROSSINGS: u64 = 1_000;
/// How many bytes of types of the component model, which such functions are made of.
const MAX_TYPES: u64 = 256 << 10;
/// How many instances of components within components there can be: a few lines can ask for a billion.
const MAX_INSTANCES: u64 = 4_096;

/// Counts what there is to compile.
#[derive(Debug)]
pub(crate) struct Bounds {
    limits: Limits,
    functions: u64,
    code: u64,
    crossings: u64,
    types: u64,
    /// The most instances that the components read so far can come to. Each one that instantiates `n` multiplies it by `n + 1`.
    instances: u64,
    /// How many instances each component makes that is being read, the innermost last; modules make none.
    open: Vec<u64>,
}

impl Bounds {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            functions: 0,
            code: 0,
            crossings: 0,
            types: 0,
            instances: 1,
            open: Vec::new(),
        }
    }

    /// Takes note of a part of the component, and refuses what is too much.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "eight of some thirty payloads matter here"
    )]
    pub(crate) fn add(&mut self, payload: &Payload<'_>) -> Result<(), Excess> {
        match payload {
            Payload::Version { .. } => self.open.push(0),
            Payload::End(_) => {
                let made = self.open.pop().unwrap_or_default();
                self.instances = self.instances.saturating_mul(made.saturating_add(1));
                within(Bound::Instances, self.instances, MAX_INSTANCES)?;
            }
            Payload::CodeSectionEntry(body) => self.add_function(body)?,
            Payload::ComponentTypeSection(section) => {
                self.types += section.range().len() as u64;
                within(Bound::Types, self.types, MAX_TYPES)?;
            }
            Payload::ComponentCanonicalSection(section) => {
                self.crossings += u64::from(section.count());
                within(Bound::Crossings, self.crossings, MAX_CROSSINGS)?;
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section.clone() {
                    self.add_instance(&instance?)?;
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    whole(import?.ty.kind())?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    whole(export?.kind)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_function(&mut self, body: &FunctionBody<'_>) -> Result<(), Excess> {
        let size = body.range().len() as u64;
        let mut locals = 0_u64;
        for group in body.get_locals_reader()? {
            locals += u64::from(group?.0);
        }
        within(Bound::Function, size, self.limits.function as u64)?;
        within(Bound::Locals, locals, MAX_LOCALS)?;
        self.functions += 1;
        within(Bound::Functions, self.functions, MAX_FUNCTIONS)?;
        self.code += size;
        within(Bound::Code, self.code, self.limits.code as u64)
    }

    fn add_instance(&mut self, instance: &ComponentInstance<'_>) -> Result<(), Excess> {
        match instance {
            ComponentInstance::Instantiate { args, .. } => {
                if let Some(made) = self.open.last_mut() {
                    *made += 1;
                }
                args.iter().try_for_each(|arg| whole(arg.kind))
            }
            ComponentInstance::FromExports(exports) => {
                exports.iter().try_for_each(|export| whole(export.kind))
            }
        }
    }
}

/// What there is too much of, or that the bytes are damaged.
#[derive(Debug)]
pub(crate) enum Excess {
    TooMuch { what: Bound, found: u64, limit: u64 },
    Damaged(wasmparser::BinaryReaderError),
}

impl From<wasmparser::BinaryReaderError> for Excess {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Damaged(error)
    }
}

impl From<Excess> for PolicyError {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::TooMuch { what, found, limit } => Self::TooCostly {
                what: what.text(),
                found,
                limit,
                setting: what.setting(),
            },
            Excess::Damaged(error) => Self::Damaged {
                problem: error.to_string(),
            },
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Functions,
    Code,
    Function,
    Locals,
    Crossings,
    Types,
    Instances,
    Passed,
}

impl Bound {
    /// The loader's setting that raises it.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::Code => Some("max_code_size"),
            Self::Function => Some("max_function_size"),
            Self::Functions
            | Self::Locals
            | Self::Crossings
            | Self::Types
            | Self::Instances
            | Self::Passed => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Code => "bytes of code",
            Self::Function => "bytes of code in one function",
            Self::Locals => "local variables in one function",
            Self::Crossings => "functions lifted or lowered",
            Self::Types => "bytes of component types",
            Self::Instances => "instances of components within it",
            Self::Passed => "components passed between components",
        }
    }
}

fn within(what: Bound, found: u64, limit: u64) -> Result<(), Excess> {
    if found > limit {
        return Err(Excess::TooMuch { what, found, limit });
    }
    Ok(())
}

/// No component is handed to another: who instantiates what could not be counted then.
fn whole(kind: ComponentExternalKind) -> Result<(), Excess> {
    within(
        Bound::Passed,
        u64::from(kind == ComponentExternalKind::Component),
        0,
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use wasmparser::Parser;

    use super::*;

    /// What a component has too much of.
    fn excess(wat: &str) -> Option<(&'static str, u64, u64)> {
        let bytes = wat::parse_str(wat).unwrap();
        let mut bounds = Bounds::new(&Limits::default());
        for payload in Parser::new(0).parse_all(&bytes) {
            match bounds.add(&payload.unwrap()) {
                Ok(()) => {}
                Err(Excess::TooMuch { what, found, limit }) => return Some((what.text(), found, limit)),
                Err(Excess::Damaged(error)) => panic!("{error}"),
            }
        }
        None
    }

    fn module(functions: &str) -> String {
        format!("(component (core module {functions}))")
    }

    #[test]
    fn as_much_as_may_be_is_taken_and_one_more_is_named() {
        let functions = |count: usize| module(&"(func)".repeat(count));
        assert_eq!(excess(&functions(20_000)), None);
        assert_eq!(excess(&functions(20_001)), Some(("functions", 20_001, 20_000)));

        let locals = |count: usize| module(&format!("(func (local {}))", "i32 ".repeat(count)));
        assert_eq!(excess(&locals(1_000)), None);
        assert_eq!(
            excess(&locals(1_001)),
            Some(("local variables in one function", 1_001, 1_000))
        );

        // Each has a byte for the locals and one for its end.
        let code = |size: usize| format!("(func {})", "nop ".repeat(size - 2));
        assert_eq!(excess(&module(&code(1 << 16))), None);
        assert_eq!(
            excess(&module(&code((1 << 16) + 1))),
            Some(("bytes of code in one function", 65_537, 65_536))
        );
        assert_eq!(excess(&module(&code(1 << 16).repeat(64))), None);
        assert_eq!(
            excess(&module(&format!("{} (func)", code(1 << 16).repeat(64)))),
            Some(("bytes of code", (4 << 20) + 2, 4 << 20))
        );
    }

    #[test]
    fn modules_of_components_within_count_too() {
        let wat = format!(
            "(component (component (core module {0})) (core module {0}))",
            "(func)".repeat(10_001)
        );
        assert_eq!(excess(&wat), Some(("functions", 20_001, 20_000)));
    }

    #[test]
    fn functions_between_components_and_their_types_are_bounded() {
        let lifted = |count: usize| {
            let lift = r#"(func (canon lift (core func $i "f")))"#;
            format!(
                r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m)) {})"#,
                lift.repeat(count)
            )
        };
        assert_eq!(excess(&lifted(1_000)), None);
        assert_eq!(
            excess(&lifted(1_001)),
            Some(("functions lifted or lowered", 1_001, 1_000))
        );
        let types = format!("(component {})", "(type (list u8))".repeat(200_000));
        assert!(matches!(
            excess(&types),
            Some(("bytes of component types", _, 262_144))
        ));
    }

    #[test]
    fn instances_that_double_with_every_component_are_counted_before_they_are_made() {
        let doubling = |levels: usize| {
            let mut wat = String::from("(component (component $c0)");
            for level in 1..=levels {
                let below = level - 1;
                write!(
                    wat,
                    "(component $c{level} (alias outer 1 $c{below} (component $below))
                        (instance (instantiate $below)) (instance (instantiate $below)))"
                )
                .unwrap();
            }
            write!(wat, "(instance (instantiate $c{levels})))").unwrap();
            wat
        };
        assert_eq!(excess(&doubling(3)), None);
        assert_eq!(
            excess(&doubling(30)),
            Some(("instances of components within it", 6_561, 4_096))
        );
    }

    #[test]
    fn no_component_is_handed_to_another() {
        let passed = Some(("components passed between components", 1, 0));
        for wat in [
            r#"(component (component (import "c" (component))))"#,
            r#"(component (component $c) (export "c" (component $c)))"#,
            r#"(component (component $c) (instance (export "c" (component $c))))"#,
        ] {
            assert_eq!(excess(wat), passed, "{wat}");
        }
    }
}
