//! CPU profiles as files: Go's own profile is read as `go tool pprof` reads it, what is written is read by the tools
//! that it is for, and nothing is lost in a round trip.

use crate::oracles::{Table, fixture, fixture_path, pprof_top, pprof_top_in};
use crate::speedscope::opened;
use mallow_base::Frame;
use mallow_cpu::*;
use mallow_formats::export::{ExportFormat, Packing, write_cpu};
use mallow_formats::{AnyImported, Format, ImportedCpu, read_any_as};
use mallow_stacks::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};

fn read(bytes: &[u8]) -> ImportedCpu {
    read_as(bytes, Format::Pprof)
}

fn read_as(bytes: &[u8], format: Format) -> ImportedCpu {
    match read_any_as(bytes, format).unwrap() {
        AnyImported::Cpu(imported) => imported,
        AnyImported::Heap(_) => panic!("it was taken for what allocated"),
    }
}

fn exported(profile: &CpuProfile, format: ExportFormat) -> Vec<u8> {
    let mut out = Vec::new();
    write_cpu(profile, format, CpuMetric::Time, Packing::Plain, &mut out).unwrap();
    out
}

/// Returns flat and cumulative metrics by function, computed naively.
fn table_of(profile: &CpuProfile, metric: CpuMetric) -> Table {
    let mut table = Table::new();
    for site in &profile.sites {
        let value = metric.of_site(&site.totals);
        let names: Vec<&str> =
            profile.stacks.frames(site.stack).map(|frame| frame.function.as_str()).collect();
        table.entry((*names.first().unwrap_or(&"[no stack]")).to_owned()).or_default().0 += value;
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            table.entry(name.to_owned()).or_default().1 += value;
        }
    }
    table.retain(|_, metrics| *metrics != (0, 0));
    table
}

/// Returns a profile with two processes with one pid, three threads, kernel frames, an inlined call, code without a file.
fn hard_profile() -> CpuProfile {
    let mut builder = StacksBuilder::default();
    let app = builder.module(Module { path: "/usr/bin/app".into(), build_id: vec![0xab, 0xcd] });
    builder.module(Module { path: "[kernel]".into(), build_id: Vec::new() });
    let frame = |function: &str, module: &str, line| Frame {
        function: function.into(),
        file: (line > 0).then(|| "/src/a.c".to_owned()),
        line: (line > 0).then_some(line),
        module: Some(module.into()),
        inlined: false,
        ..Frame::default()
    };
    let at = |svma| Address::InModule { module: app, svma };
    let main = builder.location(at(0x1100), vec![frame("main", "/usr/bin/app", 10)]);
    let inlined = Frame { inlined: true, ..frame("helper", "/usr/bin/app", 3) };
    let work = builder.location(at(0x1200), vec![inlined, frame("work", "/usr/bin/app", 20)]);
    let kernel = builder.location(
        Address::Anonymous { avma: 0xffff_ffff_8123_4567 },
        vec![frame("do_syscall", "[kernel]", 0)],
    );
    let made = Frame { function: "hot".into(), ..Frame::default() };
    let made = builder.location(Address::Anonymous { avma: 0x7f00_1234_5678 }, vec![made]);
    let stacks = [
        builder.stack([main, work]),
        builder.stack([main, work, kernel]),
        builder.stack([main, made, made]),
        None,
    ];
    let process = |name: &str| CpuProcess { pid: 7, name: name.into(), program: format!("/usr/bin/{name}") };
    let thread =
        |process, tid, name: &str| CpuThread { process: ProcessIndex(process), tid, name: name.into() };
    let sample = |at: usize| CpuSample {
        time_ns: at as u64 * 1_000_000,
        thread: ThreadIndex((at % 3) as u32),
        stack: stacks[at % 4],
        totals: CpuTotals { samples: 1, time_ns: 1_003_009 + at as u64, ..CpuTotals::default() },
    };
    let mut profile = CpuProfile {
        recording: CpuRecording {
            command: vec!["app".into(), "--fast".into()],
            started_unix_ns: 1_700_000_000_000_000_123,
            duration_ns: 14_000_000,
            event: "cpu-clock".into(),
            frequency_hz: Some(997),
        },
        processes: vec![process("app"), process("next")],
        threads: vec![thread(0, 7, "app"), thread(0, 8, "worker"), thread(1, 7, "next")],
        stacks: builder.finish(),
        samples: (0..13).map(sample).collect(),
        known: CpuAvailability { samples: true, time: true, ..CpuAvailability::default() },
        quality: Some(Quality {
            samples: 13,
            lost: 2,
            whole: 9,
            kernel_only: 3,
            too_deep: 1,
            kernel_seen: true,
            not_seen_ns: None,
        }),
        ..CpuProfile::default()
    };
    profile.sites = profile.sums(profile.samples.iter());
    profile
}

/// Returns the same with waits instead of some samples.
fn with_waits() -> CpuProfile {
    let mut profile = hard_profile();
    for (at, sample) in profile.samples.iter_mut().enumerate().filter(|(at, _)| at % 4 == 1) {
        let off_cpu_ns = 7_000_000 + at as u64;
        let blocked_ns = if at == 5 { 0 } else { off_cpu_ns };
        sample.totals = CpuTotals { off_cpu_ns, blocked_ns, switches: 1, ..CpuTotals::default() };
    }
    profile.known = CpuAvailability { off_cpu: true, blocked: true, switches: true, ..profile.known };
    profile.sites = profile.sums(profile.samples.iter());
    profile
}

/// Returns the same for an event that only its own file identifies as one.
fn of_event() -> CpuProfile {
    let mut profile = hard_profile();
    profile.recording.event = "LLC-load-misses:u".into();
    for sample in &mut profile.samples {
        sample.totals = CpuTotals { samples: 1, events: sample.totals.time_ns, ..CpuTotals::default() };
    }
    profile.known = CpuAvailability { samples: true, events: true, ..CpuAvailability::default() };
    profile.sites = profile.sums(profile.samples.iter());
    profile
}

#[test]
fn a_profile_of_go_reads_as_pprof_shows_it() {
    let imported = read(&fixture("cpu/go.pb.gz"));
    let path = fixture_path("cpu/go.pb.gz");
    assert_eq!(table_of(&imported.profile, CpuMetric::Time), pprof_top_in(&path, "cpu", "ns"));
    assert_eq!(table_of(&imported.profile, CpuMetric::Samples), pprof_top(&path, "samples"));
    let known = CpuAvailability { samples: true, time: true, ..CpuAvailability::default() };
    assert_eq!((imported.profile.known, imported.profile.quality), (known, None));
    assert_eq!(imported.profile.samples, []);
    assert_eq!(imported.warnings, Vec::<String>::new());
}

#[test]
fn what_was_sampled_comes_back_as_it_was() {
    [hard_profile(), with_waits(), of_event()].iter().for_each(comes_back);
}

fn comes_back(profile: &CpuProfile) {
    let back = read(&exported(profile, ExportFormat::Pprof)).profile;
    assert_eq!(back.recording, profile.recording);
    assert_eq!((&back.processes, &back.threads), (&profile.processes, &profile.threads));
    assert_eq!((back.known, back.quality), (profile.known, profile.quality));
    let samples = |of: &CpuProfile| -> Vec<_> {
        let frames = |stack| of.stacks.frames(stack).cloned().collect::<Vec<Frame>>();
        of.samples.iter().map(|at| (at.time_ns, at.thread, at.totals, frames(at.stack))).collect()
    };
    assert_eq!(samples(&back), samples(profile));
    assert_eq!(back.totals(), profile.totals());
    // Written again it is the same file.
    assert_eq!(exported(&back, ExportFormat::Pprof), exported(profile, ExportFormat::Pprof));
}

#[test]
fn pprof_shows_what_was_sampled() {
    let profile = hard_profile();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&exported(&profile, ExportFormat::Pprof)).unwrap();
    let theirs = pprof_top_in(file.path(), "cpu", "ns");
    let ours = table_of(&profile, CpuMetric::Time);
    for name in ["main", "helper", "work", "do_syscall", "hot"] {
        assert_eq!(theirs.get(name), ours.get(name), "{name} of {theirs:?}");
    }
    assert_eq!(theirs.values().map(|own| own.0).sum::<u64>(), profile.totals().time_ns);
}

#[test]
fn other_tools_show_waits_as_what_they_are() {
    let profile = with_waits();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&exported(&profile, ExportFormat::Pprof)).unwrap();
    for (metric, word, unit) in [
        (CpuMetric::OffCpu, "off-cpu", "ns"),
        (CpuMetric::Blocked, "blocked", "ns"),
        (CpuMetric::Time, "cpu", "ns"),
    ] {
        let theirs = pprof_top_in(file.path(), word, unit);
        let ours = table_of(&profile, metric);
        for name in ["main", "do_syscall"] {
            assert_eq!(theirs.get(name), ours.get(name), "{name} of {theirs:?}");
        }
    }
    let of_firefox: Value = serde_json::from_slice(&exported(&profile, ExportFormat::Firefox)).unwrap();
    let weights = of_firefox["threads"].as_array().unwrap().iter().flat_map(|thread| {
        thread["samples"]["weight"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap())
    });
    // A wait of 7 ms is 6 whole intervals of 997 in a second.
    let waits = profile.samples.iter().filter(|sample| sample.totals.switches > 0).count() as u64;
    assert_eq!(weights.sum::<u64>(), profile.totals().samples + waits * 6);
}

#[test]
fn speedscope_shows_each_thread_with_its_time() {
    let profile = hard_profile();
    let text = String::from_utf8(exported(&profile, ExportFormat::Speedscope)).unwrap();
    let opened = opened(&text).unwrap();
    let shown: Vec<(String, u64)> = opened["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shown| {
            assert_eq!(shown["unit"], "nanoseconds");
            (shown["name"].as_str().unwrap().to_owned(), shown["total"].as_u64().unwrap())
        })
        .collect();
    let of_thread = |thread: u32| -> u64 {
        let samples = profile.samples.iter().filter(|sample| sample.thread.0 == thread);
        samples.map(|sample| sample.totals.time_ns).sum()
    };
    let expected = [("app 7", 0), ("worker 8", 1), ("next 7", 2)];
    assert_eq!(shown, expected.map(|(name, thread)| (name.to_owned(), of_thread(thread))));
}

#[test]
fn the_firefox_profiler_has_every_sample_at_its_time() {
    let profile = hard_profile();
    let document: Value = serde_json::from_slice(&exported(&profile, ExportFormat::Firefox)).unwrap();
    let threads = document["threads"].as_array().unwrap();
    for (number, (thread, name)) in threads.iter().zip(["app", "worker", "next"]).enumerate() {
        let samples = &thread["samples"];
        let expected: Vec<&CpuSample> =
            profile.samples.iter().filter(|sample| sample.thread.0 as usize == number).collect();
        assert_eq!(
            (samples["length"].as_u64(), &thread["name"]),
            (Some(expected.len() as u64), &name.into())
        );
        let mut time = 0.0;
        for (at, sample) in expected.iter().enumerate() {
            time += samples["timeDeltas"][at].as_f64().unwrap();
            assert!((time - sample.time_ns as f64 / 1e6).abs() < 1e-6, "{time} of {sample:?}");
        }
    }
    assert_eq!(threads.len(), 3);
    assert_eq!(document["meta"]["product"], "app --fast");
}

#[test]
fn folded_stacks_are_one_line_for_each_stack_of_names() {
    let profile = hard_profile();
    let folded = String::from_utf8(exported(&profile, ExportFormat::Folded)).unwrap();
    assert_eq!(folded.lines().next(), Some("# metric: time"));
    let lines: Vec<(&str, u64)> = folded
        .lines()
        .skip(1)
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, time)| (stack, time.parse().unwrap()))
        .collect();
    assert_eq!(lines.iter().map(|line| line.1).sum::<u64>(), profile.totals().time_ns);
    let names: BTreeSet<&str> = lines.iter().map(|line| line.0).collect();
    assert_eq!(names.len(), lines.len());
    assert!(names.contains("app;main;work;helper;do_syscall") && names.contains("next"), "{names:?}");
}

#[test]
fn no_damage_makes_it_panic() {
    let mut plain = Vec::new();
    let packed = exported(&hard_profile(), ExportFormat::Pprof);
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    for end in 0..plain.len() {
        let _ = read_any_as(&plain[..end], Format::Pprof);
    }
    for at in 0..plain.len() {
        for change in [0x01, 0x08, 0x80, 0xff] {
            plain[at] ^= change;
            let _ = read_any_as(&plain, Format::Pprof);
            plain[at] ^= change;
        }
    }
}

#[test]
fn the_text_of_perf_script_has_every_sample_with_its_stack() {
    let bytes = fixture("cpu/script.txt");
    let text = std::str::from_utf8(&bytes).unwrap();
    let imported = read_as(&bytes, Format::PerfScript);
    let blocks: Vec<&str> = text.split("\n\n").filter(|block| !block.trim().is_empty()).collect();
    let profile = &imported.profile;
    assert_eq!((profile.samples.len(), profile.totals().samples), (blocks.len(), blocks.len() as u64));
    // 99 samples a second, each with the nanoseconds that it represents.
    assert_eq!(profile.totals().time_ns, blocks.len() as u64 * 10_101_010);
    let table = table_of(profile, CpuMetric::Samples);
    let naive = |name: &str| {
        let is_it = |line: &&str| {
            line.split_whitespace().nth(1).is_some_and(|word| word.split('+').next() == Some(name))
        };
        let own =
            blocks.iter().filter(|block| block.lines().nth(1).as_ref().is_some_and(is_it)).count() as u64;
        let under =
            blocks.iter().filter(|block| block.lines().skip(1).any(|line| is_it(&line))).count() as u64;
        (own, under)
    };
    for name in ["spin", "three", "of_thread", "deep", "of_child", "main", "_start"] {
        assert_eq!(table.get(name).copied().unwrap_or_default(), naive(name), "{name}");
    }
    let names: BTreeSet<&str> = profile.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert!(names.contains("two-parts") && names.contains("shares"), "{names:?}");
    assert_eq!(imported.warnings, Vec::<String>::new());
}

#[test]
fn perf_data_is_read_packed_or_not() {
    for (path, samples) in [("cpu/chains.data", 50), ("cpu/packed.data", 65)] {
        let imported = read_as(&fixture(path), Format::PerfData);
        let profile = &imported.profile;
        assert_eq!((profile.totals().samples, profile.samples.len()), (samples, samples as usize), "{path}");
        assert_eq!(profile.totals().time_ns, samples * 5_025_125, "{path}");
        assert_eq!(
            (profile.recording.event.as_str(), profile.recording.frequency_hz),
            ("cpu-clock", Some(199))
        );
        let known = CpuAvailability { samples: true, time: true, ..CpuAvailability::default() };
        assert_eq!((profile.known, imported.complete), (known, true), "{path}");
        assert_eq!(profile.quality.map(|quality| quality.lost), Some(0));
        // The forked child executes another program; the thread has its own name.
        let names: BTreeSet<&str> = profile.threads.iter().map(|thread| thread.name.as_str()).collect();
        assert!(["shares", "two-parts", "exe"].iter().all(|name| names.contains(name)), "{names:?}");
        let is_named = |module: &Module| module.path == "/srv/demo/cpu/shares";
        assert!(profile.stacks.modules.iter().any(is_named), "{:?}", profile.stacks.modules);
        assert!(profile.samples.iter().all(|sample| sample.stack.is_some()), "{path}");
    }
}

#[test]
fn torn_and_damaged_files_of_perf_are_told_and_never_a_panic() {
    let whole = fixture("cpu/chains.data");
    let error = |bytes: &[u8]| match read_any_as(bytes, Format::PerfData) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let mut unfinished = whole.clone();
    unfinished[48..56].fill(0);
    assert!(error(&unfinished).contains("did not end in order"), "{}", error(&unfinished));
    // From another machine: neither the files nor the kernel are those of this machine, so nothing is opened.
    let mut bytes = whole;
    for (here, there) in [("/usr/lib/", "/usr/LIB/"), ("/srv/demo", "/srv/DEMO"), ("[kernel.", "[KERNEL.")] {
        while let Some(at) = bytes.windows(here.len()).position(|window| window == here.as_bytes()) {
            bytes[at..at + here.len()].copy_from_slice(there.as_bytes());
        }
    }
    let places: Vec<usize> = (0..1500).chain(bytes.len() - 2000..bytes.len()).step_by(2).collect();
    for &at in &places {
        let _ = read_any_as(&bytes[..at], Format::PerfData);
        for change in [0x01, 0x80, 0xff] {
            bytes[at] ^= change;
            let _ = read_any_as(&bytes, Format::PerfData);
            bytes[at] ^= change;
        }
    }
}
