//! `swap`: policies exchanged under load.

use crate::running::{Running, example};

#[test]
fn two_swaps_under_load_lose_nothing_and_bad_files_change_nothing() {
    let mut swap = Running::start(&mut example("swap"));
    swap.line(&["Policy consecutive ", " swapped for window "]);
    swap.line(&["(window decides", "the circuit is open"]);
    swap.line(&["The watched policy is refused", "digest"]);
    swap.line(&["(window still decides"]);
    swap.line(&["The watched policy is refused", "/failure_rate"]);
    swap.line(&["(window still decides"]);
    swap.line(&["Policy window ", " swapped for consecutive "]);
    let (code, said) = swap.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains(" rejected, 0 lost.") && said.contains("; 0 of those were let through."),
        "{said}"
    );
}
