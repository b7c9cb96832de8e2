//! DHAT's files: the contents of real ones, ours in the viewer that ships with Valgrind, and damaged ones.

use crate::valgrind_files::{
    Made, add_made, damaged, exported, fixture, fixture_path, imported, made, sites,
};
use mallow_formats::export::ExportFormat;
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::ReallocAttribution;
use mallow_profile::{Availability, Process, ProfileBuilder, Recording, SiteTotals, TimeUnit, Totals};
use mallow_trace::{read_file, read_file_with};
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;
use std::process::Command;

pub(crate) fn dhat(name: &str) -> Imported {
    imported(name, Format::Dhat)
}

pub(crate) fn text_of(name: &str) -> String {
    String::from_utf8(fixture(name)).unwrap()
}

/// Returns the error for a text.
pub(crate) fn refusal(text: &str) -> String {
    read_as(text.as_bytes(), Format::Dhat).unwrap_err().to_string()
}

/// Returns a site with total bytes and blocks, bytes and blocks at the peak, at the end, and at its own maximum, and lifetimes.
fn site(
    total: (u64, u64),
    peak: (u64, u64),
    end: (u64, u64),
    own: (u64, u64),
    lifetime_us_sum: u64,
) -> SiteTotals {
    SiteTotals {
        bytes: total.0,
        allocations: total.1,
        peak_bytes: peak.0,
        peak_blocks: peak.1,
        leaked_bytes: end.0,
        leaked_blocks: end.1,
        live_bytes_max: own.0,
        live_blocks_at_max: own.1,
        lifetime_us_sum,
        ..SiteTotals::default()
    }
}

fn accessed(totals: SiteTotals, read_bytes: u64, written_bytes: u64) -> SiteTotals {
    SiteTotals { read_bytes, written_bytes, ..totals }
}

#[test]
fn valgrinds_file_gives_its_metrics() {
    let Imported { profile, warnings, complete } = dhat("dhat/realloc_chain.json");
    assert!(complete);
    assert_eq!(
        warnings,
        [
            "the own maxima (mb, mbk) of 3 program points are lower than what they held: Valgrind looks at them only \
             while the whole heap is at a new peak",
        ]
    );
    let known = Availability {
        allocations: true,
        bytes: true,
        peak: true,
        peak_blocks: true,
        leaked: true,
        leaked_blocks: true,
        own_maximum: true,
        own_maximum_blocks: true,
        lifetimes: true,
        accesses: true,
        ..Availability::NOTHING
    };
    assert_eq!(profile.known, known);
    let recording = Recording {
        command: vec!["./realloc_chain".into()],
        duration_us: 152_452,
        time_unit: TimeUnit::Instructions,
        ..Recording::default()
    };
    assert_eq!(profile.recording, recording);
    let totals = Totals {
        allocations: 14,
        bytes: 19_453,
        frees: 13,
        peak_bytes: 8192,
        peak_blocks: 1,
        leaked_bytes: 77,
        leaked_blocks: 1,
        ..Totals::default()
    };
    let process = &profile.processes[0];
    assert_eq!((process.pid, process.ended_us, process.peak_us), (22_754, 152_452, 145_240));
    assert_eq!((process.totals, process.command.as_str()), (totals, "./realloc_chain"));
    let expected = [
        ("first_block main", accessed(site((3000, 2), (0, 0), (0, 0), (0, 0), 890), 1000, 1000)),
        (
            "grow_inner outer main",
            accessed(site((16_368, 10), (8192, 1), (0, 0), (8192, 1), 1242), 8178, 8186),
        ),
        ("other_block main", site((8, 1), (0, 0), (0, 0), (0, 0), 822)),
        ("start_from_null main", site((77, 1), (0, 0), (77, 1), (0, 0), 5573)),
    ];
    assert_eq!(sites(&profile), expected.map(|(stack, totals)| (stack.to_owned(), totals)).into());
}

#[test]
fn inlined_calls_and_recursions_are_told_apart() {
    let profile = dhat("dhat/inlined.json").profile;
    let expected = [
        ("descend descend descend descend main", site((4000, 1), (4000, 1), (0, 0), (4000, 1), 773)),
        ("item~ fill main", site((800, 8), (800, 8), (300, 3), (800, 8), 22_754)),
    ];
    assert_eq!(sites(&profile), expected.map(|(stack, totals)| (stack.to_owned(), totals)).into());
    let item = &profile.stacks.locations[0].frames[0];
    assert_eq!(
        (item.file.as_deref(), item.line, item.module.as_deref()),
        (Some("inlined.c"), Some(18), None)
    );
}

#[test]
fn the_crates_file_gives_its_metrics() {
    let Imported { profile, warnings, .. } = dhat("dhat/rows.json");
    assert_eq!(warnings, [""; 0]);
    assert_eq!(profile.recording.time_unit, TimeUnit::Microseconds);
    let totals = profile.totals();
    assert_eq!((totals.bytes, totals.allocations, totals.frees), (1928, 17, 5));
    assert_eq!((totals.peak_bytes, totals.peak_blocks), (1680, 12));
    assert_eq!((totals.leaked_bytes, totals.leaked_blocks), (808, 12));
    let through = |function: &str| {
        let mut sum = SiteTotals::default();
        let stacks = profile
            .sites
            .iter()
            .filter(|site| profile.frames(site.stack).any(|frame| frame.function == function));
        stacks.for_each(|site| sum.add(&site.totals));
        (sum.bytes, sum.allocations, sum.leaked_bytes, sum.live_bytes_max)
    };
    assert_eq!(through("rows::cells"), (440, 10, 440, 440));
    assert_eq!(through("rows::keep"), (680, 11, 680, 680));
    assert_eq!(through("rows::nest"), (1000, 1, 0, 1000));
    let nest = profile.sites.iter().find(|site| site.totals.bytes == 1000).unwrap();
    let frames: Vec<_> =
        profile.frames(nest.stack).filter(|frame| frame.function.starts_with("rows::")).collect();
    let lines: Vec<_> = frames.iter().map(|frame| (frame.line, frame.inlined)).collect();
    let recursion = lines[1];
    assert_eq!((lines.len(), recursion.1), (5, false));
    assert_eq!(lines[1..4], [recursion; 3]);
}

#[test]
fn a_frame_without_symbols_shows_its_address_and_library() {
    let profile = dhat("dhat/cxx_exceptions.json").profile;
    let pool = profile.sites.iter().find(|site| site.totals.bytes == 72_704).unwrap();
    let frame = profile.frames(pool.stack).next().unwrap();
    let module = Some("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30");
    assert_eq!((frame.function.as_str(), frame.module.as_deref()), ("0x49007b9", module));
    assert!(profile.stacks.locations.iter().all(|location| location.frames[0].function != "malloc"));
    assert!(sites(&profile).contains_key("own_block() descend(int) round_of_throwing() main"));
}

/// The same binaries under Valgrind and under mallow. Lifetimes are in other units, DHAT has no temporaries, and its
/// own maxima may be too low.
#[test]
fn valgrind_and_mallow_count_the_same() {
    for name in ["realloc_chain", "inlined"] {
        let valgrind = dhat(&format!("dhat/{name}.json")).profile;
        let trace = fixture_path(&format!("dhat/{name}.mallow"));
        let ours = read_file_with(&trace, ReallocAttribution::Origin).unwrap().profile;
        let of = |profile| {
            sites(profile)
                .into_iter()
                .map(|(stack, site)| {
                    let peak = (site.peak_bytes, site.peak_blocks);
                    (stack, site.allocations, site.bytes, peak, site.leaked_bytes, site.leaked_blocks)
                })
                .filter(|(_, allocations, ..)| *allocations > 0)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&valgrind), of(&ours), "{name}");
        let totals = |totals: Totals| Totals { reallocations: 0, temporary: 0, failed: 0, ..totals };
        assert_eq!(totals(valgrind.totals()), totals(ours.totals()), "{name}");
    }
}

/// Version 1 has no mode and no units, and other names for some metrics. No tool writes it any more.
#[test]
fn version_1_gives_the_same() {
    let renamed = [
        ("\"dhatFileVersion\":2", "\"dhatFileVersion\":1"),
        (",\"mode\":\"heap\",\"verb\":\"Allocated\"\n,\"bklt\":true,\"bkacc\":true\n", ""),
        (",\"tu\":\"instrs\",\"Mtu\":\"Minstr\"\n,\"tuth\":500\n", ""),
        ("\"te\"", "\"ei\""),
        ("\"tg\"", "\"mi\""),
        ("\"pps\"", "\"aps\""),
        ("\"tl\"", "\"tli\""),
        ("\"eb\"", "\"fb\""),
        ("\"ebk\"", "\"fbk\""),
    ];
    let mut text = text_of("dhat/realloc_chain.json");
    for (now, then) in renamed {
        assert!(text.contains(now), "{now}");
        text = text.replace(now, then);
    }
    let (now, then) = (dhat("dhat/realloc_chain.json"), read_as(text.as_bytes(), Format::Dhat).unwrap());
    assert_eq!(sites(&then.profile), sites(&now.profile));
    assert_eq!(then.profile.processes, now.profile.processes);
    assert_eq!(then.profile.recording, now.profile.recording);
    assert_eq!((then.profile.known, then.warnings), (now.profile.known, now.warnings));
}

#[test]
fn what_is_no_heap_is_refused() {
    let text = text_of("dhat/inlined.json");
    let cases = [
        (
            ("\"mode\":\"heap\"", "\"mode\":\"copy\""),
            "this DHAT file cannot be read: its mode is copy, which counts copies of memory and no allocations; only heap \
             files are read",
        ),
        (
            ("\"mode\":\"heap\"", "\"mode\":\"rust-ad-hoc\""),
            "this DHAT file cannot be read: its mode is rust-ad-hoc, which counts events of the program's own choice and no \
             allocations; only heap files are read",
        ),
        (
            ("\"Allocated\"", "\"Dreamt\""),
            "this DHAT file cannot be read: its mode is heap, which counts something else and no allocations; only heap \
             files are read",
        ),
        (
            ("Version\":2", "Version\":3"),
            "this DHAT file cannot be read: it has version 3 of the format, and versions 1 and 2 are known",
        ),
    ];
    for ((from, to), expected) in cases {
        assert_eq!(refusal(&text.replace(from, to)), expected);
    }
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let text = text_of("dhat/inlined.json");
    let cases = [
        (("\"tb\":800", "\"tb\":8.5"), "line 11: a whole number below 2^64"),
        (("\"tb\":800", "\"tb\":-8"), "line 11: a whole number below 2^64"),
        (("\"tb\":800,", ""), "line 19: the field `tb`"),
        (("\"gb\":800,", ""), "line 20: the field `gb` in program point 1"),
        (("\"mb\":800,", "\"mb\":800,\"mb\":800,"), "line 13: one field `mb` and not two"),
        (("[1,2,3,4]", "[1,2,3,8]"), "line 20: a frame's number below 8 in program point 1"),
        (("[1,2,3,4]", "[1,2,3,-1]"), "line 18: a whole number below 2^32"),
        (("\"fs\":[1,2,3,4]", "\"fs\":7"), "line 18: a list"),
        (("\"pps\"", "\"pqs\""), "line 39: the field `pps`"),
        (("\"ftbl\"", "\"ftbm\""), "line 39: the field `ftbl`"),
        (("\"pid\":", "\"pid\""), "line 7: JSON"),
        (("]\n}\n", "]\n}\n{"), "line 40: JSON"),
    ];
    for ((from, to), expected) in cases {
        assert!(text.contains(from), "{from}");
        let sentence = refusal(&text.replacen(from, to, 1));
        assert_eq!(sentence, format!("this DHAT file makes no sense at {expected} was expected"), "{to}");
    }
    assert_eq!(
        refusal("{\"dhatFileVersion\":2,\"ftbl\":[],\"pps\":[{\"tb\":x}]}"),
        "this DHAT file makes no sense at byte 44: JSON was expected"
    );
}

#[test]
fn an_unknown_clock_leaves_times_out() {
    let text = text_of("dhat/inlined.json").replace("\"instrs\"", "\"fortnights\"");
    let Imported { profile, warnings, .. } = read_as(text.as_bytes(), Format::Dhat).unwrap();
    assert_eq!(
        warnings[0],
        "times and lifetimes are left out: they are counted in fortnights, which is not known"
    );
    assert!(!profile.known.lifetimes && profile.known.leaked);
    assert_eq!((profile.recording.duration_us, profile.processes[0].peak_us), (0, 0));
    assert!(profile.sites.iter().all(|site| site.totals.lifetime_us_sum == 0));
}

#[test]
fn a_file_without_lifetimes_knows_only_totals() {
    let text = "{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"bklt\":false,\"bkacc\":false,\"tu\":\"instrs\",\
                \"te\":9,\"pps\":[{\"tb\":5,\"tbk\":2,\"fs\":[1]}],\"ftbl\":[\"[root]\",\"0x1: main (a.c:1)\"]}";
    let Imported { profile, warnings, .. } = read_as(text.as_bytes(), Format::Dhat).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(profile.known, Availability { allocations: true, bytes: true, ..Availability::NOTHING });
    assert_eq!((profile.totals().bytes, profile.totals().allocations), (5, 2));
    let (text, warnings) = exported(&profile, ExportFormat::Dhat);
    assert_eq!(warnings, [""; 0]);
    assert!(!text.contains("\"tg\"") && !text.contains("\"gb\"") && text.contains("\"bklt\":false"));
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let mut bytes = fixture("dhat/inlined.json");
    let at = bytes.windows(6).position(|window| window == b"./inli").unwrap();
    bytes[at + 2] = 0xff;
    let Imported { profile, warnings, .. } = read_as(&bytes, Format::Dhat).unwrap();
    assert_eq!(warnings[0], "bytes of the file that are not UTF-8 were replaced");
    assert_eq!(profile.processes[0].command, "./\u{fffd}nlined");
}

/// Numbers that no memory could hold, as a length or a metric.
#[test]
fn huge_numbers_take_no_memory_and_do_not_overflow() {
    let huge = 1u64 << 60;
    let point = format!(
        "{{\"tb\":{max},\"tbk\":{max},\"tl\":{max},\"mb\":{max},\"mbk\":1,\"gb\":{max},\"gbk\":1,\"eb\":{max},\"ebk\":{max},\
         \"acc\":[-{huge},1],\"fs\":[1]}}",
        max = u64::MAX
    );
    let text = format!(
        "{{\"dhatFileVersion\":2,\"bklt\":true,\"tu\":\"instrs\",\"te\":{huge},\"tg\":{huge},\"pid\":{huge},\
         \"pps\":[{point},{point}],\"ftbl\":[\"[root]\",\"0x1: main\"]}}"
    );
    let profile = read_as(text.as_bytes(), Format::Dhat).unwrap().profile;
    assert_eq!((profile.sites.len(), profile.totals().bytes), (1, u64::MAX));
    assert_eq!(profile.processes[0].pid, 0);
    exported(&profile, ExportFormat::Dhat);
    let text = text.replace("\"fs\":[1]", &format!("\"fs\":[{}]", u32::MAX));
    assert!(refusal(&text).ends_with("a frame's number below 2 in program point 1 was expected"));
}

#[test]
fn deep_nesting_is_refused() {
    let text = format!("{{\"dhatFileVersion\":2,\"x\":{}", "[".repeat(1 << 20));
    assert!(refusal(&text).ends_with("the rest of the file was expected"));
    let text = text.replace("\"x\"", "\"ftbl\"");
    assert!(refusal(&text).ends_with("the rest of the file was expected"));
}

// The viewer.

/// What `dh_view` shows of a file.
pub(crate) struct Viewed {
    pub(crate) json: serde_json::Value,
}

impl Viewed {
    fn root(&self, metric: &str) -> u64 {
        self.json["root"][metric].as_u64().unwrap_or_else(|| panic!("{metric} in {}", self.json["root"]))
    }

    fn leaves(&self) -> Vec<(Vec<String>, SiteTotals)> {
        let of = |leaf: &serde_json::Value| {
            let metric = |name: &str| leaf[name].as_u64().unwrap_or_else(|| panic!("{name} in {leaf}"));
            let pair = |name: &str| (metric(name), metric(&format!("{name}k")));
            let frames = leaf["frames"].as_array().unwrap();
            let frames = frames.iter().map(|frame| frame.as_str().unwrap().to_owned()).collect();
            (frames, site(pair("tb"), pair("gb"), pair("eb"), pair("mb"), metric("tl")))
        };
        self.json["leaves"].as_array().unwrap().iter().map(of).collect()
    }
}

/// Loads files into the viewer that ships with Valgrind; the code is in `dh_view/drive.js`.
pub(crate) fn view(texts: &[&str]) -> Result<Vec<Viewed>, String> {
    let installed = ["/usr/libexec/valgrind/dh_view.js", "/usr/lib/valgrind/dh_view.js"];
    let viewer = installed.into_iter().find(|path| Path::new(path).is_file());
    let viewer = viewer.expect("Valgrind's dh_view.js is installed, with `cargo xtask packages`");
    let files: Vec<tempfile::NamedTempFile> = texts
        .iter()
        .map(|text| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        })
        .collect();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dh_view/drive.js");
    let mut node = Command::new("node");
    node.arg(driver).arg(viewer).args(files.iter().map(tempfile::NamedTempFile::path));
    let output = node.output().expect("node is installed, with `cargo xtask packages`");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let lines = String::from_utf8(output.stdout).unwrap();
    Ok(lines.lines().map(|line| Viewed { json: serde_json::from_str(line).unwrap() }).collect())
}

#[test]
fn the_viewer_shows_our_metrics() {
    let mut profiles: Vec<_> = ["realloc_chain", "cxx_exceptions", "inlined", "rows"]
        .map(|name| dhat(&format!("dhat/{name}.json")).profile)
        .into();
    for name in ["realloc_chain", "inlined"] {
        profiles.push(read_file(&fixture_path(&format!("dhat/{name}.mallow"))).unwrap().profile);
    }
    let texts: Vec<String> = profiles.iter().map(|profile| exported(profile, ExportFormat::Dhat).0).collect();
    let viewed = view(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!(viewed.len(), profiles.len());
    for (profile, viewed) in profiles.iter().zip(&viewed) {
        let totals = profile.totals();
        assert_eq!((viewed.root("tb"), viewed.root("tbk")), (totals.bytes, totals.allocations));
        assert_eq!((viewed.root("gb"), viewed.root("gbk")), (totals.peak_bytes, totals.peak_blocks));
        assert_eq!((viewed.root("eb"), viewed.root("ebk")), (totals.leaked_bytes, totals.leaked_blocks));
        let lifetimes: u64 = profile.sites.iter().map(|site| site.totals.lifetime_us_sum).sum();
        assert_eq!(viewed.root("tl"), lifetimes);
        assert_eq!(
            viewed.leaves().len(),
            profile.sites.iter().filter(|site| site.totals.allocations > 0).count()
        );
    }
}

#[test]
fn the_viewer_prints_a_recording_of_ours() {
    let profile = read_file(&fixture_path("dhat/inlined.mallow")).unwrap().profile;
    let (text, warnings) = exported(&profile, ExportFormat::Dhat);
    assert_eq!(
        warnings,
        [
            "a DHAT file has no place for these and they are left out: reallocations and failed calls, temporary, first and last \
          times, threads"
        ]
    );
    let viewed = view(&[&text]).unwrap().remove(0);
    let shown = viewed.json["shown"]["At t-gmax (bytes)"].as_str().unwrap();
    let find = |line: &str| assert!(shown.contains(line), "{line} in\n{shown}");
    find("Invocation {\n  Mode:    heap\n  Command: ./inlined\n");
    find("At t-gmax: 4,800 bytes (100%) in 9 blocks (100%), avg size 533.33 bytes");
    find("Total:     4,000 bytes (83.33%, ");
    find("Max:       800 bytes in 8 blocks, avg size 100 bytes");
    find("At t-end:  300 bytes (100%) in 3 blocks (100%), avg size 100 bytes");
    find(": item (/srv/demo/vg/inlined.c:18)\n");
}

/// The viewer refuses two program points with the same frames. Here are three sites that look alike, a stack that is
/// part of another, and two sites without a stack, in two processes.
#[test]
fn sites_that_look_alike_become_one() {
    let one = site((10, 2), (4, 1), (3, 1), (5, 1), 7);
    let mut builder = ProfileBuilder::new(Recording::default(), Availability::ALL);
    for pid in [1, 2] {
        let process = builder.add_process(Process { pid, ..Process::default() });
        for functions in [&[1, 2, 3][..], &[1, 2], &[]] {
            add_made(&mut builder, process, functions, &one);
        }
    }
    let twin = mallow_base::Frame {
        function: "f1".to_owned(),
        file: Some("made.c".to_owned()),
        line: Some(2),
        module: Some("/lib/other.so".to_owned()),
        inlined: false,
        ..mallow_base::Frame::default()
    };
    let twin = builder.location(mallow_profile::Address::Anonymous { avma: 0x1001 }, vec![twin]);
    let stack = builder.stack([twin]);
    builder.add_site(mallow_profile::ProcessIndex(1), stack, &one);
    add_made(&mut builder, mallow_profile::ProcessIndex(1), &[1], &one);
    let (text, warnings) = exported(&builder.finish(), ExportFormat::Dhat);
    assert_eq!(
        warnings[0],
        "2 processes stand in the file as one: their peaks, which lie at different moments, are added up"
    );
    assert_eq!(
        warnings.last().unwrap(),
        "4 sites look like others and were added to them, because DHAT's viewer wants each stack once; their own maxima are \
         upper bounds"
    );
    let twice = site((20, 4), (8, 2), (6, 2), (10, 2), 14);
    let frames = |numbers: &[u64]| -> Vec<String> {
        numbers
            .iter()
            .map(|number| format!("{:#x}: f{number} (made.c:{})", 0x1000 + number, number + 1))
            .collect()
    };
    let viewed = view(&[&text]).unwrap().remove(0);
    let mut leaves = viewed.leaves();
    leaves.sort_by_key(|(frames, _)| frames.len());
    assert_eq!(
        leaves,
        [(frames(&[]), twice), (frames(&[1]), twice), (frames(&[1, 2]), twice), (frames(&[1, 2, 3]), twice)]
    );
    assert_eq!(viewed.root("tb"), 80);
}

/// The viewer does refuse: without merging, it reports an error.
#[test]
fn the_viewer_refuses_a_repeated_location() {
    let (text, _) = exported(&dhat("dhat/inlined.json").profile, ExportFormat::Dhat);
    let repeated = text.replace("\"fs\":[1,2,3]", "\"fs\":[4,5,5,5,6]");
    assert_ne!(repeated, text);
    assert!(view(&[&repeated]).err().unwrap().contains("repeated location"));
}

#[test]
fn what_is_not_known_is_said() {
    let known = Availability { allocations: true, bytes: true, peak: true, ..Availability::NOTHING };
    let metrics = SiteTotals { allocations: 1, bytes: 12, peak_bytes: 12, ..SiteTotals::default() };
    let (text, warnings) = exported(&made(&[(vec![1], metrics)], known, TimeUnit::Bytes), ExportFormat::Dhat);
    assert_eq!(
        warnings,
        [
            "what the profile does not know stands as 0 in the file: lifetimes, own maxima, blocks at own maxima, blocks at \
          t-gmax, bytes at t-end, blocks at t-end"
        ]
    );
    assert_eq!(view(&[&text]).unwrap()[0].root("gb"), 12);
    let none = exported(&made(&[], Availability::ALL, TimeUnit::Microseconds), ExportFormat::Dhat).0;
    assert_eq!(read_as(none.as_bytes(), Format::Dhat).unwrap().profile.sites, []);
}

/// A round trip of real files keeps every metric and frame; only columns and Valgrind's own frames are gone.
#[test]
fn real_files_come_back() {
    for name in ["realloc_chain", "cxx_exceptions", "inlined", "rows", "accesses"] {
        let first = dhat(&format!("dhat/{name}.json")).profile;
        let (text, _) = exported(&first, ExportFormat::Dhat);
        let second = read_as(text.as_bytes(), Format::Dhat).unwrap().profile;
        assert_eq!(second.processes, first.processes, "{name}");
        assert_eq!(second.recording, first.recording, "{name}");
        assert_eq!((second.known, &second.sites), (first.known, &first.sites), "{name}");
        assert_eq!(second.accesses, first.accesses, "{name}");
        assert_eq!(&second.stacks, &first.stacks, "{name}");
    }
}

fn metric() -> impl Strategy<Value = u64> {
    prop_oneof![0..1000u64, Just(1u64 << 60)]
}

fn any_site() -> impl Strategy<Value = Made> {
    let pair = || (metric(), metric());
    let totals = (pair(), pair(), pair(), pair(), metric());
    let frames = proptest::collection::vec(0..4u8, 0..6);
    (frames, totals).prop_map(|(frames, (mut total, peak, end, own, lifetimes))| {
        total.1 += 1;
        (frames, site(total, peak, end, own, lifetimes))
    })
}

proptest! {
    #[test]
    fn any_profile_comes_back(made_sites in proptest::collection::vec(any_site(), 0..12)) {
        let known = Availability { calls: false, temporary: false, times: false, ..Availability::ALL };
        for unit in [TimeUnit::Microseconds, TimeUnit::Instructions, TimeUnit::Bytes] {
            let first = made(&made_sites, known, unit);
            let (text, _) = exported(&first, ExportFormat::Dhat);
            let second = read_as(text.as_bytes(), Format::Dhat).unwrap().profile;
            prop_assert_eq!(sites(&second), sites(&first));
            prop_assert_eq!(&second.recording, &first.recording);
            prop_assert_eq!(second.known, known);
            let frees = |totals: Totals| Totals { frees: 0, ..totals };
            prop_assert_eq!(frees(second.totals()), frees(first.totals()));
        }
    }

    #[test]
    fn damage_is_an_error_or_a_profile(kind: u8, at: usize, with: u8, name in 0..3usize) {
        let name = ["dhat/inlined.json", "dhat/cxx_exceptions.json", "dhat/rows.json"][name];
        match read_as(&damaged(&fixture(name), kind, at, with), Format::Dhat) {
            Ok(imported) => drop(exported(&imported.profile, ExportFormat::Dhat)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
