//! From samples to what the judge wants to see.

use crate::sample::{Memory, Phase, Sample};
use crate::workers::{by_age, of_staying, replaced_count};
use mallow_growth::{Evidence, Fault, ForeignHeap, Observation, Rules, Stacks};
use std::collections::BTreeMap;

/// What a verdict rests on. `wanted_rate` is the load's schedule in requests a second; `died` says how the server ended, if it did
/// before its time.
pub fn evidence(
    samples: &[Sample],
    stacks: Stacks,
    wanted_rate: Option<f64>,
    rules: &Rules,
    died: Option<String>,
) -> Evidence {
    let mut evidence = Evidence { stacks, ..of_samples(samples, rules) };
    evidence.faults.extend(saturation(samples, wanted_rate, rules));
    if let Some(how) = died {
        let requests = samples.last().map_or(0, |sample| sample.requests_total);
        evidence.faults.push(Fault::Died { how, requests });
    }
    evidence
}

/// The same from samples alone.
pub fn of_samples(samples: &[Sample], rules: &Rules) -> Evidence {
    let of_phase = |phase: Phase| {
        let seen = samples.iter().filter(move |sample| sample.phase == phase && !sample.is_after_exit());
        seen.map(observation).collect::<Vec<_>>()
    };
    let is_managed = |sample: &Sample| sample.runtimes.iter().any(|runtime| runtime.managed_bytes > 0);
    Evidence {
        before: of_phase(Phase::Idle).pop(),
        observations: of_phase(Phase::Measured),
        idle: of_phase(Phase::IdleControl),
        faults: errors(samples, rules).into_iter().chain(unread(samples)).collect(),
        uncollected: samples.iter().any(|sample| sample.uncollected) && !samples.iter().any(is_managed),
        foreign_heap: foreign_heap(samples),
        stacks: Stacks::default(),
        workers: by_age(samples).into_iter().map(|look| look.observation).collect(),
        staying: of_staying(samples),
    }
}

fn foreign_heap(samples: &[Sample]) -> ForeignHeap {
    let is_asked = |sample: &Sample| sample.phase != Phase::Measured || sample.asked_to_collect;
    let mut holders = samples.iter().filter_map(|sample| sample.foreign_heap.as_deref()).peekable();
    match holders.peek().is_some() {
        true if !holders.any(|holder| holder == "go") => ForeignHeap::Allocator,
        true if samples.iter().all(is_asked) => ForeignHeap::Collected,
        true => ForeignHeap::Uncollected,
        false => ForeignHeap::Unknown,
    }
}

fn observation(sample: &Sample) -> Observation {
    let occupied = |memory: &Memory| memory.rss_bytes + memory.swap_bytes;
    let managed: u64 = sample.runtimes.iter().map(|runtime| runtime.managed_bytes).sum();
    Observation {
        requests: sample.requests_total,
        seconds: sample.seconds,
        live_bytes: sample.heap.map(|heap| heap.live_bytes),
        live_blocks: sample.heap.map(|heap| heap.live_blocks),
        resident_bytes: occupied(&sample.memory),
        trimmed_bytes: sample.memory_trimmed.as_ref().map(occupied),
        mapped_bytes: Some(sample.memory.file_bytes + sample.memory.shared_bytes),
        allocator_bytes: sample.allocator.as_ref().map(|allocator| allocator.held_bytes),
        areas_bytes: areas_of(sample),
        held_free_bytes: sample.allocator.as_ref().map(|allocator| allocator.free_bytes),
        managed_bytes: (!sample.runtimes.is_empty()).then_some(managed),
        descriptors: sample.unread.is_none().then_some(sample.descriptors),
        threads: Some(sample.threads),
        requests_per_second: sample.load.as_ref().map(|load| load.rate),
    }
}

/// What is resident of the areas that glibc's heap lies in. Blocks of their own mappings are not in it; they are never free. Where nobody
/// could be asked, the allocator is glibc's, or the areas are next to empty. Another allocator may lie where glibc's would: of that it says
/// that it does not hold so much.
fn areas_of(sample: &Sample) -> Option<u64> {
    let memory = sample.memory_trimmed.as_ref().unwrap_or(&sample.memory);
    let areas = memory.brk_bytes + memory.arena_bytes;
    match &sample.allocator {
        Some(allocator) if allocator.name == "glibc" => Some(areas.min(allocator.held_bytes)),
        Some(_) => None,
        None => Some(areas),
    }
}

fn errors(samples: &[Sample], rules: &Rules) -> Option<Fault> {
    let loads = || samples.iter().filter_map(|sample| sample.load.as_ref());
    let requests: u64 = loads().map(|load| load.requests).sum();
    let failed: u64 = loads().map(|load| load.requests.saturating_sub(load.succeeded)).sum();
    if requests == 0 || (failed as f64) <= rules.errors_max * requests as f64 {
        return None;
    }
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in loads().flat_map(|load| &load.failures) {
        *causes.entry(cause).or_default() += count;
    }
    let most = causes.into_iter().max_by_key(|(_, count)| *count);
    let most = most.map_or_else(|| "no answer".to_owned(), |(cause, _)| cause.to_owned());
    Some(Fault::Errors { failed, requests, most })
}

/// A process that could not be looked at when something was judged: nobody knows what it holds.
fn unread(samples: &[Sample]) -> Option<Fault> {
    let is_judged =
        |sample: &&Sample| matches!(sample.phase, Phase::Idle | Phase::Measured | Phase::IdleControl);
    let unread = samples.iter().filter(is_judged).find_map(|sample| sample.unread.as_ref())?;
    let process = format!("process {} ({})", unread.pid, unread.program);
    Some(Fault::Unread { process, cause: unread.cause.clone() })
}

/// A word about workers that ended and were replaced: what they held is not in the series any more.
pub fn replaced(samples: &[Sample]) -> Option<String> {
    let ended = replaced_count(samples)?;
    let what = match by_age(samples).is_empty() {
        false => {
            "what they lost went with them, so live heap is judged by their age, as that of one worker that lives through all of it"
        }
        true => {
            "memory that a worker loses goes with it, and all of them together are no steady series; soak it with workers that stay (gunicorn \
             without --max-requests, and their like)"
        }
    };
    Some(format!("at least {ended} processes of the server ended during the load and others began: {what}"))
}

/// A word about a load that met nothing but refusals, though they are accepted: it is not the program's work that was tested.
pub fn only_refusals(samples: &[Sample]) -> Option<String> {
    let loads = || samples.iter().filter_map(|sample| sample.load.as_ref());
    let [accepted, succeeded] =
        [loads().map(|load| load.accepted).sum::<u64>(), loads().map(|load| load.succeeded).sum()];
    let words = "every answer had a status of 400 or above: what was tested is how the server refuses, so name a page that it has with --url";
    (accepted > 0 && accepted == succeeded).then(|| words.to_owned())
}

/// A generator at its limit says nothing about a schedule that was not kept. Without a schedule there is no such thing:
/// somebody is always the slower one, and requests are counted, not seconds.
fn saturation(samples: &[Sample], wanted_rate: Option<f64>, rules: &Rules) -> Option<Fault> {
    /// The part of the wanted rate that must be reached.
    const KEPT: f64 = 0.95;
    let wanted = wanted_rate?;
    let measured = samples.iter().filter(|sample| sample.phase == Phase::Measured);
    let loads: Vec<_> = measured.filter_map(|sample| sample.load.as_ref()).collect();
    let late = loads.iter().filter(|load| {
        load.rate < KEPT * wanted && load.generator_busy.is_some_and(|busy| busy > rules.generator_busy_max)
    });
    let late: Vec<f64> = late.filter_map(|load| load.generator_busy).collect();
    let busy = late.iter().copied().fold(0.0, f64::max);
    (late.len() * 2 > loads.len()).then_some(Fault::Saturated { busy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{LoadMetrics, Unread};

    #[test]
    fn what_lies_where_glibcs_areas_would_is_not_all_glibcs() {
        let memory = Memory { brk_bytes: 1_000, arena_bytes: 8 << 20, ..Memory::default() };
        let holds = |name: &str, held_bytes: u64| {
            let name = name.to_owned();
            let allocator = Some(crate::AllocatorMetrics { name, held_bytes, ..Default::default() });
            areas_of(&Sample { memory, allocator, ..Sample::default() })
        };
        assert_eq!(holds("glibc", 4_096), Some(4_096));
        assert_eq!(holds("glibc", 16 << 20), Some((8 << 20) + 1_000));
        assert_eq!(holds("jemalloc", 16 << 20), None);
    }

    #[test]
    fn a_server_that_has_ended_holds_no_memory_that_could_be_judged() {
        let alive = Sample { phase: Phase::Measured, processes: 1, ..Sample::default() };
        let mut dead = sample(1000, 0, &[("connection reset", 1000)]);
        dead.processes = 0;
        let evidence = of_samples(&[alive, dead], &Rules::default());
        assert_eq!((evidence.observations.len(), evidence.faults.len()), (1, 1));
    }

    #[test]
    fn workers_that_are_replaced_are_told_of() {
        let look = |processes_ended, processes| Sample {
            phase: Phase::Measured,
            processes,
            processes_ended,
            ..Sample::default()
        };
        let said = replaced(&[look(1, 4), look(9, 4), look(31, 4)]).unwrap_or_default();
        assert!(said.starts_with("at least 30 processes of the server ended"), "{said}");
        assert_eq!(replaced(&[look(7, 4), look(7, 4)]), None, "they ended before");
        assert_eq!(replaced(&[look(0, 4), look(3, 1)]), None, "nobody came after them");
        assert_eq!(replaced(&[]), None);
    }

    fn sample(requests: u64, succeeded: u64, failures: &[(&str, u64)]) -> Sample {
        let failures = failures.iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect();
        let load = LoadMetrics { requests, succeeded, failures, ..LoadMetrics::default() };
        Sample { phase: Phase::Measured, load: Some(load), ..Sample::default() }
    }

    #[test]
    fn one_request_in_a_hundred_may_fail() {
        let rules = Rules::default();
        assert_eq!(errors(&[sample(1000, 990, &[("timeout", 10)])], &rules), None);
        let samples = [
            sample(1000, 990, &[("timeout", 6), ("status 500", 4)]),
            sample(1000, 988, &[("status 500", 12)]),
        ];
        let most = "status 500".to_owned();
        assert_eq!(errors(&samples, &rules), Some(Fault::Errors { failed: 22, requests: 2000, most }));
    }

    #[test]
    fn memory_that_nobody_may_read_is_unknown_and_not_nothing() {
        let unread = Unread { pid: 7, program: "app".into(), cause: "Permission denied".into() };
        let of = |phase: Phase| {
            let samples = [Sample { phase, processes: 1, unread: Some(unread.clone()), ..Sample::default() }];
            of_samples(&samples, &Rules::default())
        };
        let fault = Fault::Unread { process: "process 7 (app)".into(), cause: "Permission denied".into() };
        for phase in [Phase::Idle, Phase::Measured, Phase::IdleControl] {
            assert!(of(phase).faults.contains(&fault), "{phase:?}");
        }
        assert_eq!(of(Phase::Measured).observations[0].descriptors, None);
        assert!(!of(Phase::WarmUp).faults.contains(&fault), "nothing of it is judged");
    }

    #[test]
    fn a_load_that_met_nothing_but_refusals_is_worth_a_word() {
        let with = |accepted: u64, succeeded: u64| {
            let mut sample = sample(100, succeeded, &[]);
            sample.load.as_mut().unwrap().accepted = accepted;
            only_refusals(&[sample])
        };
        assert!(with(100, 100).unwrap().contains("how the server refuses"));
        assert_eq!((with(50, 100), with(0, 100), with(0, 0)), (None, None, None));
    }

    #[test]
    fn a_generator_is_at_its_limit_only_when_a_schedule_suffers() {
        let at = |rate: f64, busy: f64| {
            let load = LoadMetrics { rate, generator_busy: Some(busy), ..LoadMetrics::default() };
            Sample { phase: Phase::Measured, load: Some(load), ..Sample::default() }
        };
        let samples = [at(800.0, 0.99), at(900.0, 0.97), at(1000.0, 0.5)];
        let rules = Rules::default();
        assert_eq!(saturation(&samples, Some(1000.0), &rules), Some(Fault::Saturated { busy: 0.99 }));
        assert_eq!(saturation(&samples, None, &rules), None);
        assert_eq!(saturation(&samples, Some(900.0), &rules), None);
    }
}
