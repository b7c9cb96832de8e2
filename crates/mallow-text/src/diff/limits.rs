//! Sentences about limits.

use super::{percent, signed, value};
use crate::grouped;
use mallow_stacks::Metric;
use mallow_stats::Proportion;
use mallow_view::diff::{ShareVerdict, Verdict};
use std::num::NonZeroU64;

/// Returns the sentence for a limit that is exceeded.
pub fn broken<M: Metric>(verdict: &Verdict<M>, per: NonZeroU64) -> String {
    let (measure, change) = (verdict.limit.measure, verdict.change);
    let share = percent(change);
    let share = if share.is_empty() { share } else { format!(", {share}") };
    let each = if per == NonZeroU64::MIN { "" } else { ", per operation" };
    format!(
        "the limit {} is broken: {} before, {} after, {}{share}{each}.",
        verdict.limit,
        value(measure, change.before, per),
        value(measure, change.after, per),
        signed(measure, change.difference(), per)
    )
}

/// Returns the sentence for a limit on a function's share that is exceeded or cannot be judged.
pub fn share(verdict: &ShareVerdict, is_complete: bool) -> String {
    let ShareVerdict { limit, samples, interval, is_broken } = verdict;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let side = |side: Proportion| format!("{} of {} samples", grouped(side.part), grouped(side.whole));
    let shares = format!(
        "{} before ({}), {} after ({})",
        percent(samples[0].share()),
        side(samples[0]),
        percent(samples[1].share()),
        side(samples[1])
    );
    let bounds = interval.map(|(low, high)| {
        let what = if limit.is_relative {
            "which is between {} and {} points more"
        } else {
            "which may be {} to {} of all"
        };
        let unit =
            |share: f64| if limit.is_relative { format!("{:+.1}", share * 100.0) } else { percent(share) };
        what.replacen("{}", &unit(low), 1).replacen("{}", &unit(high), 1)
    });
    match (is_broken, bounds) {
        _ if !is_complete => format!("the limit {limit} cannot be judged: a profile is not complete."),
        (_, None) => format!("the limit {limit} cannot be judged: a profile has no samples."),
        (Some(_), Some(bounds)) => format!("the limit {limit} is broken: {shares}, {bounds}."),
        (None, Some(bounds)) => format!(
            "the limit {limit} cannot be judged: {shares}, {bounds}; more samples would decide (-F, or a longer run)."
        ),
    }
}

/// Returns the sentence for a limit that cannot be judged.
pub fn undecided<M: Metric>(verdict: &Verdict<M>) -> String {
    format!("the limit {} cannot be judged: a profile is not complete.", verdict.limit)
}
