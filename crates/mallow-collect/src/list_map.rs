//! A map by two numbers, the first of which are dense: a short list for each.
//!
//! In a hash table of a hundred thousand stacks each look-up misses the processor's cache twice, and a program whose ring is full waits for it. A
//! stack that is new is looked for at frames that have just become known, so that lists in the order in which they were made are in the cache.

use mallow_wire::shared::NODE_COUNT;
use rustc_hash::FxHashMap;

/// Values by two numbers.
#[derive(Debug)]
pub(crate) struct ListMap<V> {
    /// By the first number: where its list begins in `entries`, plus 1, or 0.
    heads: Vec<u32>,
    entries: Vec<Entry<V>>,
    /// What comes behind the first [`LIST_MAX`] of a list, and where there is none.
    others: FxHashMap<(u32, u32), V>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<V> {
    second: u32,
    /// As in `heads`.
    next: u32,
    value: V,
}

/// First numbers from this one on have no list: they are the root's, or a damaged program's.
const FIRST_MAX: u32 = NODE_COUNT as u32;

/// Entries of a list. A frame that calls many others is rare, and so are stacks that go on from it.
const LIST_MAX: usize = 8;

/// What a list says of a key that is not in it.
enum Missing {
    /// There is room for it.
    Room,
    /// It may be among the others.
    Full,
}

impl<V> Default for ListMap<V> {
    fn default() -> ListMap<V> {
        ListMap { heads: Vec::new(), entries: Vec::new(), others: FxHashMap::default() }
    }
}

impl<V: Copy> ListMap<V> {
    /// The value of a key.
    pub(crate) fn get(&self, key: (u32, u32)) -> Option<V> {
        match self.find(key) {
            Ok(value) => Some(value),
            Err(Missing::Room) => None,
            Err(Missing::Full) => self.others.get(&key).copied(),
        }
    }

    /// Adds a key that is not there, and returns its value.
    pub(crate) fn insert(&mut self, key: (u32, u32), value: V) -> V {
        match self.find(key) {
            Err(Missing::Full) => {
                self.others.insert(key, value);
            }
            Ok(_) | Err(Missing::Room) => self.push(key, value),
        }
        value
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn held_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>()
            + self.entries.capacity() * size_of::<Entry<V>>()
            + self.others.capacity() * size_of::<((u32, u32), V)>()
    }

    fn find(&self, (first, second): (u32, u32)) -> Result<V, Missing> {
        if first >= FIRST_MAX {
            return Err(Missing::Full);
        }
        let mut at = self.heads.get(first as usize).copied().unwrap_or(0);
        for _ in 0..LIST_MAX {
            let Some(entry) = at.checked_sub(1).and_then(|at| self.entries.get(at as usize)) else {
                return Err(Missing::Room);
            };
            if entry.second == second {
                return Ok(entry.value);
            }
            at = entry.next;
        }
        Err(Missing::Full)
    }

    fn push(&mut self, (first, second): (u32, u32), value: V) {
        let first = first as usize;
        if self.heads.len() <= first {
            // Fresh zeros, of which most are never touched where numbers are places in a hash table.
            let mut heads = vec![0; (first + 1).next_power_of_two()];
            heads[..self.heads.len()].copy_from_slice(&self.heads);
            self.heads = heads;
        }
        self.entries.push(Entry { second, next: self.heads[first], value });
        self.heads[first] = self.entries.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_first_number_that_no_node_has_takes_no_room() {
        let mut map = ListMap::default();
        for first in [FIRST_MAX, (1 << 28) - 1, u32::MAX] {
            assert_eq!((map.get((first, 7)), map.insert((first, 7), first)), (None, first));
            assert_eq!((map.get((first, 7)), map.get((first, 8))), (Some(first), None));
        }
        assert!(map.held_bytes() < 1000);
        map.insert((FIRST_MAX - 1, 7), 1);
        assert_eq!(map.get((FIRST_MAX - 1, 7)), Some(1));
    }

    proptest! {
        #[test]
        fn it_holds_what_a_tree_does(keys in proptest::collection::vec((0..9u32, 0..30u32), 0..400)) {
            let (mut map, mut twin) = (ListMap::default(), BTreeMap::new());
            for (value, key) in keys.into_iter().enumerate() {
                prop_assert_eq!(map.get(key), twin.get(&key).copied());
                if map.get(key).is_none() {
                    twin.insert(key, map.insert(key, value));
                }
            }
            for key in (0..10).flat_map(|first| (0..31).map(move |second| (first, second))) {
                prop_assert_eq!(map.get(key), twin.get(&key).copied());
            }
            let longest = (0..9).map(|first| twin.range((first, 0)..(first + 1, 0)).count()).max().unwrap_or(0);
            prop_assert_eq!(map.others.is_empty(), longest <= LIST_MAX);
        }
    }
}
