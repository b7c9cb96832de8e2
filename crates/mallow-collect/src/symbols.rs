//! Names for all addresses on all stacks, asked for once each when the recording ends.

use crate::module_map::ModuleMap;
use crate::process::Ended;
use mallow_base::Frame;
use mallow_profile::Module;
use mallow_wire::trace::{
    self, SymbolAddress, SymbolFrame, SymbolKey, SymbolLocation, SymbolModule, SymbolProcess, Symbols,
};
use rustc_hash::FxHashMap;

/// Resolves the addresses of one module; one list of frames for each, innermost first.
pub type Resolve<'a> = &'a mut dyn FnMut(&Module, &[u64]) -> Vec<Vec<Frame>>;

/// Builds the symbols chunk of a recording, for those of each process's stacks that `nodes` gives.
pub(crate) fn symbols_of(
    processes: &[Ended],
    nodes: impl Fn(&Ended) -> Vec<trace::StackNode>,
    resolve: Resolve<'_>,
) -> Symbols {
    let mut tables = Tables::default();
    for process in processes {
        let keys = tables.keys_of(process, &nodes(process));
        tables.symbols.processes.push(SymbolProcess { process: process.index, keys });
    }
    tables.resolve(resolve);
    tables.symbols
}

#[derive(Default)]
struct Tables {
    symbols: Symbols,
    modules: FxHashMap<(String, Vec<u8>), u32>,
    locations: FxHashMap<(SymbolAddressKey, bool), u32>,
    /// Whether each location's address is exact.
    exact: Vec<bool>,
    strings: FxHashMap<String, u32>,
}

type SymbolAddressKey = (u32, u64);

const NO_MODULE: u32 = u32::MAX;

impl Tables {
    fn keys_of(&mut self, process: &Ended, nodes: &[trace::StackNode]) -> Vec<SymbolKey> {
        let mut keys: Vec<SymbolKey> = nodes
            .iter()
            .map(|node| SymbolKey {
                avma: node.avma,
                exact: node.exact,
                generation: node.generation,
                location: 0,
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let map = ModuleMap::of(&process.modules);
        let mut numbers = vec![None; process.modules.len()];
        for key in &mut keys {
            let module = map.at(key).map(|at| {
                let module = &process.modules[at];
                let number = *numbers[at].get_or_insert_with(|| self.module(module));
                (number, key.avma.wrapping_sub(module.bias))
            });
            key.location = self.location(module, key);
        }
        keys
    }

    /// The number of a place: an address in a module, or outside of all.
    fn location(&mut self, module: Option<(u32, u64)>, key: &SymbolKey) -> u32 {
        let (module, address) = module.unwrap_or((NO_MODULE, key.avma));
        let next = self.symbols.locations.len() as u32;
        let number = *self.locations.entry(((module, address), key.exact)).or_insert(next);
        if number == next {
            let address = match module {
                NO_MODULE => SymbolAddress::Anonymous { avma: address },
                _ => SymbolAddress::InModule { module, svma: address },
            };
            self.symbols.locations.push(SymbolLocation { address, frames: Vec::new() });
            self.exact.push(key.exact);
        }
        number
    }

    fn module(&mut self, module: &trace::Module) -> u32 {
        let next = self.symbols.modules.len() as u32;
        let number = *self.modules.entry((module.path.clone(), module.build_id.clone())).or_insert(next);
        if number == next {
            self.symbols
                .modules
                .push(SymbolModule { path: module.path.clone(), build_id: module.build_id.clone() });
        }
        number
    }

    fn resolve(&mut self, resolve: Resolve<'_>) {
        let mut wanted: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.symbols.modules.len()];
        for (i, location) in self.symbols.locations.iter().enumerate() {
            if let SymbolAddress::InModule { module, svma } = location.address {
                // A return address points behind the call: one less lies within it.
                wanted[module as usize].push((i, svma.wrapping_sub(u64::from(!self.exact[i]))));
            }
        }
        for (module, wanted) in wanted.into_iter().enumerate() {
            let SymbolModule { path, build_id } = self.symbols.modules[module].clone();
            let svmas: Vec<u64> = wanted.iter().map(|(_, svma)| *svma).collect();
            let frames = resolve(&Module { path, build_id }, &svmas);
            for ((location, _), frames) in wanted.into_iter().zip(frames) {
                let frames = frames.into_iter().map(|frame| self.frame(frame)).collect();
                self.symbols.locations[location].frames = frames;
            }
        }
        self.name_the_nameless();
    }

    /// Locations that no module holds, or that nobody could resolve, still need one frame.
    fn name_the_nameless(&mut self) {
        for i in 0..self.symbols.locations.len() {
            let location = &self.symbols.locations[i];
            if !location.frames.is_empty() {
                continue;
            }
            let function = match location.address {
                SymbolAddress::Anonymous { avma: mallow_wire::shared::ADDRESS_TRUNCATED } => {
                    "[deeper frames were cut]".to_owned()
                }
                SymbolAddress::Anonymous { avma } => format!("{avma:#x}"),
                SymbolAddress::InModule { svma, .. } => format!("{svma:#x}"),
            };
            let frame = self.frame(Frame { function, ..Frame::default() });
            self.symbols.locations[i].frames.push(frame);
        }
    }

    fn frame(&mut self, frame: Frame) -> SymbolFrame {
        SymbolFrame {
            function: self.string(frame.function),
            file: frame.file.map(|file| self.string(file)),
            line: frame.line,
            module: frame.module.map(|module| self.string(module)),
            inlined: frame.inlined,
        }
    }

    fn string(&mut self, text: String) -> u32 {
        if let Some(&number) = self.strings.get(&text) {
            return number;
        }
        let number = self.symbols.strings.len() as u32;
        self.symbols.strings.push(text.clone());
        self.strings.insert(text, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_modules_that_make_no_sense_have_names_too() {
        let module = trace::Module {
            path: "odd".into(),
            build_id: Vec::new(),
            start_avma: 0,
            end_avma: u64::MAX,
            bias: u64::MAX,
            generation: 0,
        };
        let node = |avma, exact| trace::StackNode { parent: None, avma, exact, generation: 1 };
        let process = Ended::for_test(vec![module], &[node(0, false), node(0, true), node(9, false)]);
        let mut asked = Vec::new();
        let symbols = symbols_of(&[process], Ended::all_stacks, &mut |module, svmas| {
            asked.push((module.path.clone(), svmas.to_vec()));
            Vec::new()
        });
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
