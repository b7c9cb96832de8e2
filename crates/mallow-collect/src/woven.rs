//! Native stacks and scripts' stacks, woven into nodes of the trace.
//!
//! What the woven stack of a pair is, [`mallow_scripts::weave`] says. It goes through both stacks to their outer ends, and a program that imports its
//! modules has a hundred thousand pairs that are hundreds of frames deep and differ in the innermost ones. So a pair is woven here only up to the first call of the
//! interpreter from which it is known: what is outside of a call depends on nothing but the two nodes there.

use crate::mapping::Mapping;
use crate::stack_table::StackTable;
use mallow_scripts::Scripts;
use mallow_wire::script::{ScriptFrame, script_frame};
use mallow_wire::shared::{NODE_ROOT, is_node_exact, node_address, node_parent};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

/// Instead of a caller's number.
pub(crate) const NO_CALLER: u32 = u32::MAX;

/// The longest chain of nodes that is followed, twice as long as any that a recorder makes: a damaged table could hold a circle.
pub(crate) const CHAIN_MAX: usize = 1 << 16;

/// Frames of a pair that are read at most: both stacks to be counted, and to be woven. Who has more has a circle.
pub(crate) const READ_MAX: u64 = 4 * CHAIN_MAX as u64;

/// A native node and a script's, of the recorder's; either may be the root.
type Place = (u32, u32);

/// The woven stacks of one process.
#[derive(Debug, Default)]
pub(crate) struct Weaver {
    /// Our node by the caller's, [`NO_CALLER`] for none, and the number of the address.
    nodes: FxHashMap<(u32, u32), u32>,
    /// The woven stack outside of a call of the interpreter: our node, or [`NO_CALLER`].
    outside: FxHashMap<Place, u32>,
    /// Calls of the interpreter, from such a call's node outwards.
    calls: FxHashMap<u32, u32>,
    /// Entries, from an entry's node outwards.
    entries: FxHashMap<u32, u32>,
    /// Functions that interpret; with another one, what was known is not true any more.
    interpreters: usize,
}

/// A woven pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WovenPair {
    /// Our node, or [`NO_CALLER`] for no frames at all.
    pub(crate) node: u32,
    /// How many calls of the interpreter the native stack has.
    pub(crate) calls: u32,
    /// How many of them the script's stack tells of.
    pub(crate) entered: u32,
    /// Keys of frames that were read.
    pub(crate) keys_read: u64,
}

/// Where nodes come from.
struct Source<'a> {
    scripts: &'a Scripts,
    mapping: &'a Mapping,
    keys_read: u64,
}

impl Weaver {
    /// Returns about how many bytes of memory this holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let counts = self.calls.capacity() + self.entries.capacity();
        (self.nodes.capacity() + self.outside.capacity()) * size_of::<((u32, u32), u32)>()
            + counts * size_of::<(u32, u32)>()
    }

    /// The node of a frame upon a caller's.
    pub(crate) fn node(&mut self, table: &mut StackTable, caller: u32, key: u64) -> u32 {
        let address = table.intern(key);
        let parent = (caller != NO_CALLER).then_some(caller);
        *self.nodes.entry((caller, address)).or_insert_with(|| table.push_at(parent, address))
    }

    /// Weaves the stack of a native node and that of a script's node.
    pub(crate) fn pair(
        &mut self,
        table: &mut StackTable,
        (native, script): Place,
        scripts: &Scripts,
        mapping: &Mapping,
    ) -> WovenPair {
        if self.interpreters != scripts.interpreters().len() {
            (self.outside, self.calls) = Default::default();
            self.interpreters = scripts.interpreters().len();
        }
        let mut source = Source { scripts, mapping, keys_read: 0 };
        let calls = count(&mut self.calls, native, &mut source, |source, key| source.interprets(key));
        let entered = count(&mut self.entries, script, &mut source, |_, key| {
            script_frame(key).is_some_and(|frame| frame.is_entry)
        });
        // The innermost frame may be one for which the interpreter will be called.
        let first = source.frame(script).and_then(|(key, _)| script_frame(key));
        let is_waiting = entered == calls.saturating_add(1) && first.is_some_and(is_not_begun);
        let node = self.weave(table, (native, script), is_waiting, &mut source);
        WovenPair { node, calls, entered: entered - u32::from(is_waiting), keys_read: source.keys_read }
    }

    fn weave(
        &mut self,
        table: &mut StackTable,
        start: Place,
        mut is_waiting: bool,
        source: &mut Source<'_>,
    ) -> u32 {
        // Innermost first: where each part begins, and its keys up to where.
        let (mut keys, mut parts) = (Vec::new(), Vec::new());
        let mut at = start;
        let mut node = loop {
            if at == (NODE_ROOT, NODE_ROOT) {
                break NO_CALLER;
            }
            if at != start
                && let Some(known) = self.outside.get(&at)
            {
                break *known;
            }
            let next = source.part(at, is_waiting, &mut keys);
            is_waiting = false;
            parts.push((at, keys.len()));
            at = next;
        };
        while let Some((at, _)) = parts.pop() {
            let begin = parts.last().map_or(0, |(_, end)| *end);
            while keys.len() > begin
                && let Some(key) = keys.pop()
            {
                node = self.node(table, node, key);
            }
            if at != start {
                self.outside.insert(at, node);
            }
        }
        node
    }
}

/// An entry at its first instruction.
fn is_not_begun(frame: ScriptFrame) -> bool {
    frame.is_entry && frame.code != 0 && frame.place == 0
}

/// How many nodes of a chain are counted, those outwards of a counted one being `known`.
fn count(
    known: &mut FxHashMap<u32, u32>,
    mut node: u32,
    source: &mut Source<'_>,
    is_counted: impl Fn(&Source<'_>, u64) -> bool,
) -> u32 {
    let mut counted = Vec::new();
    let mut outside = 0;
    while let Some((key, parent)) = source.frame(node) {
        if is_counted(source, key) {
            if let Some(known) = known.get(&node) {
                outside = *known;
                break;
            }
            counted.push(node);
        }
        node = parent;
    }
    for node in counted.into_iter().rev() {
        outside += 1;
        known.insert(node, outside);
    }
    outside
}

impl Source<'_> {
    /// A node's key and its caller; none for the root, and for what is no node.
    fn frame(&mut self, node: u32) -> Option<(u64, u32)> {
        let entry =
            (node != NODE_ROOT && self.keys_read < READ_MAX).then(|| self.mapping.node(node)).flatten()?;
        let key = entry.key.load(Ordering::Acquire);
        self.keys_read += 1;
        (key != 0).then(|| (key, node_parent(entry.link.load(Ordering::Relaxed))))
    }

    fn interprets(&self, key: u64) -> bool {
        self.scripts.interprets(node_address(key).wrapping_sub(u64::from(!is_node_exact(key))))
    }

    /// Adds the keys from a place up to and including the next call of the interpreter, or to the end; returns where the rest begins.
    fn part(&mut self, (mut native, mut script): Place, is_waiting: bool, keys: &mut Vec<u64>) -> Place {
        while let Some((key, parent)) = self.frame(native) {
            native = parent;
            if self.interprets(key) {
                let is_entry = self.inside(&mut script, keys);
                if is_entry == Some(false) || is_waiting {
                    while self.inside(&mut script, keys) == Some(false) {}
                }
                keys.push(key);
                return (native, script);
            }
            keys.extend(self.scripts.expanded(key));
        }
        while self.inside(&mut script, keys).is_some() {}
        (NODE_ROOT, NODE_ROOT)
    }

    /// Adds a script's frame if it is shown, and goes on to its caller; returns whether it is an entry, or none at the end.
    fn inside(&mut self, script: &mut u32, keys: &mut Vec<u64>) -> Option<bool> {
        let (key, parent) = self.frame(*script)?;
        *script = parent;
        let frame = script_frame(key);
        keys.extend(frame.filter(|frame| frame.code != 0).map(|_| key));
        Some(frame.is_none_or(|frame| frame.is_entry))
    }
}

#[cfg(test)]
#[path = "woven_tests.rs"]
mod tests;
