//! What the programs and tests of this crate share: the call that is guarded, the circuits that guard it, and an
//! allocator that counts.

mod allocator;
mod setup;
mod work;

pub use allocator::{Counting, allocations, held};
pub use setup::{Guarding, metrics, sixteen_byte_key};
pub use work::{Inputs, Refused, work};
