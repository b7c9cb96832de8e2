//! README.md and the guide's walk-through are correct: their commands are run, and the numbers that they show are
//! those that are printed.
//!
//! A block marked `sh` contains commands. The following block marked `text` is the output of its last command: word
//! for word, except for times and rates. After `text sample` comes the output of a program that differs between
//! machines, so only its shape is compared.

use e2e::program::Program;
use e2e::session::{json, metric};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const WIDTH: usize = 80;
/// Lines of a terminal: the summary must fit, and so must the one line that the sample's program prints.
const HEIGHT: usize = 25;
const ROWS: &str = "37,449";

const README: &str = "README.md";
const WALK: &str = "docs/guide/fewer-allocations.md";
/// The page with the metrics of other tools.
const ACCURACY: &str = "docs/guide/accuracy.md";
/// An introduction must be short.
const README_LINES_MAX: usize = 200;

fn page(name: &str) -> String {
    std::fs::read_to_string(e2e::repository().join(name)).unwrap()
}

/// A fenced block: the text after the fence, and its lines.
struct Block {
    mark: String,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for line in markdown.lines() {
        match (line.strip_prefix("```"), is_open) {
            (Some(mark), false) => {
                blocks.push(Block { mark: mark.to_owned(), text: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

/// A folder in which README's commands can be run.
struct Shell {
    workshop: Workshop,
}

impl Shell {
    fn new() -> Self {
        let workshop = Workshop::new("readme");
        let mallow = std::fs::canonicalize(run::mallow_binary()).unwrap();
        std::fs::create_dir(workshop.file("bin")).unwrap();
        std::os::unix::fs::symlink(mallow, workshop.file("bin/mallow")).unwrap();
        std::os::unix::fs::symlink(e2e::repository().join("programs"), workshop.file("programs")).unwrap();
        Self { workshop }
    }

    /// Runs a line as README means it, and returns its output.
    fn run(&self, line: &str) -> String {
        let typed = line.replace("cargo run --release -- ", "mallow ");
        match typed.as_str() {
            // This test is part of it.
            "cargo xtask ci" => String::new(),
            // The workshop replaces that folder.
            "cd programs/csv-aggregate" => String::new(),
            "cargo build --release" => self.build(),
            _ => {
                let is_known =
                    ["mallow ", "target/release/", "cc "].iter().any(|start| typed.starts_with(start));
                assert!(is_known, "this test does not know how to run `{line}`");
                let finished = self.shell(&typed);
                // A check that finds something exits with 1, which is what README shows.
                let finds = typed.starts_with("mallow check ");
                let Finished { stdout, stderr, .. } =
                    if finds { finished.ended(Exit::Status(1)) } else { finished.well() };
                stdout + &stderr
            }
        }
    }

    fn shell(&self, line: &str) -> Finished {
        let mut shell = run::command("/bin/sh");
        let path = format!("{}:/usr/bin:/bin", self.workshop.file("bin").display());
        run::finish(
            shell.args(["-c", line]).env("PATH", path).env("COLUMNS", "80").current_dir(self.workshop.path()),
        )
    }

    /// Builds the CSV programs outside of the repository, and links them where README expects them.
    fn build(&self) -> String {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("csv-aggregate");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--locked", "--target-dir"]).arg(&target);
        let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/csv-aggregate"))).well();
        std::os::unix::fs::symlink(target, self.workshop.file("target")).unwrap();
        String::new()
    }
}

/// Runs every command of a page, and returns each block of output with what its command printed.
fn observed(shell: &Shell, name: &str) -> Vec<(Block, String)> {
    let mut printed = String::new();
    let mut pairs = Vec::new();
    for block in blocks(&page(name)) {
        match block.mark.as_str() {
            "sh" => printed = block.text.lines().fold(String::new(), |_, line| shell.run(line)),
            "text" | "text sample" => pairs.push((block, std::mem::take(&mut printed))),
            other => panic!("{name} has a block marked `{other}`, which this test does not know"),
        }
    }
    pairs
}

/// Returns the words without times and rates; blank lines and the width of columns, which depend on them, are left out.
fn masked(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(masked_line).collect()
}

fn masked_line(line: &str) -> String {
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_time = |word: &str| ["ns", "us", "µs", "ms", "s"].contains(&word.trim_end_matches(','));
    let is_rate = |word: &str| word.trim_end_matches(',').ends_with("/s");
    let mut kept: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        if is_time(word) || is_rate(word) {
            // `919/s` is one word, `2.46 M/s` and `31 ms` are two.
            if !is_number(word) {
                kept.pop_if(|before| is_number(before));
            }
            kept.push(if is_time(word) { "<time>" } else { "<rate>" });
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// Returns the first words of the lines that are not indented.
fn labels(text: &str) -> Vec<&str> {
    let is_label = |line: &&str| line.starts_with(|c: char| !c.is_whitespace());
    text.lines().filter(is_label).filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn times_and_rates_are_masked_and_nothing_else() {
    let line = "allocations  374,540  2.46 M/s, 20 by realloc";
    assert_eq!(masked_line(line), "allocations 374,540 <rate> 20 by realloc");
    assert_eq!(
        masked_line("bytes 9.05 MiB 185 MiB/s, 9,485,005 bytes"),
        "bytes 9.05 MiB <rate> 9,485,005 bytes"
    );
    assert_eq!(masked_line("45  919/s, 18 by realloc"), "45 <rate> 18 by realloc");
    assert_eq!(masked_line("exit status 0 after 1.40 s"), "exit status 0 after <time>");
}

#[test]
fn every_command_prints_what_the_readme_shows() {
    assert!(page(README).lines().count() < README_LINES_MAX);
    let (pairs, compared) = held(&Shell::new(), README);
    assert_eq!((pairs.len(), compared), (3, 1), "README lost a command or its output");
}

#[test]
fn every_command_of_the_walk_prints_what_it_shows() {
    let shell = Shell::new();
    let (pairs, compared) = held(&shell, WALK);
    assert_eq!((pairs.len(), compared), (4, 4), "the walk lost a command or its output");
    prose_has_the_metrics(&shell, &pairs);
    let drawn = std::fs::read_to_string(shell.workshop.file("map.svg")).unwrap();
    let shown = std::fs::read_to_string(e2e::repository().join("docs/images/csv-map-per-row.svg")).unwrap();
    assert!(drawn == shown, "the flame graph that is shown is not what its command draws");
}

/// Compares each block of output with what its command prints. Returns them, and how many were compared word for word.
fn held(shell: &Shell, name: &str) -> (Vec<(Block, String)>, usize) {
    let pairs = observed(shell, name);
    let mut compared = 0;
    for (block, printed) in &pairs {
        for line in block.text.lines().chain(printed.lines()) {
            assert!(line.chars().count() <= WIDTH, "wider than {WIDTH} columns: {line}");
        }
        if block.mark == "text" {
            assert_eq!(masked(printed), masked(&block.text), "printed (left) and shown in {name} (right)");
            compared += 1;
        } else {
            assert_eq!(labels(printed), labels(&block.text), "printed:\n{printed}");
            assert!(printed.lines().count() <= HEIGHT, "higher than a terminal:\n{printed}");
        }
    }
    (pairs, compared)
}

/// Asserts that the prose around the blocks has the metrics of the blocks.
fn prose_has_the_metrics(shell: &Shell, pairs: &[(Block, String)]) {
    let allocations = |printed: &str| {
        let line = printed.lines().find(|line| line.starts_with("allocations ")).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let (before, after) = (allocations(&pairs[0].1), allocations(&pairs[2].1));
    let walk = page(WALK);
    for sentence in [
        format!("# Fewer allocations: {before} become {after}"),
        format!("{before} allocations for {ROWS} rows"),
        format!("\n{after} allocations in all"),
        format!("CSV file of {ROWS} rows"),
    ] {
        assert!(walk.contains(&sentence), "the walk does not say `{sentence}`");
    }
    assert!(page(README).contains(&format!("from {before} allocations to {after}")));
    let csv = std::fs::read_to_string(shell.workshop.file("test.csv")).unwrap();
    let heading_lines = 1;
    assert_eq!((csv.lines().count() - heading_lines).to_string(), ROWS.replace(',', ""));
}

/// A hazard program, built, and its row in the table of other tools.
struct Peers {
    workshop: Workshop,
    program: PathBuf,
    cells: Vec<String>,
}

impl Peers {
    fn of(name: &str) -> Self {
        let workshop = Workshop::new(name);
        let program = Program::load(name).build(workshop.path(), &Value::Null);
        let start = format!("| `{name}`");
        let accuracy = page(ACCURACY);
        let row = accuracy.lines().find(|line| line.starts_with(&start)).unwrap();
        let cells = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        Self { workshop, program, cells }
    }

    fn truth(&self) -> &str {
        &self.cells[1]
    }

    #[track_caller]
    fn assert_cell(&self, column: usize, start: &str) {
        let cell = &self.cells[column];
        assert!(cell.starts_with(start), "the table says `{cell}` where `{start}` was measured");
    }

    /// Returns totals and the number of processes, as mallow counts them.
    fn mallow(&self) -> (Value, usize) {
        let trace = self.workshop.file("trace.mallow");
        let mut record = run::mallow();
        let _ = run::finish(record.arg("record").arg("-o").arg(&trace).arg("--").arg(&self.program)).well();
        let report = json(&e2e::session::report_of(&trace, &[]).well().stdout);
        (report["totals"].clone(), report["processes"].as_array().unwrap().len())
    }

    /// Returns calls and leaked bytes, as heaptrack prints them; its own block is among the calls.
    fn heaptrack(&self) -> (String, String) {
        let mut heaptrack = run::command("heaptrack");
        heaptrack.arg("-o").arg(self.workshop.file("peer")).arg(&self.program);
        let _ = run::finish(heaptrack.current_dir(self.workshop.path())).well();
        let file = self.workshop.names().into_iter().find(|name| name.starts_with("peer.")).unwrap();
        let mut print = run::command("heaptrack_print");
        let printed = run::finish(print.arg("-f").arg(self.workshop.file(&file))).well().stdout;
        assert!(printed.contains("72.70K"), "heaptrack no longer counts its own C++ library:\n{printed}");
        let behind = |label: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(label)).unwrap();
            line.split_whitespace().next().unwrap().to_owned()
        };
        (behind("calls to allocation functions: "), behind("total memory leaked: "))
    }

    /// Runs DHAT on each process.
    fn dhat(&self, more: &[&str]) -> Finished {
        let mut valgrind = run::command("valgrind");
        valgrind
            .arg("--tool=dhat")
            .arg(format!("--dhat-out-file={}", self.workshop.file("dhat.%p").display()));
        run::finish(valgrind.args(more).arg(&self.program).current_dir(self.workshop.path()))
    }
}

/// Returns the blocks in the lines of this label, in ascending order.
fn dhat_blocks(finished: &Finished, label: &str) -> Vec<u64> {
    let lines = finished.stderr.lines().filter(|line| line.contains(label));
    let mut blocks: Vec<u64> = lines
        .map(|line| line.split(" in ").nth(1).unwrap().split(' ').next().unwrap().replace(',', ""))
        .map(|number| number.parse().unwrap())
        .collect();
    blocks.sort_unstable();
    blocks
}

#[test]
fn peers_miss_functions_of_the_family() {
    let peers = Peers::of("family");
    let (totals, _) = peers.mallow();
    assert_eq!(peers.truth(), format!("{} allocations", metric(&totals, "allocations")));
    peers.assert_cell(2, &metric(&totals, "allocations").to_string());
    peers.assert_cell(3, &format!("{}, of which 1 is its own", peers.heaptrack().0));
    let dhat = peers.dhat(&[]);
    assert!(dhat.stderr.contains("Program aborting because of call to pvalloc"), "{dhat}");
    peers.assert_cell(4, "ends the program at `pvalloc`");
}

#[test]
fn a_realloc_to_nothing_is_no_leak() {
    let peers = Peers::of("realloc_chain");
    let (totals, _) = peers.mallow();
    let leaked = format!("{} B", metric(&totals, "leaked_bytes"));
    assert_eq!(peers.truth(), format!("{leaked} leaked"));
    peers.assert_cell(2, &leaked);
    peers.assert_cell(3, &format!("{}: ", peers.heaptrack().1));
    let dhat = peers.dhat(&[]).well();
    let bytes = leaked.replace(" B", "");
    assert!(dhat.stderr.contains(&format!("At t-end:  {bytes} bytes")), "{dhat}");
    peers.assert_cell(4, &leaked);
}

#[test]
fn peers_miss_forked_children() {
    let peers = Peers::of("fork_without_exec");
    assert_allocations_of_processes(&peers);
    let blocks = dhat_blocks(&peers.dhat(&[]).well(), "Total:");
    assert_eq!(blocks.len(), 3);
    peers.assert_cell(4, &format!("{}, {} and {} in a file each", blocks[0], blocks[1], blocks[2]));
}

#[test]
fn peers_miss_children_that_exec() {
    let peers = Peers::of("posix_spawn_child");
    assert_allocations_of_processes(&peers);
    // Between the fork and the exec, a child's counts include its parent's.
    let alone = dhat_blocks(&peers.dhat(&[]).well(), "Total:");
    assert!(alone.iter().all(|blocks| *blocks == 3), "{alone:?}");
    let followed = dhat_blocks(&peers.dhat(&["--trace-children=yes"]).well(), "Total:");
    assert_eq!(followed, [2, 2, 3]);
    peers.assert_cell(4, "3; children only with `--trace-children=yes`");
}

#[track_caller]
fn assert_allocations_of_processes(peers: &Peers) {
    let (totals, processes) = peers.mallow();
    let allocations = metric(&totals, "allocations");
    assert_eq!(peers.truth(), format!("{allocations} allocations in {processes} processes"));
    peers.assert_cell(2, &format!("{allocations} in {processes}"));
    peers.assert_cell(3, &format!("{}, of which 1 is its own", peers.heaptrack().0));
}
