//! A process's perf map, read while it is written.
//!
//! What was read of it before a pass over the rings has every function on the stacks of that pass. A function that was thrown away and
//! whose place another one took between its events and the pass, which is milliseconds, has the other's name.

use mallow_base::Frame;
use mallow_jit::FollowedMap;
use mallow_trace::SymbolKey;
use mallow_wire::shared::{GENERATION_COUNT, is_node_exact, node_address, node_generation, node_key};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The code of a process, and what was on its stacks.
#[derive(Debug)]
pub(crate) struct FollowedCode {
    map: FollowedMap,
    /// By address and generation.
    frames: FxHashMap<(u64, u64), Arc<Frame>>,
}

/// About what a function takes.
const FUNCTION_BYTES: usize = 200;

impl FollowedCode {
    /// That of a map.
    pub(crate) fn of(map: FollowedMap) -> FollowedCode {
        FollowedCode { map, frames: FxHashMap::default() }
    }

    /// Reads what is new. Returns whether another function is now where one was.
    pub(crate) fn read(&mut self) -> bool {
        self.map.read()
    }

    /// The key of a recorder's node as one of now: the generation of made code is the version of its function.
    pub(crate) fn key(&mut self, key: u64) -> u64 {
        // A library was there, and was unloaded: its generation is needed.
        if node_generation(key) != 0 {
            return key;
        }
        let Some((frame, generation)) = self.at(key) else { return key };
        let frame = Arc::clone(frame);
        self.frames.entry((pc(key), generation)).or_insert(frame);
        node_key(node_address(key), is_node_exact(key), generation)
    }

    /// Returns whether a key that [`FollowedCode::key`] gave is one of now no more.
    pub(crate) fn is_past(&self, key: u64) -> bool {
        self.frames.contains_key(&(pc(key), node_generation(key)))
            && self.at(key).is_none_or(|(_, generation)| generation != node_generation(key))
    }

    /// The function that a node's address meant.
    pub(crate) fn frame(&self, key: &SymbolKey) -> Option<&Frame> {
        let pc = key.avma.wrapping_sub(u64::from(!key.exact));
        self.frames.get(&(pc, key.generation)).map(|frame| &**frame)
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn held_bytes(&self) -> usize {
        (self.frames.len() + self.map.code().len()) * FUNCTION_BYTES
    }

    fn at(&self, key: u64) -> Option<(&Arc<Frame>, u64)> {
        let (frame, version) = self.map.code().at(pc(key))?;
        // 0 is code that nobody told of.
        Some((frame, version % (GENERATION_COUNT - 1) + 1))
    }
}

fn pc(key: u64) -> u64 {
    node_address(key).wrapping_sub(u64::from(!is_node_exact(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_code::CodeLists;
    use crate::module_map::ModuleMap;
    use crate::shared_memory::SharedMemory;
    use crate::stacks::StackNumbers;
    use mallow_jit::map_path;
    use std::fs::OpenOptions;
    use std::io::Write;

    /// A map of a process with a pid that none can have.
    struct Map(u32);

    impl Map {
        fn begun(number: u32) -> (Map, CodeLists) {
            let map = Map(number * 4_194_304 + std::process::id());
            let lists = CodeLists::of(std::process::id(), map.0);
            map.tell("");
            (map, lists)
        }

        fn tell(&self, text: &str) {
            let mut file = OpenOptions::new().create(true).append(true).open(map_path(self.0)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
    }

    impl Drop for Map {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(map_path(self.0));
        }
    }

    fn functions(stacks: &StackNumbers, lists: &CodeLists) -> Vec<Option<String>> {
        let made = lists.made(stacks.table().addresses_from(0), &ModuleMap::of(&[]), stacks.code());
        let named = |key| Some(made.frame(&key)?.function.clone());
        stacks.table().addresses_from(0).map(named).collect()
    }

    /// A native function calls made code, which calls another native function.
    #[test]
    fn a_stack_through_code_that_was_replaced_is_another_stack() {
        let (map, lists) = Map::begun(3);
        let memory = SharedMemory::new(1);
        memory.node(9, node_key(0x100, false, 0), 0);
        memory.node(10, node_key(0x1008, false, 0), 10);
        memory.node(11, node_key(0x200, false, 0), 11);
        memory.node(12, node_key(0x300, false, 0), 10);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        map.tell("1000 10 JS:~f /a.js:3:1\n2000 10 JS:~un");
        stacks.follow_code(&lists);
        let before = [11, 12].map(|node| stacks.number(node, &mapping));
        // Lines come in parts. That it was compiled again at the same place is the same function.
        map.tell("related /a.js:9:1\n1000 10 JS:*f /a.js:3:1\n");
        stacks.follow_code(&lists);
        assert_eq!([11, 12].map(|node| stacks.number(node, &mapping)), before);
        map.tell("1000 10 JS:~g /a.js:5:1\n");
        stacks.follow_code(&lists);
        let after = [11, 12].map(|node| stacks.number(node, &mapping));
        assert_ne!(after[0], before[0], "it leads through another function");
        assert_eq!(after[1], before[1], "it leads through neither");
        let names = functions(&stacks, &lists);
        assert_eq!(names.into_iter().flatten().collect::<Vec<_>>(), ["f", "g"]);
    }

    #[test]
    fn what_the_map_did_not_tell_in_time_has_the_name_that_it_tells_last() {
        let (map, lists) = Map::begun(4);
        let memory = SharedMemory::new(1);
        memory.node(9, node_key(0x1008, false, 0), 0);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        stacks.follow_code(&lists);
        let number = stacks.number(9, &mapping);
        map.tell("1000 10 f\n1000 10 g\n");
        stacks.follow_code(&lists);
        assert_eq!(stacks.number(9, &mapping), number);
        assert_eq!(functions(&stacks, &lists), [Some("g".to_owned())]);
    }

    /// A library was loaded at this address, and is no more: which one is told by its generation.
    #[test]
    fn generations_of_libraries_stay() {
        let (map, lists) = Map::begun(5);
        let memory = SharedMemory::new(1);
        memory.node(9, node_key(0x1008, false, 7), 0);
        let (mapping, mut stacks) = (memory.map(), StackNumbers::default());
        map.tell("1000 10 f\n");
        stacks.follow_code(&lists);
        let _ = stacks.number(9, &mapping);
        assert_eq!(stacks.table().keys(), [node_key(0x1008, false, 7)]);
    }
}
