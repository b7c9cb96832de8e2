//! heaptrack's files in and out, with heaptrack's own analysis as the judge.

mod heaptrack_print;

use heaptrack_print::{Judgement, bytes, judge};
use mallow_base::Frame;
use mallow_formats::export::{ExportFormat, ExportOptions, write};
use mallow_formats::{Format, Imported, open, read_as};
use mallow_profile::{
    Address, Known, Measure, Module, Process, Profile, ProfileBuilder, ReallocBooking, Recording, Sample,
    Site, SiteTotals, StackId, Totals,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/heaptrack").join(name)
}

fn import(path: &Path) -> Imported {
    let (format, imported) = open(path, ReallocBooking::OwnSite).unwrap();
    assert_eq!(format, Format::Heaptrack);
    imported
}

/// A stack as heaptrack folds it: from `main` inwards, and within one address the innermost call first, which is a fault of heaptrack's.
fn folded(profile: &Profile, stack: Option<StackId>) -> String {
    let mut calls = Vec::new();
    for id in std::iter::successors(stack, |id| profile.stacks[id.0 as usize].parent) {
        let location = &profile.locations[profile.stacks[id.0 as usize].location.0 as usize];
        calls.push(location.frames.iter().map(call).collect::<String>());
        if location.frames[0].function == "main" {
            break;
        }
    }
    calls.reverse();
    if calls.is_empty() { String::from("??") } else { calls.concat() }
}

fn call(frame: &Frame) -> String {
    let file = frame.file.as_deref().map(|file| format!(" ({})", file.rsplit('/').next().unwrap()));
    format!("{}{};", frame.function, file.unwrap_or_default())
}

fn by_stack(profile: &Profile, measure: Measure) -> BTreeMap<String, u64> {
    let mut figures = BTreeMap::new();
    for Site { stack, totals, .. } in &profile.sites {
        let figure = measure.of_site(totals);
        if figure > 0 {
            *figures.entry(folded(profile, *stack)).or_default() += figure;
        }
    }
    figures
}

/// Our analysis in heaptrack's words.
fn our_judgement(profile: &Profile) -> Judgement {
    let totals = profile.totals();
    let rss_max = profile.processes[0].samples.iter().map(|sample| sample.rss_bytes).max().unwrap_or(0);
    Judgement {
        // heaptrack adds a millisecond, so as not to divide by zero.
        runtime: format!("{:.2}s.", (profile.recording.duration_us + 1000) as f64 / 1e6),
        calls: totals.allocations,
        temporary_calls: totals.temporary,
        peak: bytes(totals.peak_bytes),
        peak_rss: bytes(rss_max),
        leaked: bytes(totals.leaked_bytes),
        allocations: by_stack(profile, Measure::Allocations),
        temporary: by_stack(profile, Measure::Temporary),
        peak_bytes: by_stack(profile, Measure::Peak),
        leaked_bytes: by_stack(profile, Measure::Leaked),
    }
}

/// heaptrack leaves Rust's names as the linker has them.
fn readable(judgement: Judgement) -> Judgement {
    let stack = |stack: &str| {
        let name = |call: &str| match call.split_once(' ') {
            Some((name, file)) => format!("{:#} {file}", rustc_demangle::demangle(name)),
            None => format!("{:#}", rustc_demangle::demangle(call)),
        };
        stack.split(';').map(name).collect::<Vec<_>>().join(";")
    };
    let map = |figures: BTreeMap<String, u64>| {
        figures.into_iter().map(|(key, figure)| (stack(&key), figure)).collect()
    };
    Judgement {
        allocations: map(judgement.allocations),
        temporary: map(judgement.temporary),
        peak_bytes: map(judgement.peak_bytes),
        leaked_bytes: map(judgement.leaked_bytes),
        ..judgement
    }
}

/// Whole files of every version, with blocks freed in order.
const FILES: [&str; 9] = [
    "by-hand.v0.txt",
    "by-hand.v1.txt",
    "by-hand.v2.txt",
    "family.zst",
    "family.gz",
    "realloc_chain.zst",
    "cross_thread_free.zst",
    "csv-map-per-row.zst",
    "steady-attached.zst",
];

#[test]
fn every_version_has_the_figures_that_heaptrack_prints() {
    for name in FILES {
        let imported = import(&fixture(name));
        assert_eq!(our_judgement(&imported.profile), readable(judge(&fixture(name))), "{name}");
    }
}

#[test]
fn what_a_file_lacks_is_said() {
    let warnings = |name| import(&fixture(name)).warnings;
    for name in
        ["family.zst", "family.gz", "cross_thread_free.zst", "csv-map-per-row.zst", "csv-map-per-row.raw.zst"]
    {
        let imported = import(&fixture(name));
        assert!(imported.complete, "{name}");
        let unmatched =
            imported.warnings.iter().all(|warning| warning.contains("whose allocation is not in the file"));
        assert!(unmatched, "{name}: {:?}", imported.warnings);
    }
    assert_eq!(
        warnings("steady-attached.zst"),
        ["heaptrack was attached to a running process: what was allocated before is not in the figures"]
    );
    assert_eq!(
        warnings("by-hand.v2.txt"),
        [
            "1 leak suppression of the program itself was not applied: the leaks that it names are among the leaked blocks"
        ]
    );
    assert_eq!(
        warnings("by-hand.v0.txt"),
        [
            "the file does not end with the counts of strings and addresses that heaptrack writes last: the recording may have been \
             cut off, and blocks that were freed later stand as leaked",
            "1 free of blocks whose allocation is not in the file",
            "1 allocation returned an address that was still in use, so a free is missing; the older block stands as leaked",
        ]
    );
}

#[test]
fn a_file_tells_what_it_can_tell() {
    let imported = import(&fixture("by-hand.v2.txt"));
    let profile = &imported.profile;
    assert_eq!(profile.recording.command, ["demo", "with", "blanks"]);
    assert_eq!((profile.recording.duration_us, profile.recording.counting_version), (9000, 0));
    assert_eq!(
        profile.totals(),
        Totals {
            allocations: 6,
            bytes: 0x10 + 0x10 + 0x20 + 0xf0 + 0x100,
            frees: 4,
            temporary: 3,
            peak_bytes: 0x110,
            peak_blocks: 3,
            leaked_bytes: 0x10,
            leaked_blocks: 2,
            ..Totals::default()
        }
    );
    let process = &profile.processes[0];
    let rss: Vec<_> = process.samples.iter().map(|sample| (sample.time_us, sample.rss_bytes)).collect();
    assert_eq!((rss, process.peak_us), (vec![(5000, 0x64000), (9000, 0x32000)], 5000));
    let live: Vec<_> =
        process.live_samples.iter().map(|sample| (sample.time_us, sample.live_bytes)).collect();
    assert_eq!(live, [(5000, 0x10), (9000, 0x110)]);
    let known = profile.known;
    assert!(known.allocations && known.temporary && known.peak && known.leaked && known.own_maximum);
    assert!(known.times && known.blocks && !known.calls && !known.lifetimes);
    // Inlined calls stand innermost first, all but the physical function marked.
    let site = profile.sites.iter().find(|site| site.totals.bytes == 0x110 + 0x10).unwrap();
    let frames: Vec<_> = profile
        .frames(site.stack)
        .map(|frame| (frame.function.as_str(), frame.file.as_deref(), frame.line, frame.inlined))
        .collect();
    assert_eq!(
        frames,
        [
            ("inner", Some("demo.c"), Some(5), true),
            ("outer", Some("other file.c"), Some(7), true),
            ("main", Some("demo.c"), Some(8), false),
            ("main", Some("demo.c"), Some(10), false),
        ]
    );
    assert!(profile.frames(site.stack).all(|frame| frame.module.as_deref() == Some("my demo")));
}

/// The interpreter makes of a raw file what the analysis reads.
#[test]
fn a_raw_file_has_the_totals_of_the_interpreted_one() {
    for name in ["family.raw.zst", "realloc_chain.raw.zst", "csv-map-per-row.raw.zst"] {
        let raw = import(&fixture(name));
        let text = zstd::decode_all(std::fs::File::open(fixture(name)).unwrap()).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("raw"), text).unwrap();
        let interpreted = scratch.path().join("interpreted");
        let status = std::process::Command::new("/usr/lib/heaptrack/libexec/heaptrack_interpret")
            .stdin(std::fs::File::open(scratch.path().join("raw")).unwrap())
            .stdout(std::fs::File::create(&interpreted).unwrap())
            .status()
            .expect("heaptrack_interpret runs; cargo xtask packages installs it");
        assert!(status.success());
        let (ours, theirs) = (our_judgement(&raw.profile), judge(&interpreted));
        assert_eq!(
            (ours.calls, &ours.peak, &ours.leaked),
            (theirs.calls, &theirs.peak, &theirs.leaked),
            "{name}"
        );
        assert_eq!((&ours.peak_rss, &ours.runtime), (&theirs.peak_rss, &theirs.runtime));
        // Pointers are compared where there are some: pair 0, which the dynamic loader's thread freed last, is not temporary.
        assert_eq!(ours.temporary_calls, theirs.temporary_calls - 1, "{name}");
        assert!(raw.complete, "{:?}", raw.warnings);
    }
}

/// Figures without what heaptrack's library brings into the process: the emergency pool of the C++ library.
fn without_heaptracks_own(profile: &Profile) -> SiteTotals {
    let mut sum = SiteTotals::default();
    for Site { stack, totals, .. } in &profile.sites {
        let leaf = profile.frames(*stack).next().and_then(|frame| frame.module.as_deref());
        if !leaf.is_some_and(|module| module.contains("libstdc++")) {
            sum.add(&held(totals));
        }
    }
    sum
}

/// What `mallow record` counts for the same command, where heaptrack sees everything.
#[test]
fn a_recording_of_ours_has_the_same_figures() {
    let ours = SiteTotals {
        allocations: 3033,
        bytes: 210_213,
        peak_bytes: 51_655,
        peak_blocks: 29,
        leaked_bytes: 544,
        leaked_blocks: 1,
        ..SiteTotals::default()
    };
    for name in ["csv-map-per-row.zst", "csv-map-per-row.raw.zst"] {
        let theirs = without_heaptracks_own(&import(&fixture(name)).profile);
        // Freed by the very next event is less than freed before the next allocation: 295 by our rule.
        assert_eq!(theirs, SiteTotals { temporary: 3, ..ours }, "{name}");
    }
    // The program's source counts its calls: heaptrack does not see memalign(310) and pvalloc(330).
    let theirs = without_heaptracks_own(&import(&fixture("family.zst")).profile);
    assert_eq!((theirs.allocations, theirs.bytes), (11 - 2, 2706 - 310 - 330));
    assert_eq!((theirs.leaked_blocks, theirs.leaked_bytes), (3 - 1, 1162 - 330));
}

/// `objdump -d family` shows the calls of malloc(24) in front of 0x120a and of malloc(100) in front of 0x11f7.
#[test]
fn addresses_of_a_raw_file_are_those_of_its_modules() {
    let profile = import(&fixture("family.raw.zst")).profile;
    let leaf_of = |bytes: u64| {
        let site = profile.sites.iter().find(|site| site.totals.bytes == bytes).unwrap();
        let location = profile.stacks[site.stack.unwrap().0 as usize].location;
        match profile.locations[location.0 as usize].address {
            Address::InModule { module, svma } => (profile.modules[module.0 as usize].path.as_str(), svma),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(leaf_of(24), ("/srv/demo/family", 0x120a));
    assert_eq!(leaf_of(100), ("/srv/demo/family", 0x11f7));
}

const OPTIONS: ExportOptions = ExportOptions { measure: Measure::Allocations };

fn exported(profile: &Profile) -> (Vec<u8>, Vec<String>) {
    let mut text = Vec::new();
    let warnings = write(profile, ExportFormat::Heaptrack, &OPTIONS, &mut text).unwrap();
    (text, warnings)
}

fn judge_export(profile: &Profile) -> Judgement {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("export.txt");
    std::fs::write(&file, exported(profile).0).unwrap();
    judge(&file)
}

#[test]
fn an_export_has_the_figures_of_the_profile_in_heaptracks_eyes() {
    for name in FILES.into_iter().chain(["family.raw.zst", "csv-map-per-row.raw.zst"]) {
        let profile = import(&fixture(name)).profile;
        assert_eq!(judge_export(&profile), our_judgement(&profile), "{name}");
    }
}

/// What the format holds of a site.
fn held(totals: &SiteTotals) -> SiteTotals {
    SiteTotals {
        allocations: totals.allocations,
        bytes: totals.bytes,
        temporary: totals.temporary,
        peak_bytes: totals.peak_bytes,
        peak_blocks: totals.peak_blocks,
        leaked_bytes: totals.leaked_bytes,
        leaked_blocks: totals.leaked_blocks,
        ..SiteTotals::default()
    }
}

fn held_by_stack(profile: &Profile) -> BTreeMap<String, SiteTotals> {
    let mut sites = BTreeMap::<String, SiteTotals>::new();
    for site in &profile.sites {
        sites.entry(folded(profile, site.stack)).or_default().add(&held(&site.totals));
    }
    sites
}

#[test]
fn a_round_trip_keeps_what_the_format_holds() {
    for name in FILES {
        let before = import(&fixture(name)).profile;
        let (text, _) = exported(&before);
        let again = read_as(&text, Format::Heaptrack).unwrap();
        let after = &again.profile;
        assert!(again.complete, "{name}: {:?}", again.warnings);
        assert_eq!(held_by_stack(after), held_by_stack(&before), "{name}");
        // A free of a foreign block is the one thing that is not kept.
        let unmatched = before.processes[0].frees_unmatched;
        let frees = before.totals().frees - unmatched;
        assert_eq!(after.totals(), Totals { frees, ..before.totals() }, "{name}");
        assert_eq!(after.processes[0].samples, before.processes[0].samples, "{name}");
        assert_eq!(after.processes[0].peak_us, before.processes[0].peak_us, "{name}");
        assert_eq!(after.recording, before.recording, "{name}");
        assert!(!after.known.times && !after.known.own_maximum && after.processes[0].live_samples.is_empty());
    }
}

#[test]
fn an_export_says_what_it_made_up_and_left_out() {
    let (text, warnings) = exported(&import(&fixture("by-hand.v1.txt")).profile);
    assert_eq!(
        warnings,
        [
            "heaptrack's format has no place for these and they are left out: own maxima, first and last times",
            "the order of events and the sizes of single blocks are made up from the sums: read no timeline and no histogram from the \
             file",
        ]
    );
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "v 10400 3\n# mallow export: the sums are real, the order of events is made up\nX demo\nI 1000 0\n\
         s 4 demo\ns 4 work\ns 6 demo.c\ni 1 1 2 3 5\ns 4 main\ni 2 1 4 3 a\nt 2 0\nt 1 1\n\
         a 0 2\na 20 2\na 16 2\na 15 2\na 30 1\n\
         + 3\n- 3\n+ 3\n- 3\n+ 2\n- 2\nc 0\n+ 1\n+ 1\n+ 4\n- 1\n- 1\nc 64\n# strings: 4\n# ips: 2\n"
    );
}

/// A file is cut anywhere, or any of its lines is spoilt.
#[test]
fn damaged_files_give_a_profile_or_a_sentence() {
    for name in ["by-hand.v0.txt", "by-hand.v1.txt", "by-hand.v2.txt", "family.zst", "family.raw.zst"] {
        let stored = std::fs::read(fixture(name)).unwrap();
        let text =
            if name.ends_with(".zst") { zstd::decode_all(&stored[..]).unwrap() } else { stored.clone() };
        let whole = read_as(&text, Format::Heaptrack).unwrap().profile.totals();
        for end in 0..text.len() {
            match read_as(&text[..end], Format::Heaptrack) {
                Ok(imported) => assert!(imported.profile.totals().allocations <= whole.allocations),
                Err(error) => assert!(error.to_string().ends_with("was expected"), "{error}"),
            }
        }
        for end in 0..stored.len() {
            if let Err(error) = read_as(&stored[..end], Format::Heaptrack) {
                assert!(!error.to_string().is_empty());
            }
        }
        for index in text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1) {
            for spoilt in [b'+', b'f', b' ', b'\n', 0xff] {
                let mut text = text.clone();
                if let Some(byte) = text.get_mut(index) {
                    *byte = spoilt;
                }
                let _ = read_as(&text, Format::Heaptrack).unwrap();
            }
        }
    }
}

#[test]
fn a_cut_file_is_not_complete() {
    let text = zstd::decode_all(std::fs::File::open(fixture("family.zst")).unwrap()).unwrap();
    let at = text.windows(4).position(|line| line == b"- 4\n").unwrap();
    let cut = read_as(&text[..at], Format::Heaptrack).unwrap();
    assert!(!cut.complete);
    assert!(cut.warnings[0].contains("may have been cut off"), "{:?}", cut.warnings);
    assert_eq!((cut.profile.totals().allocations, cut.profile.totals().frees), (10, 3));
    // An archive that is torn gives what was unpacked before.
    let lines = "+ 0\n- 0\n".repeat(400_000);
    let packed = zstd::encode_all(format!("v 10400 3\na 10 0\n{lines}").as_bytes(), 1).unwrap();
    let torn = read_as(&packed[..packed.len() - 8], Format::Heaptrack).unwrap();
    assert!(
        !torn.complete && torn.warnings[0].starts_with("reading stopped behind line "),
        "{:?}",
        torn.warnings
    );
}

#[test]
fn numbers_of_2_to_the_60_reserve_nothing() {
    let huge = "1000000000000000";
    let text = format!(
        "v 10400 3\ns {huge} a\ni {huge} {huge} {huge} {huge} {huge}\nt {huge} {huge}\na {huge} {huge}\n+ {huge}\n- {huge}\n+ 0\n+ 0\n\
         c {huge}\nI {huge} {huge}\nR {huge}\nt 1 1\n# strings: 1\n"
    );
    let imported = read_as(text.as_bytes(), Format::Heaptrack).unwrap();
    let totals = imported.profile.totals();
    assert_eq!((totals.allocations, totals.peak_bytes), (2, 1 << 61));
    assert_eq!(imported.profile.processes[0].samples[0].rss_bytes, u64::MAX);
    assert_eq!(
        imported.warnings,
        [
            "5 lines made no sense and were passed over; the first is line 2, where a string of the length before it was expected"
        ]
    );
    let raw = format!(
        "v 10400 3\nx 1 x\nm 1 x {huge} {huge} {huge}\nt {huge} 0\n+ {huge} {huge} {huge}\n- {huge}\n"
    );
    let imported = read_as(raw.as_bytes(), Format::Heaptrack).unwrap();
    assert_eq!((imported.profile.totals().bytes, imported.warnings.len()), (1 << 60, 1));
}

/// One long name, and many lines that refer to it.
#[test]
fn names_take_no_more_memory_than_the_file_justifies() {
    let name = "n".repeat(1 << 20);
    let lines: String = (0..2000).map(|line| format!("i {line:x} 1 1 1 {line:x}\n")).collect();
    let text = format!("v 10400 3\ns 100000 {name}\n{lines}# ips: 7d0\n");
    let imported = read_as(text.as_bytes(), Format::Heaptrack).unwrap();
    let bytes: usize =
        imported.profile.locations.iter().map(|location| location.frames[0].function.len()).sum();
    assert!(bytes < 300 << 20, "{bytes}");
    assert!(imported.warnings[0].starts_with("the names of 1"), "{:?}", imported.warnings);
}

/// heaptrack takes the first of equal peaks, our counting rules the last.
#[test]
fn of_equal_peaks_the_last_is_broken_down() {
    let text = "v 10400 3\ns 1 d\ns 5 first\ns 6 second\ni 1 1 2\ni 2 1 3\nt 1 0\nt 2 0\n\
                a 0 1\na 10 1\na 10 2\n+ 1\n- 1\n+ 2\n- 2\n# strings: 3\n";
    let profile = read_as(text.as_bytes(), Format::Heaptrack).unwrap().profile;
    assert_eq!(by_stack(&profile, Measure::Peak), BTreeMap::from([(String::from("second;"), 16)]));
    // In an export what is as large as the peak comes behind it, so that heaptrack breaks down the same moment.
    assert_eq!(judge_export(&profile), our_judgement(&profile));
}

/// A raw file of allocations and frees at random.
fn raw_file(events: &[(u8, u32, u8)]) -> String {
    let mut text =
        String::from("v 10400 3\nx 1 x\nm 1 x 1000 0 1000\nt 1010 0\nt 1020 1\nt 1030 1\nt 1040 0\n");
    let mut live = Vec::new();
    for (pointer, &(stack, size, choice)) in events.iter().enumerate() {
        text += &format!("+ {size:x} {:x} {:x}\n", 1 + stack % 4, pointer + 1);
        live.push(pointer + 1);
        // Often the newest, so that some are temporary.
        while !live.is_empty() && choice % 4 < 3 && live.len() > usize::from(choice % 16) {
            let index = if choice % 2 == 0 { live.len() - 1 } else { usize::from(choice) % live.len() };
            text += &format!("- {:x}\n", live.remove(index));
        }
    }
    text + "c 10\n"
}

fn histories() -> impl Strategy<Value = Vec<(u8, u32, u8)>> {
    // Sizes are large and so differ, or peaks would be equal.
    prop::collection::vec((0u8..4, 1u32..0x7fff_ffff, any::<u8>()), 1..40)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(500))]

    /// Whatever a program did, the made-up events have its sums.
    #[test]
    fn any_history_survives_export(events in histories()) {
        let before = read_as(raw_file(&events).as_bytes(), Format::Heaptrack).unwrap().profile;
        let (text, _) = exported(&before);
        let after = read_as(&text, Format::Heaptrack).unwrap().profile;
        prop_assert_eq!(held_by_stack(&after), held_by_stack(&before));
        prop_assert_eq!(after.totals(), before.totals());
    }
}

proptest! {
    #![proptest_config(cases(10))]

    /// So they have for heaptrack; asking it takes longer.
    #[test]
    fn heaptrack_sees_any_history_in_its_export(events in histories()) {
        let before = read_as(raw_file(&events).as_bytes(), Format::Heaptrack).unwrap().profile;
        prop_assert_eq!(judge_export(&before), our_judgement(&before));
    }
}

/// Equal sizes at one site leave nothing that could stand between a block and its free.
#[test]
fn blocks_without_company_are_not_temporary_in_an_export() {
    let events = "+ 8 1 1\n- 2\n+ 8 1 3\n- 1\n- 3\n".repeat(3);
    let text = format!(
        "v 10400 3\nx 1 x\nm 1 x 1000 0 1000\nt 1010 0\n{events}+ 100 1 9\n+ 0 1 a\n+ 0 1 b\n- a\n- b\nc 1\n"
    );
    let before = read_as(text.as_bytes(), Format::Heaptrack).unwrap().profile;
    assert_eq!((before.totals().temporary, before.totals().allocations), (0, 9));
    assert_eq!(judge_export(&before), our_judgement(&before));
    let after = read_as(&exported(&before).0, Format::Heaptrack).unwrap();
    assert_eq!((held_by_stack(&after.profile), after.warnings), (held_by_stack(&before), Vec::new()));
}

/// Two processes of one stack, as a recording of ours has them.
fn two_processes() -> Profile {
    let mut builder =
        ProfileBuilder::new(Recording { duration_us: 90_000, ..Recording::default() }, Known::ALL);
    let module = builder.module(Module { path: "/srv/my demo".into(), build_id: vec![1] });
    let frame = |function: &str, inlined| Frame {
        function: function.into(),
        file: Some("/srv/demo.c".into()),
        line: Some(0x20),
        module: Some("/srv/my demo".into()),
        inlined,
    };
    let address = |svma| Address::InModule { module, svma };
    let main = builder.location(address(0x1010), vec![frame("main", false)]);
    let work = builder.location(address(0x1020), vec![frame("push\nback", true), frame("work", false)]);
    let stack = builder.stack([main, work]);
    for (pid, peak_us) in [(7, 30_000), (8, 50_000)] {
        let totals = Totals { allocations: 4, bytes: 101, peak_bytes: 90, ..Totals::default() };
        let samples = vec![Sample { time_us: 1000, rss_bytes: 4096 }];
        let process = builder.add_process(Process { pid, peak_us, totals, samples, ..Process::default() });
        // Two blocks were freed at once by their threads, and both were live at the peak.
        let site = SiteTotals {
            allocations: 3,
            bytes: 100,
            temporary: 2,
            peak_bytes: 90,
            peak_blocks: 2,
            leaked_bytes: 10,
            leaked_blocks: 1,
            ..SiteTotals::default()
        };
        builder.add_site(process, stack, &site);
        builder.add_site(process, None, &SiteTotals { allocations: 1, bytes: 1, ..SiteTotals::default() });
    }
    builder.finish()
}

#[test]
fn processes_are_added_up() {
    let profile = two_processes();
    let (text, warnings) = exported(&profile);
    assert_eq!(
        warnings,
        [
            "heaptrack's format has no place for these and they are left out: reallocations and failed calls, own maxima, lifetimes, \
             first and last times, resident memory",
            "a heaptrack file holds one process: the figures of 2 are added up, their peaks too",
            "the order of events and the sizes of single blocks are made up from the sums: read no timeline and no histogram from the \
             file",
            "of the temporary blocks that were live at the peak only one can be the last there: the file has 1 too few",
        ]
    );
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("export.txt");
    std::fs::write(&file, &text).unwrap();
    let judgement = judge(&file);
    let work = "main (demo.c);push back (demo.c);work (demo.c);";
    let of = |figures: &[(&str, u64)]| {
        figures.iter().map(|(stack, figure)| (String::from(*stack), *figure)).collect()
    };
    assert_eq!((judgement.calls, judgement.temporary_calls), (8, 3));
    assert_eq!((judgement.peak.as_str(), judgement.leaked.as_str()), ("180B", "20B"));
    assert_eq!(judgement.allocations, of(&[(work, 6), ("??", 2)]));
    assert_eq!((judgement.peak_bytes, judgement.leaked_bytes), (of(&[(work, 180)]), of(&[(work, 20)])));
    let after = read_as(&text, Format::Heaptrack).unwrap().profile;
    assert_eq!((after.processes[0].peak_us, after.recording.duration_us), (50_000, 90_000));
    let line = after.frames(after.sites[0].stack).map(|frame| (frame.line, frame.inlined)).next();
    assert_eq!(line, Some((Some(0x20), true)));
}

#[test]
fn a_profile_of_live_memory_alone_is_written_as_few_blocks() {
    let mut profile = import(&fixture("by-hand.v2.txt")).profile;
    profile.known = Known { leaked: true, ..Known::NOTHING };
    let (text, warnings) = exported(&profile);
    assert_eq!(
        &warnings[..2],
        [
            "the profile does not tell the peak: the one in the file means nothing",
            "the profile does not tell numbers of blocks: where they are missing, one is written",
        ]
    );
    let after = read_as(&text, Format::Heaptrack).unwrap().profile.totals();
    assert_eq!((after.allocations, after.bytes, after.leaked_blocks, after.leaked_bytes), (2, 16, 2, 16));
}

#[test]
fn more_allocations_than_a_disk_holds_are_refused() {
    let mut profile = import(&fixture("family.zst")).profile;
    profile.sites[0].totals.allocations = u64::MAX;
    let error = write(&profile, ExportFormat::Heaptrack, &OPTIONS, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("heaptrack's files have a line for every allocation"), "{error}");
}
