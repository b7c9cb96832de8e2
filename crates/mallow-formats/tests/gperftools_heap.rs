//! gperftools' heap profiles, and related formats, compared with google-pprof and `go tool pprof`.

use crate::oracles::{fixture, fixture_path, run, table_of};
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::{Address, Availability};
use std::process::Command;

fn read(bytes: &[u8]) -> Imported {
    read_as(bytes, Format::GperftoolsHeap).unwrap()
}

/// As Google's servers write it, and pprof reads it: another line before the mappings, which begin with a variable and have no permissions.
#[test]
fn a_memory_map_with_variables_is_read() {
    let text = "heap profile:     5:      500 [    10:     1500] @ heapz_v2/1\n\
                     5:      500 [    10:     1500] @ 0x7f0000001100 0x401200\n\
                --- Memory map: ---\n  source=/srv/demo\n  00400000-00fcb000: $source/server\n\
                  7f0000001000-7f0000002000: $source/lib/libx.so\n";
    let Imported { profile, warnings, complete } = read(text.as_bytes());
    assert!(complete && warnings.is_empty(), "{warnings:?}");
    let modules: Vec<&str> = profile.stacks.modules.iter().map(|module| module.path.as_str()).collect();
    assert_eq!(modules, ["/srv/demo/server", "/srv/demo/lib/libx.so"]);
    let svmas: Vec<Address> = profile.stacks.locations.iter().map(|location| location.address).collect();
    let in_module = |module, svma| Address::InModule { module: mallow_profile::ModuleId(module), svma };
    assert_eq!(svmas, [in_module(0, 0x40_1200), in_module(1, 0x100)]);
    assert_eq!((profile.totals().leaked_blocks, profile.totals().bytes), (5, 1500));
}

/// In the middle of the compressed stream: what stands before is a dump without mappings.
#[test]
fn a_packed_file_that_was_cut_is_read_up_to_the_cut() {
    let text = fixture("gperftools/heaps.heap");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut packed, &text).unwrap();
    let packed = packed.finish().unwrap();
    let Imported { profile, warnings, complete } = read(&packed[..packed.len() / 2]);
    let cut = "the compressed file was cut off: what stands before the cut is read, and the rest is missing";
    assert!(!complete && warnings.iter().any(|warning| warning == cut), "{warnings:?}");
    assert_eq!(profile.totals().bytes, 17_216_320);
}

#[test]
fn exact_metrics_stay_exact() {
    let imported = read(&fixture("gperftools/heaps.heap"));
    let profile = &imported.profile;
    let rows: Vec<_> = profile
        .sites
        .iter()
        .map(|site| {
            let node = profile.stacks.nodes[site.stack.unwrap().0 as usize];
            let Address::InModule { svma, .. } = profile.stacks.locations[node.location.0 as usize].address
            else {
                panic!("the fixture's callers are all in files");
            };
            let t = site.totals;
            (svma, [t.leaked_blocks, t.leaked_bytes, t.allocations, t.bytes])
        })
        .collect();
    // According to the program: 8,000 blocks of 777 bytes; 500 of 10,000; 3,000 of 2,000, half of them freed; and glibc's for a thread.
    assert_eq!(
        rows,
        [
            (0x11f8, [8000, 6_216_000, 8000, 6_216_000]),
            (0x11b2, [500, 5_000_000, 500, 5_000_000]),
            (0x124f, [1500, 3_000_000, 3000, 6_000_000]),
            (rows[3].0, [1, 320, 1, 320]),
        ]
    );
    let totals = profile.totals();
    assert_eq!((totals.allocations, totals.bytes, totals.frees), (11_501, 17_216_320, 1500));
    assert_eq!((totals.leaked_blocks, totals.leaked_bytes), (10_001, 14_216_320));
    assert_eq!(
        profile.known,
        Availability {
            allocations: true,
            bytes: true,
            leaked: true,
            leaked_blocks: true,
            ..Availability::NOTHING
        }
    );
    assert_eq!(imported.warnings, [] as [String; 0]);
    assert!(imported.complete);
}

#[test]
fn a_sample_is_scaled_as_pprof_scales_it() {
    let imported = read(&fixture("gperftools/go.txt"));
    let profile = &imported.profile;
    for (index, metric) in [
        ("inuse_space", profile.totals().leaked_bytes),
        ("inuse_objects", profile.totals().leaked_blocks),
        ("alloc_space", profile.totals().bytes),
        ("alloc_objects", profile.totals().allocations),
    ] {
        let mut command = Command::new("go");
        command.args(["tool", "pprof", "-symbolize=none", "-top", "-unit=B"]);
        command.arg(format!("-sample_index={index}")).arg(fixture_path("gperftools/go.txt"));
        let text = run(&mut command);
        // "Showing nodes accounting for 4809917B, 100% of 4809917B total"
        let total = text.lines().find_map(|line| line.rsplit_once(" of ")?.1.strip_suffix(" total")).unwrap();
        let total: u64 = total.trim_end_matches('B').parse().unwrap();
        // pprof truncates the metrics of each of the 13 stacks, mallow rounds them.
        assert!(total.abs_diff(metric) <= 13, "{index}: {total} and {metric}");
    }
    let leaked = table_of(profile, |totals| totals.leaked_bytes);
    assert!(leaked["main.block"].0 > 1_000_000 && leaked["main.leak"].0 > 1_000_000, "{leaked:?}");
    let block =
        profile.stacks.locations.iter().find(|location| location.frames[0].function == "main.block").unwrap();
    assert_eq!((block.frames[0].file.as_deref(), block.frames[0].line), (Some("heaps/heaps.go"), Some(19)));
    assert!(profile.stacks.locations.iter().all(|location| !location.frames[0].function.starts_with("0x")));
    assert!(imported.complete);
    assert_eq!(
        imported.warnings,
        ["metrics are estimates: the program's allocator sampled one allocation in about every 4096 bytes"]
    );
}

#[test]
fn a_sample_of_live_blocks_tells_no_allocations() {
    let text = "heap profile: 10: 1000 [10: 1000] @ heap_v2/524288\n10: 1000 [10: 1000] @ 0x1 0x2\n\nMAPPED_LIBRARIES:\n";
    let imported = read(text.as_bytes());
    assert!(!imported.profile.known.allocations && imported.profile.known.leaked);
    // 10 blocks of 100 bytes, each sampled with the probability 1 - exp(-100 / 524288).
    assert_eq!(imported.profile.totals().leaked_blocks, 52_434);
    assert_eq!(imported.profile.totals().leaked_bytes, 5_243_380);
    assert_eq!(imported.profile.totals().allocations, 0);
    assert!(imported.warnings[1].contains("does not contain what was allocated"), "{:?}", imported.warnings);
}

#[test]
fn what_is_no_heap_profile_is_told() {
    for (text, expected) in [
        (
            "heap profile: 1: 2 [3: 4] @ growth\n",
            "it is of the kind \"growth\", which does not contain what the program allocated",
        ),
        ("heap profile: 1: 2 [3: 4] @ heap_v2\n", "line 1: the sampling period"),
        ("heap profile: 1: 2\n", "line 1: heap profile: blocks: bytes [blocks: bytes] @ kind"),
        (
            "heap profile: 1: 2 [3: 4] @ heapprofile\n1: 2 [3: -4] @ 0x1\n",
            "line 2: blocks: bytes [blocks: bytes]",
        ),
        (
            "heap profile: 1: 2 [3: 4] @ heapprofile\n1: 2 [3: 4] @ zz\n",
            "line 2: blocks: bytes [blocks: bytes]",
        ),
        ("", "line 1: heap profile:"),
    ] {
        let error = read_as(text.as_bytes(), Format::GperftoolsHeap).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn google_pprof_prints_the_same_totals() {
    let file = fixture_path("gperftools/heaps.heap");
    let run_with = |kind: &str| {
        // The program no longer exists; totals need no names.
        let output = Command::new("google-pprof")
            .args(["--text", "--show_bytes", kind, "/bin/true"])
            .arg(&file)
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    assert!(run_with("--inuse_space").contains("Total: 14216320 B"));
    assert!(run_with("--alloc_space").contains("Total: 17216320 B"));
}

#[test]
fn no_damage_makes_it_panic() {
    for name in ["gperftools/go.txt", "gperftools/heaps.heap"] {
        let bytes = fixture(name);
        let bytes = &bytes[..bytes.len().min(2500)];
        for end in 0..bytes.len() {
            let _ = read_as(&bytes[..end], Format::GperftoolsHeap);
        }
        let mut damaged = bytes.to_vec();
        for at in 0..damaged.len() {
            for change in [0x01, 0x10, 0x80] {
                damaged[at] ^= change;
                let _ = read_as(&damaged, Format::GperftoolsHeap);
                damaged[at] ^= change;
            }
        }
    }
}
