//! The border of the component: what crosses it is converted here, and nothing is decided.

#[expect(missing_docs, reason = "generated from wit/, where the docs are")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "breaker",
        pub_export_macro: true,
        generate_all,
    });
}
mod convert;
mod exports;
#[cfg(target_arch = "wasm32")]
mod runtime;

pub use exports::{Adapter, Component, Instance};

use bindings::{tripwit::breaker as wit, wasi::clocks};

use crate::{Host, Line, Span};

/// What a component's imports give.
#[derive(Clone, Copy, Debug, Default)]
pub struct Imports;

impl Host for Imports {
    fn monotonic(&mut self) -> u64 {
        clocks::monotonic_clock::now()
    }

    fn wall(&mut self) -> u64 {
        let now = clocks::wall_clock::now();
        now.seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::from(now.nanoseconds))
    }

    fn log(&mut self, line: Line) {
        wit::log::log(line.level.into(), &line.message, &convert::fields(line.fields));
    }

    fn export_span(&mut self, span: Span) {
        wit::spans::export_span(&span.into());
    }
}

/// Makes a component of a policy. On other targets than wasm32 nothing is exported, so that a policy crate can be checked and documented on the host.
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[expect(unsafe_code, reason = "the exports that the component model calls are generated")]
        mod exported {
            use super::*;

            static INSTANCE: $crate::component::Instance<$policy> = $crate::component::Instance::new();

            struct Policy;

            impl $crate::component::Component for Policy {
                type Policy = $policy;

                const VERSION: &'static str = env!("CARGO_PKG_VERSION");

                fn instance() -> &'static $crate::component::Instance<$policy> {
                    &INSTANCE
                }
            }

            type Component = $crate::component::Adapter<Policy>;
            $crate::component::bindings::export!(Component with_types_in $crate::component::bindings);
        }
    };
}
