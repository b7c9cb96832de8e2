//! The verdict in sentences: what it is, and what follows from it.

use super::metrics::{bytes_in_words, long_time, size};
use crate::{grouped, plural};
use mallow_base::{Bytes, Percent};
use mallow_evidence::SoakReport;
use mallow_growth::{Basis, Fault, Verdict};
use mallow_view::soak::{Holder, Pace, elsewhere, pace};

/// Formats `LEAKING: live heap grows by 16.0 bytes per request (15.9 to 16.1), 1.38 GiB a day at this rate.`
pub fn verdict(report: &SoakReport) -> String {
    let verdict = report.conclusion.verdict;
    let what = match verdict {
        Verdict::Leaking => growth(report),
        Verdict::Mappings if report.conclusion.is_elsewhere => {
            format!("it grows: {}", growth(report))
        }
        Verdict::Mappings => {
            format!("memory grows that the allocator does not manage: {}", growth(report))
        }
        Verdict::Clean => clean(report),
        Verdict::Plateau => plateau(report),
        Verdict::Retention => retention(report),
        Verdict::Fragmentation => fragmentation(report),
        Verdict::GrowsWhenIdle => idle(report),
        Verdict::Inconclusive => "what was seen does not decide whether it leaks".to_owned(),
        Verdict::Invalid => invalid(report),
    };
    format!("{}: {}{what}.", verdict.word(), recognised(report))
}

/// Formats `the memory is mimalloc's, not malloc's; `, if live heap is not what is judged.
fn recognised(report: &SoakReport) -> String {
    let is_judged = matches!(report.conclusion.basis, Basis::Resident | Basis::Mapped);
    let found = elsewhere(report).filter(|_| is_judged && report.conclusion.verdict != Verdict::Invalid);
    found.map(|found| format!("the memory is {}; ", whose(found.holder))).unwrap_or_default()
}

/// Formats `mimalloc's, not malloc's`.
fn whose(holder: Holder<'_>) -> String {
    match holder {
        Holder::Go => "Go's, not malloc's".to_owned(),
        Holder::Linked(name) => format!("{name}'s, not malloc's"),
        Holder::OwnMalloc => "that of a malloc of its own, which is not seen".to_owned(),
        Holder::Unknown => "not malloc's".to_owned(),
    }
}

/// Formats `16.0 bytes per request (15.9 to 16.1), 1.38 GiB a day at this rate; 512 MiB are reached after 9 h 2 min`.
fn growth(report: &SoakReport) -> String {
    let trend = report.conclusion.trend();
    let of = match report.conclusion.basis {
        Basis::LiveHeap | Basis::Stacks => "",
        Basis::ManagedHeap => " of the managed heap",
        Basis::Mapped => " of files and shared memory",
        Basis::Resident => " of resident memory",
    };
    let growth = bytes_in_words(trend.per_request);
    let number = |value: f64| {
        let text = bytes_in_words(value);
        text.strip_suffix(" bytes").map(str::to_owned).unwrap_or(text)
    };
    let between = format!("{} to {}", number(trend.per_request_low), number(trend.per_request_high));
    let mut text = format!("{growth}{of} per request ({between})");
    if report.conclusion.by_age {
        text.push_str(" in each worker, until it is replaced");
        return text;
    }
    if let Some(pace) = pace(report) {
        text.push_str(&format!(", {} a day at this rate", size(pace.bytes_per_day)));
        text.push_str(&until(&pace));
    }
    text
}

fn until(pace: &Pace) -> String {
    match pace.limit {
        Some((limit, Some(seconds))) if seconds < 1.0 => format!("; {} are reached", Bytes(limit)),
        Some((limit, Some(seconds))) => {
            format!("; {} are reached after {}", Bytes(limit), long_time(seconds))
        }
        _ => String::new(),
    }
}

/// Returns `resident memory` if only that shows what the program holds.
fn memory(report: &SoakReport) -> &'static str {
    if report.conclusion.is_elsewhere { "resident memory" } else { "memory" }
}

fn clean(report: &SoakReport) -> String {
    format!("{} does not grow{}", memory(report), sight(report, "; "))
}

/// Returns the detection limit; if it holds for the heap only, also that of the other memory.
fn sight(report: &SoakReport, lead: &str) -> String {
    let Some(least) = report.conclusion.detectable_per_request else { return String::new() };
    let mut text = format!("{lead}a leak of {} per request would have been seen", bytes_in_words(least));
    if let Some(least) = report.conclusion.detectable_outside_per_request {
        text.push_str(&format!(", outside of the heap one of {}", bytes_in_words(least)));
    }
    text
}

fn plateau(report: &SoakReport) -> String {
    let memory = memory(report);
    let mut text = match &report.conclusion.plateau {
        Some(plateau) => format!(
            "{memory} rose by {} and then stopped, nine tenths of it within {} requests",
            size(plateau.rise_bytes),
            grouped(plateau.after_requests)
        ),
        None => format!("{memory} rose and then stopped"),
    };
    text.push_str(&sight(report, "; from there on "));
    text
}

/// Returns what trimming released at the last observation, and what stayed.
fn retention(report: &SoakReport) -> String {
    let conclusion = &report.conclusion;
    let (resident, trimmed) = (conclusion.resident, conclusion.trimmed.unwrap_or(conclusion.resident));
    format!(
        "live heap does not grow; the allocator keeps freed memory, {} of {} resident, and releases it on request",
        size(resident.last - trimmed.last),
        size(resident.last)
    )
}

fn fragmentation(report: &SoakReport) -> String {
    let conclusion = &report.conclusion;
    let kept = conclusion.trimmed.unwrap_or(conclusion.resident);
    let live = conclusion.heap.map(|heap| format!(" for {} of live heap", size(heap.last)));
    format!(
        "live heap does not grow, but {} stay resident{} and the allocator cannot release them",
        size(kept.last),
        live.unwrap_or_default()
    )
}

fn idle(report: &SoakReport) -> String {
    match report.conclusion.idle_per_hour {
        Some((growth, low, high)) => format!(
            "memory grows by {} an hour ({} to {}) while the server gets no requests",
            size(growth),
            size(low),
            size(high)
        ),
        None => "memory grows while the server gets no requests".to_owned(),
    }
}

fn invalid(report: &SoakReport) -> String {
    let faults: Vec<String> = report.evidence.faults.iter().map(fault).collect();
    if faults.is_empty() { "the run was no test".to_owned() } else { faults.join("; ") }
}

/// Returns why a run is invalid.
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::Errors { failed, requests, most } => format!(
            "{} of {} failed ({}), most by {most}, so this was not the load that was meant",
            grouped(*failed),
            plural(*requests, "request"),
            Percent { part: *failed, whole: *requests }
        ),
        Fault::Saturated { busy } => format!(
            "the load generator was busy for {:.0}% of its time and may have been the limit; give it more threads or set a --rate",
            busy * 100.0
        ),
        Fault::Unread { process, cause } => format!(
            "the memory and the descriptors of {process} cannot be read ({cause}): it does not allow that (PR_SET_DUMPABLE), or has other rights \
             than mallow, so run mallow as root"
        ),
        Fault::Lost { what } => what.clone(),
        Fault::Died { how, requests } => {
            format!("the server ended before it was told to ({how}), after {}", plural(*requests, "request"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::soak as sample;

    #[test]
    fn a_leak_is_told_in_units_that_people_plan_with() {
        assert_eq!(
            verdict(&sample::leaking()),
            "LEAKING: 16.0 bytes per request (15.9 to 16.1), 6.44 GiB a day at this rate; 512 MiB are reached after 1 h 47 min."
        );
    }

    #[test]
    fn every_verdict_is_a_sentence() {
        for report in sample::all() {
            let sentence = verdict(&report);
            assert!(
                sentence.ends_with('.') && !sentence.contains("..") && !sentence.contains('?'),
                "{sentence}"
            );
        }
    }
}
