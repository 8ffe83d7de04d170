//! Each log line with its level and fields.

use tracing::Level;
use tripwit::{Mode, Telemetry};

use crate::support::{Log, WAIT, consecutive, line, outbox, refused};

#[test]
fn the_lines_of_outbox_are_those_of_the_first_seed() {
    let (breakers, _clock) = outbox(Telemetry::default());
    let orders = breakers.breaker("orders").unwrap();
    let log = Log::from(Level::DEBUG);
    log.during(|| {
        orders.call_blocking(refused).unwrap_err();
        orders.trip();
        (0..11).for_each(|_| drop(breakers.cool_down()));
    });
    assert_eq!(
        log.lines(),
        [
            line(
                "WARN",
                "Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)",
                &[("cooldown_count", &10), ("topic", &"orders")]
            ),
            line(
                "DEBUG",
                "Circuit breaker re-tripped for topic orders; cooldown extended to 10 cycle(s)",
                &[("cooldown_count", &10), ("topic", &"orders")]
            ),
            line(
                "INFO",
                "Circuit breaker reset for topic orders; publish suppression lifted",
                &[("topic", &"orders")]
            ),
        ]
    );
}

#[test]
fn the_lines_of_policies_with_a_clock_name_the_wait() {
    let (breakers, clock) = consecutive(Telemetry::default());
    let sms = breakers.breaker("sms").unwrap();
    let log = Log::from(Level::DEBUG);
    log.during(|| {
        (0..2).for_each(|_| drop(sms.call_blocking(refused).unwrap_err()));
        clock.advance(WAIT);
        sms.call_blocking(refused).unwrap_err();
        sms.reset();
        sms.set_mode(Mode::ForcedOpen);
    });
    assert_eq!(
        log.lines(),
        [
            line(
                "WARN",
                "Circuit breaker tripped for topic sms; rejecting calls for 5s",
                &[("topic", &"sms"), ("wait", &"5s")]
            ),
            line(
                "DEBUG",
                "Circuit breaker half-open for topic sms; probing",
                &[("topic", &"sms")]
            ),
            line(
                "DEBUG",
                "Circuit breaker re-tripped for topic sms; rejecting calls for 5s",
                &[("topic", &"sms"), ("wait", &"5s")]
            ),
            line(
                "INFO",
                "Circuit breaker reset for topic sms; calls admitted",
                &[("topic", &"sms")]
            ),
            line(
                "INFO",
                "Circuit breaker mode of topic sms set to forced-open",
                &[("mode", &"forced-open"), ("topic", &"sms")]
            ),
        ]
    );
}
