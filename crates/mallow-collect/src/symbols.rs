//! Names for all addresses on all stacks, asked for once each when the recording ends.

use crate::exited::ExitedProcess;
use crate::module_map::ModuleMap;
use mallow_base::Frame;
use mallow_profile::{Address, Module, ModuleId};
use mallow_trace::{MappedModule, SymbolKey, SymbolLocation, SymbolProcess, SymbolStrings, Symbols};
use mallow_wire::shared::node_key;
use rustc_hash::FxHashMap;

/// Resolves the addresses of one module; one list of frames for each, innermost first.
pub type Resolve<'a> = &'a mut dyn FnMut(&Module, &[u64]) -> Vec<Vec<Frame>>;

/// The symbols of a recording's addresses.
#[derive(Default)]
pub(crate) struct Named {
    /// As they are written into the trace.
    pub(crate) symbols: Symbols,
    /// The frames of each location of the symbols, innermost first.
    pub(crate) frames: Vec<Vec<Frame>>,
    /// For each process, in their order: the location of each address of its stacks; [`NO_LOCATION`] for those that were left out.
    pub(crate) locations: Vec<Vec<u32>>,
}

/// Marks an address that was not resolved.
pub(crate) const NO_LOCATION: u32 = u32::MAX;

/// Resolves the addresses of a recording, of each process those whose numbers `addresses` returns.
pub(crate) fn symbols_of(
    processes: &[ExitedProcess],
    addresses: impl Fn(&ExitedProcess) -> Vec<u32>,
    resolve: Resolve<'_>,
) -> Named {
    let mut tables = Tables::default();
    for process in processes {
        let (keys, locations) = tables.keys_of(process, addresses(process));
        tables.named.symbols.processes.push(SymbolProcess { process: process.index, keys });
        tables.named.locations.push(locations);
    }
    tables.resolve(resolve);
    tables.named.symbols.strings = tables.strings.into_table();
    tables.named
}

#[derive(Default)]
struct Tables {
    named: Named,
    modules: FxHashMap<(String, Vec<u8>), u32>,
    locations: FxHashMap<(SymbolAddressKey, bool), u32>,
    /// Lines of scripts, which need no symbolization.
    script_locations: FxHashMap<Frame, u32>,
    scripts: Vec<(usize, Frame)>,
    /// Whether each location's address is exact.
    exact: Vec<bool>,
    strings: SymbolStrings,
}

type SymbolAddressKey = (u32, u64);

const NO_MODULE: u32 = u32::MAX;

impl Tables {
    /// The keys of these addresses, sorted, and the location of each address of the process.
    fn keys_of(&mut self, process: &ExitedProcess, addresses: Vec<u32>) -> (Vec<SymbolKey>, Vec<u32>) {
        let all: Vec<SymbolKey> = process.stacks.addresses_from(0).collect();
        let mut keys: Vec<(SymbolKey, u32)> =
            addresses.into_iter().map(|address| (all[address as usize], address)).collect();
        keys.sort_unstable();
        let map = ModuleMap::of(&process.modules);
        let mut numbers = vec![None; process.modules.len()];
        let mut locations = vec![NO_LOCATION; all.len()];
        let mut line_before = None;
        for (key, address) in &mut keys {
            if let Some(line) = process.scripts.line(node_key(key.avma, key.exact, key.generation)) {
                // Places of a line follow one another.
                key.location = match line_before {
                    Some((before, location)) if before == line => location,
                    _ => self.script_location(process.scripts.frame_of(line)),
                };
                line_before = Some((line, key.location));
                locations[*address as usize] = key.location;
                continue;
            }
            let at = map.at(key);
            if let Some(frame) = process.made.frame(key).filter(|_| at.is_none()) {
                key.location = self.script_location(frame.clone());
                locations[*address as usize] = key.location;
                continue;
            }
            let module = at.map(|at| {
                let module = &process.modules[at];
                let number = *numbers[at].get_or_insert_with(|| self.module(module));
                (number, key.avma.wrapping_sub(module.bias))
            });
            key.location = self.location(module, key);
            locations[*address as usize] = key.location;
        }
        (keys.into_iter().map(|(key, _)| key).collect(), locations)
    }

    /// The number of a script's line: one, however often its code was loaded, and in whichever process.
    fn script_location(&mut self, frame: Frame) -> u32 {
        let next = self.named.symbols.locations.len() as u32;
        let number = *self.script_locations.entry(frame.clone()).or_insert(next);
        if number == next {
            self.named
                .symbols
                .locations
                .push(SymbolLocation { address: Address::Unknown, frames: Vec::new() });
            self.exact.push(true);
            self.scripts.push((number as usize, frame));
        }
        number
    }

    /// The number of a place: an address in a module, or outside of all.
    fn location(&mut self, module: Option<(u32, u64)>, key: &SymbolKey) -> u32 {
        let (module, address) = module.unwrap_or((NO_MODULE, key.avma));
        let next = self.named.symbols.locations.len() as u32;
        let number = *self.locations.entry(((module, address), key.exact)).or_insert(next);
        if number == next {
            let address = match module {
                NO_MODULE => Address::Anonymous { avma: address },
                _ => Address::InModule { module: ModuleId(module), svma: address },
            };
            self.named.symbols.locations.push(SymbolLocation { address, frames: Vec::new() });
            self.exact.push(key.exact);
        }
        number
    }

    fn module(&mut self, module: &MappedModule) -> u32 {
        let next = self.named.symbols.modules.len() as u32;
        let number = *self.modules.entry((module.path.clone(), module.build_id.clone())).or_insert(next);
        if number == next {
            self.named
                .symbols
                .modules
                .push(Module { path: module.path.clone(), build_id: module.build_id.clone() });
        }
        number
    }

    fn resolve(&mut self, resolve: Resolve<'_>) {
        self.named.frames.resize(self.named.symbols.locations.len(), Vec::new());
        for (location, frame) in std::mem::take(&mut self.scripts) {
            self.name(location, vec![frame]);
        }
        let mut wanted: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.named.symbols.modules.len()];
        for (i, location) in self.named.symbols.locations.iter().enumerate() {
            if let Address::InModule { module, svma } = location.address {
                // A return address points behind the call: one less is within it.
                wanted[module.0 as usize].push((i, svma.wrapping_sub(u64::from(!self.exact[i]))));
            }
        }
        for (module, wanted) in wanted.into_iter().enumerate() {
            let svmas: Vec<u64> = wanted.iter().map(|(_, svma)| *svma).collect();
            let frames = resolve(&self.named.symbols.modules[module], &svmas);
            for ((location, _), frames) in wanted.into_iter().zip(frames) {
                self.name(location, frames);
            }
        }
        self.name_the_nameless();
    }

    fn name(&mut self, location: usize, frames: Vec<Frame>) {
        let in_symbols = frames.iter().map(|frame| self.strings.frame(frame)).collect();
        self.named.symbols.locations[location].frames = in_symbols;
        self.named.frames[location] = frames;
    }

    /// Locations without a module, or that could not be resolved, still need one frame.
    fn name_the_nameless(&mut self) {
        for i in 0..self.named.symbols.locations.len() {
            let location = &self.named.symbols.locations[i];
            if !location.frames.is_empty() {
                continue;
            }
            let function = match location.address {
                Address::Anonymous { avma: mallow_wire::shared::ADDRESS_TRUNCATED } => {
                    "[deeper frames were cut]".to_owned()
                }
                Address::Anonymous { avma } => format!("{avma:#x}"),
                Address::InModule { svma, .. } => format!("{svma:#x}"),
                Address::Unknown => "[unknown]".to_owned(),
            };
            self.name(i, vec![Frame { function, ..Frame::default() }]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_addresses_and_modules_get_a_frame() {
        let module = MappedModule {
            path: "odd".into(),
            build_id: Vec::new(),
            start_avma: 0,
            end_avma: u64::MAX,
            bias: u64::MAX,
            generation: 0,
        };
        let node = |avma, exact| mallow_trace::StackNode { parent: None, avma, exact, generation: 1 };
        let process = ExitedProcess::for_test(vec![module], &[node(0, false), node(0, true), node(9, false)]);
        let mut asked = Vec::new();
        let symbols = symbols_of(&[process], ExitedProcess::all_addresses, &mut |module, svmas| {
            asked.push((module.path.clone(), svmas.to_vec()));
            Vec::new()
        })
        .symbols;
        // Address 0 less one lies in no module; 0 and 9 lie in this one, one byte above its bias.
        assert_eq!(asked, [("odd".to_owned(), vec![1, 9])]);
        let names: Vec<&str> = symbols
            .locations
            .iter()
            .map(|location| symbols.strings[location.frames[0].function as usize].as_str())
            .collect();
        assert_eq!(names, ["0x0", "0x1", "0xa"]);
    }
}
