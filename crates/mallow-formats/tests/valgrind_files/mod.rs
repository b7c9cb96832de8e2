//! What the tests of DHAT's and massif's files share: fixtures, and profiles as tables that can be compared.

use mallow_formats::export::{self, ExportFormat, ExportOptions};
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::{
    Address, Availability, Measure, Process, ProcessIndex, Profile, ProfileBuilder, Recording, SiteTotals,
    StackId, TimeUnit,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the path of a fixture.
pub(crate) fn fixture_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// Returns a fixture's bytes.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixture_path(name)).expect("the fixture is there")
}

/// Returns a fixture's profile.
pub(crate) fn imported(name: &str, format: Format) -> Imported {
    read_as(&fixture(name), format).expect("the fixture is whole")
}

/// Returns a profile as a file, with the writer's warnings.
pub(crate) fn exported(profile: &Profile, format: ExportFormat) -> (String, Vec<String>) {
    let mut bytes = Vec::new();
    let options = ExportOptions { measure: Measure::Bytes };
    let warnings = export::write(profile, format, &options, &mut bytes).expect("memory takes everything");
    (String::from_utf8(bytes).expect("the file is text"), warnings)
}

/// Formats a stack as `item~ fill main`, innermost first up to `main`; `~` follows inlined calls.
pub(crate) fn stack_of(profile: &Profile, stack: Option<StackId>) -> String {
    let mut words = Vec::new();
    for frame in profile.frames(stack) {
        words.push(format!("{}{}", frame.function, if frame.inlined { "~" } else { "" }));
        if frame.function == "main" {
            break;
        }
    }
    words.join(" ")
}

/// Returns the metrics by stack, named by [`stack_of`]. Equal stacks are added up.
pub(crate) fn sites(profile: &Profile) -> BTreeMap<String, SiteTotals> {
    let mut sites: BTreeMap<String, SiteTotals> = BTreeMap::new();
    for site in &profile.sites {
        sites.entry(stack_of(profile, site.stack)).or_default().add(&site.totals);
    }
    sites
}

/// One site of a synthetic profile: its frames' functions, innermost first, and its metrics.
pub(crate) type Made = (Vec<u8>, SiteTotals);

/// Returns a profile of one process in which each function has one address; process totals are the sums of the sites.
pub(crate) fn made(sites: &[Made], known: Availability, time_unit: TimeUnit) -> Profile {
    let command = vec!["./made".to_owned(), "up".to_owned()];
    let recording = Recording { command, duration_us: 9_000_000, time_unit, ..Recording::default() };
    let mut builder = ProfileBuilder::new(recording, known);
    let process = Process {
        pid: 7,
        command: "./made up".to_owned(),
        ended_us: 9_000_000,
        peak_us: 5_000_000,
        ..Process::default()
    };
    let process = builder.add_process(process);
    for (functions, totals) in sites {
        add_made(&mut builder, process, functions, totals);
    }
    builder.finish()
}

/// Adds a site as [`made`] does.
pub(crate) fn add_made(
    builder: &mut ProfileBuilder,
    process: ProcessIndex,
    functions: &[u8],
    totals: &SiteTotals,
) {
    let mut locations: Vec<_> = functions
        .iter()
        .map(|function| {
            let frame = mallow_base::Frame {
                function: format!("f{function}"),
                file: Some("made.c".to_owned()),
                line: Some(u32::from(*function) + 1),
                ..mallow_base::Frame::default()
            };
            builder.location(Address::Anonymous { avma: 0x1000 + u64::from(*function) }, vec![frame])
        })
        .collect();
    locations.reverse();
    let stack = builder.stack(locations);
    builder.add_site(process, stack, totals);
    let sums = &mut builder.process(process).totals;
    sums.allocations = sums.allocations.saturating_add(totals.allocations);
    sums.bytes = sums.bytes.saturating_add(totals.bytes);
    sums.peak_bytes = sums.peak_bytes.saturating_add(totals.peak_bytes);
    sums.peak_blocks = sums.peak_blocks.saturating_add(totals.peak_blocks);
    sums.leaked_bytes = sums.leaked_bytes.saturating_add(totals.leaked_bytes);
    sums.leaked_blocks = sums.leaked_blocks.saturating_add(totals.leaked_blocks);
}

/// Returns damaged bytes: truncated, flipped, or with a repeated piece.
pub(crate) fn damaged(bytes: &[u8], kind: u8, at: usize, with: u8) -> Vec<u8> {
    let at = at % bytes.len().max(1);
    let mut bytes = bytes.to_vec();
    match kind % 4 {
        0 => bytes.truncate(at),
        1 => bytes[at] = with,
        2 => bytes.insert(at, with),
        _ => {
            let piece = bytes[at..(at + usize::from(with)).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
    }
    bytes
}
