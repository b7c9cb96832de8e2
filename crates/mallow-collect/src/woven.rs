//! Native stacks and scripts' stacks, woven into nodes of the trace.
//!
//! What the woven stack of a pair is, [`mallow_scripts::weave`] says. It goes through both stacks to their outer ends, and a program that imports its
//! modules has a hundred thousand pairs that are hundreds of frames deep and differ in the innermost ones. So a pair is woven here only up to the first place from
//! which it is known. Places are where a call of the interpreter was left, and each of the script's frames that one call runs: the woven stack from there
//! outwards depends on nothing but the two nodes.

use crate::list_map::ListMap;
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
    /// Our node by the caller's, plus 1, or 0 for none, and the number of the address.
    nodes: ListMap<u32>,
    /// From a place outwards: by the script's node and the native one.
    woven: ListMap<Woven>,
    /// Calls of the interpreter, from a node outwards. They and the entries are counted before a stack is woven only where that depends on them.
    calls: FxHashMap<u32, u32>,
    /// Entries, from a node outwards.
    entries: FxHashMap<u32, u32>,
    /// Empty between pairs; kept because there are many.
    path: Path,
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

/// A woven stack, and what it was made of.
#[derive(Clone, Copy, Debug)]
struct Woven {
    /// Our node, or [`NO_CALLER`].
    node: u32,
    /// Calls of the interpreter.
    calls: u32,
    entries: u32,
}

const NOTHING: Woven = Woven { node: NO_CALLER, calls: 0, entries: 0 };

/// What was gone through of a pair, innermost first.
#[derive(Debug, Default)]
struct Path {
    keys: Vec<u64>,
    calls: u32,
    entries: u32,
    /// Places on it, each with what is inside of it.
    places: Vec<Passed>,
}

/// A place, and how much of a path is inside of it.
#[derive(Clone, Copy, Debug)]
struct Passed {
    place: Place,
    keys: usize,
    calls: u32,
    entries: u32,
}

impl Path {
    fn pass(&mut self, place: Place) {
        let Path { calls, entries, .. } = *self;
        self.places.push(Passed { place, keys: self.keys.len(), calls, entries });
    }
}

/// What is left of a pair.
enum Rest {
    /// It begins there.
    From(Place),
    /// It was woven before.
    Woven(Woven),
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
        self.nodes.held_bytes() + self.woven.held_bytes() + counts * size_of::<(u32, u32)>()
    }

    /// The node of a frame upon a caller's.
    pub(crate) fn node(&mut self, table: &mut StackTable, caller: u32, key: u64) -> u32 {
        let address = table.intern(key);
        let parent = (caller != NO_CALLER).then_some(caller);
        let key = (caller.wrapping_add(1), address);
        self.nodes.get(key).unwrap_or_else(|| self.nodes.insert(key, table.push_at(parent, address)))
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
            (self.woven, self.calls) = Default::default();
            self.interpreters = scripts.interpreters().len();
        }
        let mut source = Source { scripts, mapping, keys_read: 0 };
        // The innermost frame may be one for which the interpreter will be called.
        let first = source.frame(script).and_then(|(key, _)| script_frame(key));
        let is_waiting = first.is_some_and(is_not_begun) && {
            let calls = count(&mut self.calls, native, &mut source, |source, key| source.interprets(key));
            let entered = count(&mut self.entries, script, &mut source, |_, key| is_entry(key));
            entered == calls.saturating_add(1)
        };
        let Woven { node, calls, entries } = self.weave(table, (native, script), is_waiting, &mut source);
        let entered = entries.saturating_sub(u32::from(is_waiting));
        WovenPair { node, calls, entered, keys_read: source.keys_read }
    }

    fn weave(
        &mut self,
        table: &mut StackTable,
        start: Place,
        mut is_waiting: bool,
        source: &mut Source<'_>,
    ) -> Woven {
        let (mut path, mut at) = (std::mem::take(&mut self.path), start);
        let outside = loop {
            if at == (NODE_ROOT, NODE_ROOT) {
                break NOTHING;
            }
            if at != start {
                if let Some(known) = self.woven.get(by_script(at)) {
                    break known;
                }
                path.pass(at);
            }
            match source.part(at, is_waiting, &self.woven, &mut path) {
                Rest::From(next) => at = next,
                Rest::Woven(known) => break known,
            }
            is_waiting = false;
        };
        let calls = path.calls.saturating_add(outside.calls);
        let entries = path.entries.saturating_add(outside.entries);
        let mut node = outside.node;
        while let Some(inside) = path.places.pop() {
            node = path.keys.drain(inside.keys..).rev().fold(node, |node, key| self.node(table, node, key));
            let (calls, entries) = (calls - inside.calls, entries - inside.entries);
            self.woven.insert(by_script(inside.place), Woven { node, calls, entries });
        }
        node = path.keys.drain(..).rev().fold(node, |node, key| self.node(table, node, key));
        (path.calls, path.entries) = (0, 0);
        self.path = path;
        Woven { node, calls, entries }
    }
}

/// A script has many places, and each is seldom run by more than one call.
fn by_script((native, script): Place) -> (u32, u32) {
    (script, native)
}

fn is_entry(key: u64) -> bool {
    script_frame(key).is_some_and(|frame| frame.is_entry)
}

/// An entry at its first instruction.
fn is_not_begun(frame: ScriptFrame) -> bool {
    frame.is_entry && frame.code != 0 && frame.place == 0
}

/// How many nodes of a chain are counted; `known` is how many are from a node outwards.
fn count(
    known: &mut FxHashMap<u32, u32>,
    mut node: u32,
    source: &mut Source<'_>,
    is_counted: impl Fn(&Source<'_>, u64) -> bool,
) -> u32 {
    let mut passed = Vec::new();
    let mut outside = 0;
    while let Some((key, parent)) = source.frame(node) {
        if let Some(known) = known.get(&node) {
            outside = *known;
            break;
        }
        passed.push((node, is_counted(source, key)));
        node = parent;
    }
    for (node, is_counted) in passed.into_iter().rev() {
        outside += u32::from(is_counted);
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

    /// Adds the keys from a place up to and including the next call of the interpreter, or to the end, or to a place that is known.
    fn part(
        &mut self,
        (mut native, mut script): Place,
        mut is_waiting: bool,
        known: &ListMap<Woven>,
        path: &mut Path,
    ) -> Rest {
        while let Some((key, parent)) = self.frame(native) {
            if !self.interprets(key) {
                match script_frame(key) {
                    None => path.keys.push(key),
                    Some(_) => path.keys.extend(self.scripts.expanded(key)),
                }
                native = parent;
                continue;
            }
            // All that this call runs: up to its entry, or to the second one if the first waits for a call to come.
            while let Some((key, parent)) = self.frame(script) {
                let frame = script_frame(key);
                let is_last = frame.is_none_or(|frame| frame.is_entry);
                if !is_last {
                    if let Some(known) = known.get(by_script((native, script))) {
                        return Rest::Woven(known);
                    }
                    path.pass((native, script));
                }
                path.entries += u32::from(is_entry(key));
                path.keys.extend(frame.and_then(|frame| shown(frame, key)));
                script = parent;
                if is_last && !std::mem::take(&mut is_waiting) {
                    break;
                }
            }
            path.calls += 1;
            path.keys.push(key);
            return Rest::From((parent, script));
        }
        while let Some((key, parent)) = self.frame(script) {
            path.entries += u32::from(is_entry(key));
            path.keys.extend(script_frame(key).and_then(|frame| shown(frame, key)));
            script = parent;
        }
        Rest::From((NODE_ROOT, NODE_ROOT))
    }
}

/// A script's frame if it is shown.
fn shown(frame: ScriptFrame, key: u64) -> Option<u64> {
    (frame.code != 0).then_some(key)
}

#[cfg(test)]
#[path = "woven_tests.rs"]
mod tests;
