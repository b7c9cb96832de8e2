//! Stacks that other tools print as text: exact metrics of real files, one sentence for damaged ones.

use mallow_formats::{Format, ImportError, Imported, read_as};
use mallow_profile::ReallocAttribution;
use mallow_profile::{Availability, Measure, Profile};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn fixture_path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixture_path(name)).unwrap()
}

/// Reads bytes whose beginning must identify the format.
#[track_caller]
fn read(bytes: &[u8], format: Format) -> Imported {
    assert_eq!(Format::of_beginning(bytes), Some(format));
    read_as(bytes, format).unwrap()
}

/// Returns the stacks for which a metric is not 0, outermost call first, by name.
fn stacks(profile: &Profile, by: Measure) -> Vec<String> {
    let mut texts: Vec<String> = profile
        .sites
        .iter()
        .filter(|site| by.of_site(&site.totals) > 0)
        .map(|site| {
            let mut names: Vec<&str> =
                profile.frames(site.stack).map(|frame| frame.function.as_str()).collect();
            names.reverse();
            format!("{} {}", names.join(";"), by.of_site(&site.totals))
        })
        .collect();
    texts.sort();
    texts
}

fn error(bytes: &[u8], format: Format) -> String {
    read_as(bytes, format).unwrap_err().to_string()
}

#[test]
fn folded_stacks_are_numbers_of_allocations() {
    let imported = read(b"# made by hand\nmain;work;malloc 12\n\nmain;idle 3\nmain;idle 4\n", Format::Folded);
    let profile = &imported.profile;
    assert_eq!(stacks(profile, Measure::Allocations), ["main;idle 7", "main;work;malloc 12"]);
    assert_eq!(profile.totals().allocations, 19);
    assert_eq!(profile.known, Availability { allocations: true, ..Availability::NOTHING });
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
}

#[test]
fn a_comment_before_the_first_stack_says_what_the_number_of_folded_stacks_is() {
    let imported = read(b"# made by hand\n# metric: leaked\nmain;work 12\nmain;idle 3\n", Format::Folded);
    let totals = imported.profile.totals();
    assert_eq!((totals.leaked_bytes, totals.allocations), (15, 0));
    assert_eq!(imported.profile.known, Availability { leaked: true, ..Availability::NOTHING });
    assert_eq!(imported.warnings, [""; 0]);
    let of_time = read(b"# metric: time\nmain;work 12\n", Format::Folded);
    assert_eq!(of_time.profile.totals().allocations, 12);
    let warning =
        "the numbers are time, which is no metric of a heap; they are taken as numbers of allocations";
    assert_eq!(of_time.warnings, [warning]);
    let too_late = read(b"main;work 12\n# metric: bytes\nmain;idle 3\n", Format::Folded);
    assert_eq!((too_late.profile.totals().allocations, too_late.warnings.len()), (15, 1));
}

#[test]
fn heaptracks_own_folded_stacks_are_read() {
    let imported = read(&fixture("folded/heaptrack.folded"), Format::Folded);
    assert_eq!(imported.profile.totals().allocations, 2010);
    let stacks = stacks(&imported.profile, Measure::Allocations);
    assert!(stacks.contains(&"main (rows.c);parse (rows.c);row (rows.c) 1500".to_owned()), "{stacks:?}");
    assert!(stacks.contains(&"main (rows.c);lose_list (rows.c);row (rows.c) 2".to_owned()), "{stacks:?}");
}

#[test]
fn folded_stacks_that_make_no_sense_are_told() {
    assert_eq!(
        error(b"main 1\nmain;work\n", Format::Folded),
        "this file of folded stacks makes no sense at line 2: frames with semicolons between them, a blank and a number \
         was expected"
    );
    let comparison = error(b"main 1 2\nmain;work 3 4\n", Format::Folded);
    assert!(comparison.contains("it is a comparison"), "{comparison}");
    let fractions = read_as(b"main 1.5\nmain;a 2.0\n", Format::Folded).unwrap();
    assert_eq!(fractions.warnings[1], "1 numbers with a fraction were truncated to whole numbers");
    let large = read_as(b"a 99999999999999999999\nb 1\n", Format::Folded).unwrap();
    assert_eq!(large.profile.totals().allocations, u64::MAX);
}

#[test]
fn dtraces_aggregation() {
    let imported = read(&fixture("dtrace/before.txt"), Format::Dtrace);
    let profile = &imported.profile;
    assert_eq!(profile.totals().allocations, 14_199);
    let stacks = stacks(profile, Measure::Allocations);
    assert_eq!(stacks[0], "0x7fff20301 1000");
    assert!(stacks.contains(&"start;main;sum;static Int.+ infix(_:_:);malloc 1200".to_owned()), "{stacks:?}");
    // Two lines of one function differ only by their offsets.
    assert!(stacks.contains(&"start;main;parse;row;malloc 2000".to_owned()), "{stacks:?}");
    let leaf = profile.frames(profile.sites[0].stack).next().unwrap();
    assert_eq!(leaf.module.as_deref(), Some("libsystem_malloc.dylib"));
    assert!(imported.complete);
}

#[test]
fn dtraces_other_keys_name_processes_and_a_cut_file_is_told() {
    let text = b"\n  nginx\n    libc`malloc+0x1\n    nginx`0x12\n    7\n  curl\n    libc`malloc\n    3\n    libc`cut\n";
    let imported = read(text, Format::Dtrace);
    let commands: Vec<&str> =
        imported.profile.processes.iter().map(|process| process.command.as_str()).collect();
    assert_eq!(commands, ["nginx", "curl"]);
    assert_eq!(stacks(&imported.profile, Measure::Allocations), ["0x12;malloc 7", "malloc 3"]);
    assert!(
        !imported.complete && imported.warnings[1].contains("1 frames are left out"),
        "{:?}",
        imported.warnings
    );
    assert!(error(b"  libc`malloc\n", Format::Dtrace).contains("line 1"));
}

#[test]
fn stacks_of_dtrace_from_which_blanks_were_removed_are_read_and_told() {
    let text = b"total: 8\n\nlibc`malloc+0x1\napp`static Int.+ infix(_:_:)+0x2\n0x12\n7\n\nlibc`malloc\n3\nlibc`cut\n";
    let imported = read(text, Format::Dtrace);
    let expected = ["0x12;static Int.+ infix(_:_:);malloc 7", "malloc 3"];
    assert_eq!(stacks(&imported.profile, Measure::Allocations), expected);
    assert!(imported.warnings[1].starts_with("no stack is indented"), "{:?}", imported.warnings);
    assert!(!imported.complete && imported.warnings[2].contains("1 frames are left out"));
    // One stack that is indented says what the other lines are: the program's own output.
    let mixed = read(b"libc`malloc\n12\n\n  libc`malloc\n  7\nlibc`free\n5\n", Format::Dtrace);
    assert_eq!(stacks(&mixed.profile, Measure::Allocations), ["malloc 7"]);
}

#[test]
fn bpftraces_maps() {
    let imported = read(&fixture("bpftrace/maps.txt"), Format::Bpftrace);
    let profile = &imported.profile;
    let totals = profile.totals();
    // 1500 of 64 bytes, 500 of 120, 2 of 48, 900, 700, 5 of 10.
    assert_eq!((totals.allocations, totals.bytes), (2009, 157_746));
    assert_eq!(profile.known, Availability { allocations: true, bytes: true, ..Availability::NOTHING });
    assert!(profile.processes.iter().any(|process| process.pid > 0), "{:?}", profile.processes);
    assert_eq!(
        imported.warnings,
        [
            "@malloc_calls is taken as numbers of allocations",
            "@bytes is taken as bytes allocated",
            "@free_calls and @sizes left out: no numbers of allocations or bytes by stack",
        ]
    );
}

#[test]
fn bpftraces_statistics_tell_calls_and_bytes() {
    let imported = read(&fixture("bpftrace/stats.txt"), Format::Bpftrace);
    let [process] = &imported.profile.processes[..] else { panic!("{:?}", imported.profile.processes) };
    assert_eq!(process.command, "rows");
    assert!(process.pid > 0);
    assert_eq!((process.totals.allocations, process.totals.bytes), (2009, 157_746));
}

/// The program makes 780 blocks, however often its map is printed; bpftrace prints it once more when it ends.
#[test]
fn a_map_that_bpftrace_printed_more_than_once_counts_once() {
    let repeated =
        |count: u8| format!("@malloc_calls is printed {count} times, each time whole: the last one counts");
    let cleared =
        "@malloc_calls is printed 3 times with other numbers, as if it was cleared in between: all count";
    for (name, warning) in [
        ("printed-at-end", Some(repeated(2))),
        ("printed-while-growing", Some(repeated(3))),
        ("printed-and-cleared", Some(cleared.to_owned())),
    ] {
        let imported = read(&fixture(&format!("bpftrace/{name}.txt")), Format::Bpftrace);
        assert_eq!(imported.profile.totals().allocations, 780, "{name}");
        assert_eq!(imported.warnings.get(1).cloned(), warning, "{name}: {:?}", imported.warnings);
    }
    // Two processes have the same stacks, and each is one entry.
    let imported = read(&fixture("bpftrace/two-processes.txt"), Format::Bpftrace);
    assert_eq!((imported.profile.totals().allocations, imported.warnings.len()), (200, 1));
    let (counted, _) =
        mallow_formats::stackdiff::of_file(&fixture_path("bpftrace/printed-at-end.txt")).unwrap();
    assert_eq!(counted.iter().map(|stack| stack.count).sum::<u64>(), 780);
}

/// As SwiftNIO's script prints it, without the empty lines before bpftrace's own output, and a file that was sorted.
#[test]
fn a_map_that_was_printed_twice_is_known_without_empty_lines() {
    let once = "@malloc_calls[\n    malloc+0\n    a+1\n]: 2\n@malloc_calls[\n    malloc+0\n    b+1\n]: 7\n";
    let of = |text: &str| read(text.as_bytes(), Format::Bpftrace);
    assert_eq!(of(once).profile.totals().allocations, 9);
    assert_eq!(of(&once.repeat(2)).profile.totals().allocations, 9);
    assert!(
        of(&once.repeat(2)).warnings[1].contains("printed 2 times"),
        "{:?}",
        of(&once.repeat(2)).warnings
    );
    let sorted = "@a[\n    x+1\n]: 9\n@a[\n    y+1\n]: 5\n@a[\n    z+1\n]: 7\n";
    assert_eq!((of(sorted).profile.totals().allocations, of(sorted).warnings.len()), (21, 1));
}

#[test]
fn bpftraces_keys_in_any_order_and_frames_of_both_forms() {
    let text = b"Attaching 1 probe...\nhello @you[\n\n@calls[42, \n    malloc+12\n    operator+\n    main+0x1f\n, app]: 5\n\
        @calls[, \n    0x7f01\n]: 2\n@calls[\n]: 1\n@perf[\n\t7f16 malloc+0 (/usr/lib/libc.so.6)\n\t55 0x55 ([unknown])\n]: 3\n\
        @lost[\n    cut";
    let imported = read(text, Format::Bpftrace);
    let profile = &imported.profile;
    assert_eq!(
        stacks(profile, Measure::Allocations),
        [" 1", "0x55;malloc 3", "0x7f01 2", "main;operator+;malloc 5"]
    );
    assert_eq!((profile.processes[0].pid, profile.processes[0].command.as_str()), (42, "app"));
    let perf = profile.sites.iter().find(|site| site.totals.allocations == 3).unwrap();
    let modules: Vec<_> = profile.frames(perf.stack).map(|frame| frame.module.as_deref()).collect();
    assert_eq!(modules, [Some("/usr/lib/libc.so.6"), None]);
    assert!(!imported.complete);
    assert!(
        imported.warnings[0].contains("@calls and @perf are taken as numbers of allocations and added up")
    );
    assert!(error(b"@a[1]: 2\n", Format::Bpftrace).contains("@malloc_calls[ustack()] = count()"));
}

#[test]
fn heaptrack_print_in_both_layouts() {
    for name in ["merged", "single"] {
        let imported = read(&fixture(&format!("heaptrack-print/{name}.txt")), Format::HeaptrackPrint);
        let profile = &imported.profile;
        let totals = profile.totals();
        assert_eq!((totals.allocations, totals.temporary), (2010, 2006), "{name}");
        assert_eq!((totals.peak_bytes, totals.leaked_bytes), (74_410, 1700), "{name}");
        let known = Availability {
            allocations: true,
            temporary: true,
            peak: true,
            leaked: true,
            ..Availability::NOTHING
        };
        assert_eq!(profile.known, known, "{name}");
        assert_eq!(profile.recording.command, ["./rows"], "{name}");
        let calls = stacks(profile, Measure::Allocations);
        assert_eq!(calls.len(), 8, "{name}: {calls:?}");
        assert!(calls.contains(&"main;parse;row 1500".to_owned()), "{name}: {calls:?}");
        assert_eq!(
            stacks(profile, Measure::Leaked),
            ["main;keep;row 700", "main;keep;row 900", "main;lose_list;row 48", "main;lose_list;row 48"],
            "{name}"
        );
        assert_eq!(
            stacks(profile, Measure::Temporary)[1..],
            ["main;parse;row 1500", "main;print;row 500", "main;row 5"],
            "{name}"
        );
        let site = profile.sites.iter().find(|site| site.totals.allocations == 1500).unwrap();
        let leaf = profile.frames(site.stack).next().unwrap();
        assert_eq!((leaf.file.as_deref(), leaf.line), (Some("/srv/demo/rows/rows.c"), Some(13)), "{name}");
        assert_eq!(leaf.module.as_deref(), Some("/srv/demo/rows/rows"), "{name}");
        assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
    }
}

/// Returns calls by function, each counted once per stack.
fn through(profile: &Profile) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for site in &profile.sites {
        let functions: BTreeSet<&str> =
            profile.frames(site.stack).map(|frame| frame.function.as_str()).collect();
        for function in functions {
            *calls.entry(function.to_owned()).or_default() += site.totals.allocations;
        }
    }
    calls
}

/// heaptrack_print shows the inlined frames of one of the stacks that it merges. The data file of the same run has the true ones.
#[test]
fn no_function_has_calls_that_it_never_made() {
    let text = read(&fixture("heaptrack-print/rust-merged.txt"), Format::HeaptrackPrint);
    let data = fixture_path("heaptrack/csv-map-per-row.zst");
    let (_, truth) = mallow_formats::open_profile(&data, ReallocAttribution::OwnSite).unwrap();
    let (told, truth) = (through(&text.profile), through(&truth.profile));
    for (name, calls) in &told {
        assert!(truth.get(name).is_some_and(|most| calls <= most), "{name}: {calls}, {:?}", truth.get(name));
    }
    assert!(told.len() > 60, "{}", told.len());
    let once = told.iter().find(|(name, _)| name.contains("ReaderBuilder"));
    assert!(once.is_none_or(|(_, calls)| *calls == 1), "{once:?}");
    let warning = "heaptrack_print merges stacks of one innermost frame and shows the calls inlined there of one of them: where \
                   it merged several, these are left out; print each stack by itself with -m 0";
    assert!(text.warnings.iter().any(|told| told == warning), "{:?}", text.warnings);
}

#[test]
fn heaptrack_print_says_what_it_left_out() {
    let imported = read(&fixture("heaptrack-print/cut.txt"), Format::HeaptrackPrint);
    assert_eq!(imported.profile.totals().allocations, 2010);
    assert!(!imported.profile.known.leaked);
    assert!(imported.warnings[1].contains("of 2010 calls"), "{:?}", imported.warnings);
}

#[test]
fn heaptrack_prints_inlined_calls_are_known_by_their_missing_module() {
    let text = b"MOST CALLS TO ALLOCATION FUNCTIONS\n3 calls to allocation functions with 1.50K peak consumption from\n\
        inner\n  at a.h:3\n  in /bin/app\nouter\n  at a.c:9\n3 calls with 1.50K peak consumption from:\n    main\n      at a.c:20\n      in /bin/app\n\n";
    let imported = read(text, Format::HeaptrackPrint);
    let frames: Vec<_> = imported.profile.frames(imported.profile.sites[0].stack).collect();
    let told: Vec<_> = frames.iter().map(|f| (f.function.as_str(), f.module.as_deref(), f.inlined)).collect();
    let app = Some("/bin/app");
    assert_eq!(told, [("inner", app, true), ("outer", app, false), ("main", app, false)]);
    assert_eq!(imported.profile.sites[0].totals.peak_bytes, 1500);
    assert!(error(b"MOST CALLS TO ALLOCATION FUNCTIONS\n", Format::HeaptrackPrint).contains("line 1"));
}

#[test]
fn a_group_that_grows_beyond_its_file_is_refused() {
    let mut text = String::from("1 calls to allocation functions with 0B peak consumption from\n");
    text.push_str(&"f".repeat(1 << 20));
    text.push('\n');
    text.push_str(&"1 calls with 0B peak consumption from:\n".repeat(20_000));
    let error = read_as(text.as_bytes(), Format::HeaptrackPrint).unwrap_err();
    assert!(matches!(error, ImportError::Damaged { .. }), "{error}");
}

#[test]
fn memchecks_leaks() {
    let imported = read(&fixture("memcheck/all.xml"), Format::MemcheckXml);
    let profile = &imported.profile;
    assert_eq!(profile.known, Availability { leaked: true, leaked_blocks: true, ..Availability::NOTHING });
    let totals = profile.totals();
    assert_eq!((totals.leaked_bytes, totals.leaked_blocks), (1696, 4));
    assert_eq!(profile.recording.command, ["./rows"]);
    assert_eq!(
        stacks(profile, Measure::Leaked),
        [
            "main;keep;row;malloc 700",
            "main;keep;row;malloc 900",
            "main;lose_list;row;malloc 48",
            "main;lose_list;row;malloc 48"
        ]
    );
    let site = profile.sites.iter().find(|site| site.totals.leaked_bytes == 900).unwrap();
    let row = profile.frames(site.stack).nth(1).unwrap();
    assert_eq!((row.file.as_deref(), row.line), (Some("/srv/demo/rows/rows.c"), Some(13)));
    assert_eq!(row.module.as_deref(), Some("/srv/demo/rows/rows"));
    assert_eq!(
        imported.warnings,
        [
            "memcheck's judgement of the leaks: 48 bytes in 1 blocks definitely lost, 48 bytes in 1 blocks indirectly lost, \
          700 bytes in 1 blocks possibly lost, 900 bytes in 1 blocks still reachable"
        ]
    );
    let noted = &profile.recording.environment[2];
    assert_eq!((noted.0.as_str(), noted.1.as_str()), ("memcheck, possibly lost", "700 bytes in 1 blocks"));
    assert!(imported.complete);
}

#[test]
fn memchecks_indirect_leaks_without_records_are_told() {
    let imported = read(&fixture("memcheck/default.xml"), Format::MemcheckXml);
    assert_eq!(imported.profile.totals().leaked_bytes, 748);
    assert!(
        imported.warnings[1].starts_with("48 bytes that were indirectly lost have no stacks"),
        "{:?}",
        imported.warnings
    );
}

#[test]
fn memchecks_calls_of_one_address_are_inlined() {
    let xml = br"<valgrindoutput><error><kind>Leak_PossiblyLost</kind><xwhat><leakedbytes>9</leakedbytes><leakedblocks>2</leakedblocks>
        </xwhat><stack><frame><ip>0x10</ip><fn>a&lt;b&gt;</fn></frame><frame><ip>0x10</ip><fn>c</fn></frame><frame><ip>0x20</ip></frame>
        </stack></error><error><kind>InvalidRead</kind></error></valgrindoutput>";
    let imported = read(xml, Format::MemcheckXml);
    let frames: Vec<_> = imported.profile.frames(imported.profile.sites[0].stack).collect();
    let told: Vec<_> = frames.iter().map(|frame| (frame.function.as_str(), frame.inlined)).collect();
    assert_eq!(told, [("a<b>", true), ("c", false), ("0x20", false)]);
    assert_eq!(imported.profile.sites.len(), 1);
}

#[test]
fn memchecks_damaged_files() {
    let whole = fixture("memcheck/all.xml");
    let third = whole.windows(7).enumerate().filter(|(_, bytes)| *bytes == b"<stack>").nth(2).unwrap().0;
    let cut = read_as(&whole[..third], Format::MemcheckXml).unwrap();
    assert!(!cut.complete && cut.profile.sites.len() == 2, "{:?}", cut.warnings);
    for text in [&b"<a></b>"[..], b"<a></a>", b"", b"<valgrindoutput><a></b></valgrindoutput>"] {
        assert!(error(text, Format::MemcheckXml).contains("byte"), "{}", String::from_utf8_lossy(text));
    }
    let deep = "<a>".repeat(1000);
    assert!(error(deep.as_bytes(), Format::MemcheckXml).contains("less deep"));
}

const FORMATS: [Format; 5] =
    [Format::Folded, Format::Dtrace, Format::Bpftrace, Format::HeaptrackPrint, Format::MemcheckXml];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn folded_stacks_come_back(rows in prop::collection::btree_map("[a-z :<>()]{0,3}[a-z](;[a-z]{1,4}){0,4}", 1..1000_u64, 1..20)) {
        let text: String = rows.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        let imported = read_as(text.as_bytes(), Format::Folded).unwrap();
        let sum: u64 = rows.values().sum();
        prop_assert_eq!(imported.profile.totals().allocations, sum);
        let of_sites: u64 = imported.profile.sites.iter().map(|site| site.totals.allocations).sum();
        prop_assert_eq!(of_sites, sum);
    }

    #[test]
    fn changed_files_end_in_a_profile_or_a_sentence(
        which in 0..9_usize, at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let names = ["memcheck/all.xml", "memcheck/default.xml", "heaptrack-print/merged.txt", "heaptrack-print/single.txt",
            "heaptrack-print/cut.txt", "bpftrace/maps.txt", "bpftrace/stats.txt", "dtrace/before.txt", "folded/heaptrack.folded"];
        let mut text = fixture(names[which]);
        let at = at.index(text.len());
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
        for format in FORMATS {
            if let Err(error) = read_as(&text, format) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn any_text_ends_in_a_profile_or_a_sentence(text in "[@a-c\\[\\]<>/:;,`+0-9. \n\t]{0,200}") {
        for format in FORMATS {
            let _ = read_as(text.as_bytes(), format).map_err(|error| error.to_string());
        }
    }
}
