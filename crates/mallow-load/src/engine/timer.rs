//! Timeouts that are cheap as long as none occurs.
//!
//! A timer for each request would be inserted into the runtime's timer wheel and removed again a hundred thousand
//! times a second. Instead, each worker has one timer, which is set again only when it fires; usually that is too
//! early.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// A worker's one timer.
#[derive(Debug)]
pub(crate) struct Timer {
    limit: Duration,
    /// Never later than the timeout of the current request: requests start one after another, with the same limit.
    sleep: Pin<Box<Sleep>>,
}

impl Timer {
    /// Must be called on a runtime's thread.
    pub(crate) fn new(limit: Duration) -> Timer {
        Timer { limit, sleep: Box::pin(tokio::time::sleep(limit)) }
    }

    /// Returns the output of `work`, or `None` if it is not ready within the limit after `begun`.
    pub(crate) async fn guard<F: Future>(&mut self, begun: Instant, work: F) -> Option<F::Output> {
        let end = begun.checked_add(self.limit);
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            while self.sleep.as_mut().poll(context).is_ready() {
                match end {
                    Some(end) if Instant::now() < end => self.sleep.as_mut().reset(end.into()),
                    Some(_) => return Poll::Ready(None),
                    // A limit beyond the range of the clock never expires.
                    None => return Poll::Pending,
                }
            }
            Poll::Pending
        })
        .await
    }
}
