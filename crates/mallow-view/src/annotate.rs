//! What the lines of a function weigh.
//!
//! Whose lines they are is decided by the name; the source itself is read by whoever has files.

use crate::short_name;
use mallow_stacks::{StackProfile, Weights};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The weights of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineWeights<W> {
    /// Stacks whose innermost call is at this line.
    pub own: W,
    /// Stacks that go through this line.
    pub under: W,
}

/// A function's lines in one source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotatedFunction<W> {
    /// The function's name, as shown.
    pub function: String,
    /// The source file as the compiler recorded it; none without line tables.
    pub file: Option<String>,
    /// Its lines, by number; 0 for what has none.
    pub lines: BTreeMap<u32, LineWeights<W>>,
    /// The whole function in this file.
    pub whole: LineWeights<W>,
}

/// The functions whose name is `wanted`, or if there is none, those whose name has it as a part; heaviest first.
pub fn annotated<P: StackProfile>(
    profile: &P,
    wanted: &str,
    by: <P::Weights as Weights>::Metric,
) -> Vec<AnnotatedFunction<P::Weights>> {
    use mallow_stacks::Metric;
    let stacks = profile.stacks();
    let names = stacks.locations.iter().flat_map(|location| &location.frames);
    let mut is_wanted = by_name(names.map(|frame| frame.function.as_str()), wanted).into_iter();
    let mut found: Vec<AnnotatedFunction<P::Weights>> = Vec::new();
    let mut known: FxHashMap<(String, Option<&str>), usize> = FxHashMap::default();
    // For each location: which function and line its frames are, innermost first.
    let mut of_locations: Vec<Vec<Option<(usize, u32)>>> = Vec::with_capacity(stacks.locations.len());
    for location in &stacks.locations {
        let places = location.frames.iter().map(|frame| {
            is_wanted.next().filter(|is_wanted| *is_wanted)?;
            let key = (short_name(&frame.function), frame.file.as_deref());
            let function = *known.entry(key).or_insert_with_key(|(function, file)| {
                found.push(AnnotatedFunction {
                    function: function.clone(),
                    file: file.map(str::to_owned),
                    lines: BTreeMap::new(),
                    whole: LineWeights::default(),
                });
                found.len() - 1
            });
            Some((function, frame.line.unwrap_or(0)))
        });
        of_locations.push(places.collect());
    }
    for site in profile.sites() {
        let (mut functions_seen, mut lines_seen) = (Vec::new(), Vec::new());
        let mut is_innermost = true;
        for id in stacks.chain(site.stack) {
            for place in &of_locations[stacks.node(id).location.0 as usize] {
                let is_own = std::mem::take(&mut is_innermost);
                let Some((function, line)) = *place else { continue };
                let at = found[function].lines.entry(line).or_default();
                if is_own {
                    at.own.add(&site.totals);
                }
                if !lines_seen.contains(&(function, line)) {
                    lines_seen.push((function, line));
                    at.under.add(&site.totals);
                }
                let whole = &mut found[function].whole;
                if is_own {
                    whole.own.add(&site.totals);
                }
                if !functions_seen.contains(&function) {
                    functions_seen.push(function);
                    whole.under.add(&site.totals);
                }
            }
        }
    }
    found.retain(|function| by.of_site(&function.whole.under) > 0);
    found.sort_by_key(|function| std::cmp::Reverse(by.of_site(&function.whole.under)));
    found
}

/// Returns for each name whether it matches: those that are `wanted`, or if there is none, those that contain it.
pub(crate) fn by_name<'n>(names: impl Iterator<Item = &'n str>, wanted: &str) -> Vec<bool> {
    let names: Vec<&str> = names.collect();
    let is_exact =
        |name: &&str| *name == wanted || short_name(name) == wanted || ends_with_path(name, wanted);
    let exact: Vec<bool> = names.iter().map(is_exact).collect();
    if exact.contains(&true) {
        return exact;
    }
    names.iter().map(|name| name.contains(wanted) || short_name(name).contains(wanted)).collect()
}

/// `read` matches `app::read`.
fn ends_with_path(name: &str, wanted: &str) -> bool {
    let bare = name.split(['(', '<']).next().unwrap_or(name);
    bare.strip_suffix(wanted).is_some_and(|front| front.ends_with("::") || front.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_base::Frame;
    use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals};
    use mallow_stacks::{Address, ProcessIndex, Site, StacksBuilder};

    #[test]
    fn lines_of_a_function_have_their_weights() {
        let mut builder = StacksBuilder::default();
        let mut location = |function: &str, line| {
            let file = Some("/src/a.c".to_owned());
            builder.location(
                Address::Unknown,
                vec![Frame { function: function.into(), file, line: Some(line), ..Frame::default() }],
            )
        };
        let (main, work5, work7, leaf) =
            (location("main", 1), location("app::work", 5), location("app::work", 7), location("leaf", 9));
        let mut site = |locations: &[_], samples| Site {
            process: ProcessIndex(0),
            stack: builder.stack(locations.iter().copied()),
            totals: CpuTotals { samples, ..CpuTotals::default() },
        };
        let sites =
            vec![site(&[main, work5], 4), site(&[main, work7, leaf], 3), site(&[main, work5, work7], 2)];
        let profile = CpuProfile { sites, stacks: builder.finish(), ..CpuProfile::default() };
        for wanted in ["work", "app::work", "wor"] {
            let found = annotated(&profile, wanted, CpuMetric::Samples);
            assert_eq!(found.len(), 1, "{wanted}");
            let lines: Vec<(u32, u64, u64)> =
                found[0].lines.iter().map(|(line, at)| (*line, at.own.samples, at.under.samples)).collect();
            assert_eq!(lines, [(5, 4, 6), (7, 2, 5)]);
            assert_eq!((found[0].whole.own.samples, found[0].whole.under.samples), (6, 9));
        }
        assert!(annotated(&profile, "nothing", CpuMetric::Samples).is_empty());
    }
}
