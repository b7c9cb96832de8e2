//! A worker: one request in flight at a time, repeatedly.

use super::cause::Cause;
use super::http1::{Answer, Broken, Http1};
use super::http2::Channel;
use super::plan::{Plan, Slot};
use super::prepared::Template;
use super::sequence::Cursor;
use super::setup::Setup;
use super::stats::Stats;
use super::timer::Timer;
use super::user::User;
use crate::flow::ResponseParts;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How late the runtime's timer, which counts milliseconds, can start a request that nothing else delayed.
const TIMER_GRAIN: Duration = Duration::from_millis(2);
/// How long a worker waits that got no connection: thousands of attempts a second would only show that the server is gone.
const PAUSE: Duration = Duration::from_millis(10);

/// What the workers of a thread share in a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) setup: Arc<Setup>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) stats: RefCell<Stats>,
}

/// A worker, which is kept between runs with its connection.
#[derive(Debug)]
pub(crate) struct Worker {
    index: u32,
    cursor: Cursor,
    /// The user of a flow, if there is one.
    user: User,
    wire: Wire,
    timer: Timer,
}

/// The connection that a worker uses.
#[derive(Debug)]
pub(crate) enum Wire {
    /// A connection of its own, if it is open.
    Http1(Option<Http1>),
    /// A shared one.
    Http2(Rc<Channel>),
}

impl Worker {
    pub(crate) fn new(index: u32, wire: Wire, setup: &Setup) -> Worker {
        let cursor = setup.prepared.sequence.cursor(index, setup.connections);
        Worker { index, cursor, user: User::new(index), wire, timer: Timer::new(setup.timeout) }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Sends requests until the run is over.
    pub(crate) async fn work(mut self, run: Rc<Run>) -> Worker {
        let mut taken = 0;
        let mut now = Instant::now();
        while let Some(slot) = run.plan.next(self.index, taken, now) {
            taken += 1;
            let (due, begun) = wait_for(slot, now).await;
            let prepared = &run.setup.prepared;
            let Some(flow) = &prepared.flow else {
                let template = prepared.template(prepared.sequence.next(&mut self.cursor, slot.number));
                let (outcome, end) = self.ask(&run.setup, template, None, begun).await;
                now = self.count(&run, outcome, (due, begun, end)).await;
                continue;
            };
            let template = match self.user.request(flow) {
                Ok(template) => template,
                Err(unsendable) => {
                    run.stats.borrow_mut().lacking(&unsendable, due, begun, begun);
                    // Let the other workers of this thread run: this request did not wait for the server.
                    tokio::task::yield_now().await;
                    now = Instant::now();
                    continue;
                }
            };
            let mut taken = self.user.wants(flow);
            let (outcome, end) = self.ask(&run.setup, &template, Some(&mut taken), begun).await;
            let lacking = match &outcome {
                Ok(answer) => self.user.answered(flow, answer.status, &taken).err(),
                Err(_) => {
                    self.user.failed();
                    None
                }
            };
            now = match lacking {
                Some(lacking) => {
                    run.stats.borrow_mut().lacking(&lacking, due, begun, end);
                    self.wire.part(&run.setup, end).await
                }
                None => self.count(&run, outcome, (due, begun, end)).await,
            };
        }
        self
    }

    /// Runs one exchange with its timeout; returns when it was over, too.
    async fn ask(
        &mut self,
        setup: &Setup,
        template: &Template,
        taken: Option<&mut ResponseParts>,
        begun: Instant,
    ) -> (Result<Answer, Cause>, Instant) {
        let outcome = self.timer.guard(begun, self.wire.ask(setup, template, taken)).await;
        let end = Instant::now();
        let outcome = outcome.unwrap_or_else(|| {
            self.wire.give_up();
            Err(Cause::Timeout)
        });
        (outcome, end)
    }

    /// Counts the result of a request; returns the time at which the next one may start.
    async fn count(
        &mut self,
        run: &Run,
        outcome: Result<Answer, Cause>,
        (due, begun, end): (Instant, Instant, Instant),
    ) -> Instant {
        match outcome {
            Ok(answer) => {
                run.stats.borrow_mut().answered(answer.status, answer.body_bytes, due, begun, end);
                self.wire.part(&run.setup, end).await
            }
            Err(cause) => {
                run.stats.borrow_mut().failed(cause, due, begun, end);
                if !matches!(cause, Cause::Timeout | Cause::ClosedEarly | Cause::BadAnswer) {
                    tokio::time::sleep(PAUSE).await;
                }
                self.wire.part(&run.setup, Instant::now()).await
            }
        }
    }

    /// Closes its own connection.
    pub(crate) async fn close(&mut self) {
        if let Wire::Http1(kept) = &mut self.wire
            && let Some(connection) = kept.take()
        {
            connection.close().await;
        }
    }
}

/// Waits for a slot. Returns the time from which its latency counts, and the time at which it really starts.
///
/// If a worker was idle when its request was due, and it starts late by no more than the timer's granularity, the
/// timer caused the delay: the request counts as due when it starts. Any other delay is caused by the server or the
/// machine.
async fn wait_for(slot: Slot, now: Instant) -> (Instant, Instant) {
    let Some(due) = slot.due else { return (now, now) };
    if due <= now {
        return (due, now);
    }
    tokio::time::sleep_until(due.into()).await;
    let begun = Instant::now().max(due);
    if begun - due <= TIMER_GRAIN { (begun, begun) } else { (due, begun) }
}

impl Wire {
    /// Runs one exchange, on a new connection if there is none or the server has closed it.
    ///
    /// A server may close an idle connection just when the next request is being sent. If no byte of a response was
    /// received, the request is retried once on a new connection, unless it might then be executed twice.
    async fn ask(
        &mut self,
        setup: &Setup,
        template: &Template,
        mut taken: Option<&mut ResponseParts>,
    ) -> Result<Answer, Cause> {
        let may_repeat = |broken: &Broken| broken.unsent || (broken.unanswered && template.is_idempotent());
        match self {
            Wire::Http1(kept) => {
                if let Some(mut connection) = kept.take()
                    && connection.is_open().await
                {
                    match connection.exchange(template.request(), taken.as_deref_mut()).await {
                        Err(broken) if broken.cause.is_of_a_closed_connection() && may_repeat(&broken) => {}
                        outcome => {
                            if outcome.is_ok() {
                                *kept = Some(connection);
                            }
                            return outcome.map_err(|broken| broken.cause);
                        }
                    }
                }
                let mut connection = Http1::open(&setup.connector).await?;
                if let Some(taken) = &mut taken {
                    taken.clear();
                }
                let outcome = connection.exchange(template.request(), taken).await;
                if outcome.is_ok() {
                    *kept = Some(connection);
                }
                outcome.map_err(|broken| broken.cause)
            }
            Wire::Http2(channel) => {
                let mut sender = channel.sender(&setup.connector, None).await?;
                let mut outcome = sender.exchange(template.request(), taken.as_deref_mut()).await;
                if let Err(broken) = &outcome
                    && !sender.is_fresh
                    && may_repeat(broken)
                {
                    sender = channel.sender(&setup.connector, Some(&sender)).await?;
                    if let Some(taken) = &mut taken {
                        taken.clear();
                    }
                    outcome = sender.exchange(template.request(), taken).await;
                }
                outcome.map_err(|broken| broken.cause)
            }
        }
    }

    /// Closes what is not kept after a request that ended at `end`. This time belongs to no request; returns the time afterwards.
    async fn part(&mut self, setup: &Setup, end: Instant) -> Instant {
        if setup.keep_alive {
            return end;
        }
        match self {
            Wire::Http2(channel) => channel.close().await,
            Wire::Http1(kept) => {
                if let Some(connection) = kept.take() {
                    connection.close().await;
                }
            }
        }
        Instant::now()
    }

    /// Abandons the connection, so that a late response cannot be read as that of another request.
    fn give_up(&mut self) {
        if let Wire::Http1(connection) = self {
            *connection = None;
        }
    }
}
