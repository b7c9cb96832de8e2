//! The text of `heaptrack_print`: the top stacks by four metrics, and totals.
//!
//! A stack occurs in several sections; each has another metric of it. The text contains only the top stacks (10
//! groups of 5 entries by default), and bytes with three or four digits; a warning says so. The data file itself
//! contains everything. Source: the text of heaptrack 1.4, see `fixtures/heaptrack-print`.

mod sections;

pub(crate) use sections::{Item, Items, Metrics};

use super::text_stacks::TextStacks;
use crate::lines::Lines;
use crate::{ImportError, Imported};
use mallow_base::Frame;
use mallow_profile::{Availability, SiteTotals};
use rustc_hash::FxHashMap;

/// What the sections contained so far.
#[derive(Default)]
struct Reported {
    /// The index of each stack in `sites`.
    places: FxHashMap<Vec<Frame>, usize>,
    sites: Vec<(Vec<Frame>, BySection)>,
    totals: Vec<(String, String)>,
    omitted: u64,
    /// Whether inlined calls were left out, because it is unknown which entry they belong to.
    inlined: bool,
}

/// A stack's metrics, by section. Within one section, stacks that look the same are added up.
#[derive(Default)]
struct BySection {
    /// Calls according to three sections.
    calls: [u64; 3],
    /// Bytes at the peak according to two sections.
    peak_bytes: [u64; 2],
    leaked_bytes: u64,
    temporary: u64,
}

/// Parses the text.
pub(super) fn read(lines: Lines<'_>) -> Result<Imported, ImportError> {
    let mut told = Reported::default();
    let mut items = Items::new(lines);
    let mut known = Availability::NOTHING;
    items.for_each(|item| match item {
        Item::Entry(metrics, frames) => {
            known.allocations |= !matches!(metrics, Metrics::Leaked { .. });
            known.peak |= matches!(metrics, Metrics::Calls { .. } | Metrics::Peak { .. });
            known.leaked |= matches!(metrics, Metrics::Leaked { .. });
            known.temporary |= matches!(metrics, Metrics::Temporary { .. });
            told.add(metrics, frames);
        }
        Item::Total(name, value) => told.totals.push((name, value)),
        Item::Omitted => told.omitted += 1,
        Item::Inlined => told.inlined = true,
    })?;
    if told.sites.is_empty() {
        return Err(
            items.expected("a stack with its calls, such as `12 calls with 3.40K peak consumption from:`")
        );
    }
    Ok(told.profile(known))
}

impl Reported {
    fn add(&mut self, metrics: Metrics, frames: Vec<Frame>) {
        let sites = &mut self.sites;
        let place = *self.places.entry(frames).or_insert_with_key(|frames| {
            sites.push((frames.clone(), BySection::default()));
            sites.len() - 1
        });
        let site = &mut sites[place].1;
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        match metrics {
            Metrics::Calls { calls, peak_bytes } => {
                add(&mut site.calls[0], calls);
                add(&mut site.peak_bytes[0], peak_bytes);
            }
            Metrics::Peak { peak_bytes, calls } => {
                add(&mut site.calls[1], calls);
                add(&mut site.peak_bytes[1], peak_bytes);
            }
            Metrics::Leaked { leaked_bytes } => add(&mut site.leaked_bytes, leaked_bytes),
            Metrics::Temporary { temporary, calls } => {
                add(&mut site.calls[2], calls);
                add(&mut site.temporary, temporary);
            }
        }
    }

    fn profile(self, known: Availability) -> Imported {
        let mut stacks = TextStacks::new(known);
        let command = self.total("Debuggee command was").unwrap_or_default().to_owned();
        stacks.builder().recording().command = command.split_whitespace().map(str::to_owned).collect();
        stacks.builder().recording().duration_us = self.total("total runtime").map_or(0, microseconds);
        let process = stacks.process(0, &command);
        for (frames, site) in &self.sites {
            let totals = SiteTotals {
                allocations: site.calls.into_iter().max().unwrap_or(0),
                peak_bytes: site.peak_bytes.into_iter().max().unwrap_or(0),
                leaked_bytes: site.leaked_bytes,
                temporary: site.temporary,
                ..SiteTotals::default()
            };
            stacks.add(process, frames.iter().cloned(), &totals);
        }
        let counted = |name: &str| self.total(name)?.split(' ').next()?.parse::<u64>().ok();
        let measured = |name: &str| sections::bytes(self.total(name)?);
        let totals = &mut stacks.builder().process(process).totals;
        totals.allocations = counted("calls to allocation functions").unwrap_or(totals.allocations);
        totals.temporary = counted("temporary memory allocations").unwrap_or(totals.temporary);
        totals.peak_bytes = measured("peak heap memory consumption").unwrap_or(totals.peak_bytes);
        totals.leaked_bytes = measured("total memory leaked").unwrap_or(totals.leaked_bytes);
        let warnings = self.warnings(totals.allocations);
        stacks.finish(warnings, true)
    }

    fn total(&self, name: &str) -> Option<&str> {
        self.totals.iter().find(|(total, _)| total == name).map(|(_, value)| value.as_str())
    }

    fn warnings(&self, allocations: u64) -> Vec<String> {
        let mut warnings = vec![String::from(
            "heaptrack_print rounds bytes to two decimals; heaptrack's own data file has them exactly",
        )];
        let of_sites = self
            .sites
            .iter()
            .fold(0_u64, |sum, (_, site)| sum.saturating_add(site.calls.into_iter().max().unwrap_or(0)));
        if self.omitted > 0 || of_sites < allocations {
            warnings.push(format!(
                "heaptrack_print showed stacks for {of_sites} of {allocations} calls; print all of them with -n 100000 -s 100000"
            ));
        }
        if self.inlined {
            warnings.push(String::from(
                "heaptrack_print merges stacks of one innermost frame and shows the calls inlined there of one of them: where it \
                 merged several, these are left out; print each stack by itself with -m 0",
            ));
        }
        warnings
    }
}

/// Parses `0.11s` into microseconds.
fn microseconds(text: &str) -> u64 {
    text.trim_end_matches('s').parse().map_or(0, |seconds: f64| (seconds * 1e6).round() as u64)
}
