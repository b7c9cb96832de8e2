//! The recorder's stack nodes as dense ids, in the order in which they are first used.
//!
//! The recorder's ids are places in a sparse hash table. Everything behind the collector indexes arrays by
//! stack, so nodes are numbered anew, parents before children, and read from shared memory once.

use crate::followed_code::FollowedCode;
use crate::made_code::CodeLists;
use crate::mapping::Mapping;
use crate::prefetch::prefetch;
use crate::stack_table::StackTable;
use crate::woven::{CHAIN_MAX, NO_CALLER, READ_MAX, Weaver};
use mallow_profile::{Aggregator, StackId};
use mallow_scripts::Scripts;
use mallow_wire::script::{is_script_key, pair_script};
use mallow_wire::shared::{NODE_COUNT, NODE_ROOT, is_node_cut, node_parent, node_uncut};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Marks a number while a node's ancestors are followed.
const IN_CHAIN: u32 = u32::MAX;

/// The stacks of one process.
#[derive(Debug, Default)]
pub(crate) struct StackNumbers {
    /// By the recorder's id: our id plus 1, or 0.
    numbers: Vec<u32>,
    table: StackTable,
    /// Nodes below this index are in the trace.
    written: usize,
    /// Events whose stacks lack inner frames, because the recorder's table was full.
    cut: u64,
    scripts: Scripts,
    weaver: Weaver,
    pairs: Pairs,
    /// What code that the process made is at which address, if its runtime tells.
    code: Option<FollowedCode>,
    /// Whether a native stack had a frame of Java in it.
    has_java: bool,
    /// Keys of frames that were read to find nodes.
    keys_read: u64,
    /// How many may have been read when the current stack was.
    keys_max: u64,
    /// Why no more stacks are read, if that is so.
    beyond: Option<&'static str>,
}

/// Pairs of a native stack and a script's, and those of them whose calls of the interpreter are not one for one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) count: u64,
    /// More native calls than entries: the outer ones run another list of frames, such as that of a greenlet's parent.
    pub(crate) other_list: u64,
    /// More entries than native calls: compiled code runs them, or the native stack was cut.
    pub(crate) uncalled: u64,
}

const DEEPER: &str = "a stack of it is deeper than a recorder goes";
/// Nodes of a process: those that a recorder has room for, and some more where stacks are woven.
const NODES_MAX: usize = NODE_COUNT + (2 << 20);
/// The size of an address when it is resolved.
const NAMED_BYTES: usize = 400;

impl StackNumbers {
    /// Our id for a recorder's node.
    #[inline(always)]
    pub(crate) fn number(&mut self, node: u32, mapping: &Mapping) -> StackId {
        match self.numbers.get(node as usize) {
            Some(&number) if number != 0 => StackId(number - 1),
            _ if is_node_cut(node) => self.number_cut(node, mapping),
            _ => self.assign(node, mapping),
        }
    }

    /// Asks for the number of a recorder's node.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: u32) {
        prefetch(self.numbers.as_ptr().wrapping_add(node as usize));
    }

    #[cold]
    fn number_cut(&mut self, node: u32, mapping: &Mapping) -> StackId {
        self.cut += 1;
        self.number(node_uncut(node), mapping)
    }

    /// Keys of frames that were read up to now: what reading stacks costs.
    pub(crate) fn keys_read(&self) -> u64 {
        self.keys_read
    }

    /// Returns why the process counts as damaged, if it does.
    pub(crate) fn beyond(&self) -> Option<&'static str> {
        self.beyond
    }

    /// Returns about how many bytes of memory this holds, those of symbols at the end included.
    pub(crate) fn held_bytes(&self) -> u64 {
        let numbers = self.numbers.len() * size_of::<u32>();
        let woven = self.weaver.held_bytes();
        let named = self.table.address_count() * NAMED_BYTES;
        let woven = woven + self.code.as_ref().map_or(0, FollowedCode::held_bytes);
        self.table.held_bytes() + self.scripts.held_bytes() + (numbers + woven + named) as u64
    }

    /// Returns how many events had stacks that lack inner frames.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// A native stack and a script's, woven into one.
    #[cold]
    fn assign_pair(&mut self, node: u32, native: u32, script: u32, mapping: &Mapping) -> StackId {
        self.scripts.read(mapping);
        let woven = self.weaver.pair(&mut self.table, (native, script), &self.scripts, mapping);
        self.keys_read += woven.keys_read;
        if woven.keys_read >= READ_MAX {
            self.beyond = Some(DEEPER);
        }
        self.pairs.count += 1;
        self.pairs.other_list += u64::from(woven.calls > woven.entered);
        self.pairs.uncalled += u64::from(woven.calls < woven.entered);
        if woven.node == NO_CALLER {
            return Aggregator::NO_STACK;
        }
        self.number_as(node, woven.node);
        StackId(woven.node)
    }

    /// Returns our node for a recorder's node and its caller's. With frames of Java in native stacks, several of the
    /// recorder's nodes may be the same, as a method that is compiled again has other chains.
    fn node_of(&mut self, parent: Option<u32>, key: u64) -> u32 {
        self.has_java |= is_script_key(key);
        if !self.has_java {
            let key = self.code.as_mut().map_or(key, |code| code.key(key));
            return self.table.push(parent, key);
        }
        let mut caller = parent.unwrap_or(NO_CALLER);
        let mut expanded = self.scripts.expanded(key);
        self.keys_read += expanded.len() as u64;
        if self.keys_read > self.keys_max {
            self.beyond = Some(DEEPER);
            expanded.clear();
        }
        for key in expanded.into_iter().rev() {
            caller = self.weaver.node(&mut self.table, caller, key);
        }
        // A stack is not nothing because its outermost frame is none of Java's.
        if caller == NO_CALLER { self.weaver.node(&mut self.table, caller, key) } else { caller }
    }

    fn number_as(&mut self, node: u32, number: u32) {
        if self.numbers.len() <= node as usize {
            let places = (node as usize + 1).next_power_of_two();
            // The first nodes lie anywhere among 65,536 places. Memory that comes zeroed takes pages for those alone that are used.
            match self.numbers.is_empty() {
                true => self.numbers = vec![0; places],
                false => self.numbers.resize(places, 0),
            }
        }
        self.numbers[node as usize] = number.wrapping_add(1);
    }

    /// The scripts of the process.
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Reads what is new of its scripts.
    pub(crate) fn read_scripts(&mut self, mapping: &Mapping) {
        self.scripts.read(mapping);
    }

    /// Reads what is new of the code that it makes, from the map among its lists. Nodes at an address that another function has now are
    /// no longer what they were: they get another number when they are met again.
    pub(crate) fn follow_code(&mut self, lists: &CodeLists) {
        if self.code.is_none() {
            self.code = lists.followed();
        }
        if self.code.as_mut().is_some_and(FollowedCode::read) {
            self.forget_past();
        }
    }

    /// The code that it made, if its runtime tells.
    pub(crate) fn code(&self) -> Option<&FollowedCode> {
        self.code.as_ref()
    }

    fn forget_past(&mut self) {
        let Some(code) = &self.code else { return };
        let is_past: Vec<bool> = self.table.keys().iter().map(|key| code.is_past(*key)).collect();
        let mut is_forgotten = Vec::with_capacity(self.table.len());
        for (parent, address) in self.table.links() {
            let of_parent = parent.is_some_and(|parent| is_forgotten[parent as usize]);
            is_forgotten.push(of_parent || is_past[address as usize]);
        }
        for number in self.numbers.iter_mut().filter(|number| **number != 0) {
            if is_forgotten.get(*number as usize - 1).copied().unwrap_or(false) {
                *number = 0;
            }
        }
    }

    /// Returns how well the interpreter's calls of all pairs of stacks match.
    pub(crate) fn pairs(&self) -> Pairs {
        self.pairs
    }

    #[cold]
    fn assign(&mut self, node: u32, mapping: &Mapping) -> StackId {
        if self.table.len() > NODES_MAX {
            self.beyond = Some("its stacks have more frames than a recorder has room for");
        }
        if self.beyond.is_some() {
            return Aggregator::NO_STACK;
        }
        if let Some(entry) = mapping.node(node)
            && let Some(script) = pair_script(entry.key.load(Ordering::Acquire))
        {
            let native = node_parent(entry.link.load(Ordering::Relaxed));
            return self.assign_pair(node, native, script, mapping);
        }
        // From the node outwards to the first that is known, then back.
        let mut chain = Vec::new();
        let mut at = node;
        let mut parent = None;
        while at != NODE_ROOT {
            if chain.len() == CHAIN_MAX {
                self.beyond = Some(DEEPER);
                break;
            }
            if let Some(&number) = self.numbers.get(at as usize)
                && number != 0
            {
                // A damaged table could hold a circle: it is cut open.
                parent = (number != IN_CHAIN).then(|| number - 1);
                break;
            }
            let Some(entry) = mapping.node(at) else { break };
            let key = entry.key.load(Ordering::Acquire);
            if key == 0 {
                break;
            }
            self.number_as(at, IN_CHAIN - 1);
            chain.push((at, key));
            at = node_parent(entry.link.load(Ordering::Relaxed));
        }
        self.keys_read += chain.len() as u64;
        self.keys_max = self.keys_read + CHAIN_MAX as u64;
        if chain.iter().any(|(_, key)| is_script_key(*key)) {
            self.scripts.read(mapping);
        }
        for (id, key) in chain.into_iter().rev() {
            let number = self.node_of(parent, key);
            self.numbers[id as usize] = number + 1;
            parent = Some(number);
        }
        parent.map_or(Aggregator::NO_STACK, StackId)
    }

    /// All nodes.
    pub(crate) fn table(&self) -> &StackTable {
        &self.table
    }

    /// All nodes, and what the scripts on them are; and what was needed to find them, which is not needed any more.
    pub(crate) fn into_table(self) -> (StackTable, Scripts, Box<dyn Send>) {
        (self.table.into_snapshot(), self.scripts, Box::new((self.numbers, self.weaver)))
    }

    /// The numbers of the nodes that are not in the trace yet, and will be.
    pub(crate) fn take_new(&mut self) -> Range<usize> {
        std::mem::replace(&mut self.written, self.table.len())..self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::SharedMemory;
    use mallow_trace::StackNode;
    use mallow_wire::script::{RECORD_CHAIN, RECORD_CODE, RUNTIME_HOTSPOT, script_key};
    use mallow_wire::shared::{CODES_OFFSET, NODE_COUNT, UNFILLED, node_cut, node_key};

    #[test]
    fn parents_come_before_children_and_each_node_once() {
        let memory = SharedMemory::new(1);
        memory.node(70_000, node_key(0x100, false, 3), 0);
        memory.node(9, node_key(0x200, true, 0), 70_001);
        memory.node(8, node_key(0x300, false, 0), 70_001);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        assert_eq!(stacks.number(9, &mapping), StackId(1));
        assert_eq!(stacks.number(8, &mapping), StackId(2));
        assert_eq!(stacks.number(9, &mapping), StackId(1));
        assert_eq!(stacks.number(70_000, &mapping), StackId(0));
        let node = |parent, avma, exact, generation| StackNode { parent, avma, exact, generation };
        let nodes =
            [node(None, 0x100, false, 3), node(Some(0), 0x200, true, 0), node(Some(0), 0x300, false, 0)];
        assert_eq!(stacks.table().nodes_from(0).collect::<Vec<_>>(), nodes);
        assert_eq!((stacks.take_new(), stacks.take_new()), (0..3, 3..3));
    }

    #[test]
    fn events_with_frames_missing_are_counted_and_keep_the_others() {
        let memory = SharedMemory::new(1);
        memory.node(9, node_key(0x200, false, 0), 0);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        assert_eq!(stacks.number(node_cut(9), &mapping), StackId(0));
        assert_eq!(stacks.number(9, &mapping), StackId(0));
        assert_eq!(stacks.number(node_cut(9), &mapping), StackId(0));
        assert_eq!(stacks.number(node_cut(NODE_ROOT), &mapping), Aggregator::NO_STACK);
        assert_eq!(stacks.cut(), 3);
    }

    #[test]
    fn ids_that_name_no_node_are_no_stack() {
        let memory = SharedMemory::new(1);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        for id in [0, 5, NODE_COUNT as u32, u32::MAX - 1, u32::MAX] {
            assert_eq!(stacks.number(id, &mapping), Aggregator::NO_STACK);
        }
        assert!(stacks.take_new().is_empty());
    }

    /// Methods 1 and 2, the first of them logged a second time as 3; and two chains, of which the second was compiled after the first and calls the same.
    #[test]
    fn frames_of_java_are_taken_apart_and_code_that_is_compiled_again_is_the_same_stack() {
        let memory = SharedMemory::new(1);
        let mut log = Log::default();
        log.method(1, "outer");
        log.method(2, "inner");
        log.method(3, "outer");
        log.chain(4, &[[2, 7], [1, 5]]);
        log.chain(5, &[[2, 7], [3, 5]]);
        log.write(&memory);
        let key = |code, place| script_key(code, place, false);
        memory.node(9, node_key(0x100, false, 0), 0);
        memory.node(10, key(4, 0), 10);
        memory.node(11, key(5, 0), 10);
        // A frame that is none of Java's, and then the native one that allocates.
        memory.node(12, key(0, 0), 11);
        memory.node(13, node_key(0x200, false, 0), 13);
        memory.node(14, node_key(0x200, false, 0), 12);
        memory.node(15, key(0, 0), 0);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        let first = stacks.number(13, &mapping);
        assert_eq!((first, stacks.number(14, &mapping)), (StackId(3), first));
        let keys: Vec<u64> =
            stacks.table().nodes_from(0).map(|node| node_key(node.avma, node.exact, 0)).collect();
        assert_eq!(keys, [node_key(0x100, false, 0), key(1, 5), key(2, 7), node_key(0x200, false, 0)]);
        let names = keys.iter().filter_map(|key| stacks.scripts().frame(*key)).map(|frame| frame.function);
        assert_eq!(names.collect::<Vec<_>>(), ["shop.Cart.outer", "shop.Cart.inner"]);
        assert_eq!(stacks.number(15, &mapping), StackId(4), "a stack is never nothing");
    }

    /// A thread was stopped while it wrote its record; others went on behind it.
    #[test]
    fn code_that_is_logged_behind_an_unfinished_record_is_known_when_its_stack_is() {
        let memory = SharedMemory::new(1);
        let mut log = Log::default();
        log.method(1, "outer");
        let unfinished = log.0.len();
        log.method(2, "late");
        log.method(3, "outer");
        log.chain(4, &[[2, 7], [3, 5]]);
        let length = u32::from_le_bytes(log.0[unfinished..unfinished + 4].try_into().unwrap());
        log.0[unfinished..unfinished + 4].copy_from_slice(&(length | UNFILLED).to_le_bytes());
        log.write(&memory);
        let key = |code, place| script_key(code, place, false);
        memory.node(9, key(4, 0), 0);
        memory.node(10, key(3, 6), 0);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        assert_eq!([9, 10].map(|node| stacks.number(node, &mapping)), [StackId(1), StackId(2)]);
        let keys: Vec<u64> =
            stacks.table().nodes_from(0).map(|node| node_key(node.avma, node.exact, 0)).collect();
        assert_eq!(keys, [key(1, 5), key(2, 7), key(1, 6)]);
        memory.write(CODES_OFFSET + unfinished, &length.to_le_bytes());
        stacks.read_scripts(&mapping);
        let names = keys.iter().filter_map(|key| stacks.scripts().frame(*key)).map(|frame| frame.function);
        assert_eq!(names.collect::<Vec<_>>(), ["shop.Cart.outer", "shop.Cart.late", "shop.Cart.outer"]);
    }

    /// The log of a JVM's code.
    #[derive(Default)]
    struct Log(Vec<u8>);

    impl Log {
        fn record(&mut self, kind: u16, words: &[u32], rest: &[u8]) {
            let bytes = (8 + words.len() * 4 + rest.len()).next_multiple_of(8);
            let end = self.0.len() + bytes;
            self.0.extend((bytes as u32).to_le_bytes());
            self.0.extend([kind.to_le_bytes(), RUNTIME_HOTSPOT.to_le_bytes()].as_flattened());
            self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            self.0.extend(rest);
            self.0.resize(end, 0);
        }

        fn method(&mut self, number: u32, name: &str) {
            let class = [&9u64.to_le_bytes()[..], b"shop/Cart"].concat();
            let texts = ["Cart.java".as_bytes(), name.as_bytes(), &class].concat();
            let words = [number, 17 << 8, 0, 9, name.len() as u32, class.len() as u32, 0, 0];
            self.record(RECORD_CODE, &words, &texts);
        }

        fn chain(&mut self, number: u32, frames: &[[u32; 2]]) {
            let words = [&[number, frames.len() as u32], frames.as_flattened()].concat();
            self.record(RECORD_CHAIN, &words, &[]);
        }

        fn write(&self, memory: &SharedMemory) {
            memory.write(CODES_OFFSET, &self.0);
            let mapping = memory.map();
            mapping.header().scripts.log_reserved.store(self.0.len() as u64, Ordering::Release);
        }
    }

    #[test]
    fn a_cycle_of_nodes_is_broken() {
        let memory = SharedMemory::new(1);
        memory.node(1, node_key(0x100, false, 0), 3);
        memory.node(2, node_key(0x200, false, 0), 2);
        memory.node(7, node_key(0x700, false, 0), 8);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        assert_eq!(stacks.number(1, &mapping), StackId(1));
        assert_eq!(stacks.number(2, &mapping), StackId(0));
        assert_eq!(stacks.number(7, &mapping), StackId(2));
        let parents: Vec<Option<u32>> = stacks.table().links().map(|(parent, _)| parent).collect();
        assert_eq!(parents, [None, Some(0), None]);
    }
}
