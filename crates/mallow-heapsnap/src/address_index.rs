//! Which object lies at an address, for millions of objects in any order.
//!
//! Objects stand densely: a slot of Ruby's has 40 bytes, an object of a JVM 16 and more. So one word of bits says which of 64
//! neighbouring places hold an object, and a number beside it how many objects lie before them. Of eight million objects
//! of 40 bytes each that takes 20 MB, where a map from addresses to objects takes 200.

use crate::ObjectId;
use rustc_hash::FxHashMap;

/// From addresses to objects.
#[derive(Clone, Debug)]
pub struct AddressIndex {
    /// What an address is shifted by: no two addresses differ below it.
    shift: u32,
    /// By the upper bits of an address.
    groups: FxHashMap<u64, Group>,
    /// The objects in the order of their groups and places.
    objects: Vec<u32>,
}

/// 64 places that lie beside each other.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Which of them hold an object.
    places: u64,
    /// How many objects lie in groups that were met before this one.
    before: u32,
}

/// A place without an object.
const NOBODY: u32 = u32::MAX;

impl AddressIndex {
    /// Indexes the addresses of all objects. Of objects at one address the first is found; the second value is how many others there are.
    pub fn new(ids: &[u64]) -> (AddressIndex, usize) {
        let all = ids.iter().fold(0, |bits, id| bits | id);
        let shift = if all == 0 { 0 } else { all.trailing_zeros() };
        let mut groups = FxHashMap::<u64, Group>::default();
        for id in ids {
            let place = id >> shift;
            groups.entry(place >> 6).or_default().places |= 1 << (place & 63);
        }
        let mut before = 0;
        for group in groups.values_mut() {
            group.before = before;
            before += group.places.count_ones();
        }
        groups.shrink_to_fit();
        let mut index = AddressIndex { shift, groups, objects: vec![NOBODY; before as usize] };
        let mut doubles = 0;
        for (object, id) in ids.iter().enumerate() {
            let rank = index.rank(*id).expect("its bit was just set");
            if index.objects[rank] == NOBODY {
                index.objects[rank] = object as u32;
            } else {
                doubles += 1;
            }
        }
        (index, doubles)
    }

    /// The object at an address.
    pub fn get(&self, id: u64) -> Option<ObjectId> {
        self.rank(id).map(|rank| ObjectId(self.objects[rank]))
    }

    fn rank(&self, id: u64) -> Option<usize> {
        let place = id >> self.shift;
        if place << self.shift != id {
            return None;
        }
        let group = self.groups.get(&(place >> 6))?;
        let bit = 1u64 << (place & 63);
        (group.places & bit != 0).then(|| (group.before + (group.places & (bit - 1)).count_ones()) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn nothing_is_found_in_nothing() {
        let (index, doubles) = AddressIndex::new(&[]);
        assert_eq!((index.get(0), index.get(8), doubles), (None, None, 0));
    }

    proptest! {
        #[test]
        fn it_is_a_map(
            ids in prop::collection::vec(prop_oneof![0u64..2000, (0u64..400).prop_map(|slot| 0x7f00_0000_0000 + slot * 40), any::<u64>()], 0..300),
            asked in prop::collection::vec(0u64..2000, 0..50),
        ) {
            let (index, doubles) = AddressIndex::new(&ids);
            let mut twin = HashMap::new();
            for (object, id) in ids.iter().enumerate() {
                twin.entry(*id).or_insert(ObjectId(object as u32));
            }
            prop_assert_eq!(doubles, ids.len() - twin.len());
            for id in ids.iter().chain(&asked) {
                prop_assert_eq!(index.get(*id), twin.get(id).copied());
            }
        }
    }
}
