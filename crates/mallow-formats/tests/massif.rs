//! massif's files: the contents of real ones, ours in `ms_print`, and damaged ones.

use crate::valgrind_files::{
    Made, add_made, damaged, exported, fixture, fixture_path, imported, made, sites, stack_of,
};
use mallow_formats::export::ExportFormat;
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::{
    Availability, LiveSample, Process, Profile, ProfileBuilder, Recording, SiteTotals, TimeUnit, Totals,
};
use mallow_trace::read_file;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

const PEAK_AND_END: Availability = Availability { peak: true, leaked: true, ..Availability::NOTHING };

fn massif(name: &str) -> Imported {
    imported(name, Format::Massif)
}

fn read(text: &str) -> Imported {
    read_as(text.as_bytes(), Format::Massif).unwrap()
}

fn refusal(text: &str) -> String {
    read_as(text.as_bytes(), Format::Massif).unwrap_err().to_string()
}

fn sample(time_us: u64, live_bytes: u64, overhead_bytes: u64) -> LiveSample {
    LiveSample { time_us, live_bytes, overhead_bytes, stack_bytes: 0 }
}

/// Returns bytes at the peak and at the end by stack.
fn held(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let of = |(stack, totals): (String, SiteTotals)| (stack, (totals.peak_bytes, totals.leaked_bytes));
    sites(profile).into_iter().map(of).collect()
}

#[test]
fn a_real_file_gives_its_metrics() {
    let Imported { profile, warnings, complete } = massif("massif/realloc_chain.txt");
    assert!(complete);
    assert_eq!(warnings, ["what was leaked is not known: the last snapshot has no tree"]);
    assert_eq!(profile.known, Availability { peak: true, ..Availability::NOTHING });
    let recording = Recording {
        command: vec!["./realloc_chain".into()],
        duration_us: 137_988,
        time_unit: TimeUnit::Instructions,
        ..Recording::default()
    };
    assert_eq!(profile.recording, recording);
    let process = &profile.processes[0];
    assert_eq!(process.totals, Totals { peak_bytes: 10_277, ..Totals::default() });
    assert_eq!((process.peak_us, process.ended_us), (137_960, 137_988));
    assert_eq!(process.live_samples.len(), 18);
    assert_eq!(process.live_samples[13], sample(137_207, 9277, 51));
    assert_eq!(process.live_samples[17], sample(137_988, 8269, 19));
    // Three places were below massif's threshold.
    let below = "[below massif's threshold]";
    let expected = [(below, (85, 0)), ("grow_inner outer main", (8192, 0)), ("move_up main", (2000, 0))];
    assert_eq!(held(&profile), expected.map(|(stack, bytes)| (stack.to_owned(), bytes)).into());
}

#[test]
fn inlined_calls_recursions_and_the_end() {
    let Imported { profile, warnings, .. } = massif("massif/inlined_bytes.txt");
    assert_eq!(warnings, ["what was leaked is what lived at the last snapshot, which is not quite the end"]);
    assert_eq!((profile.known, profile.recording.time_unit), (PEAK_AND_END, TimeUnit::Bytes));
    let totals = Totals { peak_bytes: 4800, leaked_bytes: 300, ..Totals::default() };
    assert_eq!(profile.processes[0].totals, totals);
    let expected = [("descend descend descend descend main", (4000, 0)), ("item~ fill main", (800, 300))];
    assert_eq!(held(&profile), expected.map(|(stack, bytes)| (stack.to_owned(), bytes)).into());
}

/// The same binary under mallow: massif's metrics are the same, stack by stack.
#[test]
fn massif_and_mallow_count_the_same() {
    let ours = read_file(&fixture_path("dhat/inlined.mallow")).unwrap().profile;
    assert_eq!(held(&massif("massif/inlined_bytes.txt").profile), held(&ours));
}

#[test]
fn stacks_and_milliseconds_are_read() {
    let profile = massif("massif/cxx_exceptions_stacks.txt").profile;
    assert_eq!(profile.recording.time_unit, TimeUnit::Microseconds);
    let samples = &profile.processes[0].live_samples;
    let last = LiveSample { time_us: 451_000, live_bytes: 0, overhead_bytes: 0, stack_bytes: 552 };
    assert_eq!((samples.len(), samples[94]), (95, last));
    assert_eq!(profile.recording.duration_us, 451_000);
    // Nothing is live at the last snapshot, which needs no tree to say so.
    assert!(profile.known.leaked);
    assert_eq!(profile.totals().leaked_bytes, 0);
}

#[test]
fn pages_are_called_pages() {
    let Imported { profile, warnings, .. } = massif("massif/inlined_pages.txt");
    let sentence = "the numbers are pages taken from the kernel (--pages-as-heap) and not requests to malloc";
    assert!(warnings.iter().any(|warning| warning == sentence), "{warnings:?}");
    let at_sites: u64 = profile.sites.iter().map(|site| site.totals.peak_bytes).sum();
    assert_eq!(at_sites, profile.totals().peak_bytes);
    assert!(held(&profile).contains_key("[unknown]"), "a frame at address 0 has no name");
}

/// memcheck's tree, compared with mallow's recording of the same binary.
#[test]
fn memchecks_tree_is_metrics_and_no_moments() {
    let Imported { profile, warnings, .. } = massif("massif/inlined_xtree.ms");
    assert_eq!(warnings, [""; 0]);
    let known = Availability {
        allocations: true,
        bytes: true,
        leaked: true,
        leaked_blocks: true,
        ..Availability::NOTHING
    };
    assert_eq!((profile.known, &profile.processes[0].live_samples[..]), (known, &[][..]));
    let ours = read_file(&fixture_path("dhat/inlined.mallow")).unwrap().profile;
    let totals = |totals: Totals| Totals { temporary: 0, peak_bytes: 0, peak_blocks: 0, ..totals };
    assert_eq!(profile.totals(), totals(ours.totals()));
    let of = |profile: &Profile| -> Vec<(String, [u64; 4])> {
        let sites = sites(profile).into_iter();
        sites
            .map(|(stack, site)| {
                (stack, [site.allocations, site.bytes, site.leaked_bytes, site.leaked_blocks])
            })
            .collect()
    };
    assert_eq!(of(&profile), of(&ours));

    let text = String::from_utf8(fixture("massif/inlined_xtree.ms")).unwrap();
    assert_eq!(
        refusal(&text.replace("curB :", "RB :")),
        "this massif file cannot be read: it is a tree of memcheck's leaks or of something else (\"RB : currently allocated \
         Bytes\"); write leaks as XML (--xml=yes), or the heap with --xtree-memory=full"
    );
}

/// Returns a file with these snapshots: (time, bytes, the text after `heap_tree=`).
fn text_of(snapshots: &[(u64, u64, &str)]) -> String {
    let mut text = String::from("desc: (none)\ncmd: ./made\ntime_unit: i\n");
    for (number, (time, bytes, tree)) in snapshots.iter().enumerate() {
        text += &format!("#-----------\nsnapshot={number}\n#-----------\ntime={time}\nmem_heap_B={bytes}\n");
        text += &format!("mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree={tree}\n");
    }
    text
}

#[test]
fn bytes_that_the_tree_does_not_tell_stand_above() {
    let tree = "peak\nn3: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n n2: 60 0x1: f (a.c:1)\n  n0: 30 0x2: \
                g (a.c:2)\n  n0: 20 in 7 places, all below massif's threshold (1.00%)\n n0: 25 0x3: h (a.c:3)\n n0: 5 in 1 place, \
                below massif's threshold (1.00%)";
    let profile = read(&text_of(&[(5, 100, tree)])).profile;
    let below = "[below massif's threshold]";
    let expected = [("", (10, 10)), (below, (5, 5)), ("f", (30, 30)), ("f g", (30, 30)), ("h", (25, 25))];
    assert_eq!(held(&profile), expected.map(|(stack, bytes)| (stack.to_owned(), bytes)).into());
}

#[test]
fn a_peak_without_a_tree_is_said() {
    let Imported { profile, warnings, .. } =
        read(&text_of(&[(0, 0, "empty"), (5, 100, "empty"), (9, 100, "empty")]));
    assert_eq!(
        warnings,
        [
            "no snapshot tells what the peak was made of, so its bytes stand at no site; massif finds a peak only when something \
             is freed",
            "what was leaked is not known: the last snapshot has no tree",
        ]
    );
    assert_eq!((profile.totals().peak_bytes, profile.processes[0].peak_us), (100, 9));
    assert_eq!(held(&profile), [(String::new(), (100, 0))].into());
}

#[test]
fn a_peak_that_is_not_the_highest_is_said() {
    let peak = "peak\nn0: 2048 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.";
    let Imported { profile, warnings, .. } =
        read(&text_of(&[(0, 2060, "empty"), (5, 2048, peak), (9, 0, "empty")]));
    assert_eq!(
        warnings[0],
        "massif's peak of 2.00 KiB is not the most that its snapshots show, which is 2.01 KiB; see its option --peak-inaccuracy"
    );
    assert_eq!(profile.totals().peak_bytes, 2048);
}

#[test]
fn a_command_of_several_lines_is_read() {
    let text = text_of(&[(0, 0, "empty")]).replace("cmd: ./made", "cmd: sh -c true\ntrue again");
    assert_eq!(read(&text).profile.processes[0].command, "sh -c true true again");
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let text = String::from_utf8(fixture("massif/realloc_chain.txt")).unwrap();
    let peak_line = 1 + text.lines().position(|line| line == "heap_tree=peak").unwrap();
    let at = |line: usize, expected: &str| format!("line {}: {expected}", peak_line + line);
    let cases = [
        (("cmd:", "dmc:"), "line 2: cmd: and a command".to_owned()),
        (("time_unit: i", "time_unit: h"), "line 3: a time_unit of i, ms or B".to_owned()),
        (("snapshot=0", "snapshot=x"), "line 5: snapshot= and a number".to_owned()),
        (("time=0", "time=-1"), "line 7: time= and a number".to_owned()),
        (
            ("mem_heap_B=0", "mem_heap_B=18446744073709551616"),
            "line 8: mem_heap_B= and a whole number below 2^64".to_owned(),
        ),
        (("mem_stacks_B=0", "mem_stack=0"), "line 10: mem_stacks_B= and a value".to_owned()),
        (("heap_tree=empty", "heap_tree=oak"), "line 11: heap_tree= and empty, detailed or peak".to_owned()),
        (("n3: 10277", "n4: 10277"), at(9, "a line of the heap tree, such as n0: 12 0x34: main (a.c:5)")),
        (("n3: 10277", "n2: 10277"), at(7, "snapshot= and a number")),
        (("n3: 10277", "n3: 10278"), at(1, "no more than the 10277 bytes that are left of the node above")),
        (("n3: 10277", "n3: x"), at(1, "a line of the heap tree, such as n0: 12 0x34: main (a.c:5)")),
        ((" n1: 2000", " n1: 2086"), at(5, "no more than the 2085 bytes that are left of the node above")),
        (("  n0: 2000", " n0: 2000"), at(6, "a line of the heap tree behind 2 blanks")),
    ];
    for ((from, to), expected) in cases {
        assert!(text.contains(from), "{from}");
        let sentence = refusal(&text.replacen(from, to, 1));
        assert_eq!(sentence, format!("this massif file makes no sense at {expected} was expected"), "{to}");
    }
    assert_eq!(
        refusal("desc: a\n"),
        "this massif file makes no sense at line 1: cmd: and a command behind it was expected"
    );
    assert_eq!(
        refusal("desc: a\ncmd: b\ntime_unit: i\n"),
        "this massif file makes no sense at line 3: snapshot=0 behind it was expected"
    );
}

#[test]
fn huge_numbers_take_no_memory_and_do_not_overflow() {
    let max = u64::MAX;
    let tree = format!("peak\nn{max}: {max} (heap)\n n{max}: {max} 0x1: f");
    assert!(
        refusal(&text_of(&[(max, max, &tree)])).ends_with("a line of the heap tree behind it was expected")
    );
    let tree = format!("peak\nn1: {max} (heap)\n n0: {max} 0x1: f");
    let text = text_of(&[(max, max, &tree)]).replace("time_unit: i", "time_unit: ms");
    let profile = read(&text).profile;
    assert_eq!((profile.totals().peak_bytes, profile.processes[0].peak_us), (max, max));
    exported(&profile, ExportFormat::Massif);
}

#[test]
fn every_prefix_is_an_error_or_fewer_snapshots() {
    let bytes = fixture("massif/realloc_chain.txt");
    let whole = massif("massif/realloc_chain.txt").profile.processes[0].live_samples.clone();
    for length in 0..bytes.len() {
        match read_as(&bytes[..length], Format::Massif) {
            Ok(imported) => {
                let samples = &imported.profile.processes[0].live_samples;
                assert_eq!(samples[..], whole[..samples.len()], "{length}");
            }
            Err(error) => {
                assert!(error.to_string().starts_with("this massif file makes no sense at line"), "{error}")
            }
        }
    }
}

// ms_print.

/// Returns what `ms_print` prints for a file.
fn printed(text: &str) -> Result<String, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut ms_print = Command::new("ms_print");
    let output = ms_print.arg("--threshold=0").arg(file.path()).env("TMPDIR", folder.path()).output();
    let output = output.expect("ms_print is installed with Valgrind, with `cargo xtask packages`");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8(output.stdout).unwrap())
}

/// Returns the number of the snapshot that `ms_print` marks as the peak.
fn peak_of(printed: &str) -> usize {
    let (_, behind) = printed.split_once("Detailed snapshots: [").unwrap();
    let (list, _) = behind.split_once(']').unwrap();
    let peak = list.split(", ").find_map(|number| number.strip_suffix(" (peak)")).unwrap();
    peak.parse().unwrap()
}

/// Returns the table's row of a snapshot: time, total, useful, extra, stacks.
fn row_of(printed: &str, number: usize) -> Vec<u64> {
    let words = |line: &str| -> Option<Vec<u64>> {
        line.split_whitespace().map(|word| word.replace(',', "").parse().ok()).collect()
    };
    let rows = printed.lines().filter_map(words).filter(|row| row.len() == 6);
    rows.into_iter().find(|row| row[0] == number as u64).unwrap()[1..].to_vec()
}

#[test]
fn ms_print_shows_a_recording_of_ours() {
    let profile = read_file(&fixture_path("dhat/inlined.mallow")).unwrap().profile;
    let (text, _) = exported(&profile, ExportFormat::Massif);
    let shown = printed(&text).unwrap();
    assert!(shown.contains("Command:            ./inlined\n"), "{shown}");
    assert!(shown.contains("Number of snapshots: 3\n Detailed snapshots: [1 (peak), 2]\n"), "{shown}");
    assert_eq!(row_of(&shown, 1)[1..], [4800, 4800, 0, 0]);
    assert_eq!(row_of(&shown, 2)[1..], [300, 300, 0, 0]);
    assert!(
        shown
            .contains("\n100.00% (4,800B) (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n")
    );
    let line = |start: &str, end: &str| {
        let found = shown.lines().any(|line| line.starts_with(start) && line.ends_with(end));
        assert!(found, "{start} … {end} in\n{shown}");
    };
    line("->83.33% (4,000B) 0x", ": descend (/srv/demo/vg/inlined.c:32)");
    line("->16.67% (800B) 0x", ": item (/srv/demo/vg/inlined.c:18)");
    line("  ->16.67% (800B) 0x", ": fill (/srv/demo/vg/inlined.c:23)");
    line("->100.00% (300B) 0x", ": item (/srv/demo/vg/inlined.c:18)");
}

/// Real files, read and written again, look the same in `ms_print`.
#[test]
fn ms_print_shows_real_files_as_before() {
    for name in ["realloc_chain", "inlined_bytes", "cxx_exceptions_stacks"] {
        let text = String::from_utf8(fixture(&format!("massif/{name}.txt"))).unwrap();
        let before = printed(&text).unwrap();
        let profile = read(&text).profile;
        let after = printed(&exported(&profile, ExportFormat::Massif).0).unwrap();
        assert_eq!(peak_of(&after), peak_of(&before), "{name}");
        for number in 0..profile.processes[0].live_samples.len() {
            assert_eq!(row_of(&after, number), row_of(&before, number), "{name} {number}");
        }
        assert_eq!(row_of(&after, peak_of(&after))[2], profile.totals().peak_bytes, "{name}");
    }
}

#[test]
fn the_judge_can_say_no() {
    let profile = read_file(&fixture_path("dhat/inlined.mallow")).unwrap().profile;
    let text = exported(&profile, ExportFormat::Massif).0;
    let more_children = text.replacen("n2: 4800", "n3: 4800", 1);
    assert_ne!(more_children, text);
    assert!(printed(&more_children).unwrap_err().contains("expected a tree node line"));
}

/// Two processes, of which the second has the higher peak.
#[test]
fn the_process_with_the_highest_peak_is_written() {
    let mut builder = ProfileBuilder::new(Recording::default(), PEAK_AND_END);
    for (pid, bytes) in [(11, 100), (12, 300), (13, 200)] {
        let command = format!("program {pid}\nnext #line");
        let process = Process { pid, command, peak_us: 5000, ended_us: 9000, ..Process::default() };
        let process = builder.add_process(process);
        let totals = SiteTotals { peak_bytes: bytes, ..SiteTotals::default() };
        add_made(&mut builder, process, &[1], &totals);
    }
    let (text, warnings) = exported(&builder.finish(), ExportFormat::Massif);
    assert_eq!(
        warnings,
        [
            "a massif file holds one process: the one with the highest peak is in it, pid 12, and 2 others are not",
            "times are cut to whole milliseconds",
        ]
    );
    let expected = "desc: (exported by mallow)\ncmd: program 12 next #line\ntime_unit: ms\n#-----------\nsnapshot=0\n#-----------\n\
                    time=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n#-----------\nsnapshot=1\n\
                    #-----------\ntime=5\nmem_heap_B=300\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\nn1: 300 (heap \
                    allocation functions) malloc/new/new[], --alloc-fns, etc.\n n0: 300 0x1001: f1 (made.c:2)\n#-----------\n\
                    snapshot=2\n#-----------\ntime=9\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\nn0: 0 \
                    (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n";
    assert_eq!(text, expected);
    assert_eq!(peak_of(&printed(&text).unwrap()), 1);
}

#[test]
fn what_is_not_known_is_said_and_left_out() {
    let totals = SiteTotals { allocations: 3, bytes: 30, leaked_bytes: 10, ..SiteTotals::default() };
    let known = Availability { allocations: true, bytes: true, leaked: true, ..Availability::NOTHING };
    let (text, warnings) =
        exported(&made(&[(vec![1], totals)], known, TimeUnit::Instructions), ExportFormat::Massif);
    assert_eq!(
        warnings,
        [
            "the profile does not know what its peak was made of, so the file has no peak",
            "a massif file has no place for these and they are left out: allocations",
        ]
    );
    assert!(printed(&text).unwrap().contains("Number of snapshots: 2\n"));
    assert!(!text.contains("heap_tree=peak"));
}

#[test]
fn deep_stacks_end_at_massifs_limit() {
    let functions: Vec<u8> = (0..=255).cycle().take(300).collect();
    let totals = SiteTotals { peak_bytes: 8, ..SiteTotals::default() };
    let profile = made(&[(functions.clone(), totals)], PEAK_AND_END, TimeUnit::Instructions);
    let (text, warnings) = exported(&profile, ExportFormat::Massif);
    assert_eq!(warnings, ["stacks of more than 200 frames end there, as massif's own do"]);
    let profile = read(&text).profile;
    let expected: Vec<String> = functions[..200].iter().map(|function| format!("f{function}")).collect();
    assert_eq!(stack_of(&profile, profile.sites[0].stack), expected.join(" "));
}

/// A round trip of real files keeps every metric and frame.
#[test]
fn real_files_come_back() {
    for name in ["realloc_chain", "inlined_bytes", "inlined_pages", "cxx_exceptions_stacks"] {
        let first = massif(&format!("massif/{name}.txt")).profile;
        let (text, _) = exported(&first, ExportFormat::Massif);
        let second = read(&text).profile;
        assert_eq!(second.processes, first.processes, "{name}");
        assert_eq!((second.known, &second.recording), (first.known, &first.recording), "{name}");
        assert_eq!(held(&second), held(&first), "{name}");
    }
}

fn any_site() -> impl Strategy<Value = Made> {
    let frames = proptest::collection::vec(0..4u8, 0..6);
    (frames, 0..1000u64, prop_oneof![Just(0u64), 0..1000u64]).prop_map(
        |(frames, peak_bytes, leaked_bytes)| {
            (frames, SiteTotals { peak_bytes, leaked_bytes, ..SiteTotals::default() })
        },
    )
}

proptest! {
    #[test]
    fn any_profile_comes_back(made_sites in proptest::collection::vec(any_site(), 0..12)) {
        for unit in [TimeUnit::Microseconds, TimeUnit::Instructions, TimeUnit::Bytes] {
            let first = made(&made_sites, PEAK_AND_END, unit);
            let (text, _) = exported(&first, ExportFormat::Massif);
            let second = read(&text).profile;
            let without_nothing = |profile: &Profile| {
                let mut held = held(profile);
                held.retain(|_, bytes| *bytes != (0, 0));
                held
            };
            prop_assert_eq!(without_nothing(&second), without_nothing(&first));
            prop_assert_eq!(second.totals(), first.totals());
            prop_assert_eq!(&second.recording, &first.recording);
            prop_assert_eq!((second.known, second.processes[0].peak_us), (PEAK_AND_END, 5_000_000));
        }
    }

    #[test]
    fn damage_is_an_error_or_a_profile(kind: u8, at: usize, with: u8, name in 0..3usize) {
        let name = ["realloc_chain.txt", "inlined_pages.txt", "inlined_xtree.ms"][name];
        match read_as(&damaged(&fixture(&format!("massif/{name}")), kind, at, with), Format::Massif) {
            Ok(imported) => drop(exported(&imported.profile, ExportFormat::Massif)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
