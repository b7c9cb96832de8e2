//! V8 snapshots by this machine's Node, compared with the worker of Chrome's DevTools: all sizes of all objects.

use crate::oracles::{judge, run};
use mallow_formats::{Format, open_snapshot};
use mallow_heapsnap::{DominatorTree, Graph, ObjectId, Snapshot};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An object: its id, its own and its retained bytes, its class.
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

/// Returns the snapshot that a program writes of itself.
fn written(program: &str, folder: &Path) -> PathBuf {
    let file = folder.join("written.heapsnapshot");
    run(Command::new("node").arg(beside("v8_heap").join(program)).arg(&file));
    file
}

/// As DevTools computes it.
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

/// As mallow computes it; `None` for what nothing holds.
fn ours(graph: &Graph) -> Vec<Option<Row>> {
    let tree = DominatorTree::new(graph);
    let row = |object: ObjectId| {
        Some(Row {
            id: graph.id(object),
            bytes: graph.size_bytes(object),
            retained_bytes: tree.retained_bytes(object)?,
            class: graph.name(graph.class(graph.class_of(object)).name).to_owned(),
        })
    };
    graph.objects().map(row).collect()
}

/// Compares every object of a program in this folder.
fn assert_equal(program: &str, objects_min: usize) {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = assert_as_devtools(&written(program, folder.path()), 0);
    assert!(snapshot.graph.len() >= objects_min, "{} objects", snapshot.graph.len());
}

/// Compares every object. DevTools makes what nothing holds a child of the root; there may be at most `unheld_max` such objects.
pub(crate) fn assert_as_devtools(file: &Path, unheld_max: usize) -> Snapshot {
    let (format, snapshot) = open_snapshot(file).unwrap();
    assert_eq!((format, &snapshot.warnings[..], snapshot.is_partial), (Format::V8Heap, &[][..], false));
    let (ours, theirs) = (ours(&snapshot.graph), theirs(file));
    assert_eq!(ours.len(), theirs.len());
    let unheld_bytes: u64 =
        ours.iter().zip(&theirs).filter(|(ours, _)| ours.is_none()).map(|(_, theirs)| theirs.bytes).sum();
    let (mut different, mut unheld) = (0, 0);
    for (at, (ours, theirs)) in ours.into_iter().zip(&theirs).enumerate() {
        unheld += usize::from(ours.is_none());
        let as_hung = |row: Row| match at {
            0 => Row { retained_bytes: row.retained_bytes + unheld_bytes, ..row },
            _ => row,
        };
        let ours = ours.map(as_hung);
        if ours.as_ref().is_some_and(|ours| ours != theirs) {
            different += 1;
            if different <= 10 {
                eprintln!("ours {ours:?}, theirs {theirs:?}");
            }
        }
    }
    assert!(
        different == 0 && unheld <= unheld_max,
        "{different} of {} differ, {unheld} unheld",
        theirs.len()
    );
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
