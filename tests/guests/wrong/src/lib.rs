//! A component that is `consecutive`, except that it breaks the contract in the way that the setting `fault` chooses: what `tripwit check` must find.
//!
//! | fault | what goes wrong |
//! |---|---|
//! | `none` | nothing |
//! | `silent` | nothing: it hands in no spans and writes no log lines, which a policy may |
//! | `lying-lease` | closed, it says that no success matters, although it counts failures in a row |
//! | `long-lease` | a rejection holds a millisecond longer by its lease than when asked |
//! | `leaked-probe` | an ignored probe keeps its place |
//! | `double-settle` | a probe's ticket counts as often as it is settled |
//! | `late-result` | a late failure prolongs the wait |
//! | `older-generation` | a reset hands out an older generation |
//! | `clock-underflow` | it traps where the clock steps back |
//! | `early-wait` | the wait ends early where the clock steps back |
//! | `restarted-wait` | the wait begins anew where the clock steps back |
//! | `hidden-move` | half-open is in no answer |
//! | `untold-move` | half-open has no span |
//! | `told-twice` | every move has two spans |
//! | `logged-twice` | every move has two log lines |
//! | `span-without-move` | every result has a span |
//! | `wrong-edge` | a re-trip is called a trip |
//! | `wrong-cause` | what an operator does is the policy's doing |
//! | `lost-wait` | a snapshot has no wait |
//! | `lost-mode` | a snapshot is always automatic |
//! | `foreign-detail` | it traps over a snapshot with a detail of another format |
//! | `unchecked-settings` | settings that do not fit are taken for the defaults |
//! | `wrong-pointer` | an error of the settings names no field |
//! | `ignored-mode` | forced-open admits as ever |
//! | `disabled-shadow` | shadow decides nothing |
//! | `moving-inspect` | looking at a circuit takes a probe |
//! | `endless-half-open` | a lost probe is never given up |
//! | `shorter-wait` | an operator's shorter wait replaces the longer one |
//! | `touched-by-cycles` | a cool-down cycle returns every circuit |
//! | `mixed-keys` | blanks around a key do not count |
//! | `remembered` | a detached circuit is found again as it was |
#![cfg_attr(target_arch = "wasm32", no_std)]

#[cfg(target_arch = "wasm32")]
extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod ears;
#[cfg(target_arch = "wasm32")]
mod fault;
#[cfg(target_arch = "wasm32")]
mod wrong;
