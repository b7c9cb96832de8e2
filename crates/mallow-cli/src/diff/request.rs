//! What a command line of `mallow diff` means.

use crate::args::{LowBy, LowDiff, LowRealloc};
use crate::request::Booking;
use mallow_view::diff::{DiffOptions, Limit};
use mallow_view::{Measure, Shown};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Compare two profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
    pub(crate) booking: Booking,
    /// None for allocations, or else what both files know.
    pub(crate) by: Option<Measure>,
    /// What to compare, but for the measure.
    pub(crate) options: DiffOptions,
    pub(crate) per: NonZeroU64,
    pub(crate) limit: Option<usize>,
    pub(crate) fail_on: Vec<Limit>,
    pub(crate) form: DiffForm,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffForm {
    Text,
    Json,
    Markdown,
}

impl From<LowDiff> for Diff {
    fn from(low: LowDiff) -> Self {
        let form = match (low.json, low.markdown) {
            (true, _) => DiffForm::Json,
            (false, true) => DiffForm::Markdown,
            (false, false) => DiffForm::Text,
        };
        Diff {
            before: low.before,
            after: low.after,
            booking: match low.realloc {
                LowRealloc::Own => Booking::Own,
                LowRealloc::Origin => Booking::Origin,
            },
            by: low.by.map(Measure::from),
            options: DiffOptions {
                by: Measure::Allocations,
                shown: if low.all_frames { Shown::All } else { Shown::WithoutPlumbing },
                depth: low.depth.map(|depth| depth as usize),
                min: low.min,
                filter: low.filter,
            },
            per: low.per,
            limit: low.limit,
            fail_on: low.fail_on,
            form,
        }
    }
}

impl From<LowBy> for Measure {
    fn from(low: LowBy) -> Self {
        match low {
            LowBy::Allocations => Measure::Allocations,
            LowBy::Bytes => Measure::Bytes,
            LowBy::Peak => Measure::Peak,
            LowBy::Leaked => Measure::Leaked,
            LowBy::Temporary => Measure::Temporary,
        }
    }
}
