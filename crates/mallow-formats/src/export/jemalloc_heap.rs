//! jemalloc's heap profile, `heap_v2`, preceded by names for jeprof, so that jeprof needs no binaries.
//!
//! The sampling period is written as 0, so that jeprof scales nothing: metrics stay exact. Modules keep their
//! addresses, each in a range of its own ([`Layout`]); a location without an address gets one in a mapping with a
//! name that says so.

use super::layout::{Layout, is_named};
use crate::import::{NO_ADDRESS, NO_STACK};
use mallow_profile::left_out;
use mallow_profile::{Location, LocationId, Measure, ModuleId, Profile, SiteTotals, StackId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The start of synthetic addresses, below all real ones.
const MADE_UP_START: u64 = 0x1000;
/// Names are looked up at an address and at the one before it.
const MADE_UP_STEP: u64 = 0x10;

/// Writes a profile.
pub(super) fn write(profile: &Profile, measure: Measure, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let live = Live::of(profile, measure);
    let is_accumulated = profile.known.allocations && profile.known.bytes;
    let mut metrics: BTreeMap<Option<StackId>, SiteTotals> = BTreeMap::new();
    for site in &profile.sites {
        let mut totals = site.totals;
        if !is_accumulated {
            // As jemalloc writes it without prof_accum: both or none of them.
            (totals.allocations, totals.bytes) = (0, 0);
        }
        metrics.entry(site.stack).or_default().add(&totals);
    }
    metrics.retain(|_, totals| live.has_metrics(totals));
    let addresses = Addresses::of(profile, metrics.keys().copied());
    write_names(profile, &addresses, out)?;
    let mut all = SiteTotals::default();
    metrics.values().for_each(|totals| all.add(totals));
    writeln!(out, "heap_v2/0\n  t*: {}", live.line(&all))?;
    for (stack, totals) in &metrics {
        write!(out, "@")?;
        for address in addresses.of_stack(profile, *stack) {
            write!(out, " {address:#x}")?;
        }
        writeln!(out, "\n  t*: {}", live.line(totals))?;
    }
    write_mappings(profile, &addresses, out)?;
    let mut warnings = live.warnings();
    let mut held = vec![live.word()];
    held.extend(is_accumulated.then_some("allocations"));
    warnings.extend(left_out::sentence(profile, "a jemalloc heap profile", &held));
    if profile
        .stacks
        .locations
        .iter()
        .any(|location| location.frames.iter().any(|frame| frame.file.is_some()))
    {
        warnings.push(String::from("a jemalloc heap profile has no place for source lines"));
    }
    Ok(warnings)
}

/// The metric that is written as live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Live {
    /// What was live at the end.
    Leaked,
    /// What was live at the peak, because it was requested.
    Peak,
    /// What was live at the peak, because nothing else is known.
    PeakOnly,
}

impl Live {
    fn of(profile: &Profile, measure: Measure) -> Live {
        match (profile.known.leaked, profile.known.peak) {
            (_, true) if measure == Measure::Peak => Live::Peak,
            (false, true) => Live::PeakOnly,
            _ => Live::Leaked,
        }
    }

    fn word(self) -> &'static str {
        if self == Live::Leaked { "leaked" } else { "peak" }
    }

    fn of_site(self, totals: &SiteTotals) -> (u64, u64) {
        match self {
            Live::Leaked => (totals.leaked_blocks, totals.leaked_bytes),
            Live::Peak | Live::PeakOnly => (totals.peak_blocks, totals.peak_bytes),
        }
    }

    fn has_metrics(self, totals: &SiteTotals) -> bool {
        self.of_site(totals) != (0, 0) || (totals.allocations, totals.bytes) != (0, 0)
    }

    fn line(self, totals: &SiteTotals) -> String {
        let (blocks, bytes) = self.of_site(totals);
        format!("{blocks}: {bytes} [{}: {}]", totals.allocations, totals.bytes)
    }

    fn warnings(self) -> Vec<String> {
        let peak_only =
            "what was live at the end is not known; the file has what was live at the peak instead";
        if self == Live::PeakOnly { vec![peak_only.to_owned()] } else { Vec::new() }
    }
}

/// An address for every location on the stacks, and the keys with which jeprof looks up their names.
struct Addresses {
    layout: Layout,
    by_location: FxHashMap<LocationId, u64>,
    names: BTreeMap<u64, LocationId>,
    /// The address of sites without a stack.
    no_stack: u64,
    made_up_end: u64,
}

impl Addresses {
    fn of(profile: &Profile, stacks: impl Iterator<Item = Option<StackId>>) -> Addresses {
        let mut addresses = Addresses {
            layout: Layout::of(&profile.stacks),
            by_location: FxHashMap::default(),
            names: BTreeMap::new(),
            no_stack: MADE_UP_START,
            made_up_end: MADE_UP_START + MADE_UP_STEP,
        };
        let mut used = BTreeSet::new();
        for stack in stacks {
            used.extend(locations(profile, stack));
        }
        for id in used {
            let address = addresses.free_address(profile, id);
            addresses.names.insert(address, id);
            addresses.names.insert(address - 1, id);
            addresses.by_location.insert(id, address);
        }
        addresses
    }

    /// Returns the location's own address, or a synthetic one if it has none or if another location has the same key.
    fn free_address(&mut self, profile: &Profile, id: LocationId) -> u64 {
        let is_free =
            |address: &u64| !self.names.contains_key(address) && !self.names.contains_key(&(address - 1));
        let own = self.layout.address(&profile.stacks.locations[id.0 as usize]);
        if let Some(address) = own.filter(|address| *address > 0).filter(is_free) {
            return address;
        }
        loop {
            let address = self.made_up_end;
            self.made_up_end += MADE_UP_STEP;
            if !self.names.contains_key(&address) && !self.names.contains_key(&(address - 1)) {
                return address;
            }
        }
    }

    fn of_stack(&self, profile: &Profile, stack: Option<StackId>) -> Vec<u64> {
        match stack {
            None => vec![self.no_stack],
            Some(_) => locations(profile, stack).map(|id| self.by_location[&id]).collect(),
        }
    }
}

/// Returns the locations of a stack, innermost first.
fn locations(profile: &Profile, stack: Option<StackId>) -> impl Iterator<Item = LocationId> {
    profile.stacks.chain(stack).map(|id| profile.stacks.node(id).location)
}

/// Writes jeprof's names: the caller first, separated by two dashes. If there are no names at all, jeprof has to look into the binaries.
fn write_names(profile: &Profile, addresses: &Addresses, out: &mut dyn Write) -> io::Result<()> {
    let named: Vec<(u64, &Location)> = addresses
        .names
        .iter()
        .map(|(address, id)| (*address, &profile.stacks.locations[id.0 as usize]))
        .filter(|(_, location)| is_named(location))
        .collect();
    if named.is_empty() {
        return Ok(());
    }
    let program = profile.recording.command.first().map_or("unknown", String::as_str);
    writeln!(out, "--- symbol\nbinary={}", one_line(program))?;
    writeln!(out, "{:#018x} {NO_STACK}", addresses.no_stack)?;
    for (address, location) in named {
        let names: Vec<String> =
            location.frames.iter().rev().map(|frame| jeprof_name(&frame.function)).collect();
        writeln!(out, "{address:#018x} {}", names.join("--"))?;
    }
    writeln!(out, "---\n--- heap")
}

/// Returns a name without jeprof's separator: no two dashes, and none at an end.
fn jeprof_name(function: &str) -> String {
    let mut name = one_line(function);
    while name.contains("--") {
        name = name.replace("--", "- -");
    }
    if name.starts_with('-') {
        name.insert(0, ' ');
    }
    if name.ends_with('-') {
        name.push(' ');
    }
    if name.trim().is_empty() { String::from("[unknown]") } else { name }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn write_mappings(profile: &Profile, addresses: &Addresses, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nMAPPED_LIBRARIES:")?;
    let (start, end) = (MADE_UP_START, addresses.made_up_end.next_multiple_of(0x1000));
    writeln!(out, "{start:08x}-{end:08x} ---p 00000000 00:00 0 {NO_ADDRESS}")?;
    for (index, module) in profile.stacks.modules.iter().enumerate() {
        if let Some((start, end)) =
            addresses.layout.place(ModuleId(index as u32)).filter(|(start, end)| start < end)
        {
            writeln!(out, "{start:08x}-{end:08x} r-xp 00000000 00:00 0 {}", one_line(&module.path))?;
        }
    }
    Ok(())
}
