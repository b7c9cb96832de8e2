//! Woven pairs against the twin that goes through both stacks to their ends.

use super::*;
use crate::shared_memory::SharedMemory;
use mallow_scripts::{entries, weave};
use mallow_wire::script::{READ, RECORD_RUNTIME, RUNTIME_CPYTHON, script_key};
use mallow_wire::shared::{CODES_OFFSET, node_key};
use proptest::collection::vec;
use proptest::prelude::*;

/// Scripts' nodes begin here.
const SCRIPTS: u32 = 1_000;

/// Code from 0x900 to 0x910 interprets.
fn interpreter(memory: &SharedMemory) -> Scripts {
    let scripts = interpreters(memory, &[[0x900, 0x910]]);
    assert!(scripts.interprets(0x905) && !scripts.interprets(0x910));
    scripts
}

/// What a log tells that has these functions that interpret, a record each.
fn interpreters(memory: &SharedMemory, ranges: &[[u64; 2]]) -> Scripts {
    const BYTES: u32 = 48;
    let kind = u32::from(RECORD_RUNTIME) | u32::from(RUNTIME_CPYTHON) << 16;
    let words = [BYTES, kind, 3 << 8 | 11, READ].map(u32::to_le_bytes);
    let record = |[start, end]: &[u64; 2]| {
        [words.as_flattened(), [*start, *end, 0, 0].map(u64::to_le_bytes).as_flattened()].concat()
    };
    let log: Vec<u8> = ranges.iter().flat_map(record).collect();
    memory.write(CODES_OFFSET, &log);
    let mapping = memory.map();
    mapping.header().scripts.log_reserved.store(log.len() as u64, Ordering::Release);
    let mut scripts = Scripts::default();
    scripts.read(&mapping);
    scripts
}

/// The keys from one of our nodes outwards.
fn keys(table: &StackTable, node: u32) -> Vec<u64> {
    let chain =
        std::iter::successors(Some(node).filter(|node| *node != NO_CALLER), |node| table.parent(*node));
    chain
        .map(|node| table.node(node).expect("a node of the table"))
        .map(|node| node_key(node.avma, node.exact, node.generation))
        .collect()
}

/// A tree of nodes: of each its parent's place among those before it, or none, and its key.
fn tree(memory: &SharedMemory, first: u32, nodes: &[(u32, u64)]) -> Vec<Vec<u64>> {
    let mut chains: Vec<Vec<u64>> = Vec::new();
    for (at, (parent, key)) in nodes.iter().enumerate() {
        let parent = (parent % (at as u32 + 1)).checked_sub(1);
        // The table's link is the parent's number and one.
        memory.node(first + at as u32, *key, parent.map_or(0, |parent| u64::from(first + parent + 1)));
        let outside = parent.map_or(&[][..], |parent| &chains[parent as usize]);
        chains.push([&[*key], outside].concat());
    }
    chains
}

proptest! {
    /// Whatever was woven before, and in whatever order.
    #[test]
    fn a_pair_is_woven_as_one_that_is_gone_through_to_both_ends(
        native in vec((any::<u32>(), prop_oneof![Just(0x904u64), 0x100..0x108u64]), 1..40),
        script in vec((any::<u32>(), 0..4u32, 0..3u32, any::<bool>()), 1..30),
        pairs in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..60),
    ) {
        let memory = SharedMemory::new(1);
        let scripts = interpreter(&memory);
        let native: Vec<(u32, u64)> =
            native.into_iter().map(|(parent, avma)| (parent, node_key(avma, false, 0))).collect();
        let script: Vec<(u32, u64)> = script
            .into_iter()
            .map(|(parent, code, place, is_entry)| (parent, script_key(code, place, is_entry)))
            .collect();
        let (natives, lists) = (tree(&memory, 1, &native), tree(&memory, SCRIPTS, &script));
        let (mapping, mut table, mut weaver) = (memory.map(), StackTable::default(), Weaver::default());
        let interprets = |key: u64| scripts.interprets(node_address(key).wrapping_sub(1));
        for (one, other) in pairs {
            let (one, other) = (one.index(natives.len()), other.index(lists.len()));
            let place = (1 + one as u32, SCRIPTS + other as u32);
            let woven = weaver.pair(&mut table, place, &scripts, &mapping);
            let naive = weave(&natives[one], &lists[other], interprets);
            prop_assert_eq!(keys(&table, woven.node), naive);
            let (calls, entered) = entries(&natives[one], &lists[other], interprets);
            prop_assert_eq!((woven.calls as usize, woven.entered as usize), (calls, entered));
        }
    }
}

/// A thousand calls deep, and then two leaves: what is outside of the innermost call is not read again.
#[test]
fn of_a_second_pair_only_what_differs_is_read() {
    let memory = SharedMemory::new(1);
    let scripts = interpreter(&memory);
    let calls: Vec<(u32, u64)> = (0..1_000).map(|at| (at, node_key(0x904, false, 0))).collect();
    let leaves = [0x101, 0x102].map(|avma| (1_000, node_key(avma, false, 0)));
    let native = [&calls[..], &[leaves[0]], &[leaves[1]]].concat();
    let script: Vec<(u32, u64)> = (0..1_000).map(|at| (at, script_key(1, at, true))).collect();
    tree(&memory, 1, &native);
    tree(&memory, 5_000, &script);
    let (mapping, mut table, mut weaver) = (memory.map(), StackTable::default(), Weaver::default());
    let mut pair = |leaf: u32| weaver.pair(&mut table, (1 + leaf, 5_999), &scripts, &mapping);
    let (first, second) = (pair(1_000), pair(1_001));
    assert!(first.keys_read > 2_000 && second.keys_read < 10, "{first:?} {second:?}");
    assert_eq!(table.len(), 2_002);
}

/// A thousand frames that one call of the interpreter runs, as of a Python from 3.11 on: then two more of the script's, each with two native ones inside.
#[test]
fn of_a_second_pair_within_a_call_only_what_differs_is_read() {
    let memory = SharedMemory::new(1);
    let scripts = interpreter(&memory);
    let code = |avma| node_key(avma, false, 0);
    tree(&memory, 1, &[(0, code(0x104)), (1, code(0x904)), (2, code(0x101)), (2, code(0x102))]);
    let outer = (0..1_000).map(|at| (at, script_key(1, at, at == 0)));
    let script: Vec<(u32, u64)> =
        outer.chain([1, 2].map(|place| (1_000, script_key(2, place, false)))).collect();
    tree(&memory, 5_000, &script);
    let (mapping, mut table, mut weaver) = (memory.map(), StackTable::default(), Weaver::default());
    let mut pair = |leaf, last| weaver.pair(&mut table, (leaf, last), &scripts, &mapping);
    let first = pair(3, 6_000);
    assert!(first.keys_read > 1_000, "{first:?}");
    for (leaf, last) in [(4, 6_000), (3, 6_001), (4, 6_001)] {
        let more = pair(leaf, last);
        assert!(more.keys_read < 10, "{more:?}");
    }
    assert_eq!(table.len(), 2 + 1_002 + 4);
}

/// Another interpreter is met when a pair has been woven already: from then on the outer frame is a call of one, too.
#[test]
fn what_was_woven_before_an_interpreter_was_known_is_woven_anew() {
    let memory = SharedMemory::new(1);
    let code = |avma| node_key(avma, false, 0);
    let native = tree(&memory, 1, &[(0, code(0x104)), (1, code(0x904)), (2, code(0x201)), (2, code(0x202))]);
    let script = tree(&memory, SCRIPTS, &[(0, script_key(1, 7, true)), (1, script_key(2, 5, true))]);
    let (mapping, mut table, mut weaver) = (memory.map(), StackTable::default(), Weaver::default());
    let one = interpreter(&memory);
    let before = weaver.pair(&mut table, (3, SCRIPTS + 1), &one, &mapping);
    assert_eq!(keys(&table, before.node), weave(&native[2], &script[1], |key| key == code(0x904)));
    let both = interpreters(&memory, &[[0x900, 0x910], [0x100, 0x110]]);
    let after = weaver.pair(&mut table, (4, SCRIPTS + 1), &both, &mapping);
    let interprets = |key| key == code(0x904) || key == code(0x104);
    assert_eq!(keys(&table, after.node), weave(&native[3], &script[1], interprets));
    assert_eq!((before.calls, after.calls), (1, 2));
}

#[test]
fn circles_of_both_stacks_end() {
    let memory = SharedMemory::new(1);
    let scripts = interpreter(&memory);
    memory.node(1, node_key(0x904, false, 0), 3);
    memory.node(2, node_key(0x100, false, 0), 2);
    memory.node(7, script_key(0, 0, false), 8);
    memory.node(8, script_key(1, 1, true), 9);
    let (mapping, mut table, mut weaver) = (memory.map(), StackTable::default(), Weaver::default());
    for place in [(1, 7), (1, 8), (1, NODE_ROOT), (NODE_ROOT, 7), (NODE_ROOT, 8)] {
        assert_eq!(weaver.pair(&mut table, place, &scripts, &mapping).keys_read, READ_MAX, "{place:?}");
    }
}
