//! An allocator that counts.
#![expect(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread. A program or test that makes it its global allocator can ask
/// [`allocations`] and [`held`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// How often this thread allocates while it works; growing in place counts too.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// The bytes that this thread has asked for, less those that it has given back. Negative where it gives back more than it
/// has asked for.
#[must_use]
pub fn held() -> i64 {
    HELD.get()
}

fn count(calls: u64, bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + calls);
    HELD.set(HELD.get() + bytes);
}

/// A layout is never larger than `isize::MAX`.
fn size(layout: Layout) -> i64 {
    layout.size().cast_signed() as i64
}

// SAFETY: every method hands its arguments to the system's allocator and returns what that returns.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, size(layout));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, size(layout));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -size(layout));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, new_size.cast_signed() as i64 - size(layout));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
