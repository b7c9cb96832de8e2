//! Sentences beside the verdict: what would decide an open one, on which series it is based if that is not the live
//! heap, and where to look for memory without a stack. Nothing is advised that the run has already tried, or that
//! cannot help.

use super::metrics::bytes_in_words;
use crate::grouped;
use mallow_base::Bytes;
use mallow_evidence::{SoakReport, Unrecorded};
use mallow_growth::{Basis, Need, Verdict};
use mallow_view::soak::{Elsewhere, Holder, elsewhere, measured, runtimes};

/// Returns what would decide, one sentence each.
pub fn needs(report: &SoakReport) -> Vec<String> {
    report.conclusion.needs.iter().map(|need| in_words(need, report)).collect()
}

fn in_words(need: &Need, report: &SoakReport) -> String {
    let seen = report.evidence.observations.len() as u64;
    match need {
        Need::Iterations(more) => {
            let all = seen.saturating_add(u64::from(*more));
            format!("more iterations: --iterations {all} (there were {})", grouped(seen))
        }
        Need::Collection if is_go(report) => {
            "a collection before each look, because garbage that waits looks like a leak: a page of the server that calls \
             debug.FreeOSMemory, and --collect with its path"
                .to_owned()
        }
        Need::Collection => {
            "a collection before each look, because garbage that waits looks like a leak: --collect with a signal or \
             a path that makes the server collect"
                .to_owned()
        }
        Need::Recorder => recorder(report),
        Need::Idle => "a longer look at the idle server: --idle 10s".to_owned(),
        Need::Sensitivity { seen, wanted, times } => sensitivity(report, *seen, *wanted, *times),
        Need::OwnTools => format!(
            "the program's own metrics: the rise of resident memory, {} per request, is too small to be judged",
            bytes_in_words(report.conclusion.trend().per_request)
        ),
    }
}

fn recorder(report: &SoakReport) -> String {
    let what = "the live heap, because resident memory alone cannot distinguish a leak from memory that an allocator keeps";
    let how = match report.unrecorded {
        Some(Unrecorded::Running) => "let mallow start the server, without --pid",
        Some(Unrecorded::Unwanted) => "leave out --no-record",
        Some(Unrecorded::Impossible) => "a build that the recorder gets into; the warning below says how",
        None => "a server that is recorded; the warning below says why it was not",
    };
    format!("{what}: {how}")
}

fn sensitivity(report: &SoakReport, seen: f64, wanted: f64, times: Option<f64>) -> String {
    let [seen, wanted] = [seen, wanted].map(bytes_in_words);
    let missed = format!("a leak below {seen} per request would have passed");
    match times.map(|times| times * requests_of_an_iteration(report)) {
        Some(requests) => {
            format!(
                "larger iterations, such as -n {}: {missed}, and {wanted} have to be seen (--sensitivity)",
                two_digits(requests)
            )
        }
        None => format!(
            "a --sensitivity that resident memory can have: {missed}, and {wanted} are below its limit"
        ),
    }
}

/// Returns the median of the requests of an iteration.
fn requests_of_an_iteration(report: &SoakReport) -> f64 {
    let mut requests: Vec<u64> = measured(&report.samples)
        .filter_map(|sample| sample.load.as_ref())
        .map(|load| load.requests)
        .collect();
    requests.sort_unstable();
    requests.get(requests.len() / 2).copied().unwrap_or(1000) as f64
}

/// Rounds up to two digits: a number that people type.
fn two_digits(value: f64) -> u64 {
    let unit = 10f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    ((value / unit).ceil() * unit) as u64
}

/// Returns where to look if the growth is not on the live heap: one sentence each.
pub fn places(report: &SoakReport) -> Vec<String> {
    let conclusion = &report.conclusion;
    let outside = elsewhere(report).filter(|_| conclusion.verdict != Verdict::Invalid);
    let mut places: Vec<String> =
        outside.iter().map(|found| outside_of_heaps(found, conclusion.verdict)).collect();
    if conclusion.verdict == Verdict::Leaking && conclusion.basis == Basis::Stacks {
        places.push(
            "The live heap as a whole is too restless to be judged. What decides are stacks that grow by the same \
             with each request, all the time."
                .to_owned(),
        );
    }
    let is_managed = conclusion.verdict == Verdict::Leaking && conclusion.basis == Basis::ManagedHeap;
    if is_managed && report.snapshots.is_none() {
        places.extend(runtimes(&report.samples).into_iter().filter_map(tool).map(str::to_owned));
    }
    places
}

fn outside_of_heaps(found: &Elsewhere<'_>, verdict: Verdict) -> String {
    let held = match found.live_bytes {
        Some(live) => format!("malloc holds {} of {} resident", Bytes(live), Bytes(found.resident_bytes)),
        None => {
            format!("{} are resident, and nothing tells what malloc holds of it", Bytes(found.resident_bytes))
        }
    };
    let passes =
        matches!(verdict, Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation);
    let why = match found.holder {
        Holder::Go => format!("This is a Go program, whose heap is not malloc's: {held}."),
        Holder::Linked(name) => {
            format!("The program is linked with {name}, which a recorder cannot see: {held}.")
        }
        Holder::OwnMalloc => {
            format!("The program brings a malloc of its own, which a recorder cannot see: {held}.")
        }
        Holder::Unknown => format!("The program's memory is not malloc's: {held}."),
    };
    let place = match found.holder {
        Holder::Go => {
            " What grows is shown by go tool pprof -diff_base of two heap or goroutine profiles (net/http/pprof)."
        }
        Holder::Linked(_) => {
            " A build with the allocator's shared library, or without it, would be judged by its live heap, with lines."
        }
        Holder::OwnMalloc => " A build without it would be judged by its live heap, with lines.",
        Holder::Unknown => {
            " Mappings made by the program, or an allocator of its own, hold the rest; a build that allocates by malloc \
             would be judged by its live heap, with lines."
        }
    };
    format!("{why} So it is judged by resident memory.{}", if passes { "" } else { place })
}

/// Returns what shows the place of a leak on a managed heap.
fn tool(runtime: &str) -> Option<&'static str> {
    match runtime {
        "node" => Some(
            "What leaks is shown by node --heapsnapshot-signal=SIGUSR2: a snapshot before the load and one after it, compared \
             in the memory panel of Chrome's tools.",
        ),
        "python" => Some(
            "What leaks is shown by tracemalloc (PYTHONTRACEMALLOC=10): take_snapshot before the load and after it, then compare_to.",
        ),
        "ruby" => Some(
            "What leaks is shown by ObjectSpace.trace_object_allocations_start and ObjectSpace.dump_all (require \"objspace\"), \
             before the load and after it.",
        ),
        "jvm" => Some("What leaks is shown by jcmd PID GC.class_histogram, before the load and after it."),
        _ => None,
    }
}

fn is_go(report: &SoakReport) -> bool {
    elsewhere(report).is_some_and(|found| found.holder == Holder::Go)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::soak as sample;

    #[test]
    fn a_recorder_is_advised_as_it_can_be_had() {
        let mut report = sample::inconclusive();
        report.conclusion.needs = vec![Need::Recorder];
        let mut advice = |unrecorded| {
            report.unrecorded = unrecorded;
            needs(&report).concat()
        };
        assert!(advice(Some(Unrecorded::Running)).ends_with("let mallow start the server, without --pid"));
        assert!(advice(Some(Unrecorded::Unwanted)).ends_with("leave out --no-record"));
        assert!(!advice(Some(Unrecorded::Impossible)).contains("--pid"), "nobody gave it");
    }

    #[test]
    fn larger_iterations_are_told_by_their_number() {
        let report = sample::clean();
        // 5,000 requests, 3.9 times as many, in two digits.
        assert_eq!(
            sensitivity(&report, 145.0, 40.0, Some(3.9)),
            "larger iterations, such as -n 20000: a leak below 145.0 bytes per request would have passed, and 40.0 bytes have to \
             be seen (--sensitivity)"
        );
        assert_eq!([1.0, 99.0, 100.0, 101.0, 12_301.0].map(two_digits), [1, 99, 100, 110, 13_000]);
    }

    #[test]
    fn go_is_named_with_what_malloc_holds_and_with_a_tool_that_sees_more() {
        let told = places(&sample::go(Verdict::Mappings)).concat();
        assert!(
            told.starts_with("This is a Go program, whose heap is not malloc's: malloc holds 2.00 KiB of"),
            "{told}"
        );
        assert!(told.contains("go tool pprof"), "{told}");
        // A run that passes needs no tool.
        let told = places(&sample::go(Verdict::Clean)).concat();
        assert!(told.contains("judged by resident memory") && !told.contains("pprof"), "{told}");
        assert_eq!(places(&sample::leaking()), [] as [&str; 0]);
    }

    #[test]
    fn whoever_holds_the_memory_is_named_first_and_the_advice_leads_to_a_build_that_is_seen() {
        for (holder, said, told, advised) in [
            (
                None,
                "the memory is not malloc's; it grows: ",
                "The program's memory is not malloc's",
                "allocates by malloc",
            ),
            (
                Some("unknown"),
                "the memory is not malloc's; it grows: ",
                "The program's memory is not malloc's",
                "by malloc",
            ),
            (
                Some("mimalloc"),
                "the memory is mimalloc's, not malloc's; it grows: ",
                "The program is linked with mimalloc",
                "shared library",
            ),
            (
                Some("malloc"),
                "the memory is that of a malloc of its own",
                "The program brings a malloc of its own",
                "without it",
            ),
        ] {
            let mut report = sample::go(Verdict::Mappings);
            report.samples.iter_mut().for_each(|sample| sample.foreign_heap = holder.map(str::to_owned));
            let (headline, place) = (crate::soak::sentence::verdict(&report), places(&report).concat());
            assert!(headline.starts_with(&format!("MAPPINGS: {said}")), "{headline}");
            assert!(place.starts_with(told) && place.contains(advised), "{place}");
        }
        assert_eq!(places(&sample::leaking()), [] as [&str; 0]);
    }
}
