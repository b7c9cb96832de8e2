//! Which module held an address, and when.
//!
//! A program may load and unload libraries thousands of times. Each time is a generation, in which the modules on its stacks are
//! met again, mostly at the same addresses.

use mallow_trace::{MappedModule, SymbolKey};

/// The modules of a process by address range: a segment tree over the pieces of the address space between their
/// bounds. However they overlap, a module is stored at no more than twice as many places as the tree is high, and a
/// look-up visits one per level.
#[derive(Clone, Debug)]
pub(crate) struct ModuleMap {
    /// Where pieces begin, ascending.
    begins: Vec<u64>,
    /// The tree, as an array with its root at 1: at each place the modules that cover all of its pieces, and not all
    /// of its parent's, each with the generation in which it was seen, ascending.
    covering: Vec<Vec<(u64, u32)>>,
}

impl ModuleMap {
    /// The map of these modules.
    pub(crate) fn of(modules: &[MappedModule]) -> ModuleMap {
        let ends = |module: &MappedModule| [module.start_avma, module.end_avma];
        let mut begins: Vec<u64> = modules.iter().flat_map(ends).collect();
        begins.sort_unstable();
        begins.dedup();
        let pieces = begins.len().next_power_of_two();
        let mut covering = vec![Vec::new(); 2 * pieces];
        for (index, module) in modules.iter().enumerate() {
            let piece = |avma: u64| pieces + begins.partition_point(|begin| *begin < avma);
            let (mut left, mut right) = (piece(module.start_avma), piece(module.end_avma));
            while left < right {
                if left & 1 == 1 {
                    covering[left].push((module.generation, index as u32));
                    left += 1;
                }
                if right & 1 == 1 {
                    right -= 1;
                    covering[right].push((module.generation, index as u32));
                }
                (left, right) = (left / 2, right / 2);
            }
        }
        covering.iter_mut().for_each(|met| met.sort_unstable());
        ModuleMap { begins, covering }
    }

    /// Returns the index of the module that contained an address in its generation: of those mapped around it, the
    /// one seen last before.
    pub(crate) fn at(&self, key: &SymbolKey) -> Option<usize> {
        let pc = key.avma.wrapping_sub(u64::from(!key.exact));
        let piece = self.begins.partition_point(|begin| *begin <= pc).checked_sub(1)?;
        let path = std::iter::successors(Some(self.covering.len() / 2 + piece), |at| Some(at / 2));
        let last = path.take_while(|at| *at > 0).filter_map(|at| {
            let met = &self.covering[at];
            met[..met.partition_point(|(generation, _)| *generation <= key.generation)].last()
        });
        last.max().map(|(_, index)| *index as usize)
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

    /// Tens of thousands of overlapping modules, and as many addresses: checking each module for each address would
    /// take a minute.
    #[test]
    fn overlapping_modules_cost_no_more_than_others() {
        const COUNT: u64 = 40_000;
        let modules: Vec<MappedModule> = (0..COUNT).map(|at| module((at, 2 * COUNT - 2 * at, at))).collect();
        let map = ModuleMap::of(&modules);
        let places: usize = map.covering.iter().map(Vec::len).sum();
        assert!(places <= modules.len() * 2 * 17, "{places} places");
        let key = |generation| SymbolKey { avma: COUNT, exact: true, generation, location: 0 };
        for generation in 0..COUNT {
            assert_eq!(map.at(&key(generation)), Some(generation as usize));
        }
    }

    proptest! {
        #[test]
        fn look_ups_agree_with_a_linear_search(
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
