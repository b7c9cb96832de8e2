//! Folded stacks: one stack per line, frames from the outermost call inwards, separated by semicolons, a blank, a number.
//!
//! They are written by `stackcollapse-*.pl`, inferno, heaptrack and many profilers, and read by `flamegraph.pl`; the
//! format has no specification but <https://github.com/brendangregg/FlameGraph>. The number has no unit: it is
//! interpreted as a number of allocations, and a warning says so. Lines that begin with `# ` are comments.

use super::text_stacks::{TextStacks, named};
use crate::lines::Lines;
use crate::{Format, ImportError, Imported};
use mallow_profile::{Availability, SiteTotals};

const KNOWN: Availability = Availability { allocations: true, ..Availability::NOTHING };

/// Parses folded stacks.
pub(super) fn read(mut lines: Lines<'_>) -> Result<Imported, ImportError> {
    let mut stacks = TextStacks::new(KNOWN);
    let process = stacks.process(0, "");
    let (mut fractions, mut comparisons, mut count) = (0_u64, 0_u64, 0_u64);
    while let Some(line) = lines.next_text()? {
        let line = line.trim();
        if line.is_empty() || line.starts_with("# ") {
            continue;
        }
        let Some((stack, metric)) =
            line.rsplit_once(' ').and_then(|(stack, text)| Some((stack, metric(text)?)))
        else {
            return Err(lines.expected("frames with semicolons between them, a blank and a number"));
        };
        count += 1;
        fractions += u64::from(metric.is_cut);
        comparisons += u64::from(
            stack.trim_end().rsplit_once(' ').is_some_and(|(_, text)| self::metric(text).is_some()),
        );
        let totals = SiteTotals { allocations: metric.whole, ..SiteTotals::default() };
        // heaptrack writes a semicolon and a blank after the last frame.
        let frames = stack.trim_end().trim_end_matches(';').split(';').rev().map(|name| named(name.trim()));
        stacks.add(process, frames, &totals);
    }
    if count > 0 && comparisons == count {
        let reason =
            "each stack has two numbers, so it is a comparison; give the two files that it was made of";
        return Err(ImportError::Unsupported { format: Format::Folded, reason: reason.to_owned() });
    }
    let mut warnings = vec![String::from(
        "folded stacks have one number without a unit; it is taken as a number of allocations",
    )];
    if fractions > 0 {
        warnings.push(format!("{fractions} numbers with a fraction were truncated to whole numbers"));
    }
    Ok(stacks.finish(warnings, true))
}

struct Metric {
    whole: u64,
    /// Whether a fraction was truncated.
    is_cut: bool,
}

/// Parses a number, with a fraction or without.
fn metric(text: &str) -> Option<Metric> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    // Only a damaged file has a number that does not fit.
    let whole = whole.parse().unwrap_or(u64::MAX);
    Some(Metric { whole, is_cut: fraction.bytes().any(|digit| digit != b'0') })
}
