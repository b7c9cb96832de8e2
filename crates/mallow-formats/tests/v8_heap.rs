//! V8 snapshots that this machine's Node writes, held against the worker of Chrome's DevTools: all sizes of all objects.

use crate::judges::{judge, run};
use mallow_formats::{Format, open_snapshot};
use mallow_heapsnap::{DominatorTree, Graph, ObjectId, Snapshot};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is known of an object: its id, its own and its retained bytes, its class.
#[derive(Debug, PartialEq)]
struct Row {
    id: u64,
    bytes: u64,
    retained_bytes: u64,
    class: String,
}

fn beside(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// The snapshot that a program writes of itself.
fn written(program: &str, folder: &Path) -> PathBuf {
    let file = folder.join("written.heapsnapshot");
    run(Command::new("node").arg(beside("v8_heap").join(program)).arg(&file));
    file
}

/// As DevTools has it.
fn theirs(file: &Path) -> Vec<Row> {
    let package = judge(include_str!("devtools_worker/pinned.json"));
    let text = run(Command::new("node").arg(beside("devtools_worker/drive.mjs")).arg(package).arg(file));
    let row = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("a line of another shape: {line}"));
        let [id, bytes, retained_bytes] = [(); 3].map(|()| word().parse().unwrap());
        Row { id, bytes, retained_bytes, class: serde_json::from_str(word()).unwrap() }
    };
    text.lines().map(row).collect()
}

/// As it was read here.
fn ours(graph: &Graph) -> Vec<Row> {
    let tree = DominatorTree::new(graph);
    let row = |object: ObjectId| Row {
        id: graph.id(object),
        bytes: graph.size_bytes(object),
        retained_bytes: tree.retained_bytes(object).expect("everything is held"),
        class: graph.name(graph.class(graph.class_of(object)).name).to_owned(),
    };
    graph.objects().map(row).collect()
}

/// Compares every object. Returns the snapshot and how many objects' own bytes are not those that the file has.
fn assert_equal(program: &str, objects_min: usize) -> Snapshot {
    let folder = tempfile::tempdir().unwrap();
    let file = written(program, folder.path());
    let (format, snapshot) = open_snapshot(&file).unwrap();
    assert_eq!((format, &snapshot.warnings[..], snapshot.is_partial), (Format::V8Heap, &[][..], false));
    let (ours, theirs) = (ours(&snapshot.graph), theirs(&file));
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() >= objects_min, "{} objects", ours.len());
    let mut different = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if ours != theirs {
            different += 1;
            if different <= 10 {
                eprintln!("ours {ours:?}, theirs {theirs:?}");
            }
        }
    }
    assert_eq!(different, 0, "of {} objects", ours.len());
    snapshot
}

#[test]
fn a_plain_program_has_devtools_sizes() {
    assert_equal("plain.js", 20_000);
}

#[test]
fn weak_maps_closures_and_buffers_have_devtools_sizes() {
    assert_equal("tangled.js", 20_000);
}

#[test]
fn a_large_heap_has_devtools_sizes() {
    assert_equal("large.js", 200_000);
}
