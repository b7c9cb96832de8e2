//! Timeouts that cost nothing while there are none.
//!
//! A timer for each request would be put into the runtime's wheel and taken out again a hundred thousand times a
//! second. Here each worker has one that is set again only when it goes off: it then is too early, mostly.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// A worker's one timer.
#[derive(Debug)]
pub(crate) struct Timer {
    limit: Duration,
    /// Never later than the end of the request under way: requests begin one after another, and their limit is one.
    sleep: Pin<Box<Sleep>>,
}

impl Timer {
    /// To be called on a runtime's thread.
    pub(crate) fn new(limit: Duration) -> Timer {
        Timer { limit, sleep: Box::pin(tokio::time::sleep(limit)) }
    }

    /// What `work` comes to; none when it has not come to an end within the limit after `begun`.
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
                    // A limit beyond what the clock can tell is none.
                    None => return Poll::Pending,
                }
            }
            Poll::Pending
        })
        .await
    }
}
