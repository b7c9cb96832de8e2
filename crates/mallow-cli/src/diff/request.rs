//! Interprets the command line of `mallow diff`.

use crate::args::{AnyLimit, AnyMeasure, Compat, DiffForm, LowDiff};
use crate::destination::Destination;
use mallow_profile::ReallocAttribution;
use mallow_query::ProcessChoice;
use mallow_view::diff::DiffOptions;
use mallow_view::{Measure, ScriptFrames};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Compare two profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
    pub(crate) attribution: ReallocAttribution,
    /// `None` for the first that both files have.
    pub(crate) by: Option<AnyMeasure>,
    /// The process in both; `None` for all.
    pub(crate) process: Option<ProcessChoice>,
    /// Whether lines of scripts are compared, and the interpreter around them.
    pub(crate) scripts: ScriptFrames,
    /// The settings of the comparison, except for the measure.
    pub(crate) options: DiffOptions,
    pub(crate) per: NonZeroU64,
    pub(crate) limit: Option<usize>,
    pub(crate) fail_on: Vec<AnyLimit>,
    pub(crate) form: DiffForm,
    pub(crate) output: Destination,
    /// The output of another tool's comparison instead of ours; then only the files matter.
    pub(crate) compat: Option<Compat>,
}

impl From<LowDiff> for Diff {
    fn from(low: LowDiff) -> Self {
        let form = if low.markdown { DiffForm::Markdown } else { low.form.form() };
        Diff {
            before: low.before.unwrap_or_default(),
            after: low.after.unwrap_or_default(),
            attribution: low.realloc,
            by: low.by,
            process: low.process.process,
            scripts: (&low.frames).into(),
            options: DiffOptions {
                by: Measure::Allocations,
                shown: low.frames.into(),
                depth: low.depth.map(|depth| depth as usize),
                min: low.min,
                filter: low.expression.filter,
            },
            per: low.per,
            limit: low.limit,
            fail_on: low.fail_on,
            form,
            output: low.form.output.into(),
            compat: low.compat,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LowArgs;
    use crate::request::Request;
    use clap::Parser;
    use mallow_view::FrameVisibility;

    fn diff(line: &str) -> Result<Diff, String> {
        let words = std::iter::once("mallow").chain(line.split_whitespace());
        match LowArgs::try_parse_from(words).map(Request::from).map_err(|error| error.to_string())? {
            Request::Diff(diff) => Ok(diff),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn without_flags_everything_is_compared() -> Result<(), String> {
        let diff = diff("diff a b")?;
        assert_eq!((diff.before, diff.after), ("a".into(), "b".into()));
        assert_eq!((diff.by, diff.options, diff.per), (None, DiffOptions::default(), NonZeroU64::MIN));
        assert_eq!((diff.limit, diff.fail_on, diff.form), (None, Vec::new(), DiffForm::Text));
        Ok(())
    }

    #[test]
    fn every_flag_has_its_meaning() -> Result<(), String> {
        let diff = diff(
            "diff a b --by leaked --per 1000 --min 5 --filter load --depth 8 --limit 3 --all-frames --realloc origin \
             --fail-on allocations>+1% --fail-on leaked>0 --markdown --process main",
        )?;
        let options = DiffOptions {
            by: Measure::Allocations,
            shown: FrameVisibility::All,
            depth: Some(8),
            min: 5,
            filter: "load".parse().ok(),
        };
        assert_eq!((diff.options, diff.by), (options, Some(AnyMeasure::Heap(Measure::Leaked))));
        assert_eq!(
            (diff.per.get(), diff.limit, diff.attribution),
            (1000, Some(3), ReallocAttribution::Origin)
        );
        let limits = ["allocations>+1%", "leaked>0"].map(|text| text.parse::<AnyLimit>());
        assert_eq!(diff.fail_on.into_iter().map(Ok).collect::<Vec<_>>(), limits);
        assert_eq!((diff.form, diff.process), (DiffForm::Markdown, Some(ProcessChoice::Main)));
        Ok(())
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "diff a",
            "diff a b --per 0",
            "diff a b --depth 0",
            "diff a b --json --markdown",
            "diff a b --by size",
        ] {
            assert!(diff(line).is_err(), "{line}");
        }
        let refused = diff("diff a b --fail-on allocations>1%").err().unwrap_or_default();
        assert!(refused.contains("write allocations>+1%"), "{refused}");
    }
}
