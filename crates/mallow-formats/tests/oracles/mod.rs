//! The real readers of exported files, and the same tables computed naively from a profile.
//!
//! Not every test uses every reader.
#![allow(dead_code)]

use mallow_base::Frame;
use mallow_profile::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flat and cumulative metrics by function.
pub(crate) type Table = BTreeMap<String, (u64, u64)>;

/// The name of a metric in such a tool, and how a site has it.
pub(crate) type Judged = (&'static str, fn(&SiteTotals) -> u64);

/// Returns a file under `fixtures/`.
pub(crate) fn fixture(path: &str) -> Vec<u8> {
    let path = fixture_path(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns its path.
pub(crate) fn fixture_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

/// Returns where `cargo xtask packages` installs an npm package; `pinned` is its package.json.
pub(crate) fn judge(pinned: &str) -> PathBuf {
    let pinned: serde_json::Value = serde_json::from_str(pinned).unwrap();
    let folder = format!("{}-{}", pinned["name"].as_str().unwrap(), pinned["version"].as_str().unwrap());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join(folder);
    assert!(path.is_dir(), "{} is not there; `cargo xtask packages` fetches it", path.display());
    path
}

/// Returns the table of a profile: a function counts once per stack, however often it occurs there.
pub(crate) fn table_of(profile: &Profile, metric: fn(&SiteTotals) -> u64) -> Table {
    let mut table = Table::new();
    for site in &profile.sites {
        let value = metric(&site.totals);
        let names: Vec<&str> = profile.frames(site.stack).map(|frame| frame.function.as_str()).collect();
        if let Some(leaf) = names.first() {
            table.entry((*leaf).to_owned()).or_default().0 += value;
        }
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            table.entry(name.to_owned()).or_default().1 += value;
        }
    }
    table.retain(|_, metrics| *metrics != (0, 0));
    table
}

/// Returns what jeprof prints; without a program, for files that contain their names.
pub(crate) fn jeprof(file: &Path, kind: &str) -> Table {
    let text =
        run(Command::new("jeprof").args(["--text", "--show_bytes", "--nodecount=100000", kind]).arg(file));
    let mut table = Table::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [flat, _, _, cumulative, _, name @ ..] = &words[..] {
            table.insert(name.join(" "), (flat.parse().unwrap(), cumulative.parse().unwrap()));
        }
    }
    assert!(!table.is_empty(), "jeprof printed no table:\n{text}");
    table
}

/// Returns the bytes or numbers that `go tool pprof -top` prints.
pub(crate) fn pprof_top(file: &Path, sample_index: &str) -> Table {
    pprof_top_in(file, sample_index, "B")
}

/// Returns the same in a unit.
pub(crate) fn pprof_top_in(file: &Path, sample_index: &str, unit: &str) -> Table {
    let mut command = Command::new("go");
    command.args([
        "tool",
        "pprof",
        "-symbolize=none",
        "-top",
        &format!("-unit={unit}"),
        "-nodefraction=0",
        "-nodecount=100000",
    ]);
    let text = run(command.arg(format!("-sample_index={sample_index}")).arg(file));
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    let mut table = Table::new();
    for row in rows {
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        let [flat, _, _, cumulative, _, name @ ..] = &words[..] else {
            panic!("a row of another shape: {row}")
        };
        let number = |text: &str| text.trim_end_matches(unit).parse::<u64>().unwrap();
        let name = name.join(" ");
        let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
        table.insert(name.to_owned(), (number(flat), number(cumulative)));
    }
    assert!(!table.is_empty(), "go tool pprof printed no table:\n{text}");
    table
}

/// Runs a command, which must succeed, and returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    // pprof stores settings in the home folder, which a test must not change.
    let settings = tempfile::tempdir().unwrap();
    let output =
        command.env("PPROF_TMPDIR", settings.path()).env("XDG_CONFIG_HOME", settings.path()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Returns a profile with difficult cases: inlined calls, recursion, a location without an address, two locations at
/// one address, code outside modules, two processes, a site without a stack, a live block of no bytes.
pub(crate) fn hard_profile() -> Profile {
    let recording = Recording {
        command: vec!["/usr/bin/app".into(), "--fast".into()],
        started_unix_us: 1_700_000_000_000_000,
        duration_us: 2_500_000,
        ..Recording::default()
    };
    let known = Availability {
        allocations: true,
        bytes: true,
        leaked: true,
        leaked_blocks: true,
        peak: true,
        peak_blocks: true,
        temporary: true,
        ..Availability::NOTHING
    };
    let mut builder = ProfileBuilder::new(recording, known);
    let app = builder.module(Module { path: "/usr/bin/app".into(), build_id: vec![0xab, 0xcd, 0xef, 0x01] });
    let library = builder.module(Module { path: "/usr/lib/lib c++.so.6".into(), build_id: Vec::new() });
    let at = |module, svma| Address::InModule { module, svma };
    let main = builder.location(at(app, 0x1100), vec![frame("main", 10, false)]);
    let work = builder.location(
        at(app, 0x1200),
        vec![frame("helper", 3, true), frame("make", 2, true), frame("work", 20, false)],
    );
    let same_place = builder.location(at(app, 0x1200), vec![frame("other_name", 7, false)]);
    let decrement = builder.location(at(library, 0x40_0000), vec![frame("Cursor::operator--", 1, false)]);
    let jit = builder.location(Address::Anonymous { avma: 0x7f00_1234_5678 }, Vec::new());
    let nowhere = builder.location(Address::Unknown, vec![frame("interpreted", 5, false)]);
    let first =
        builder.add_process(Process { pid: 7, command: "/usr/bin/app --fast".into(), ..Process::default() });
    let second =
        builder.add_process(Process { pid: 8, command: "/usr/bin/app".into(), ..Process::default() });
    let sites: [(ProcessIndex, &[LocationId], u64); 8] = [
        (first, &[main, work], 1),
        (second, &[main, work], 10),
        (first, &[main, work, work, decrement], 100),
        (first, &[main, same_place], 1_000),
        (first, &[main, nowhere], 10_000),
        (first, &[main, jit, nowhere], 100_000),
        (first, &[], 1_000_000),
        (first, &[main, decrement], 0),
    ];
    for (process, outermost_first, scale) in sites {
        let stack = builder.stack(outermost_first.iter().copied());
        builder.add_site(process, stack, &metrics(scale));
    }
    let mut profile = builder.finish();
    let sums: Vec<Totals> = (0..2).map(|process| sum(&profile, ProcessIndex(process))).collect();
    profile.processes.iter_mut().zip(sums).for_each(|(process, totals)| process.totals = totals);
    profile
}

/// Returns metrics that are all different; the smallest has one live block without bytes and nothing else.
fn metrics(scale: u64) -> SiteTotals {
    SiteTotals {
        allocations: 7 * scale,
        bytes: 700 * scale,
        temporary: 2 * scale,
        peak_blocks: 4 * scale,
        peak_bytes: 500 * scale,
        leaked_blocks: (3 * scale).max(1),
        leaked_bytes: 300 * scale,
        ..SiteTotals::default()
    }
}

fn sum(profile: &Profile, process: ProcessIndex) -> Totals {
    let mut totals = Totals::default();
    for site in profile.sites.iter().filter(|site| site.process == process) {
        totals.add(&Totals {
            allocations: site.totals.allocations,
            bytes: site.totals.bytes,
            temporary: site.totals.temporary,
            peak_blocks: site.totals.peak_blocks,
            peak_bytes: site.totals.peak_bytes,
            leaked_blocks: site.totals.leaked_blocks,
            leaked_bytes: site.totals.leaked_bytes,
            frees: site.totals.allocations.saturating_sub(site.totals.leaked_blocks),
            ..Totals::default()
        });
    }
    totals
}

fn frame(function: &str, line: u32, inlined: bool) -> Frame {
    Frame {
        function: function.into(),
        file: Some("/src/app.c".into()),
        line: Some(line),
        module: Some(
            if function.starts_with("Cursor") { "/usr/lib/lib c++.so.6" } else { "/usr/bin/app" }.into(),
        ),
        inlined,
        ..Frame::default()
    }
}
