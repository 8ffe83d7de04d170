//! A lease never changes what a breaker does.
//!
//! Every state that a policy reaches within so many steps is walked twice at once: by a host that asks the policy each
//! time, and by one that decides by its leases as far as they reach. Whatever happens next in each of these states, both
//! must answer the same, and once the second has handed in what it kept back, both circuits must be the same.
//!
//! [`walk`](fn@walk) does so on the native core, with a small [`Host`]; [`Replay`] takes the paths that it found through
//! the component in the real host. [`settings`] has what they are walked under.

mod answer;
mod client;
mod difference;
mod host;
mod replay;
pub mod settings;
mod shape;
mod step;
mod walk;

pub use answer::{Answer, Shown};
pub use difference::Difference;
pub use host::{Host, Permit};
pub use replay::{Replay, Replayed};
pub use step::{Step, Trace, UNIT};
pub use walk::{STEPS, Walk, walk};
