//! `mallow diff`: what changed between two profiles, and whether that is within limits.

mod compat;
mod heap_or_cpu;
pub(crate) mod request;

use crate::args::DiffForm;
use crate::{exit_code, opening, output};
use heap_or_cpu::{Kind, of_kind};
use mallow_json::diff::{DiffJson, Diffed};
use mallow_query::{AnyFile, Failure, PartRequest, ProfileFile};
use mallow_stacks::{MetricOf, Weights};
use mallow_text::diff::DiffWords;
use mallow_view::FrameVisibility;
use mallow_view::diff::{Comparison, DiffInput, DiffOptions, DiffReport, Limit, ShareVerdict, Verdict};
use mallow_view::filter::Expression;
use request::Diff;
use std::path::Path;

/// Compares two profiles.
pub(crate) fn run(request: &Diff) -> Result<u8, Failure> {
    if let Some(compat) = request.compat {
        return compat::run(compat, &request.before, &request.after);
    }
    let mut before = opening::profile(&request.before, request.attribution)?;
    let mut after = opening::profile(&request.after, request.attribution)?;
    for file in [&mut before, &mut after] {
        file.keep(request.process.as_ref())?;
        if let Some(filter) = &request.options.filter
            && !is_of_stacks(filter)
        {
            file.keep_part(&PartRequest { filter: Some(filter.clone()), ..PartRequest::default() })?;
        }
    }
    match (before, after) {
        (AnyFile::Heap(mut before), AnyFile::Heap(mut after)) => {
            for side in [&mut before, &mut after] {
                request.scripts.keep_in(&mut side.profile.stacks);
            }
            warn([(&before.path, &before.warnings), (&after.path, &after.warnings)]);
            warn_of_rules(&before, &after);
            compare(request, [before.side(), after.side()], request.options.shown)
        }
        (AnyFile::Cpu(mut before), AnyFile::Cpu(mut after)) => {
            for side in [&mut before, &mut after] {
                request.scripts.keep_in(&mut side.profile.stacks);
            }
            warn([(&before.path, &before.warnings), (&after.path, &after.warnings)]);
            // The innermost frame is the answer, even if it is the allocator.
            let shown = match request.options.shown {
                FrameVisibility::All => FrameVisibility::All,
                _ => FrameVisibility::WithoutStart,
            };
            compare(request, [before.side(), after.side()], shown)
        }
        _ => Err(Failure::new(format!(
            "{} and {} cannot be compared: one is a heap profile, the other a CPU profile.",
            request.before.display(),
            request.after.display()
        ))),
    }
}

/// Returns whether a filter tests only stacks. Then it is applied to both sides of a site, whose functions may have
/// different names. A filter on anything else is applied before the comparison.
pub(crate) fn is_of_stacks(filter: &Expression) -> bool {
    !filter.needs_events() && !filter.asks_for_processes() && !filter.asks_for_requests()
}

fn compare<P>(request: &Diff, sides: [DiffInput<'_, P>; 2], shown: FrameVisibility) -> Result<u8, Failure>
where
    P: Diffed<Weights: Weights<Metric: DiffWords>> + Kind,
{
    let files = [(sides[0].file, sides[0].profile), (sides[1].file, sides[1].profile)];
    let by = P::choose_by(request.by, &files)?;
    let DiffOptions { depth, min, filter, .. } = request.options.clone();
    let filter = filter.filter(is_of_stacks);
    let options = DiffOptions { by, shown, depth, min, filter };
    let comparison = Comparison::of(sides[0].profile, sides[1].profile, &options);
    let limits = of_kind::<P>(&request.fail_on, &files)?;
    let mut verdicts = verdicts::<P>(request, &limits, &comparison, &files)?;
    let mut shares = P::shares(&request.fail_on, [sides[0].profile, sides[1].profile])?;
    let is_complete = sides.iter().all(|side| side.complete);
    if !is_complete {
        verdicts.iter_mut().for_each(|verdict| verdict.is_broken = None);
        shares.iter_mut().for_each(|verdict| verdict.is_broken = None);
    }
    let (per, limit, comparison) = (request.per, request.limit, &comparison);
    let (verdicts, shares) = (&verdicts[..], &shares[..]);
    let diff = DiffReport { sides, options: &options, per, limit, comparison, verdicts, shares };
    write(&diff, request)?;
    let of_metrics = print_verdicts(verdicts, request);
    let of_shares = told_of_shares(shares, is_complete);
    Ok(if exit_code::FAILED == of_shares || of_metrics == exit_code::FINE { of_shares } else { of_metrics })
}

/// As [`print_verdicts`], for shares of functions.
fn told_of_shares(verdicts: &[ShareVerdict], is_complete: bool) -> u8 {
    for verdict in verdicts.iter().filter(|verdict| verdict.is_broken != Some(false)) {
        output::tell(&format!("mallow: {}\n", mallow_text::diff::share(verdict, is_complete)));
    }
    match verdicts {
        _ if verdicts.iter().any(|verdict| verdict.is_broken == Some(true)) => exit_code::FAILED,
        _ if verdicts.iter().any(|verdict| verdict.is_broken.is_none()) => exit_code::INCONCLUSIVE,
        _ => exit_code::FINE,
    }
}

/// Prints which limits are exceeded or cannot be judged, and returns the exit code.
fn print_verdicts<M: DiffWords>(verdicts: &[Verdict<M>], request: &Diff) -> u8 {
    let mut code = exit_code::FINE;
    for verdict in verdicts {
        let sentence = match verdict.is_broken {
            Some(false) => continue,
            Some(true) => mallow_text::diff::broken(verdict, request.per),
            None => mallow_text::diff::undecided(verdict),
        };
        output::tell(&format!("mallow: {sentence}\n"));
        code = if verdict.is_broken.is_some() { exit_code::FAILED } else { exit_code::INCONCLUSIVE };
    }
    code
}

fn warn<'a>(sides: [(&'a std::path::PathBuf, &'a Vec<String>); 2]) {
    for (path, warnings) in sides {
        let sentences: Vec<String> =
            warnings.iter().map(|sentence| format!("{}: {sentence}", path.display())).collect();
        output::warn(&sentences);
    }
}

fn warn_of_rules(before: &ProfileFile, after: &ProfileFile) {
    let versions =
        [before, after].map(|side| side.profile.recording.counting_version).map(|version| version.max(1));
    if versions[0] != versions[1] {
        let sentence = format!(
            "the two were counted by different rules, version {} and {}; metrics may differ for that reason.",
            versions[0], versions[1]
        );
        output::warn(&[sentence]);
    }
}

fn write<P>(diff: &DiffReport<'_, P>, request: &Diff) -> Result<(), Failure>
where
    P: Diffed<Weights: Weights<Metric: DiffWords>>,
{
    let output = &request.output;
    match request.form {
        DiffForm::Text => output.page(&mallow_text::diff::text(diff, output.style())),
        DiffForm::Markdown => output.page(&mallow_text::diff::markdown(diff)),
        DiffForm::Json => output.json(&DiffJson::of(diff)),
    }
}

/// Compares the totals with every limit. A limit on a metric that a file does not have cannot be judged.
fn verdicts<P: Kind>(
    request: &Diff,
    limits: &[Limit<MetricOf<P>>],
    comparison: &Comparison<'_, P::Weights>,
    files: &[(&Path, &P)],
) -> Result<Vec<Verdict<MetricOf<P>>>, Failure> {
    let judge = |limit: &Limit<MetricOf<P>>| {
        P::choose(Some(limit.measure), files)?;
        limit
            .judge(comparison, request.per)
            .ok_or_else(|| Failure::new(format!("{limit} cannot be judged: it is in no total.")))
    };
    limits.iter().map(judge).collect()
}
