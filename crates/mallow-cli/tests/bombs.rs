//! Files of few bytes that come to very much: every command ends with a sentence or an answer, in little memory.
//!
//! The kernel holds the bounds: more private memory than [`MEMORY`] cannot be had, and more processor time ends the process. So a bomb that goes off is an
//! end by a signal.

use mallow_profile::{
    Address, Module, ModuleId, Recording, SiteSummary, SiteTotals, StackId, Summary, Totals,
};
use mallow_trace::{
    ChunkHeader, ChunkKind, End, MappedModule, Modules, NO_PROCESS, Payload, ProcessStart, StackNode, Stacks,
    SymbolFrame, SymbolKey, SymbolLocation, SymbolProcess, Symbols, file_header,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a process of mallow may have for itself, as `prlimit` wants it.
const MEMORY: &str = "--data=536870912";
/// Seconds of processor time. A slow build on a busy machine takes a tenth of it.
const TIME: &str = "--cpu=60";

/// What is asked of every file.
const QUESTIONS: [&[&str]; 12] = [
    &["report"],
    &["report", "--json"],
    &["report", "--tree"],
    &["report", "--tree", "--json"],
    &["report", "--functions"],
    &["flamegraph"],
    &["export", "--format", "dhat"],
    &["export", "--format", "pprof"],
    &["export", "--format", "speedscope"],
    &["export", "--format", "firefox"],
    &["export", "--format", "folded"],
    &["export", "--format", "mallow"],
];

/// Asks: there is an answer, or a sentence.
#[track_caller]
fn ask(folder: &Path, file: &str, question: &[&str]) {
    let (command, flags) = question.split_first().unwrap();
    let mut mallow = Command::new("prlimit");
    mallow.args([MEMORY, TIME, env!("CARGO_BIN_EXE_mallow"), command, file]).args(flags);
    let output = mallow.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => {}
        Some(2) if said.lines().any(|line| line.starts_with("mallow: ") && line.ends_with('.')) => {}
        _ => panic!("{question:?} of {file}: {}\n{said}", output.status),
    }
}

/// A chunk whose payload is packed, however little that leaves of it.
fn chunk(file: &mut Vec<u8>, kind: ChunkKind, process: u32, payload: &[u8]) {
    let stored = zstd::bulk::compress(payload, 3).unwrap();
    let header = ChunkHeader::new(kind, process, &stored, Some(payload.len())).unwrap();
    file.extend(header.to_bytes());
    file.extend(stored);
}

fn put<P: Payload>(file: &mut Vec<u8>, process: u32, payload: &P) {
    let mut bytes = Vec::new();
    payload.encode(&mut bytes);
    chunk(file, P::KIND, process, &bytes);
}

/// A trace of one process whose stacks are a chain, with a site at each of its ends.
struct Chain {
    nodes: u32,
    /// Every so many nodes.
    sites_every: u32,
    /// How long names are.
    name: usize,
    inlined: usize,
}

impl Chain {
    fn trace(&self) -> Vec<u8> {
        let mut file = file_header().to_vec();
        put(&mut file, NO_PROCESS, &Recording { command: vec!["app".to_owned()], ..Recording::default() });
        put(&mut file, 0, &ProcessStart { pid: 1, command: "app".to_owned(), ..ProcessStart::default() });
        let module = MappedModule { path: "/app".to_owned(), end_avma: u64::MAX, ..MappedModule::default() };
        put(&mut file, 0, &Modules { modules: vec![module] });
        let node = |at: u32| StackNode { parent: at.checked_sub(1), avma: 0x1000, ..StackNode::default() };
        put(&mut file, 0, &Stacks { first: 0, nodes: (0..self.nodes).map(node).collect() });
        let frame = SymbolFrame { function: 0, file: Some(0), module: Some(0), ..SymbolFrame::default() };
        let location = SymbolLocation {
            address: Address::InModule { module: ModuleId(0), svma: 0xfff },
            frames: vec![frame; self.inlined],
        };
        let key = SymbolKey { avma: 0x1000, exact: false, generation: 0, location: 0 };
        let symbols = Symbols {
            strings: vec!["n".repeat(self.name)],
            modules: vec![Module { path: "/app".to_owned(), build_id: Vec::new() }],
            locations: vec![location],
            processes: vec![SymbolProcess { process: 0, keys: vec![key] }],
        };
        put(&mut file, NO_PROCESS, &symbols);
        let totals =
            SiteTotals { allocations: 1, bytes: 8, peak_bytes: 8, leaked_bytes: 8, ..SiteTotals::default() };
        let sites: Vec<SiteSummary> = (0..self.nodes)
            .step_by(self.sites_every as usize)
            .map(|at| SiteSummary { stack: StackId(at), totals })
            .collect();
        let all = sites.len() as u64;
        let totals = Totals { allocations: all, bytes: all * 8, leaked_bytes: all * 8, ..Totals::default() };
        put(&mut file, 0, &Summary { totals, sites, ..Summary::default() });
        put(&mut file, NO_PROCESS, &End { duration_us: 10 });
        file
    }
}

/// A trace with one chunk of zeros, or of ones, which are the shortest of most elements.
fn filled(kind: ChunkKind, raw_bytes: usize, with: u8) -> Vec<u8> {
    let mut file = file_header().to_vec();
    let mut payload = vec![with; raw_bytes];
    // The number of elements that a list begins with: as many as there are bytes.
    let mut count = Vec::new();
    let mut left = raw_bytes as u64;
    while left >= 0x80 {
        count.push(left as u8 | 0x80);
        left >>= 7;
    }
    count.push(left as u8);
    payload.splice(..count.len().min(raw_bytes), count);
    let process = if [ChunkKind::RECORDING, ChunkKind::SYMBOLS].contains(&kind) { NO_PROCESS } else { 0 };
    chunk(&mut file, kind, process, &payload);
    file
}

/// A packed text of so many equal lines behind a beginning.
fn text(beginning: &str, line: &str, lines: usize) -> Vec<u8> {
    let text = beginning.to_owned() + &line.repeat(lines);
    zstd::bulk::compress(text.as_bytes(), 3).unwrap()
}

/// One name of eight megabytes for each of very many locations.
fn long_names(locations: usize, name: usize) -> Vec<u8> {
    let mut file = file_header().to_vec();
    put(&mut file, NO_PROCESS, &Recording { command: vec!["app".to_owned()], ..Recording::default() });
    let frame = SymbolFrame { function: 0, ..SymbolFrame::default() };
    let location =
        |at: usize| SymbolLocation { address: Address::Anonymous { avma: at as u64 }, frames: vec![frame] };
    let locations = (0..locations).map(location).collect();
    put(&mut file, NO_PROCESS, &Symbols { strings: vec!["n".repeat(name)], locations, ..Symbols::default() });
    put(&mut file, NO_PROCESS, &End { duration_us: 10 });
    file
}

const HEAPTRACK: &str = "v 10300 2\nX app\nI 1000 10\ns 1 a\n";

/// What the security review found, and others of their kinds.
fn known() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("stacks", filled(ChunkKind::STACKS, 1 << 28, 0)),
        ("modules", filled(ChunkKind::MODULES, 1 << 28, 0)),
        ("recording", filled(ChunkKind::RECORDING, 134 << 20, 0)),
        ("few-stacks", filled(ChunkKind::STACKS, 15 << 20, 0)),
        ("few-modules", filled(ChunkKind::MODULES, 15 << 20, 0)),
        ("few-recording", filled(ChunkKind::RECORDING, 15 << 20, 0)),
        ("few-folded", filled(ChunkKind::FOLDED, 15 << 20, 0)),
        ("few-symbols", filled(ChunkKind::SYMBOLS, 15 << 20, 0)),
        ("few-threads", filled(ChunkKind::THREADS, 15 << 20, 0)),
        ("few-samples", filled(ChunkKind::SAMPLES, 15 << 20, 0)),
        ("heaptrack", text(HEAPTRACK, "t 1 0\n", 30_000_000)),
        ("heaptrack-plus", text(&(HEAPTRACK.to_owned() + "t 1 0\na 10 1\n"), "+ 0\n", 30_000_000)),
        ("folded", text("", "a;b;c 1\n", 20_000_000)),
        (
            "massif",
            text(
                "desc: --x\ncmd: ./app\ntime_unit: i\n",
                "#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n",
                1_500_000,
            ),
        ),
        ("names", long_names(500_000, 8 << 20)),
        ("sites", Chain { nodes: 20_000, sites_every: 1, name: 4, inlined: 1 }.trace()),
        ("inlined", Chain { nodes: 2_000, sites_every: 1, name: 4, inlined: 20_000 }.trace()),
        ("long", Chain { nodes: 2_000, sites_every: 1, name: 4 << 20, inlined: 1 }.trace()),
    ]
}

#[test]
fn every_known_bomb_is_small() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in known() {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        // What comes of a file differs where it has stacks.
        let has_stacks = ["sites", "inlined", "long", "names"].contains(&name);
        for question in QUESTIONS.into_iter().take(if has_stacks { usize::MAX } else { 1 }) {
            ask(folder.path(), name, question);
        }
    }
}

/// The shape of a trace as the review's worst, in any size.
fn bomb() -> impl Strategy<Value = (String, Vec<u8>)> {
    let chain = (1u32..40_000, 1u32..50, 1usize..100_000, 1usize..2_000).prop_map(
        |(nodes, sites_every, name, inlined)| {
            let label = format!(
                "chain of {nodes}, a site at every {sites_every}th, names of {name}, {inlined} inlined"
            );
            (label, Chain { nodes, sites_every, name, inlined }.trace())
        },
    );
    let kinds = [
        ChunkKind::RECORDING,
        ChunkKind::PROCESS_START,
        ChunkKind::MODULES,
        ChunkKind::STACKS,
        ChunkKind::THREADS,
        ChunkKind::SAMPLES,
        ChunkKind::SYMBOLS,
        ChunkKind::FOLDED,
    ];
    let chunk = (prop::sample::select(kinds.to_vec()), 1usize..40_000_000, 0u8..3).prop_map(
        |(kind, raw_bytes, with)| {
            (format!("{raw_bytes} times {with} as {kind:?}"), filled(kind, raw_bytes, with))
        },
    );
    let names = (1usize..500_000, 1usize..8_000_000)
        .prop_map(|(locations, name)| (format!("{locations} names of {name}"), long_names(locations, name)));
    let lines = prop::sample::select(vec!["t 1 0\n", "+ 0\n", "s 1 a\n", "i 1 1\n", "a 1 1\n"]);
    let heaptrack = (lines, 1usize..20_000_000).prop_map(|(line, lines)| {
        (format!("{lines} lines {line:?} of heaptrack"), text(HEAPTRACK, line, lines))
    });
    prop_oneof![chain, chunk, names, heaptrack]
}

#[test]
fn bombs_of_any_size_are_small() {
    // New ones each time; what fails is printed.
    let config = Config {
        cases: 12,
        failure_persistence: None,
        rng_seed: RngSeed::Random,
        max_shrink_iters: 0,
        ..Config::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let question = 0..QUESTIONS.len();
    let ran = TestRunner::new(config).run(&(bomb(), question), |((label, bytes), question)| {
        println!("{label}, {} bytes, {:?}", bytes.len(), QUESTIONS[question]);
        std::fs::write(folder.path().join("bomb"), bytes).unwrap();
        ask(folder.path(), "bomb", QUESTIONS[question]);
        Ok(())
    });
    ran.unwrap();
}

/// An honest profile of much depth keeps all of it.
#[test]
fn a_deep_honest_trace_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Chain { nodes: 10_000, sites_every: 500, name: 30, inlined: 3 }.trace();
    std::fs::write(folder.path().join("deep"), trace).unwrap();
    let mallow = Command::new(env!("CARGO_BIN_EXE_mallow"))
        .args(["report", "deep", "--json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    // All of them, so nothing was cut.
    let note =
        "the stacks of this document repeat their frames, 285,060 in all; --compact writes each frame once";
    assert_eq!(String::from_utf8_lossy(&mallow.stderr), format!("mallow: note: {note}\n"));
    let document: serde_json::Value = serde_json::from_slice(&mallow.stdout).unwrap();
    let frames =
        document["sites"].as_array().unwrap().iter().map(|site| site["frames"].as_array().unwrap().len());
    assert_eq!(frames.sum::<usize>(), (0..10_000).step_by(500).map(|at| (at + 1) * 3).sum::<usize>());
}
