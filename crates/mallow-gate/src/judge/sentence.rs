//! Why a metric is not fine, and what to do about it, as people read it.

use super::compare::Confidence;
use super::times;
use crate::limit::{Limit, Limits};
use crate::measurement::{Measurement, Metric};
use crate::result::{Conclusion, Position, Window};
use mallow_base::grouped;

/// A difference by operation, such as `+1.000`.
pub fn per_operation(before: u64, after: u64, ops: u64) -> String {
    let difference = i128::from(after) - i128::from(before);
    format!("{:+.3}", difference as f64 / ops.max(1) as f64)
}

/// Returns the sentence about one metric, if any.
pub(super) fn of(
    conclusion: &Conclusion,
    confidence: Confidence,
    measurement: &Measurement,
    limits: &Limits,
) -> Vec<String> {
    if conclusion.metric == Metric::Wall {
        let is_fine = confidence != Confidence::Flaky && conclusion.position != Position::Above;
        let said = (!is_fine).then(|| times::sentence(&measurement.runs, window(conclusion).max));
        return Vec::from_iter(said);
    }
    match confidence {
        Confidence::Flaky => vec![flaky(conclusion, measurement)],
        Confidence::FewOperations => vec![few_operations(conclusion)],
        Confidence::Sure | Confidence::Noted => match conclusion.position {
            Position::Above => above(conclusion, confidence, measurement, limits),
            Position::Below => vec![below(conclusion, measurement, limits)],
            Position::Within | Position::Free if confidence == Confidence::Noted => vec![apart(conclusion)],
            Position::Within | Position::Free => Vec::new(),
        },
    }
}

fn above(
    conclusion: &Conclusion,
    confidence: Confidence,
    measurement: &Measurement,
    limits: &Limits,
) -> Vec<String> {
    let Window { max, .. } = window(conclusion);
    let (word, spread) = (conclusion.metric.word(), &conclusion.spread);
    let allowed = match limits.of(conclusion.metric) {
        Some(_) => format!("its limit allows {}", grouped(max)),
        None => format!("{} allowed", grouped(max)),
    };
    if spread.min <= max {
        // Fewer than one per run: the sum over the runs is shown.
        let values = measurement.runs.iter().filter_map(|run| run.of(conclusion.metric));
        let (sum, count) = values
            .filter(|value| *value > max)
            .fold((0u64, 0u64), |(sum, count), value| (sum.saturating_add(value), count + 1));
        return vec![format!(
            "{word}: {} in all, left in {count} of {} runs, again and again; {allowed} per run.",
            grouped(sum),
            spread.runs
        )];
    }
    let mut sentences =
        vec![format!("{word}: {}; {allowed}.", value_and_difference(conclusion, measurement))];
    if confidence == Confidence::Noted {
        sentences.push(apart(conclusion));
    }
    sentences
}

fn below(conclusion: &Conclusion, measurement: &Measurement, limits: &Limits) -> String {
    let Window { min, .. } = window(conclusion);
    let word = conclusion.metric.word();
    let cure = match limits.of(conclusion.metric) {
        Some(Limit::Absolute { .. }) => {
            format!("its limit expects at least {}: lower it to keep the win", grouped(min))
        }
        _ => format!("keep the win with `--update --only {}`", measurement.name),
    };
    format!("{word}: {}; {cure}.", value_and_difference(conclusion, measurement))
}

/// `75,001 per run, 1,001 more than the baseline's 74,000 (+1.001 per operation)`.
fn value_and_difference(conclusion: &Conclusion, measurement: &Measurement) -> String {
    let value = conclusion.spread.min;
    let Some(reference) = conclusion.reference else { return format!("{} per run", grouped(value)) };
    let comparison = match value.cmp(&reference) {
        std::cmp::Ordering::Greater => format!("{} more than", grouped(value - reference)),
        std::cmp::Ordering::Less => format!("{} fewer than", grouped(reference - value)),
        std::cmp::Ordering::Equal => "as".to_owned(),
    };
    let by_operation = match measurement.ops {
        Some(ops) if ops > 0 && value != reference => {
            format!(" ({} per operation)", per_operation(reference, value, ops))
        }
        _ => String::new(),
    };
    format!("{} per run, {comparison} the baseline's {}{by_operation}", grouped(value), grouped(reference))
}

fn flaky(conclusion: &Conclusion, measurement: &Measurement) -> String {
    let spread = &conclusion.spread;
    let ends = format!("from {} to {}", grouped(spread.min), grouped(spread.max));
    let sites = if measurement.runs.iter().any(|run| !run.sites.is_empty()) {
        "; the sites that vary are listed"
    } else {
        ""
    };
    format!(
        "{}: the runs differ too much to be judged, {ends}, the least in {} of {}{sites}.",
        conclusion.metric.word(),
        spread.at_min,
        spread.runs
    )
}

fn apart(conclusion: &Conclusion) -> String {
    let Conclusion { spread, metric, .. } = conclusion;
    format!(
        "{}: the runs differ, from {} to {}; {} of {} have the least, which is judged.",
        metric.word(),
        grouped(spread.min),
        grouped(spread.max),
        spread.at_min,
        spread.runs
    )
}

fn few_operations(conclusion: &Conclusion) -> String {
    let Conclusion { spread, metric, .. } = conclusion;
    format!(
        "{}: {} of {} runs left up to {} behind, the others less. These are too few operations to tell a leak from what is \
         kept once: do at least 10 operations per run, or more runs.",
        metric.word(),
        spread.runs - spread.at_min,
        spread.runs,
        grouped(spread.max)
    )
}

fn window(conclusion: &Conclusion) -> Window {
    conclusion.window.unwrap_or(Window { min: 0, max: u64::MAX })
}

/// There is neither a limit nor a baseline for a metric.
pub(super) fn missing(name: &str, metric: Metric, limits: &Limits) -> String {
    let what = match metric {
        Metric::Allocations => "allocations",
        _ => "objects",
    };
    let without_end = match limits.of(metric) {
        Some(Limit::Absolute { .. }) => " (a limit without `max` lets everything pass)",
        _ => "",
    };
    format!(
        "There is no baseline and no limit for its {what}{without_end}; `--update --only {name}` makes the baseline."
    )
}

/// A metric has a limit and was not measured.
pub(super) fn not_measured(metric: Metric) -> String {
    let why = match metric {
        Metric::PeakRss => "the kernel reports none for a process with so few pages",
        _ => "no run reports it",
    };
    format!("{}: it was not measured, as {why}, so its limit cannot be judged.", metric.word())
}

/// A limit is relative to a baseline that does not have the metric, or there is no baseline.
pub(super) fn without_reference(name: &str, metric: Metric) -> String {
    format!(
        "No baseline tells its {}, from which a limit is to be counted; `--update --only {name}` makes the baseline.",
        metric.word()
    )
}

pub(super) fn other_operations(before: Option<u64>, after: Option<u64>, name: &str) -> String {
    let words = |ops: Option<u64>| match ops {
        Some(1) => "1 operation per run".to_owned(),
        Some(ops) => format!("{} operations per run", grouped(ops)),
        None => "an unknown number of operations per run".to_owned(),
    };
    format!(
        "Its baseline is for {}, and the test makes {}, so they cannot be compared; `--update --only {name}` \
         replaces the baseline.",
        words(before),
        words(after)
    )
}

pub(super) fn other_environment(differences: &[String]) -> String {
    format!(
        "There is a baseline only for another environment: {}. Counts differ between environments; `--ignore-environment` compares \
         nevertheless, `--update` makes a baseline for this one.",
        differences.join("; ")
    )
}
