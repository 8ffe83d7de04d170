//! What the result of a call says about what was called.

use std::time::Duration;

/// What a result counts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call ended well.
    Success,
    /// The call failed.
    Failure(Failure),
    /// The result says nothing about what was called.
    Ignored,
}

/// What is known of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// How long the other side asked to be left alone: HTTP's Retry-After, say.
    pub retry_after: Option<Duration>,
    /// What went wrong, for people. At most 256 bytes of it are kept.
    pub cause: Option<String>,
}

impl Failure {
    /// A failure of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The other side asked to be left alone for so long.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

/// Says what results count as. Every function `Fn(&Result<T, E>) -> Verdict` does.
pub trait Classify<T, E> {
    /// What this result counts as.
    fn classify(&self, result: &Result<T, E>) -> Verdict;
}

impl<T, E, F: Fn(&Result<T, E>) -> Verdict> Classify<T, E> for F {
    fn classify(&self, result: &Result<T, E>) -> Verdict {
        self(result)
    }
}

/// See [`errors_are_failures`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorsAreFailures;

/// See [`by_error`].
#[derive(Clone, Copy, Debug)]
pub struct ByError<F>(F);

/// See [`by_value`].
#[derive(Clone, Copy, Debug)]
pub struct ByValue<F>(F);

/// `Ok` is a success, `Err` is a failure. The default.
#[must_use]
pub fn errors_are_failures() -> ErrorsAreFailures {
    ErrorsAreFailures
}

/// `Ok` is a success; of an error the function says what it counts as.
pub fn by_error<E, F: Fn(&E) -> Verdict>(verdict: F) -> ByError<F> {
    ByError(verdict)
}

/// Of a value the function says what it counts as; `Err` is a failure.
pub fn by_value<T, F: Fn(&T) -> Verdict>(verdict: F) -> ByValue<F> {
    ByValue(verdict)
}

impl<T, E> Classify<T, E> for ErrorsAreFailures {
    fn classify(&self, result: &Result<T, E>) -> Verdict {
        match result {
            Ok(_) => Verdict::Success,
            Err(_) => Verdict::Failure(Failure::new()),
        }
    }
}

impl<T, E, F: Fn(&E) -> Verdict> Classify<T, E> for ByError<F> {
    fn classify(&self, result: &Result<T, E>) -> Verdict {
        match result {
            Ok(_) => Verdict::Success,
            Err(error) => (self.0)(error),
        }
    }
}

impl<T, E, F: Fn(&T) -> Verdict> Classify<T, E> for ByValue<F> {
    fn classify(&self, result: &Result<T, E>) -> Verdict {
        match result {
            Ok(value) => (self.0)(value),
            Err(_) => Verdict::Failure(Failure::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Result<u8, &str> = Ok(1);
    const BAD: Result<u8, &str> = Err("no");

    fn failure() -> Verdict {
        Verdict::Failure(Failure::new())
    }

    #[test]
    fn by_default_an_error_is_a_failure() {
        assert_eq!(
            [
                errors_are_failures().classify(&GOOD),
                errors_are_failures().classify(&BAD)
            ],
            [Verdict::Success, failure()]
        );
    }

    #[test]
    fn by_error_looks_at_errors_only() {
        let ignore = by_error(|_: &&str| Verdict::Ignored);
        assert_eq!(
            [ignore.classify(&GOOD), ignore.classify(&BAD)],
            [Verdict::Success, Verdict::Ignored]
        );
    }

    #[test]
    fn by_value_looks_at_values_and_takes_errors_for_failures() {
        let ignore = by_value(|_: &u8| Verdict::Ignored);
        assert_eq!(
            [ignore.classify(&GOOD), ignore.classify(&BAD)],
            [Verdict::Ignored, failure()]
        );
    }

    #[test]
    fn any_function_of_the_result_classifies() {
        let opposite = |result: &Result<u8, &str>| {
            if result.is_ok() {
                failure()
            } else {
                Verdict::Success
            }
        };
        assert_eq!(opposite.classify(&GOOD), failure());
    }
}
