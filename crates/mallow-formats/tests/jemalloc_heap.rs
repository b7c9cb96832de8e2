//! jemalloc's heap profiles, compared with jeprof in both directions.

use crate::oracles::{Judged, fixture, fixture_path, hard_profile, jeprof, table_of};
use mallow_formats::export::{self, ExportFormat, ExportOptions};
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::{Address, Availability, Measure, Profile};
use std::io::Write;

fn read(bytes: &[u8]) -> Imported {
    read_as(bytes, Format::JemallocHeap).unwrap()
}

fn exported(profile: &Profile, measure: Measure) -> (Vec<u8>, Vec<String>) {
    let mut bytes = Vec::new();
    let options = ExportOptions { measure };
    let warnings = export::write(profile, ExportFormat::JemallocHeap, &options, &mut bytes).unwrap();
    (bytes, warnings)
}

fn stored(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A site, with its caller's file and address there, and its metrics: live blocks and bytes, allocations and their bytes.
type Row = (String, u64, [u64; 4]);

fn rows(profile: &Profile) -> Vec<Row> {
    let row = |site: &mallow_profile::Site| {
        let node = profile.stacks.nodes[site.stack.unwrap().0 as usize];
        let Address::InModule { module, svma } = profile.stacks.locations[node.location.0 as usize].address
        else {
            panic!("the fixture's callers are all in files");
        };
        let totals = site.totals;
        let metrics = [totals.leaked_blocks, totals.leaked_bytes, totals.allocations, totals.bytes];
        (profile.stacks.modules[module.0 as usize].path.clone(), svma, metrics)
    };
    profile.sites.iter().map(row).collect()
}

#[test]
fn each_line_is_scaled_by_its_own_mean() {
    let imported = read(&fixture("jemalloc/accumulated.heap"));
    let app = || String::from("/srv/demo/heaps");
    // Samples were 163, 241, 407 and 1: times 1 / (1 - exp(-mean / 16384)). The program leaked 8,000 blocks of 777
    // bytes, which jemalloc rounds to 896; kept 1,500 of 3,000 blocks of 2,000 bytes, which it rounds to 2,048; and
    // 500 of 10,000, which it rounds to 10,240.
    assert_eq!(
        rows(&imported.profile),
        [
            (app(), 0x124f, [1386, 2_841_174, 2737, 5_612_626]),
            (app(), 0x11b2, [514, 5_329_858, 514, 5_329_858]),
            (app(), 0x11f8, [7632, 6_852_672, 7632, 6_852_672]),
            ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30".into(), 0xa57ba, [1, 82_494, 1, 82_494]),
        ]
    );
    let totals = imported.profile.totals();
    assert_eq!((totals.leaked_blocks, totals.leaked_bytes), (9533, 15_106_198));
    assert_eq!((totals.allocations, totals.bytes, totals.frees), (10_884, 17_877_650, 1351));
    let threads: Vec<_> =
        imported.profile.processes[0].threads.iter().map(|thread| (thread.tid, thread.allocations)).collect();
    assert_eq!(threads, [(0, 10_370), (1, 514)]);
    assert_eq!(imported.profile.recording.command, ["/srv/demo/heaps"]);
    assert!(imported.complete);
    assert_eq!(
        imported.warnings,
        [
            "metrics are estimates: jemalloc sampled one allocation in about every 16384 bytes",
            "sizes are what jemalloc set aside, its size classes, and not what the program asked for",
        ]
    );
}

#[test]
fn without_accumulation_only_what_is_live_is_known() {
    let imported = read(&fixture("jemalloc/live.heap"));
    assert_eq!(
        imported.profile.known,
        Availability { leaked: true, leaked_blocks: true, ..Availability::NOTHING }
    );
    assert!(imported.warnings[1].contains("prof_accum:true"), "{:?}", imported.warnings);
    assert!(imported.profile.processes[0].threads.is_empty());
    assert!(
        imported.profile.totals().allocations == 0 && imported.profile.totals().leaked_bytes > 14_000_000
    );
}

#[test]
fn jeprof_agrees_on_a_profile_of_jemalloc() {
    let imported = read(&fixture("jemalloc/symbolized.heap"));
    let file = fixture_path("jemalloc/symbolized.heap");
    let judged: [Judged; 4] = [
        ("--inuse_space", |totals| totals.leaked_bytes),
        ("--inuse_objects", |totals| totals.leaked_blocks),
        ("--alloc_space", |totals| totals.bytes),
        ("--alloc_objects", |totals| totals.allocations),
    ];
    for (kind, metric) in judged {
        let (ours, theirs) = (table_of(&imported.profile, metric), jeprof(&file, kind));
        assert!(ours.contains_key("leak") && ours.contains_key("cache") && ours.contains_key("work"));
        for (name, (flat, cumulative)) in theirs {
            // jeprof's names of libraries' functions lack versions and arguments.
            let Some(own) = ours.get(&name) else { continue };
            // jeprof truncates sums, mallow rounds each of the at most three lines in one.
            assert!(flat.abs_diff(own.0) <= 1 && cumulative.abs_diff(own.1) <= 3, "{kind} {name}: {own:?}");
        }
    }
}

#[test]
fn jeprof_shows_an_export_exactly() {
    let profile = hard_profile();
    let (bytes, warnings) = exported(&profile, Measure::Leaked);
    let file = stored(&bytes);
    let judged: [Judged; 4] = [
        ("--inuse_space", |totals| totals.leaked_bytes),
        ("--inuse_objects", |totals| totals.leaked_blocks),
        ("--alloc_space", |totals| totals.bytes),
        ("--alloc_objects", |totals| totals.allocations),
    ];
    for (kind, metric) in judged {
        let mut ours = table_of(&profile, metric);
        let no_stack: u64 =
            profile.sites.iter().filter(|s| s.stack.is_none()).map(|s| metric(&s.totals)).sum();
        ours.insert("[no stack was taken]".into(), (no_stack, no_stack));
        if let Some(metrics) = ours.remove("Cursor::operator--") {
            ours.insert("Cursor::operator- -".into(), metrics);
        }
        // The address of code without a name, as jeprof writes it: less one, to be in the call.
        if let Some(metrics) = ours.remove("0x7f0012345678") {
            ours.insert("0x00007f0012345677".into(), metrics);
        }
        assert_eq!(without_inline(jeprof(file.path(), kind)), ours, "{kind}");
    }
    assert_eq!(
        warnings,
        [
            "a jemalloc heap profile has no place for these and they are left out: temporary, peak",
            "a jemalloc heap profile has no place for source lines",
        ]
    );
}

/// Removes jeprof's marks of inlined calls.
fn without_inline(table: crate::oracles::Table) -> crate::oracles::Table {
    let name = |name: String| name.trim_end_matches(" (inline)").to_owned();
    table.into_iter().map(|(key, metrics)| (name(key), metrics)).collect()
}

#[test]
fn a_round_trip_keeps_metrics_frames_and_addresses() {
    let profile = hard_profile();
    let back = read(&exported(&profile, Measure::Leaked).0).profile;
    assert_eq!(
        back.known,
        Availability {
            leaked: true,
            leaked_blocks: true,
            allocations: true,
            bytes: true,
            ..Availability::NOTHING
        }
    );
    let (before, after) = (profile.totals(), back.totals());
    assert_eq!((before.leaked_blocks, before.leaked_bytes), (after.leaked_blocks, after.leaked_bytes));
    assert_eq!((before.allocations, before.bytes), (after.allocations, after.bytes));
    let addresses = |profile: &Profile| -> Vec<Address> {
        profile.stacks.locations.iter().map(|location| location.address).collect()
    };
    let kept = addresses(&back);
    for address in [0x1100, 0x1200] {
        assert!(
            kept.iter().any(|kept| matches!(kept, Address::InModule { svma, .. } if *svma == address)),
            "{kept:?}"
        );
    }
    assert!(kept.contains(&Address::Anonymous { avma: 0x7f00_1234_5678 }));
    assert!(kept.contains(&Address::Unknown));
    assert_eq!(back.sites.iter().filter(|site| site.stack.is_none()).count(), 1);
    let helper =
        back.stacks.locations.iter().find(|location| location.frames[0].function == "helper").unwrap();
    let names: Vec<_> = helper.frames.iter().map(|frame| (frame.function.as_str(), frame.inlined)).collect();
    assert_eq!(names, [("helper", true), ("make", true), ("work", false)]);
    // A second round trip changes nothing more.
    let again = read(&exported(&back, Measure::Leaked).0).profile;
    assert_eq!(table_of(&again, |totals| totals.leaked_bytes), table_of(&back, |totals| totals.leaked_bytes));
    assert_eq!(addresses(&again), kept);
}

#[test]
fn the_peak_can_stand_for_what_is_live() {
    let mut profile = hard_profile();
    let peak = read(&exported(&profile, Measure::Peak).0).profile.totals();
    assert_eq!(
        (peak.leaked_blocks, peak.leaked_bytes),
        (profile.totals().peak_blocks, profile.totals().peak_bytes)
    );
    profile.known.leaked = false;
    let (bytes, warnings) = exported(&profile, Measure::Leaked);
    assert_eq!(read(&bytes).profile.totals().leaked_bytes, profile.totals().peak_bytes);
    assert!(warnings[0].contains("what was live at the peak instead"), "{warnings:?}");
}

#[test]
fn a_profile_without_names_is_left_to_the_binaries() {
    let imported = read(&fixture("jemalloc/accumulated.heap"));
    let (bytes, _) = exported(&imported.profile, Measure::Leaked);
    assert!(bytes.starts_with(b"heap_v2/0\n"));
    let back = read(&bytes);
    assert_eq!(sorted(rows(&back.profile)), sorted(rows(&imported.profile)));
    assert!(back.warnings.iter().all(|warning| !warning.contains("estimates")), "{:?}", back.warnings);
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

#[test]
fn a_file_that_makes_no_sense_is_told_with_its_line() {
    for (text, expected) in [
        ("heap_v2/x\n", "line 1: heap_v2/ and the sampling period"),
        ("", "line 1: heap_v2/ and the sampling period"),
        ("heap_v2/8\n t*: 1: 2 [3: 4]\n@ 0xzz\n", "line 3: a stack of addresses"),
        ("heap_v2/8\n@ 0x1\n t*: 1: 2\n", "line 3: t, a thread, and blocks: bytes [blocks: bytes]"),
        ("heap_v2/8\n@ 0x1\n t*: 99999999999999999999: 2 [0: 0]\n", "line 3: t, a thread"),
        ("--- symbol\nbinary=a\n0x1 f\n", "line 3: --- behind the names"),
        ("--- symbol\n0xzz f\n", "line 2: an address and its names"),
    ] {
        let error = read_as(text.as_bytes(), Format::JemallocHeap).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_file_that_was_cut_off_says_so() {
    let bytes = fixture("jemalloc/live.heap");
    let end = bytes.windows(6).position(|window| window == b"MAPPED").unwrap();
    let imported = read(&bytes[..end]);
    assert!(!imported.complete);
    assert!(imported.warnings.last().unwrap().contains("it was cut off"), "{:?}", imported.warnings);
}

#[test]
fn a_long_path_is_not_copied_without_bounds() {
    let calls = "f--".repeat(100_000);
    let path = format!("/{}", "p".repeat(4000));
    let text = format!(
        "--- symbol\n0xfff {calls}\n---\n--- heap\nheap_v2/0\n@ 0x7f0000001000\n t*: 1: 1 [0: 0]\n\
         @ 0x1000\n t*: 1: 1 [0: 0]\nMAPPED_LIBRARIES:\n0-2000 r-xp 0 0 0 {path}\n"
    );
    let profile = read(text.as_bytes()).profile;
    let copied: usize = profile
        .stacks
        .locations
        .iter()
        .flat_map(|l| &l.frames)
        .filter_map(|f| f.module.as_ref())
        .map(String::len)
        .sum();
    assert!(copied <= 64 << 20, "{copied} bytes of paths");
}

#[test]
fn no_damage_makes_it_panic() {
    let bytes = fixture("jemalloc/symbolized.heap");
    let bytes = &bytes[..bytes.len().min(4200)];
    for end in 0..bytes.len() {
        let _ = read_as(&bytes[..end], Format::JemallocHeap);
    }
    let mut damaged = bytes.to_vec();
    for at in 0..damaged.len() {
        for change in [0x01, 0x10, 0x80] {
            damaged[at] ^= change;
            let _ = read_as(&damaged, Format::JemallocHeap);
            damaged[at] ^= change;
        }
    }
}

#[test]
fn metrics_beyond_all_bounds_stay_at_the_largest_number() {
    let max = u64::MAX;
    let text = format!(
        "heap_v2/{max}\n@ 0x1 0x2\n t*: {max}: {max} [{max}: {max}]\n t1: {max}: 1 [1: {max}]\n@ 0x2\n t*: {max}: {max} [1: 1]\n"
    );
    let totals = read(text.as_bytes()).profile.totals();
    assert_eq!((totals.leaked_blocks, totals.leaked_bytes), (max, max));
}
