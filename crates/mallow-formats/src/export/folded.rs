//! Folded stacks: one stack per line, frames from the outermost call inwards, separated by semicolons, a blank, a metric.
//!
//! The metric is the requested one; a format without a unit cannot say which, so a comment in the first line does (`# metric: bytes`), which other
//! readers pass over. Names are complete and all frames are included; `mallow flamegraph --folded` writes short names without plumbing.

use super::rooted::{Rooted, name, of_line};
use crate::format::METRIC_COMMENT;
use mallow_stacks::{Metric, StackProfile};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Writes a profile.
pub(super) fn write<M: Metric>(
    profile: &impl StackProfile<Weights = M::Weights>,
    metric: M,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let mut warnings = Vec::new();
    if !profile.knows(metric) {
        warnings.push(format!(
            "the profile does not contain the metric {}, so there are no stacks",
            metric.word()
        ));
    }
    let rooted = Rooted::of(profile);
    let (mut lines, mut places) = (Vec::<(String, u64)>::new(), FxHashMap::<String, usize>::default());
    for site in profile.sites() {
        let value = metric.of_site(&site.totals);
        if value == 0 {
            continue;
        }
        let mut names: Vec<String> =
            rooted.outermost_first(site).iter().map(|frame| of_line(&name(frame))).collect();
        if names.is_empty() {
            names.push(String::from("(no stack was taken)"));
        }
        // Stacks that differ only in lines or addresses are merged here.
        let names = names.join(";");
        match places.get(&names) {
            Some(&at) => lines[at].1 = lines[at].1.saturating_add(value),
            None => {
                places.insert(names.clone(), lines.len());
                lines.push((names, value));
            }
        }
    }
    writeln!(out, "{METRIC_COMMENT}{}", metric.word())?;
    for (names, value) in lines {
        writeln!(out, "{names} {value}")?;
    }
    warnings.push(format!(
        "folded stacks have one number without a unit; it is {}, which the first line says",
        metric.word()
    ));
    let mut frames = profile.stacks().locations.iter().flat_map(|location| &location.frames);
    if frames.any(|frame| frame.file.is_some()) {
        warnings.push(String::from("folded stacks have no place for source lines"));
    }
    Ok(warnings)
}
