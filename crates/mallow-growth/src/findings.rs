//! What is said beside the verdict: descriptors, threads, throughput, the managed heap, the user's own limits.

use crate::metrics::Metrics;
use crate::series::{centre, median, points_of, thinned};
use crate::window::{WINDOW_MIN, window_of};
use crate::{Evidence, Finding, Observation, Rules};

/// More descriptors than this over the window are worth a word, when they keep growing.
const DESCRIPTORS_MIN: f64 = 4.0;

/// The same for threads.
const THREADS_MIN: f64 = 2.0;

/// The last fifth's rate over the first's below which the server became slower.
const THROUGHPUT_RATIO_MIN: f64 = 0.8;

/// Fewer rates than this say nothing: two in each fifth.
const RATES_MIN: usize = 10;

pub(crate) fn findings(evidence: &Evidence, metrics: &Metrics, rules: &Rules) -> Vec<Finding> {
    let seen = &evidence.observations;
    let descriptors = counted(seen, DESCRIPTORS_MIN, |seen| seen.descriptors)
        .map(|(more, per_request)| Finding::Descriptors { more, per_request });
    let threads = counted(seen, THREADS_MIN, |seen| seen.threads)
        .map(|(more, per_request)| Finding::Threads { more, per_request });
    let managed = metrics.managed.as_ref().filter(|managed| managed.grows());
    let managed = managed.map(|managed| Finding::Managed { per_request: managed.trend.per_request });
    let found = [
        managed,
        descriptors,
        threads,
        throughput(seen),
        growth_limit(metrics, rules),
        retained_limit(metrics, rules),
    ];
    found.into_iter().flatten().collect()
}

/// Returns the growth of a count: over the window, and per request. Counts have many equal neighbours, so the
/// interval of their slope often ends at 0; the thirds of the window decide whether it continues.
fn counted(
    seen: &[Observation],
    more_min: f64,
    metric: impl Fn(&Observation) -> Option<u64>,
) -> Option<(f64, f64)> {
    let points = points_of(seen, metric)?;
    let window = thinned(&points[window_of(&points)..]);
    if window.len() < WINDOW_MIN {
        return None;
    }
    let third = window.len() / 3;
    let thirds = [&window[..third], &window[third..window.len() - third], &window[window.len() - third..]];
    let [first, second, last] = thirds.map(centre);
    let goes_on = second.y > first.y && last.y - second.y >= (second.y - first.y) / 2.0;
    let per_request = (last.y - first.y) / (last.x - first.x);
    let more = per_request * (window[window.len() - 1].x - window[0].x);
    (goes_on && more > more_min).then_some((more, per_request))
}

fn throughput(seen: &[Observation]) -> Option<Finding> {
    let rates: Vec<f64> =
        seen.iter().filter_map(|seen| seen.requests_per_second).filter(|rate| rate.is_finite()).collect();
    if rates.len() < RATES_MIN {
        return None;
    }
    let fifth = rates.len() / 5;
    let first = median(rates[..fifth].iter().copied());
    let last = median(rates[rates.len() - fifth..].iter().copied());
    let ratio = last / first;
    (ratio < THROUGHPUT_RATIO_MIN).then_some(Finding::Throughput { ratio })
}

/// Growth above the user's limit, when it is growth at all and not noise.
fn growth_limit(metrics: &Metrics, rules: &Rules) -> Option<Finding> {
    let allowed = rules.growth_per_request_max?;
    let trend = metrics.judged().1.trend;
    let is_exceeded = trend.per_request > allowed && trend.per_request_low > 0.0;
    let measured = trend.per_request;
    is_exceeded.then_some(Finding::Limit { of: "growth in bytes per request", measured, allowed })
}

fn retained_limit(metrics: &Metrics, rules: &Rules) -> Option<Finding> {
    let allowed = rules.retained_bytes_max? as f64;
    let trend = metrics.kept().trend;
    let measured = trend.last - trend.first;
    (measured > allowed).then_some(Finding::Limit { of: "retained bytes", measured, allowed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(fill: impl Fn(u64, &mut Observation)) -> Vec<Finding> {
        let observation = |i: u64| {
            let mut seen =
                Observation { requests: 1_000 * i, resident_bytes: 1 << 24, ..Observation::default() };
            fill(i, &mut seen);
            seen
        };
        let evidence = Evidence { observations: (1..=20).map(observation).collect(), ..Evidence::default() };
        let rules = Rules {
            growth_per_request_max: Some(10.0),
            retained_bytes_max: Some(100_000),
            ..Rules::default()
        };
        findings(&evidence, &Metrics::of(&evidence, &rules), &rules)
    }

    #[test]
    fn descriptors_and_threads_that_keep_growing_are_found() {
        let found = run(|i, seen| {
            seen.descriptors = Some(10 + i);
            seen.threads = Some(4 + i / 2);
        });
        let [Finding::Descriptors { more, per_request }, Finding::Threads { more: threads, .. }] = found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!((more, per_request, threads), (10.0, 0.001, 5.0));
    }

    #[test]
    fn a_pool_that_is_full_and_a_few_more_are_not() {
        let found = run(|i, seen| {
            seen.descriptors = Some(10 + i.min(8));
            seen.threads = Some(4 + u64::from(i > 17));
        });
        assert_eq!(found, []);
    }

    #[test]
    fn a_slower_server_is_found() {
        let found = run(|i, seen| seen.requests_per_second = Some(1_000.0 - 20.0 * i as f64));
        // Medians of 980..920 and of 660..600.
        assert_eq!(found, [Finding::Throughput { ratio: 630.0 / 950.0 }]);
        assert_eq!(run(|i, seen| seen.requests_per_second = Some(1_000.0 - 5.0 * i as f64)), []);
    }

    #[test]
    fn limits_of_the_user_hold_for_growth_and_for_what_is_kept() {
        let found = run(|i, seen| seen.live_bytes = Some(11_000 * i));
        let of = "growth in bytes per request";
        assert_eq!(found, [Finding::Limit { of, measured: 11.0, allowed: 10.0 }]);
        let found = run(|i, seen| seen.trimmed_bytes = Some(10_000 * i));
        assert_eq!(found, [Finding::Limit { of: "retained bytes", measured: 190_000.0, allowed: 100_000.0 }]);
    }

    #[test]
    fn a_growing_managed_heap_is_named() {
        let found = run(|i, seen| seen.managed_bytes = Some(9_000 * i));
        assert_eq!(found, [Finding::Managed { per_request: 9.0 }]);
    }
}
