//! pprof's protobuf, compared with `go tool pprof` in both directions.

use crate::oracles::{Judged, fixture, fixture_path, hard_profile, pprof_top, run, table_of};
use mallow_formats::export::{self, ExportFormat, ExportOptions};
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::{Address, Availability, Measure, Profile, SiteTotals};
use std::io::{Read, Write};
use std::process::Command;

fn read(bytes: &[u8]) -> Imported {
    read_as(bytes, Format::Pprof).unwrap()
}

fn exported(profile: &Profile, measure: Measure) -> Vec<u8> {
    let mut bytes = Vec::new();
    export::write(profile, ExportFormat::Pprof, &ExportOptions { measure }, &mut bytes).unwrap();
    bytes
}

fn stored(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

const JUDGED: [Judged; 4] = [
    ("alloc_objects", |totals| totals.allocations),
    ("alloc_space", |totals| totals.bytes),
    ("inuse_objects", |totals| totals.leaked_blocks),
    ("inuse_space", |totals| totals.leaked_bytes),
];

#[test]
fn a_heap_profile_of_go_reads_as_pprof_shows_it() {
    let imported = read(&fixture("pprof/heaps.pb.gz"));
    for (index, metric) in JUDGED {
        let theirs = pprof_top(&fixture_path("pprof/heaps.pb.gz"), index);
        assert_eq!(table_of(&imported.profile, metric), theirs, "{index}");
    }
    assert_eq!(
        imported.profile.known,
        Availability {
            allocations: true,
            bytes: true,
            leaked: true,
            leaked_blocks: true,
            ..Availability::NOTHING
        }
    );
    assert_eq!(imported.profile.recording.command, ["/srv/demo/go/heaps"]);
    assert_eq!(
        imported.warnings,
        [
            "metrics are estimates: one allocation in about every 4096 bytes was sampled",
            "samples of one stack that differ only in a label (bytes) are added up",
        ]
    );
    let inlined =
        imported.profile.stacks.locations.iter().find(|location| location.frames.len() == 2).unwrap();
    assert!(inlined.frames[0].inlined && !inlined.frames[1].inlined);
    // Go's programs have fixed addresses, and its addresses are those of calls.
    assert!(
        matches!(inlined.address, Address::InModule { svma, .. } if svma > 0x400_000 && svma < 0x600_000)
    );
}

#[test]
fn pprof_shows_an_export_exactly() {
    let profile = hard_profile();
    let file = stored(&exported(&profile, Measure::Leaked));
    let peak: fn(&SiteTotals) -> u64 = |totals| totals.peak_bytes;
    let temporary: fn(&SiteTotals) -> u64 = |totals| totals.temporary;
    for (index, metric) in JUDGED.into_iter().chain([("peak_space", peak), ("temporary_objects", temporary)])
    {
        let mut ours = table_of(&profile, metric);
        let no_stack: u64 =
            profile.sites.iter().filter(|s| s.stack.is_none()).map(|s| metric(&s.totals)).sum();
        ours.insert("[no stack was taken]".into(), (no_stack, no_stack));
        assert_eq!(pprof_top(file.path(), index), ours, "{index}");
    }
}

#[test]
fn pprof_finds_nothing_wrong_with_an_export() {
    let file = stored(&exported(&hard_profile(), Measure::Peak));
    let text = run(Command::new("go").args(["tool", "pprof", "-symbolize=none", "-raw"]).arg(file.path()));
    for expected in [
        "PeriodType: space bytes\nPeriod: 1\n",
        "Duration: 2.5",
        "inuse_objects/count inuse_space/bytes peak_objects/count peak_space/bytes[dflt] temporary_objects",
        "process:[7 /usr/bin/app --fast]",
        "helper /src/app.c:3",
        "/usr/bin/app abcdef01 [FN][FL][LN][IN]",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn a_round_trip_keeps_metrics_frames_and_addresses() {
    let profile = hard_profile();
    let imported = read(&exported(&profile, Measure::Leaked));
    let back = imported.profile;
    assert_eq!(back.known, profile.known);
    assert_eq!(
        imported.warnings,
        ["samples of one stack that differ only in a label (process) are added up"]
    );
    let mut expected = profile.totals();
    // Frees are blocks that are no longer live, of all processes together.
    expected.frees = expected.allocations - expected.leaked_blocks;
    assert_eq!(back.totals(), expected);
    let address_and_frames = |profile: &Profile| -> Vec<_> {
        profile.stacks.locations.iter().map(|location| (location.address, location.frames.clone())).collect()
    };
    let kept = address_and_frames(&back);
    for location in address_and_frames(&profile) {
        assert!(kept.contains(&location), "{location:?} is not in {kept:?}");
    }
    assert_eq!(back.sites.iter().filter(|site| site.stack.is_none()).count(), 1);
    assert_eq!(back.stacks.modules, profile.stacks.modules);
    assert_eq!(back.recording.command, ["/usr/bin/app --fast"]);
    assert_eq!(back.recording.started_unix_us, profile.recording.started_unix_us);
    assert_eq!(back.recording.duration_us, profile.recording.duration_us);
    for metric in JUDGED.map(|(_, metric)| metric) {
        let mut before = table_of(&profile, metric);
        let after = table_of(&back, metric);
        before.retain(|_, metrics| *metrics != (0, 0));
        assert_eq!(after, before);
    }
}

/// jemalloc's and tcmalloc's profiles of Rust programs have names that pprof does not demangle.
#[test]
fn rust_names_are_readable() {
    let mut profile = hard_profile();
    let mangled = ["_RNvNtCs1234_7mycrate3foo3bar", "_ZN4core3fmt5write17h0123456789abcdefE", "_R"];
    let mut frames = profile.stacks.locations.iter_mut().flat_map(|location| &mut location.frames);
    for name in mangled {
        frames.next().unwrap().function = name.to_owned();
    }
    let back = read(&exported(&profile, Measure::Leaked)).profile;
    let functions: Vec<&str> =
        back.stacks.locations.iter().flat_map(|of| &of.frames).map(|frame| frame.function.as_str()).collect();
    for name in ["mycrate::foo::bar", "core::fmt::write", "_R"] {
        assert!(functions.contains(&name), "{name} is not in {functions:?}");
    }
    assert!(mangled[..2].iter().all(|name| !functions.contains(name)), "{functions:?}");
}

#[test]
fn what_is_not_known_is_no_type_of_samples() {
    let mut profile = hard_profile();
    profile.known = Availability { leaked: true, leaked_blocks: true, ..Availability::NOTHING };
    let back = read(&exported(&profile, Measure::Leaked));
    assert_eq!(back.profile.known, profile.known);
    assert_eq!(back.profile.totals().leaked_bytes, profile.totals().leaked_bytes);
    assert_eq!(back.profile.totals().bytes, 0);
}

/// Encodes the fields of a message: number and bytes.
fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let field = |&(number, bytes): &(u8, &[u8])| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    fields.iter().flat_map(field).collect()
}

#[test]
fn threads_and_other_types_of_samples_are_told() {
    let file = message(&[
        (6, b""),
        (6, b"alloc_objects"),
        (6, b"count"),
        (6, b"alloc_space"),
        (6, b"bytes"),
        (6, b"contentions"),
        (6, b"thread"),
        (6, b"worker-1"),
        (1, &[8, 1, 16, 2]),
        (1, &[8, 3, 16, 4]),
        (1, &[8, 5, 16, 2]),
        // Values 2, 30, 9; label thread = worker-1.
        (2, &[18, 3, 2, 30, 9, 26, 4, 8, 6, 16, 7]),
        (2, &[18, 3, 1, 5, 9]),
    ]);
    let imported = read(&file);
    let thread = &imported.profile.processes[0].threads[0];
    assert_eq!((thread.name.as_str(), thread.allocations, thread.bytes), ("worker-1", 2, 30));
    assert_eq!(imported.profile.totals().bytes, 35);
    assert_eq!(imported.warnings, ["samples of these types are left out: contentions/count"]);
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let types = message(&[(6, b""), (6, b"inuse_space"), (6, b"bytes"), (1, &[8, 1, 16, 2])]);
    let after = |fields: &[(u8, &[u8])]| [types.clone(), message(fields)].concat();
    for (bytes, expected) in [
        (after(&[(2, &[10, 1, 5])]), "byte 28: a sample whose locations are in the file"),
        (after(&[(4, &[8, 1, 34, 2, 8, 9])]), "byte 28: a location whose functions are in the file"),
        (after(&[(2, &[10, 9, 5])]), "byte 28: a sample"),
        (
            [types.clone(), vec![18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat(),
            "byte 28: a field that ends before the file does",
        ),
        ([types.clone(), vec![0xff; 12]].concat(), "byte 28: a field of a profile"),
        (Vec::new(), "it names no types of samples"),
        (
            message(&[(6, b""), (6, b"cpu"), (6, b"nanoseconds"), (1, &[8, 1, 16, 2])]),
            "it holds cpu/nanoseconds and nothing about memory",
        ),
    ] {
        let error = read_as(&bytes, Format::Pprof).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn one_long_name_in_many_frames_is_refused() {
    let name = "n".repeat(1 << 20);
    let mut file =
        message(&[(6, b""), (6, b"inuse_space"), (6, b"bytes"), (1, &[8, 1, 16, 2]), (5, &[8, 1, 16, 3])]);
    file.extend([6 << 3 | 2, 0x80, 0x80, 0x40]);
    file.extend(name.as_bytes());
    for id in 1..=100u8 {
        file.extend(message(&[(4, &[8, id, 24, id, 34, 2, 8, 1])]));
    }
    let error = read_as(&file, Format::Pprof).unwrap_err().to_string();
    assert!(error.contains("far more than its size allows"), "{error}");
}

#[test]
fn no_damage_makes_it_panic() {
    for bytes in
        [unpacked(&fixture("pprof/heaps.pb.gz")), unpacked(&exported(&hard_profile(), Measure::Leaked))]
    {
        for end in 0..bytes.len() {
            let _ = read_as(&bytes[..end], Format::Pprof);
        }
        let mut damaged = bytes.clone();
        for at in 0..damaged.len() {
            for change in [0x01, 0x08, 0x80, 0xff] {
                damaged[at] ^= change;
                let _ = read_as(&damaged, Format::Pprof);
                damaged[at] ^= change;
            }
        }
    }
}
