//! The tower layer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tripwit::tower::{BreakerLayer, ServiceError};
use tripwit::{AttachError, Failure, Policy, RejectionReason, State, Verdict, classify};

use crate::support::{circuits, touchy, touchy_circuits};

type Answer = Result<u16, &'static str>;

/// A request says which host it is for, and what comes of it.
type Request = (&'static str, Answer);

fn host(request: &Request) -> &'static str {
    request.0
}

#[tokio::test]
async fn requests_go_through_the_circuit_of_their_key() {
    let (breakers, _clock) = touchy_circuits();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::new(breakers.clone(), host))
        .service(service_fn(move |request: Request| {
            count.fetch_add(1, Ordering::Relaxed);
            async move { request.1 }
        }));
    for _ in 0..2 {
        let error = service
            .ready()
            .await
            .unwrap()
            .call(("a", Err("down")))
            .await
            .unwrap_err();
        assert!(matches!(error, ServiceError::Inner("down")));
    }
    let mut clone = service.clone();
    match clone.ready().await.unwrap().call(("a", Ok(200))).await {
        Err(ServiceError::Rejected(rejection)) => assert_eq!(rejection.reason(), RejectionReason::Open),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        calls.load(Ordering::Relaxed),
        2,
        "the rejected request did not reach the service"
    );
    assert_eq!(
        clone.ready().await.unwrap().call(("b", Ok(200))).await.unwrap(),
        200
    );
    assert_eq!(breakers.tripped(), ["a"]);
}

#[tokio::test]
async fn a_key_that_cannot_be_one_is_an_error_of_the_request() {
    let (breakers, _clock) = touchy_circuits();
    let service = service_fn(async |request: Request| request.1);
    let guarded = ServiceBuilder::new()
        .layer(BreakerLayer::new(breakers, host))
        .service(service);
    let error = guarded.oneshot(("", Ok(200))).await.unwrap_err();
    let ServiceError::Attach(error) = error else {
        panic!("{error}");
    };
    assert!(matches!(*error, AttachError::Key { .. }));
}

#[tokio::test]
async fn responses_are_classified() {
    let (breakers, _clock) = touchy_circuits();
    let server_errors = classify::by_value(|status: &u16| match status {
        500.. => Verdict::Failure(Failure::new()),
        _ => Verdict::Success,
    });
    let layer = BreakerLayer::new(breakers.clone(), host).classify(server_errors);
    let service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(async |request: Request| request.1));
    for _ in 0..2 {
        assert_eq!(service.clone().oneshot(("a", Ok(503))).await.unwrap(), 503);
    }
    assert_eq!(breakers.tripped(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_never_answers_is_given_up() {
    let (builder, _clock) = circuits(touchy().call_timeout(Duration::from_secs(1)));
    let layer = BreakerLayer::new(builder.build().unwrap(), host);
    let service = service_fn(async |_: Request| std::future::pending::<Answer>().await);
    let error = ServiceBuilder::new()
        .layer(layer)
        .service(service)
        .oneshot(("a", Ok(200)))
        .await
        .unwrap_err();
    assert!(matches!(error, ServiceError::TimedOut { .. }));
}

/// Ready once only, and not at all after that.
struct Once(bool);

impl Service<Request> for Once {
    type Response = u16;
    type Error = &'static str;
    type Future = std::future::Ready<Answer>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.0 {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.0 = true;
        std::future::ready(request.1)
    }
}

#[tokio::test]
async fn the_service_is_ready_when_the_one_within_is() {
    let (breakers, _clock) = touchy_circuits();
    breakers.breaker("a").unwrap().trip();
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::new(breakers, host))
        .service(Once(false));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(
        service.poll_ready(&mut cx).is_ready(),
        "an open circuit is no reason not to be ready"
    );
    assert!(service.call(("a", Ok(200))).await.is_err());
    assert!(
        service.poll_ready(&mut cx).is_ready(),
        "the one within was not called"
    );
    assert!(service.call(("b", Ok(200))).await.is_ok());
    assert!(service.poll_ready(&mut cx).is_pending());
}

#[tokio::test]
async fn a_service_that_panics_when_it_is_called_has_failed() {
    let (breakers, clock) = touchy_circuits();
    let breaker = breakers.breaker("a").unwrap();
    breaker.trip();
    clock.advance(Duration::from_secs(5));
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::new(breakers, host))
        .service(service_fn(|_: Request| -> std::future::Ready<Answer> {
            panic!("no answer")
        }));
    let service = service.ready().await.unwrap();
    let call = std::panic::AssertUnwindSafe(|| drop(service.call(("a", Ok(200)))));
    assert!(std::panic::catch_unwind(call).is_err());
    assert_eq!(
        breaker.acquire().unwrap_err().reason(),
        RejectionReason::Open,
        "the probe failed, and its place is free"
    );
}

#[tokio::test]
async fn a_service_goes_from_key_to_key_where_there_is_room_for_one() {
    let (builder, _clock) = circuits(touchy());
    let breakers = builder.max_circuits(1).build().unwrap();
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::new(breakers.clone(), host))
        .service(service_fn(async |request: Request| request.1));
    let mut call = |host| service.call((host, Ok(200)));
    for _ in 0..2 {
        for host in ["a", "b"] {
            assert_eq!(call(host).await.unwrap(), 200);
            assert_eq!(breakers.len(), 1);
        }
    }
    let under_way = call("b");
    let error = call("a").await.unwrap_err();
    assert!(matches!(error, ServiceError::Attach(_)), "{error}");
    assert_eq!(under_way.await.unwrap(), 200);
    assert_eq!(call("a").await.unwrap(), 200);
}

#[tokio::test]
async fn a_service_goes_on_under_a_policy_that_is_swapped_in_and_its_call_under_way_is_stale() {
    let (breakers, _clock) = touchy_circuits();
    let mut service = ServiceBuilder::new()
        .layer(BreakerLayer::new(breakers.clone(), host))
        .service(service_fn(async |request: Request| {
            tokio::task::yield_now().await;
            request.1
        }));
    let mut under_way = std::pin::pin!(service.call(("a", Err("down"))));
    let pending = std::future::poll_fn(|cx| Poll::Ready(under_way.as_mut().poll(cx).is_pending()));
    assert!(pending.await);
    breakers
        .swap(Policy::consecutive().unwrap(), touchy().failure_threshold(1))
        .unwrap();
    assert!(matches!(under_way.await, Err(ServiceError::Inner("down"))));
    let status = breakers.breaker("a").unwrap().status();
    assert_eq!((status.state, status.stale_results), (State::Closed, 1));
    assert!(service.call(("a", Err("down"))).await.is_err());
    assert_eq!(breakers.tripped(), ["a"]);
}

#[test]
fn the_services_own_error_is_printed_once() {
    let error = ServiceError::Inner(std::io::Error::other("refused"));
    assert_eq!(error.to_string(), "refused");
    assert!(std::error::Error::source(&error).is_none());
}
