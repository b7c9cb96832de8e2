//! Addresses on stacks, and the locations that they mean: from the trace's symbols where it has them, else the bare
//! address within its module.

use crate::{MappedModule, StackNode, SymbolFrame, Symbols};
use mallow_base::Frame;
use mallow_profile::{Address, Location, LocationId, Module, ModuleId};
use mallow_wire::shared::ADDRESS_TRUNCATED;
use rustc_hash::FxHashMap;

/// The key by which a stack node's address is looked up.
type Key = (u64, bool, u64);

/// The profile's modules and locations while they are being gathered from all processes. Equal ones become one.
#[derive(Debug, Default)]
pub(super) struct Locations {
    pub(super) modules: Vec<Module>,
    pub(super) locations: Vec<Location>,
    module_ids: FxHashMap<Module, ModuleId>,
    location_ids: FxHashMap<Address, LocationId>,
    /// By the process's index in the trace.
    symbols: FxHashMap<u32, FxHashMap<Key, LocationId>>,
}

impl Locations {
    /// Adds the symbols of a chunk.
    pub(super) fn add_symbols(&mut self, symbols: &Symbols) {
        let modules: Vec<ModuleId> =
            symbols.modules.iter().map(|module| self.module(&module.path, &module.build_id)).collect();
        let mut ids = Vec::with_capacity(symbols.locations.len());
        for location in &symbols.locations {
            let address = match location.address {
                Address::InModule { module, svma } => {
                    Address::InModule { module: modules[module.0 as usize], svma }
                }
                address => address,
            };
            let frames: Vec<Frame> = location.frames.iter().map(|frame| frame_of(frame, symbols)).collect();
            ids.push(self.location(address, frames));
        }
        for process in &symbols.processes {
            let keys = self.symbols.entry(process.process).or_default();
            keys.extend(
                process
                    .keys
                    .iter()
                    .map(|key| ((key.avma, key.exact, key.generation), ids[key.location as usize])),
            );
        }
    }

    /// The location of each of a process's stack nodes.
    pub(super) fn of_nodes(
        &mut self,
        process: u32,
        nodes: &[StackNode],
        modules: &[MappedModule],
    ) -> Vec<LocationId> {
        let mut known = self.symbols.remove(&process).unwrap_or_default();
        let locate = |node: &StackNode| {
            let key = (node.avma, node.exact, node.generation);
            *known.entry(key).or_insert_with(|| self.bare(node, modules))
        };
        nodes.iter().map(locate).collect()
    }

    /// A location without symbols.
    fn bare(&mut self, node: &StackNode, modules: &[MappedModule]) -> LocationId {
        if node.avma == ADDRESS_TRUNCATED {
            let function = String::from("[outer frames not recorded]");
            return self.location(
                Address::Anonymous { avma: node.avma },
                vec![Frame { function, ..Frame::default() }],
            );
        }
        let (address, number, module) = match module_at(node, modules) {
            Some(module) => {
                let svma = node.avma.wrapping_sub(module.bias);
                let id = self.module(&module.path, &module.build_id);
                (Address::InModule { module: id, svma }, svma, Some(module.path.clone()))
            }
            None => (Address::Anonymous { avma: node.avma }, node.avma, None),
        };
        let frame = Frame { function: format!("{number:#x}"), module, ..Frame::default() };
        self.location(address, vec![frame])
    }

    fn module(&mut self, path: &str, build_id: &[u8]) -> ModuleId {
        let module = Module { path: path.to_owned(), build_id: build_id.to_vec() };
        if let Some(&id) = self.module_ids.get(&module) {
            return id;
        }
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(module.clone());
        self.module_ids.insert(module, id);
        id
    }

    fn location(&mut self, address: Address, mut frames: Vec<Frame>) -> LocationId {
        if frames.is_empty() {
            // Every location has a frame, even if a table of symbols is damaged.
            frames.push(Frame { function: String::from("[unknown]"), ..Frame::default() });
        }
        if let Some(&id) = self.location_ids.get(&address)
            && self.locations[id.0 as usize].frames == frames
        {
            return id;
        }
        let id = LocationId(self.locations.len() as u32);
        self.locations.push(Location { address, frames });
        if address != Address::Unknown {
            self.location_ids.insert(address, id);
        }
        id
    }
}

/// Returns the module that contained a node's address: of those that were mapped there, the one seen last, but not
/// after the node.
fn module_at<'a>(node: &StackNode, modules: &'a [MappedModule]) -> Option<&'a MappedModule> {
    // A return address may be after the module's last byte, if the call was its last instruction.
    let avma = if node.exact { node.avma } else { node.avma.wrapping_sub(1) };
    modules
        .iter()
        .filter(|module| module.start_avma <= avma && avma < module.end_avma)
        .filter(|module| module.generation <= node.generation)
        .max_by_key(|module| module.generation)
}

fn frame_of(frame: &SymbolFrame, symbols: &Symbols) -> Frame {
    let string = |index: u32| symbols.strings[index as usize].clone();
    Frame {
        function: string(frame.function),
        file: frame.file.map(string),
        line: frame.line,
        module: frame.module.map(string),
        inlined: frame.inlined,
        language: frame.language,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, start_avma: u64, generation: u64) -> MappedModule {
        let path = String::from(path);
        MappedModule {
            path,
            start_avma,
            end_avma: start_avma + 0x1000,
            generation,
            ..MappedModule::default()
        }
    }

    #[test]
    fn of_modules_at_one_place_the_one_of_that_time_counts() {
        let modules =
            [module("/old.so", 0x1000, 0), module("/new.so", 0x1000, 2), module("/next.so", 0x2000, 0)];
        let path = |avma, exact, generation| {
            let node = StackNode { parent: None, avma, exact, generation };
            module_at(&node, &modules).map(|module| module.path.as_str())
        };
        assert_eq!(path(0x1800, false, 0), Some("/old.so"));
        assert_eq!(path(0x1800, false, 1), Some("/old.so"));
        assert_eq!(path(0x1800, false, 2), Some("/new.so"));
        // A return address right after a module belongs to it; a program counter there does not.
        assert_eq!(path(0x2000, false, 1), Some("/old.so"));
        assert_eq!(path(0x2000, true, 1), Some("/next.so"));
        assert_eq!(path(0x3001, false, 1), None);
    }

    #[test]
    fn equal_locations_of_two_processes_become_one() {
        let modules = [MappedModule { bias: 0x400, ..module("/a", 0x1000, 0) }];
        let nodes = [0x1234, 0x1234, 0x9000].map(|avma| StackNode { avma, ..StackNode::default() });
        let mut locations = Locations::default();
        let first = locations.of_nodes(0, &nodes, &modules);
        assert_eq!(first, [LocationId(0), LocationId(0), LocationId(1)]);
        assert_eq!(locations.of_nodes(1, &nodes, &modules), first);
        let frame = &locations.locations[0].frames[0];
        assert_eq!((frame.function.as_str(), frame.module.as_deref()), ("0xe34", Some("/a")));
        assert_eq!(locations.locations[1].frames[0].function, "0x9000");
    }
}
