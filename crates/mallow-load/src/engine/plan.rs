//! Decides which request may start, and when: the budget of a run, which all of its workers share.

use crate::Amount;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long before the first request of a schedule the threads start: otherwise that request would always be late.
const LEAD: Duration = Duration::from_millis(5);

/// One run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// When it started.
    begin: Instant,
    /// No request starts then or later.
    end: Option<Instant>,
    /// The number of requests in all.
    total: u64,
    /// The number that workers have taken.
    taken: AtomicU64,
    /// Nanoseconds from one request to the next, over all workers.
    interval_ns: Option<f64>,
    /// The number of workers that share it.
    pub(crate) workers: u32,
    /// Set if no more requests shall start.
    stopped: Arc<AtomicBool>,
}

/// A request that may start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    /// Counted from 0 over all workers.
    pub(crate) number: u64,
    /// When it is due; `None` for at once.
    pub(crate) due: Option<Instant>,
}

impl Plan {
    /// Creates a plan. `requests_max` is the length of a list that is sent once.
    pub(crate) fn new(amount: Amount, rate: Option<f64>, workers: u32, requests_max: Option<u64>) -> Plan {
        let begin = Instant::now() + if rate.is_some() { LEAD } else { Duration::ZERO };
        let (total, end) = match amount {
            Amount::Requests(count) => (count, None),
            Amount::Duration(time) => (u64::MAX, begin.checked_add(time)),
        };
        Plan {
            begin,
            end,
            total: total.min(requests_max.unwrap_or(u64::MAX)),
            taken: AtomicU64::new(0),
            interval_ns: rate.map(|rate| 1e9 / rate),
            workers,
            stopped: Arc::default(),
        }
    }

    /// Returns the same plan, which ends early when `stopped` is set.
    pub(crate) fn stopped_by(self, stopped: &Arc<AtomicBool>) -> Plan {
        Plan { stopped: Arc::clone(stopped), ..self }
    }

    /// Returns whether no more requests shall start.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns the next request of the worker `index`, which has taken `taken` before; `now` is the current time.
    /// `None` if the worker is done.
    ///
    /// With a rate, each worker owns every `workers`th slot of the schedule. So if the server stalls one of them,
    /// that worker's requests are late, and this is visible. Without a rate, any idle worker takes the next request.
    pub(crate) fn next(&self, index: u32, taken: u64, now: Instant) -> Option<Slot> {
        if self.end.is_some_and(|end| now >= end) || self.is_stopped() {
            return None;
        }
        let Some(interval_ns) = self.interval_ns else {
            // Load first, so that the counter cannot overflow while many workers find the budget used up.
            if self.taken.load(Ordering::Relaxed) >= self.total {
                return None;
            }
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            return (number < self.total).then_some(Slot { number, due: None });
        };
        let number = taken.checked_mul(u64::from(self.workers))?.checked_add(u64::from(index))?;
        if number >= self.total {
            return None;
        }
        let due = self.begin.checked_add(Duration::from_nanos((number as f64 * interval_ns) as u64))?;
        let in_time = self.end.is_none_or(|end| due < end);
        in_time.then_some(Slot { number, due: Some(due) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up_exactly() {
        let plan = Plan::new(Amount::Requests(3), None, 2, None);
        let now = Instant::now();
        let numbers: Vec<u64> = std::iter::from_fn(|| plan.next(0, 0, now)).map(|slot| slot.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(plan.next(1, 0, now), None);
    }

    #[test]
    fn a_list_ends_a_run_before_its_amount_does() {
        for amount in [Amount::Requests(10), Amount::Duration(Duration::from_secs(100))] {
            let plan = Plan::new(amount, None, 1, Some(2));
            assert_eq!(std::iter::from_fn(|| plan.next(0, 0, Instant::now())).count(), 2);
        }
    }

    #[test]
    fn a_run_that_is_stopped_begins_no_request() {
        let stop = Arc::new(AtomicBool::new(false));
        let plan = Plan::new(Amount::Requests(3), None, 1, None).stopped_by(&stop);
        assert!(plan.next(0, 0, Instant::now()).is_some());
        stop.store(true, Ordering::Relaxed);
        assert_eq!(plan.next(0, 1, Instant::now()), None);
    }

    #[test]
    fn workers_share_the_slots_of_a_schedule() {
        let plan = Plan::new(Amount::Requests(5), Some(100.0), 2, None);
        let due = |index, taken| {
            let slot = plan.next(index, taken, Instant::now())?;
            Some((slot.number, slot.due.unwrap().duration_since(plan.begin).as_millis()))
        };
        assert_eq!(
            [due(0, 0), due(0, 1), due(0, 2), due(0, 3)],
            [Some((0, 0)), Some((2, 20)), Some((4, 40)), None]
        );
        assert_eq!([due(1, 0), due(1, 1), due(1, 2)], [Some((1, 10)), Some((3, 30)), None]);
    }

    #[test]
    fn no_request_begins_after_the_end() {
        let plan = Plan::new(Amount::Duration(Duration::from_millis(25)), Some(100.0), 1, None);
        let begin = plan.begin;
        assert!(plan.next(0, 2, begin).is_some(), "due after 20 ms");
        assert_eq!(plan.next(0, 3, begin), None, "due after 30 ms");
        assert_eq!(plan.next(0, 2, begin + Duration::from_millis(25)), None, "too late");
    }
}
