//! A [tower](https://docs.rs/tower) layer: requests to a service go through the circuit of their key.
//!
//! ```
//! use tower::{Service, ServiceExt, service_fn};
//! use tower_layer::Layer;
//! use tripwit::tower::{BreakerLayer, ServiceError};
//! use tripwit::{Breakers, Policy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let breakers = Breakers::new(Policy::consecutive()?)?;
//! let upper = service_fn(async |host: &'static str| Ok::<_, std::io::Error>(host.to_uppercase()));
//!
//! let mut guarded = BreakerLayer::new(breakers, |host: &&'static str| *host).layer(upper);
//!
//! assert_eq!(guarded.ready().await?.call("example.com").await?, "EXAMPLE.COM");
//! # Ok(()) }
//! ```

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::breaker::Breaker;
use crate::breakers::Breakers;
use crate::call::{Guarded, Judging};
use crate::classify::{Classify, ErrorsAreFailures, errors_are_failures};
use crate::error::AttachError;
use crate::permit::{Through, panic_verdict};
use crate::rejection::{CallError, Rejection};

/// Puts circuits before services. Clones, and all services that it makes, share the circuits.
pub struct BreakerLayer<K, C = ErrorsAreFailures> {
    breakers: Breakers,
    key: Arc<K>,
    classify: Arc<C>,
}

impl<K> BreakerLayer<K> {
    /// Requests go through the circuit whose key `key` says: see [`Breakers::breaker`] on choosing one. An error of the
    /// service is a failure, and every response a success.
    pub fn new(breakers: Breakers, key: K) -> Self {
        Self {
            breakers,
            key: Arc::new(key),
            classify: Arc::new(errors_are_failures()),
        }
    }
}

impl<K, C> BreakerLayer<K, C> {
    /// Another classification of responses and errors.
    #[must_use]
    pub fn classify<D>(self, classify: D) -> BreakerLayer<K, D> {
        BreakerLayer {
            breakers: self.breakers,
            key: self.key,
            classify: Arc::new(classify),
        }
    }
}

impl<K, C> Clone for BreakerLayer<K, C> {
    fn clone(&self) -> Self {
        Self {
            breakers: self.breakers.clone(),
            key: self.key.clone(),
            classify: self.classify.clone(),
        }
    }
}

impl<K, C> fmt::Debug for BreakerLayer<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerLayer")
            .field("breakers", &self.breakers)
            .finish_non_exhaustive()
    }
}

impl<S, K, C> Layer<S> for BreakerLayer<K, C> {
    type Service = BreakerService<S, K, C>;

    fn layer(&self, inner: S) -> Self::Service {
        BreakerService {
            inner,
            layer: self.clone(),
            last: None,
        }
    }
}

/// A service behind circuits.
///
/// It is ready when the service within is: which circuit a request belongs to is known only when the request is there, so
/// a circuit that is open shows as an error of the call and never as a service that is not ready. A request that is
/// rejected never reaches the service within, which stays ready for the next one. A service that panics has failed, be it
/// in its `call` or in the future that it answered with; the panic goes on.
///
/// It holds the circuit of its last request, and so do clones of it, since the next request mostly wants the same one: such a
/// circuit is not given up while the service lives.
pub struct BreakerService<S, K, C = ErrorsAreFailures> {
    inner: S,
    layer: BreakerLayer<K, C>,
    last: Option<Arc<Lane<C>>>,
}

/// A circuit, and what results count as there.
struct Lane<C> {
    breaker: Breaker,
    classify: Arc<C>,
}

impl<C> Through for Arc<Lane<C>> {
    fn breaker(&self) -> &Breaker {
        &self.breaker
    }
}

impl<C> Judging for Arc<Lane<C>> {
    type Judge = C;

    fn judge(&self) -> &C {
        &self.classify
    }
}

impl<K, C> BreakerLayer<K, C> {
    /// The circuit of a key: that of the last request, or else another one in its place.
    #[inline(always)]
    fn lane<'a>(
        &self,
        last: &'a mut Option<Arc<Lane<C>>>,
        key: &str,
    ) -> Result<&'a Arc<Lane<C>>, AttachError> {
        if last.as_ref().is_some_and(|lane| lane.breaker.key() != key) {
            // It goes first, so that it is no longer in the way of another circuit.
            *last = None;
        }
        match last {
            Some(lane) => Ok(lane),
            None => Ok(last.insert(self.other_lane(key)?)),
        }
    }

    #[inline(never)]
    fn other_lane(&self, key: &str) -> Result<Arc<Lane<C>>, AttachError> {
        Ok(Arc::new(Lane {
            breaker: self.breakers.breaker(key)?,
            classify: self.classify.clone(),
        }))
    }
}

impl<S: Clone, K, C> Clone for BreakerService<S, K, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
            last: self.last.clone(),
        }
    }
}

impl<S: fmt::Debug, K, C> fmt::Debug for BreakerService<S, K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerService")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}

impl<S, K, C, R, Key> Service<R> for BreakerService<S, K, C>
where
    S: Service<R>,
    K: Fn(&R) -> Key,
    Key: AsRef<str>,
    C: Classify<S::Response, S::Error>,
{
    type Response = S::Response;
    type Error = ServiceError<S::Error>;
    type Future = ResponseFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(ServiceError::Inner)
    }

    #[inline(always)]
    fn call(&mut self, request: R) -> Self::Future {
        let key = (self.layer.key)(&request);
        let lane = match self.layer.lane(&mut self.last, key.as_ref()) {
            Ok(lane) => lane,
            Err(error) => return ResponseFuture::refused(ServiceRefusal::Attach(Box::new(error))),
        };
        let held = match lane.breaker.hold() {
            Ok(held) => held,
            Err(rejection) => return ResponseFuture::refused(ServiceRefusal::Rejected(rejection)),
        };
        let lane = lane.clone();
        let call = match catch_unwind(AssertUnwindSafe(|| self.inner.call(request))) {
            Ok(call) => call,
            Err(panic) => {
                lane.breaker.settle(held, panic_verdict());
                resume_unwind(panic);
            }
        };
        ResponseFuture {
            state: State::Called {
                call: Guarded::admitted(held, lane, call),
            },
        }
    }
}

pin_project! {
    /// What [`BreakerService`] answers with.
    pub struct ResponseFuture<F, C> {
        #[pin]
        state: State<F, C>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, C> {
        Called { #[pin] call: Guarded<F, Arc<Lane<C>>> },
        Refused { refusal: Option<ServiceRefusal> },
    }
}

/// Why a request never reached the service.
enum ServiceRefusal {
    Attach(Box<AttachError>),
    Rejected(Rejection),
}

impl<F, C> ResponseFuture<F, C> {
    #[inline(always)]
    fn refused(refusal: ServiceRefusal) -> Self {
        Self {
            state: State::Refused {
                refusal: Some(refusal),
            },
        }
    }
}

impl<F, C> fmt::Debug for ResponseFuture<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<T, E, F, C> Future for ResponseFuture<F, C>
where
    F: Future<Output = Result<T, E>>,
    C: Classify<T, E>,
{
    type Output = Result<T, ServiceError<E>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Called { call } => call.poll(cx).map_err(ServiceError::from),
            StateProjection::Refused { refusal } => match refusal.take() {
                Some(ServiceRefusal::Attach(error)) => Poll::Ready(Err(ServiceError::Attach(error))),
                Some(ServiceRefusal::Rejected(rejection)) => {
                    Poll::Ready(Err(ServiceError::Rejected(rejection)))
                }
                None => Poll::Pending,
            },
        }
    }
}

/// What a request came to, where there was no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError<E> {
    /// There is no circuit for the request's key. Boxed, since it is rare and would make every response's future larger.
    #[error(transparent)]
    Attach(Box<AttachError>),
    /// The circuit said no, and the service was not called.
    #[error(transparent)]
    Rejected(Rejection),
    /// The service ran longer than the circuit lets it, and was given up.
    #[error("a call through circuit {key:?} ran longer than {after:?} and was given up")]
    TimedOut {
        /// The circuit's key.
        key: Arc<str>,
        /// How long a call may run.
        after: std::time::Duration,
    },
    /// The service was called, or asked whether it is ready, and returned this error.
    #[error(transparent)]
    Inner(E),
}

impl<E> From<CallError<E>> for ServiceError<E> {
    fn from(error: CallError<E>) -> Self {
        match error {
            CallError::Rejected(rejection) => Self::Rejected(rejection),
            CallError::TimedOut { key, after } => Self::TimedOut { key, after },
            CallError::Inner(error) => Self::Inner(error),
        }
    }
}
