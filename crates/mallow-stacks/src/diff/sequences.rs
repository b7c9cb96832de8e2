//! Sequences of numbers, equal ones once.
//!
//! They lie one behind the other, and the table holds nothing but their indices: of half a million stacks, apart and as the keys of a map, there
//! would be two copies and a million small blocks.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Sequences by the order in which they were met.
#[derive(Default)]
pub(super) struct Sequences {
    items: Vec<u32>,
    ends: Vec<u32>,
    table: HashTable<u32>,
}

impl Sequences {
    /// The index of a sequence, which is added where it is new.
    pub(super) fn add(&mut self, sequence: &[u32]) -> u32 {
        let (items, ends) = (&mut self.items, &mut self.ends);
        let is_it = |index: &u32| of_index(items, ends, *index) == sequence;
        match self.table.entry(hash(sequence), is_it, |index| hash(of_index(items, ends, *index))) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let index = ends.len() as u32;
                free.insert(index);
                items.extend_from_slice(sequence);
                ends.push(items.len() as u32);
                index
            }
        }
    }

    /// The index of a sequence; none where it was not added.
    pub(super) fn find(&self, sequence: &[u32]) -> Option<u32> {
        self.table.find(hash(sequence), |index| self.get(*index) == sequence).copied()
    }

    /// The sequence with an index.
    pub(super) fn get(&self, index: u32) -> &[u32] {
        of_index(&self.items, &self.ends, index)
    }
}

fn of_index<'a>(items: &'a [u32], ends: &[u32], index: u32) -> &'a [u32] {
    let begin = index.checked_sub(1).map_or(0, |before| ends[before as usize]);
    &items[begin as usize..ends[index as usize] as usize]
}

fn hash(sequence: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for item in sequence {
        hasher.write_u32(*item);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_sequences_have_one_index_in_the_order_of_first_sight(
            sequences in prop::collection::vec(prop::collection::vec(0_u32..3, 0..4), 0..60),
            other in prop::collection::vec(0_u32..3, 0..4),
        ) {
            let (mut all, mut naive) = (Sequences::default(), Vec::new());
            for sequence in &sequences {
                let at = naive.iter().position(|known| known == sequence).unwrap_or_else(|| {
                    naive.push(sequence.clone());
                    naive.len() - 1
                });
                prop_assert_eq!(all.add(sequence), at as u32);
                prop_assert_eq!(all.get(at as u32), &sequence[..]);
            }
            let found = naive.iter().position(|known| *known == other).map(|at| at as u32);
            prop_assert_eq!(all.find(&other), found);
        }
    }
}
