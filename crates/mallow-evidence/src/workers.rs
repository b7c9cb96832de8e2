//! Workers that end and are replaced, in the order of their age.
//!
//! The heaps of all workers together are no steady series: what a worker leaks goes with it. But workers that begin alike and do the same work
//! are one program observed many times, so their heaps at increasing ages are the series that one worker would have had if it had
//! lived through all of it. The age is in requests, as the axis of every other trend is. No process says how many requests it
//! answered; its allocations do, as far as all requests cost about the same.

use crate::sample::{Phase, ProcessHeap, Sample};
use mallow_growth::Observation;
use std::collections::BTreeSet;

/// The observation of one worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerLook {
    /// Of which of the measured samples, counted from 0.
    pub sample: usize,
    /// The process's number in the recording.
    pub index: u32,
    /// What it held; `requests` is its age.
    pub observation: Observation,
}

/// Workers that ended during the measured load, when others came after them: how many at least.
pub(crate) fn replaced_count(samples: &[Sample]) -> Option<u64> {
    /// One that ends may have had its reason.
    const ENDED_MIN: u64 = 2;
    let (first, last) = edges(samples)?;
    // The recorder sees every end, the samples only those of processes that lived at one of them.
    let seen = u64::from(last.processes_ended.saturating_sub(first.processes_ended));
    let ended = last.recorded_ended.saturating_sub(first.recorded_ended).max(seen);
    (seen >= ENDED_MIN && last.processes >= first.processes).then_some(ended)
}

/// Every look at a worker that did not live through all of the measured load, youngest first. Empty where none were replaced, and without a
/// recorder.
pub fn by_age(samples: &[Sample]) -> Vec<WorkerLook> {
    let Some((first, last)) = edges(samples).filter(|_| replaced_count(samples).is_some()) else {
        return Vec::new();
    };
    let stay = staying(first, last);
    let looks = || {
        measured(samples).enumerate().flat_map(|(at, sample)| {
            sample.heaps.iter().filter(|heap| !stay.contains(&heap.index)).map(move |heap| (at, sample, heap))
        })
    };
    let start = looks().map(|(_, _, heap)| heap.allocations).min().unwrap_or(0);
    let Some(per_request) = allocations_per_request(last, &stay, start) else { return Vec::new() };
    let of = |(sample, seen, heap): (usize, &Sample, &ProcessHeap)| WorkerLook {
        sample,
        index: heap.index,
        observation: Observation {
            requests: ((heap.allocations - start) as f64 / per_request) as u64,
            seconds: seen.seconds,
            live_bytes: Some(heap.live_bytes),
            live_blocks: Some(heap.live_blocks),
            managed_bytes: managed_bytes(seen, heap.pid),
            ..Observation::default()
        },
    };
    let mut looks: Vec<WorkerLook> = looks().map(of).collect();
    looks.sort_by_key(|look| (look.observation.requests, look.sample, look.index));
    looks
}

/// What the processes hold that stay, sample by sample.
pub(crate) fn of_staying(samples: &[Sample]) -> Vec<Observation> {
    let Some((first, last)) = edges(samples).filter(|_| replaced_count(samples).is_some()) else {
        return Vec::new();
    };
    let stay = staying(first, last);
    let is_managed =
        |heap: &&ProcessHeap| stay.contains(&heap.index) && managed_bytes(first, heap.pid).is_some();
    let managed: Vec<u32> = first.heaps.iter().filter(is_managed).map(|heap| heap.pid).collect();
    let of = |sample: &Sample| {
        let heaps = || sample.heaps.iter().filter(|heap| stay.contains(&heap.index));
        Observation {
            requests: sample.requests_total,
            seconds: sample.seconds,
            live_bytes: Some(heaps().map(|heap| heap.live_bytes).sum()),
            live_blocks: Some(heaps().map(|heap| heap.live_blocks).sum()),
            managed_bytes: managed_of(sample, &managed),
            ..Observation::default()
        }
    };
    if stay.is_empty() { Vec::new() } else { measured(samples).map(of).collect() }
}

fn measured(samples: &[Sample]) -> impl DoubleEndedIterator<Item = &Sample> {
    samples.iter().filter(|sample| sample.phase == Phase::Measured && !sample.is_after_exit())
}

fn edges(samples: &[Sample]) -> Option<(&Sample, &Sample)> {
    let mut looks = measured(samples);
    let first = looks.next()?;
    Some((first, looks.next_back()?))
}

/// The processes that were there from the first measured sample to the last.
fn staying(first: &Sample, last: &Sample) -> BTreeSet<u32> {
    let of = |sample: &Sample| sample.heaps.iter().map(|heap| heap.index).collect::<BTreeSet<u32>>();
    &of(first) & &of(last)
}

/// What workers allocate for a request: what all of them allocated beyond their start, those that have ended included, over all requests.
fn allocations_per_request(last: &Sample, stay: &BTreeSet<u32>, start: u64) -> Option<f64> {
    let living = last.heaps.iter().filter(|heap| !stay.contains(&heap.index));
    let living: u64 = living.map(|heap| heap.allocations.saturating_sub(start)).sum();
    let ended = last.allocations_ended.saturating_sub(start.saturating_mul(last.recorded_ended));
    let per_request = (living + ended) as f64 / last.requests_total as f64;
    (per_request.is_finite() && per_request > 0.0).then_some(per_request)
}

/// The sum over some processes; `None` if one of them told nothing.
fn managed_of(sample: &Sample, pids: &[u32]) -> Option<u64> {
    let sum = pids.iter().map(|pid| managed_bytes(sample, *pid)).sum::<Option<u64>>()?;
    (!pids.is_empty()).then_some(sum)
}

fn managed_bytes(sample: &Sample, pid: u32) -> Option<u64> {
    sample.runtimes.iter().find(|runtime| runtime.pid == pid).map(|runtime| runtime.managed_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A master of number 1 and one worker after another, each ended after 400 requests. A worker allocates 1,000 blocks when it starts and ten for
    /// each request, and keeps `kept` bytes of each.
    fn samples(kept: u64) -> Vec<Sample> {
        (1..=30)
            .map(|at: u64| {
                let requests_total = 70 * at;
                let (life, age) = (requests_total / 400, requests_total % 400);
                let worker = ProcessHeap {
                    index: 2 + life as u32,
                    pid: 70,
                    live_bytes: 50_000 + kept * age,
                    live_blocks: 500,
                    allocations: 1_000 + 10 * age,
                };
                let master = ProcessHeap { index: 1, live_bytes: 9_000, allocations: 777, ..worker };
                Sample {
                    phase: Phase::Measured,
                    requests_total,
                    processes: 2,
                    processes_ended: life as u32,
                    recorded_ended: life,
                    allocations_ended: life * 5_000,
                    heaps: vec![master, worker],
                    ..Sample::default()
                }
            })
            .collect()
    }

    #[test]
    fn looks_are_in_the_order_of_age_and_the_age_is_in_requests() {
        let looks = by_age(&samples(600));
        assert_eq!(looks.len(), 30);
        assert!(looks.is_sorted_by_key(|look| look.observation.requests));
        // The youngest look is the origin: 10 requests after a start.
        for look in &looks {
            let age = 70 * (look.sample as u64 + 1) % 400;
            let by = look.observation.requests;
            // 2,100 requests: 5 lives and 100, of which each is taken to have begun 10 requests later than it did.
            assert!(by.abs_diff((age - 10) * 2_100 / 2_040) <= 1, "{by} for {age}");
            assert_eq!(look.observation.live_bytes, Some(50_000 + 600 * age));
        }
        let stay = of_staying(&samples(600));
        assert!(stay.len() == 30 && stay.iter().all(|seen| seen.live_bytes == Some(9_000)));
    }

    #[test]
    fn managed_heaps_of_those_that_stay_are_added_up_where_each_of_them_tells() {
        let mut samples = samples(600);
        for sample in &mut samples {
            sample.heaps[0].pid = 60;
            let runtime = |pid, managed_bytes| crate::RuntimeMetrics {
                pid,
                managed_bytes,
                ..crate::RuntimeMetrics::default()
            };
            sample.runtimes = vec![runtime(60, 5_000), runtime(70, 7_000)];
        }
        samples[3].runtimes.remove(0);
        let managed: Vec<Option<u64>> = of_staying(&samples).iter().map(|seen| seen.managed_bytes).collect();
        let none = managed.iter().position(Option::is_none);
        assert_eq!((none, managed.iter().flatten().sum::<u64>()), (Some(3), 29 * 5_000));
        assert!(by_age(&samples).iter().all(|look| look.observation.managed_bytes == Some(7_000)));
    }

    #[test]
    fn who_stays_has_no_age() {
        let mut samples = samples(0);
        samples.iter_mut().for_each(|sample| sample.processes_ended = 0);
        assert!(by_age(&samples).is_empty() && of_staying(&samples).is_empty());
    }
}
