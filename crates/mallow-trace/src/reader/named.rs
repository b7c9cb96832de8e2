//! A copy of a trace with names for addresses that had none when it was written: on another machine, or before debug files were there.
//!
//! Chunks are copied as they are, events with them. The new names are one chunk more, in front of the recording's end; where two chunks name an address, a
//! reader takes the later one.

use super::Trace;
use super::locate::Locations;
use super::scan::Found;
use crate::write_profile::names_of;
use crate::{
    ChunkKind, FILE_HEADER_BYTES, StackNode, SymbolKey, SymbolProcess, Symbols, TraceError, TraceWriter,
};
use mallow_profile::{Location, LocationId, Stacks};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{Read, Seek, Write};

/// As in a recording.
const ZSTD_LEVEL: i32 = 3;

impl<R: Read + Seek> Trace<R> {
    /// Writes a copy with the names that `name` gives to locations; tells how many it has changed.
    ///
    /// # Errors
    /// What the file or `out` refused.
    pub fn copy_with_names(
        mut self,
        name: impl FnOnce(&mut Stacks),
        out: &mut dyn Write,
    ) -> Result<usize, TraceError> {
        let (symbols, changed) = self.new_names(name);
        let mut copy = TraceWriter::new(out, ZSTD_LEVEL)?;
        let mut is_named = false;
        self.scan.go_to(FILE_HEADER_BYTES as u64)?;
        while let Found::Chunk(place) | Found::Damaged(place) = self.scan.next()? {
            if place.header.kind == ChunkKind::END && !is_named {
                copy.put_whole(&symbols)?;
                is_named = true;
            }
            copy.put_stored(&place.header, self.scan.stored())?;
        }
        if !is_named {
            copy.put_whole(&symbols)?;
        }
        copy.flush()?;
        Ok(changed)
    }

    /// What is named now, and how many locations that are.
    fn new_names(&self, name: impl FnOnce(&mut Stacks)) -> (Symbols, usize) {
        let mut locations = Locations::default();
        self.parts.symbols.iter().for_each(|symbols| locations.add_symbols(symbols));
        let of_processes: Vec<(u32, &[StackNode], Vec<LocationId>)> = self
            .parts
            .processes
            .iter()
            .map(|(index, process)| {
                let of_nodes = locations.of_nodes(*index, &process.stacks, &process.modules);
                (*index, &process.stacks[..], of_nodes)
            })
            .collect();
        // What an earlier chunk said of an address is still there, and nobody looks at it any more.
        let used: FxHashSet<LocationId> = of_processes.iter().flat_map(|(.., ids)| ids).copied().collect();
        let before = locations.locations.clone();
        let mut stacks =
            Stacks { modules: locations.modules, locations: locations.locations, ..Stacks::default() };
        name(&mut stacks);
        let changed = changed(&before, &stacks.locations, &used);
        let mut ids = (0..).map(LocationId);
        stacks.locations.retain(|_| ids.next().is_some_and(|id| changed.contains_key(&id)));
        let mut symbols = names_of(&stacks);
        symbols.processes = of_processes
            .iter()
            .map(|(process, nodes, of_nodes)| keys(*process, nodes, of_nodes, &changed))
            .filter(|process| !process.keys.is_empty())
            .collect();
        (symbols, changed.len())
    }
}

/// The locations of these that have other frames now, with their places among those.
fn changed(
    before: &[Location],
    now: &[Location],
    used: &FxHashSet<LocationId>,
) -> FxHashMap<LocationId, u32> {
    let ids = before.iter().zip(now).zip((0..).map(LocationId));
    let changed = ids.filter(|((before, now), id)| before.frames != now.frames && used.contains(id));
    changed.zip(0..).map(|((_, id), place)| (id, place)).collect()
}

fn keys(
    process: u32,
    nodes: &[StackNode],
    of_nodes: &[LocationId],
    changed: &FxHashMap<LocationId, u32>,
) -> SymbolProcess {
    let key = |(node, id): (&StackNode, &LocationId)| {
        let location = *changed.get(id)?;
        Some(SymbolKey { avma: node.avma, exact: node.exact, generation: node.generation, location })
    };
    let mut keys: Vec<SymbolKey> = nodes.iter().zip(of_nodes).filter_map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    SymbolProcess { process, keys }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{End, MappedModule, Modules, ProcessEnd, ProcessStart, Stacks as StackChunk, read_bytes};
    use mallow_base::Frame;
    use mallow_profile::{EventsLost, Summary};
    use std::io::Cursor;

    /// Two processes with the same library, one address of which has a name.
    fn trace() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = TraceWriter::new(&mut bytes, ZSTD_LEVEL).unwrap();
        let module = MappedModule {
            path: "/lib/a.so".into(),
            build_id: vec![1, 2],
            start_avma: 0x1000,
            end_avma: 0x2000,
            bias: 0x1000,
            ..MappedModule::default()
        };
        let node = |avma| StackNode { parent: None, avma, exact: false, generation: 0 };
        for process in 0..2 {
            out.put(process, &ProcessStart { pid: 10 + process, ..ProcessStart::default() }).unwrap();
            out.put(process, &Modules { modules: vec![module.clone()] }).unwrap();
            let nodes = [0x1100, 0x1200, 0x9000].map(node).to_vec();
            out.put(process, &StackChunk { first: 0, nodes }).unwrap();
            out.put(process, &Summary::default()).unwrap();
            let events_lost = EventsLost::Exactly(0);
            out.put(process, &ProcessEnd { events_lost, ..ProcessEnd::default() }).unwrap();
        }
        out.put_whole(&End { duration_us: 7 }).unwrap();
        bytes
    }

    fn named(bytes: &[u8], name: impl FnOnce(&mut Stacks)) -> (Vec<u8>, usize) {
        let mut copy = Vec::new();
        let trace = Trace::open(Cursor::new(bytes)).unwrap();
        let changed = trace.copy_with_names(name, &mut copy).unwrap();
        (copy, changed)
    }

    fn names(bytes: &[u8]) -> Vec<String> {
        let stacks = read_bytes(bytes).unwrap().profile.stacks;
        let name = |node: &mallow_profile::StackNode| {
            stacks.locations[node.location.0 as usize].frames[0].function.clone()
        };
        stacks.nodes.iter().map(name).collect()
    }

    fn call(address: &'static str, name: &'static str) -> impl FnOnce(&mut Stacks) {
        move |stacks| {
            for location in &mut stacks.locations {
                if location.frames[0].function == address {
                    location.frames = vec![Frame { function: name.into(), ..Frame::default() }];
                }
            }
        }
    }

    #[test]
    fn names_are_added_and_nothing_else_is_changed() {
        let before = trace();
        assert_eq!(names(&before).join(" "), "0x100 0x200 0x9000 0x100 0x200 0x9000");
        let (once, changed) = named(&before, call("0x200", "work"));
        assert_eq!((names(&once).join(" ").as_str(), changed), ("0x100 work 0x9000 0x100 work 0x9000", 1));
        let (twice, changed) = named(&once, call("0x100", "main"));
        assert_eq!((names(&twice).join(" ").as_str(), changed), ("main work 0x9000 main work 0x9000", 1));
        let (again, changed) = named(&twice, call("0x200", "work"));
        assert_eq!((names(&again), changed), (names(&twice), 0));
        let [first, last] = [&before, &twice].map(|bytes| read_bytes(bytes).unwrap());
        assert_eq!(first.profile.processes, last.profile.processes);
        assert_eq!((first.complete, last.complete), (true, true));
    }

    #[test]
    fn a_trace_that_was_cut_short_stays_one() {
        let whole = trace();
        let cut = &whole[..whole.len() - 5];
        let (copy, changed) = named(cut, call("0x200", "work"));
        assert_eq!((names(&copy)[1].as_str(), changed), ("work", 1));
        assert!(!read_bytes(&copy).unwrap().complete);
    }
}
