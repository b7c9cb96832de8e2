//! heaptrack's files, read and written, compared with heaptrack's own analysis.

mod export;
mod print;

use export::exported;
use mallow_base::Frame;
use mallow_formats::{Format, Imported, open_profile, read_as};
use mallow_profile::{Address, Measure, Profile, ReallocAttribution, Site, SiteTotals, StackId, Totals};
use print::{Conclusion, bytes, judge};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/heaptrack").join(name)
}

fn import(path: &Path) -> Imported {
    let (format, imported) = open_profile(path, ReallocAttribution::OwnSite).unwrap();
    assert_eq!(format, Format::Heaptrack);
    imported
}

/// Formats a stack as heaptrack folds it: from `main` inwards, and within one address the innermost call first, which is a bug of heaptrack's.
fn folded(profile: &Profile, stack: Option<StackId>) -> String {
    let mut calls = Vec::new();
    for id in profile.stacks.chain(stack) {
        let location = &profile.stacks.locations[profile.stacks.node(id).location.0 as usize];
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
    let mut metrics = BTreeMap::new();
    for Site { stack, totals, .. } in &profile.sites {
        let metric = measure.of_site(totals);
        if metric > 0 {
            *metrics.entry(folded(profile, *stack)).or_default() += metric;
        }
    }
    metrics
}

/// Returns our analysis in heaptrack's format.
fn our_conclusion(profile: &Profile) -> Conclusion {
    let totals = profile.totals();
    let rss_max = profile.processes[0].samples.iter().map(|sample| sample.rss_bytes).max().unwrap_or(0);
    Conclusion {
        // heaptrack adds a millisecond to avoid a division by zero.
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

/// Undoes the escapes that heaptrack left of Rust's mangling.
fn rust_name(name: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(name));
    if name.contains(['<', ' ', '(']) {
        return name;
    }
    let path = match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => path,
        _ if name.contains('$') => &name,
        _ => return name,
    };
    let element = |element: &str| {
        let element = element.strip_prefix('_').filter(|rest| rest.starts_with('$')).unwrap_or(element);
        let mut text = element.to_owned();
        for (escape, plain) in [
            ("$LT$", "<"),
            ("$GT$", ">"),
            ("$u20$", " "),
            ("$RF$", "&"),
            ("$BP$", "*"),
            ("$C$", ","),
            ("$LP$", "("),
            ("$RP$", ")"),
            ("$u7b$", "{"),
            ("$u7d$", "}"),
            ("$u5b$", "["),
            ("$u5d$", "]"),
            ("$u27$", "'"),
            ("$u3b$", ";"),
            ("$u2b$", "+"),
            ("..", "::"),
        ] {
            text = text.replace(escape, plain);
        }
        text
    };
    path.split("::").map(element).collect::<Vec<_>>().join("::")
}

/// Demangles Rust's names, which heaptrack leaves mangled.
fn readable(conclusion: Conclusion) -> Conclusion {
    let stack = |stack: &str| {
        let name = |call: &str| match call.split_once(' ') {
            Some((name, file)) => format!("{} {file}", rust_name(name)),
            None => rust_name(call),
        };
        stack.split(';').map(name).collect::<Vec<_>>().join(";")
    };
    let map = |metrics: BTreeMap<String, u64>| {
        metrics.into_iter().map(|(key, metric)| (stack(&key), metric)).collect()
    };
    Conclusion {
        allocations: map(conclusion.allocations),
        temporary: map(conclusion.temporary),
        peak_bytes: map(conclusion.peak_bytes),
        leaked_bytes: map(conclusion.leaked_bytes),
        ..conclusion
    }
}

/// Complete files of every version, with blocks freed in order.
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
fn every_version_has_the_metrics_that_heaptrack_prints() {
    for name in FILES {
        let imported = import(&fixture(name));
        assert_eq!(our_conclusion(&imported.profile), readable(judge(&fixture(name))), "{name}");
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
        ["heaptrack was attached to a running process: what was allocated before is not in the metrics"]
    );
    let by_hand = import(&fixture("by-hand.v2.txt"));
    assert_eq!(by_hand.warnings, [""; 0]);
    assert_eq!(by_hand.profile.recording.suppressions, ["leak:work"]);
    assert_eq!(
        warnings("by-hand.v0.txt"),
        [
            "the file does not end with the counts of strings and addresses that heaptrack writes last: the recording may have been \
             cut off, and blocks that were freed later stand as leaked",
            "1 free of blocks whose allocation is not in the file",
            "1 allocation returned an address that was still in use, so a free is missing; the older block is shown as leaked",
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
    assert!(known.times && known.bytes && known.leaked_blocks && !known.calls && !known.lifetimes);
    // Inlined calls come innermost first, and all but the physical function are marked.
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

/// The interpreter converts a raw file into the file that the analysis reads.
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
        let (ours, theirs) = (our_conclusion(&raw.profile), judge(&interpreted));
        assert_eq!(
            (ours.calls, &ours.peak, &ours.leaked),
            (theirs.calls, &theirs.peak, &theirs.leaked),
            "{name}"
        );
        assert_eq!((&ours.peak_rss, &ours.runtime), (&theirs.peak_rss, &theirs.runtime));
        // Pointers are compared if there are any: pair 0, which the dynamic loader's thread freed last, is not temporary.
        assert_eq!(ours.temporary_calls, theirs.temporary_calls - 1, "{name}");
        assert!(raw.complete, "{:?}", raw.warnings);
    }
}

/// Returns the metrics of a site that the format holds.
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

/// Returns metrics without those of heaptrack's own library: the emergency pool of the C++ library.
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

/// Compared with what `mallow record` counts for the same command, on programs for which heaptrack misses nothing.
#[test]
fn a_recording_of_ours_has_the_same_metrics() {
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
    // The program's source counts its calls: heaptrack misses memalign(310) and pvalloc(330).
    let theirs = without_heaptracks_own(&import(&fixture("family.zst")).profile);
    assert_eq!((theirs.allocations, theirs.bytes), (11 - 2, 2706 - 310 - 330));
    assert_eq!((theirs.leaked_blocks, theirs.leaked_bytes), (3 - 1, 1162 - 330));
}

/// `objdump -d family` shows the calls of malloc(24) before 0x120a and of malloc(100) before 0x11f7.
#[test]
fn addresses_of_a_raw_file_are_those_of_its_modules() {
    let profile = import(&fixture("family.raw.zst")).profile;
    let leaf_of = |bytes: u64| {
        let site = profile.sites.iter().find(|site| site.totals.bytes == bytes).unwrap();
        let location = profile.stacks.nodes[site.stack.unwrap().0 as usize].location;
        match profile.stacks.locations[location.0 as usize].address {
            Address::InModule { module, svma } => {
                (profile.stacks.modules[module.0 as usize].path.as_str(), svma)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(leaf_of(24), ("/srv/demo/family", 0x120a));
    assert_eq!(leaf_of(100), ("/srv/demo/family", 0x11f7));
}

/// A file is truncated anywhere, or any of its lines is damaged.
#[test]
fn damaged_files_give_a_profile_or_a_sentence() {
    for name in ["by-hand.v0.txt", "by-hand.v1.txt", "by-hand.v2.txt", "family.zst", "family.raw.zst"] {
        let stored = std::fs::read(fixture(name)).unwrap();
        let text =
            if name.ends_with(".zst") { zstd::decode_all(&stored[..]).unwrap() } else { stored.clone() };
        let whole = read_as(&text, Format::Heaptrack).unwrap().profile.totals();
        for end in 0..text.len() {
            match read_as(&text[..end], Format::Heaptrack) {
                Ok(imported) => {
                    let allocations = imported.profile.totals().allocations;
                    assert!(allocations <= whole.allocations);
                    let again = read_as(&exported(&imported.profile).0, Format::Heaptrack).unwrap();
                    assert_eq!(again.profile.totals().allocations, allocations);
                }
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
    // A truncated archive is read up to there.
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
        imported.profile.stacks.locations.iter().map(|location| location.frames[0].function.len()).sum();
    assert!(bytes < 300 << 20, "{bytes}");
    assert!(imported.warnings[0].starts_with("the names of 1"), "{:?}", imported.warnings);
}
