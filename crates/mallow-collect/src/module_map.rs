//! Which module held an address, and when.
//!
//! A program may load and unload libraries thousands of times. Each time is a generation, in which the modules on its stacks are
//! met again, mostly at the same addresses.

use mallow_trace::{MappedModule, SymbolKey};
use std::collections::BTreeMap;

/// The modules of a process by what they cover.
#[derive(Clone, Debug)]
pub(crate) struct ModuleMap {
    /// By their first address.
    ranges: Vec<Range>,
}

/// A piece of the address space that modules covered, one after the other.
#[derive(Clone, Debug)]
struct Range {
    start_avma: u64,
    end_avma: u64,
    /// The furthest end of this range and those before it.
    reach_avma: u64,
    /// The generation in which each module was met, and its index, ascending.
    met: Vec<(u64, usize)>,
}

impl ModuleMap {
    /// The map of these modules.
    pub(crate) fn of(modules: &[MappedModule]) -> ModuleMap {
        let mut by_range: BTreeMap<(u64, u64), Vec<(u64, usize)>> = BTreeMap::new();
        for (index, module) in modules.iter().enumerate() {
            let range = (module.start_avma, module.end_avma);
            by_range.entry(range).or_default().push((module.generation, index));
        }
        let mut reach_avma = 0;
        let ranges = by_range.into_iter().map(|((start_avma, end_avma), mut met)| {
            met.sort_unstable();
            reach_avma = end_avma.max(reach_avma);
            Range { start_avma, end_avma, reach_avma, met }
        });
        ModuleMap { ranges: ranges.collect() }
    }

    /// The index of the module that held an address in its generation: of those mapped around it, the one met last before.
    pub(crate) fn at(&self, key: &SymbolKey) -> Option<usize> {
        let pc = key.avma.wrapping_sub(u64::from(!key.exact));
        let begun = self.ranges.partition_point(|range| range.start_avma <= pc);
        let around = self.ranges[..begun].iter().rev().take_while(|range| range.reach_avma > pc);
        let last = around.filter(|range| range.end_avma > pc).filter_map(|range| {
            let until = range.met.partition_point(|(generation, _)| *generation <= key.generation);
            range.met[..until].last()
        });
        last.max().map(|(_, index)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// One module after the other.
    fn naive(modules: &[MappedModule], key: &SymbolKey) -> Option<usize> {
        let pc = key.avma.wrapping_sub(u64::from(!key.exact));
        let holds = |module: &MappedModule| {
            (module.start_avma..module.end_avma).contains(&pc) && module.generation <= key.generation
        };
        let around = modules.iter().enumerate().filter(|(_, module)| holds(module));
        around.max_by_key(|(index, module)| (module.generation, *index)).map(|(index, _)| index)
    }

    fn module((start_avma, bytes, generation): (u64, u64, u64)) -> MappedModule {
        let end_avma = start_avma + bytes;
        MappedModule { path: String::new(), build_id: Vec::new(), start_avma, end_avma, bias: 0, generation }
    }

    proptest! {
        #[test]
        fn every_address_has_the_module_that_a_look_at_all_of_them_finds(
            modules in vec((0..40u64, 0..20u64, 0..6u64).prop_map(module), 0..30),
        ) {
            let map = ModuleMap::of(&modules);
            for avma in 0..64 {
                for generation in 0..7 {
                    for exact in [false, true] {
                        let key = SymbolKey { avma, exact, generation, location: 0 };
                        prop_assert_eq!(map.at(&key), naive(&modules, &key));
                    }
                }
            }
        }
    }
}
