//! Converts arguments that were typed before the kind of the files was known into those of heap or CPU profiles.

use crate::args::{AnyLimit, AnyMeasure};
use mallow_cpu::{CpuMetric, CpuProfile};
use mallow_profile::Profile;
use mallow_query::{Failure, choose};
use mallow_stacks::{MetricOf, StackProfile};
use mallow_view::Measure;
use mallow_view::diff::{Limit, ShareLimit, ShareVerdict};
use std::path::Path;

/// A kind of profile.
pub(super) trait Kind: StackProfile + Sized {
    /// Returns the requested metric, or the first that every file has.
    fn choose(asked: Option<MetricOf<Self>>, files: &[(&Path, &Self)]) -> Result<MetricOf<Self>, Failure>;

    /// Converts a measure that was typed, if it is of this kind.
    fn measure(typed: AnyMeasure) -> Option<MetricOf<Self>>;

    /// Converts a limit that was typed, if it is of this kind.
    fn limit(typed: &AnyLimit) -> Option<Limit<MetricOf<Self>>>;

    /// Compares the shares of functions with limits, if this kind of profile has shares.
    fn shares(limits: &[AnyLimit], sides: [&Self; 2]) -> Result<Vec<ShareVerdict>, Failure>;

    /// What such a file contains.
    const TELLS: &'static str;

    /// Whether a function has a share of its samples.
    const HAS_SHARES: bool;

    /// As [`Kind::choose`], for a typed measure.
    fn choose_by(typed: Option<AnyMeasure>, files: &[(&Path, &Self)]) -> Result<MetricOf<Self>, Failure> {
        let asked =
            typed.map(|typed| Self::measure(typed).ok_or_else(|| strange::<Self>(typed.word(), files)));
        Self::choose(asked.transpose()?, files)
    }
}

impl Kind for Profile {
    const TELLS: &'static str = "what allocated";
    const HAS_SHARES: bool = false;

    fn choose(asked: Option<Measure>, files: &[(&Path, &Self)]) -> Result<Measure, Failure> {
        choose(asked, Measure::ALL, files)
    }

    fn measure(typed: AnyMeasure) -> Option<Measure> {
        match typed {
            AnyMeasure::Heap(measure) => Some(measure),
            AnyMeasure::Cpu(_) => None,
        }
    }

    fn limit(typed: &AnyLimit) -> Option<Limit> {
        match typed {
            AnyLimit::Heap(limit) => Some(limit.clone()),
            AnyLimit::Cpu(_) | AnyLimit::Share(_) => None,
        }
    }

    /// Such limits were refused earlier, as limits of another kind of profile.
    fn shares(_: &[AnyLimit], _: [&Self; 2]) -> Result<Vec<ShareVerdict>, Failure> {
        Ok(Vec::new())
    }
}

impl Kind for CpuProfile {
    const TELLS: &'static str = "where time went";
    const HAS_SHARES: bool = true;

    fn choose(asked: Option<CpuMetric>, files: &[(&Path, &Self)]) -> Result<CpuMetric, Failure> {
        let mut metrics = asked.map_or_else(|| CpuMetric::ALL.to_vec(), |asked| vec![asked]).into_iter();
        let known = metrics.find(|metric| files.iter().all(|(_, profile)| profile.known.knows(*metric)));
        known.ok_or_else(|| {
            let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
            let what = asked.map_or("any figure", mallow_stacks::Metric::subject);
            Failure::new(format!("not all of {} tell {what}.", names.join(" and ")))
        })
    }

    fn measure(typed: AnyMeasure) -> Option<CpuMetric> {
        match typed {
            AnyMeasure::Cpu(metric) => Some(metric),
            AnyMeasure::Heap(_) => None,
        }
    }

    fn limit(typed: &AnyLimit) -> Option<Limit<CpuMetric>> {
        match typed {
            AnyLimit::Cpu(limit) => Some(limit.clone()),
            AnyLimit::Heap(_) | AnyLimit::Share(_) => None,
        }
    }

    fn shares(limits: &[AnyLimit], [before, after]: [&Self; 2]) -> Result<Vec<ShareVerdict>, Failure> {
        let on_shares = limits.iter().filter_map(|limit| match limit {
            AnyLimit::Share(limit) => Some(limit),
            _ => None,
        });
        let judged = |limit: &ShareLimit| {
            limit.judge(before, after).ok_or_else(|| {
                Failure::new(format!(
                    "neither profile has a function {}, which the limit {limit} is on.",
                    limit.function
                ))
            })
        };
        on_shares.map(judged).collect()
    }
}

/// Returns the limits on metrics, if all that were typed fit the files.
pub(super) fn of_kind<P: Kind>(
    typed: &[AnyLimit],
    files: &[(&Path, &P)],
) -> Result<Vec<Limit<MetricOf<P>>>, Failure> {
    let limit = |limit: &AnyLimit| {
        let word = match limit {
            AnyLimit::Heap(limit) => limit.measure.word(),
            AnyLimit::Cpu(limit) => limit.measure.word(),
            AnyLimit::Share(limit) => limit.word(),
        };
        P::limit(limit).ok_or_else(|| strange::<P>(word, files))
    };
    let is_on_metric = |limit: &&AnyLimit| !P::HAS_SHARES || !matches!(limit, AnyLimit::Share(_));
    typed.iter().filter(is_on_metric).map(limit).collect()
}

fn strange<P: Kind>(word: &str, files: &[(&Path, &P)]) -> Failure {
    let name = files.first().map(|(path, _)| path.display().to_string()).unwrap_or_default();
    Failure::new(format!("{name} tells {} and nothing of {word}.", P::TELLS))
}
