//! A healthy call allocates nothing.
#![expect(unsafe_code, reason = "a counting allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use tripwit::settings::{Consecutive, Window};
use tripwit::{Breakers, Policy, Settings, Telemetry};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every method hands its arguments to the system's allocator and returns what that returns.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn a_healthy_call_allocates_nothing_whether_metrics_are_listened_to_or_not() {
    let meters = SdkMeterProvider::builder()
        .with_periodic_exporter(InMemoryMetricExporter::default())
        .build();
    let listened_to = Telemetry::default().meter_provider(meters);
    let (in_a_row, in_window) = (Policy::consecutive().unwrap(), Policy::window().unwrap());
    let sets = [
        (&in_a_row, Settings::from(Consecutive::default())),
        (&in_a_row, Consecutive::default().no_call_timeout().into()),
        // Successes of these are kept back by number.
        (&in_window, Window::default().into()),
        (&in_window, Window::default().no_call_timeout().into()),
    ];
    let all = sets
        .iter()
        .flat_map(|set| [(set, Telemetry::default()), (set, listened_to.clone())]);
    for ((policy, settings), telemetry) in all {
        let breakers = Breakers::builder((*policy).clone())
            .settings(settings)
            .telemetry(telemetry)
            .build()
            .unwrap();
        let breaker = breakers.breaker("sms").unwrap();
        let call = || breaker.call_blocking(|| Ok::<_, ()>(7)).unwrap();
        call();
        assert_eq!(allocations(|| (0..1_000).for_each(|_| assert_eq!(call(), 7))), 0);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let asynchronous = || {
            let mut call = std::pin::pin!(breaker.call(async { Ok::<_, ()>(7) }));
            assert!(call.as_mut().poll(&mut cx).is_ready());
        };
        assert_eq!(allocations(asynchronous), 0);
        assert_eq!(allocations(|| assert!(breaker.is_available())), 0);
    }
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) > 0);
}
