//! Folded stacks: one stack per line, frames from the outermost call inwards, separated by semicolons, a blank, a number.
//!
//! They are written by `stackcollapse-*.pl`, inferno, heaptrack and many profilers, and read by `flamegraph.pl`; the
//! format has no specification but <https://github.com/brendangregg/FlameGraph>. The number has no unit. Lines that begin with `# ` are comments, and
//! mallow's own files have one that says it: `# metric: bytes`. Without it the number is interpreted as a number of allocations, and a warning
//! says so.

use super::text_stacks::TextStacks;
use crate::format::METRIC_COMMENT;
use crate::lines::Lines;
use crate::{Format, ImportError, Imported};
use mallow_base::printable;
use mallow_profile::{Availability, Measure, SiteTotals};

/// Parses folded stacks.
pub(super) fn read(mut lines: Lines<'_>) -> Result<Imported, ImportError> {
    let mut stacks = TextStacks::new(Availability::NOTHING);
    let process = stacks.process(0, "");
    let (mut fractions, mut comparisons, mut count) = (0_u64, 0_u64, 0_u64);
    let mut told: Option<String> = None;
    while let Some(line) = lines.next()? {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line.is_empty() || line.starts_with("# ") {
            // Behind the first stack it would change what was already read.
            let word = line.strip_prefix(METRIC_COMMENT).filter(|_| count == 0);
            told = word.map(str::to_owned).or(told);
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
        let totals = totals_of(measure(told.as_deref()).unwrap_or(Measure::Allocations), metric.whole);
        // heaptrack writes a semicolon and a blank after the last frame.
        let names = stack.trim_end().trim_end_matches(';').split(';').map(str::trim);
        stacks.add_names(process, names, &totals);
    }
    if count > 0 && comparisons == count {
        let reason =
            "each stack has two numbers, so it is a comparison; give the two files that it was made of";
        return Err(ImportError::Unsupported { format: Format::Folded, reason: reason.to_owned() });
    }
    let known = stacks.builder().known();
    let is_known = measure(told.as_deref());
    switch_on(is_known.unwrap_or(Measure::Allocations), known);
    let mut warnings = Vec::new();
    match (is_known, told) {
        (Some(_), _) => {}
        (None, None) => warnings.push(String::from(
            "folded stacks have one number without a unit; it is taken as a number of allocations",
        )),
        (None, Some(word)) => warnings.push(format!(
            "the numbers are {}, which is no metric of a heap; they are taken as numbers of allocations",
            printable(&word)
        )),
    }
    if fractions > 0 {
        warnings.push(format!("{fractions} numbers with a fraction were truncated to whole numbers"));
    }
    Ok(stacks.finish(warnings, true))
}

/// Returns the metric of a word; `None` if it is none of a heap's.
fn measure(word: Option<&str>) -> Option<Measure> {
    Measure::of_word(word?)
}

/// Returns a site's metrics of which one is known.
fn totals_of(measure: Measure, value: u64) -> SiteTotals {
    let mut totals = SiteTotals::default();
    match measure {
        Measure::Allocations => totals.allocations = value,
        Measure::Bytes => totals.bytes = value,
        Measure::Peak => totals.peak_bytes = value,
        Measure::Leaked => totals.leaked_bytes = value,
        Measure::Temporary => totals.temporary = value,
    }
    totals
}

fn switch_on(measure: Measure, known: &mut Availability) {
    match measure {
        Measure::Allocations => known.allocations = true,
        Measure::Bytes => known.bytes = true,
        Measure::Peak => known.peak = true,
        Measure::Leaked => known.leaked = true,
        Measure::Temporary => known.temporary = true,
    }
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
