//! The dominator tree: what would be freed with what.
//!
//! It is kept in the order in which one walks down it, so that what an object retains is a range: from its own place to its end. Sums
//! over it need no stack and no lists of children.

use crate::dominators::{Dominators, NONE, dominators};
use crate::{Graph, ObjectId};
use std::ops::Range;

/// Who keeps whom alive. The root of roots has place 0.
#[derive(Clone, Debug)]
pub struct DominatorTree {
    /// The object at a place.
    objects: Vec<u32>,
    /// Where what it retains ends.
    ends: Vec<u32>,
    /// The place of its immediate dominator.
    parents: Vec<u32>,
    /// Its bytes and those of what it retains.
    retained_bytes: Vec<u64>,
    /// The place of an object.
    places: Vec<u32>,
}

/// A place in the tree.
type Place = u32;

impl DominatorTree {
    /// Computes it.
    pub fn new(graph: &Graph) -> DominatorTree {
        let Dominators { objects, idoms, .. } = dominators(graph);
        let lens = subtree_lens(&idoms);
        // A parent's number is smaller than its children's, so it has its place already.
        let mut place_of = vec![0; idoms.len()];
        let mut free = vec![1; idoms.len()];
        for number in 1..idoms.len() {
            let parent = idoms[number] as usize;
            place_of[number] = free[parent];
            free[parent] += lens[number];
            free[number] = place_of[number] + 1;
        }
        drop(free);
        // Each array is given up when the next one is made of it.
        let len = idoms.len();
        let by_place = |of: &dyn Fn(usize) -> u32| {
            let mut column = vec![0; len];
            place_of.iter().enumerate().for_each(|(number, place)| column[*place as usize] = of(number));
            column
        };
        let ends = by_place(&|number| place_of[number] + lens[number]);
        drop(lens);
        let parents = by_place(&|number| place_of[idoms[number] as usize]);
        drop(idoms);
        let mut places = vec![NONE; graph.len()];
        for (object, place) in objects.iter().zip(&place_of).skip(1) {
            places[*object as usize] = *place;
        }
        let in_places = by_place(&|number| objects[number]);
        drop(objects);
        drop(place_of);
        let mut tree =
            DominatorTree { objects: in_places, ends, parents, retained_bytes: Vec::new(), places };
        tree.sum(graph);
        tree
    }

    fn sum(&mut self, graph: &Graph) {
        let own = |object: &u32| if *object == NONE { 0 } else { graph.size_bytes(ObjectId(*object)) };
        self.retained_bytes = self.objects.iter().map(own).collect();
        for at in (1..self.objects.len()).rev() {
            let bytes = self.retained_bytes[at];
            let above = &mut self.retained_bytes[self.parents[at] as usize];
            *above = above.saturating_add(bytes);
        }
    }

    /// How many objects can be reached from the roots.
    pub fn reachable_len(&self) -> usize {
        self.objects.len() - 1
    }

    /// The bytes of what can be reached.
    pub fn reachable_bytes(&self) -> u64 {
        self.retained_bytes[0]
    }

    /// Returns whether something holds an object.
    pub fn is_reachable(&self, object: ObjectId) -> bool {
        self.place(object).is_some()
    }

    /// The bytes that would be freed with an object; none for one that nothing holds.
    pub fn retained_bytes(&self, object: ObjectId) -> Option<u64> {
        self.place(object).map(|place| self.retained_bytes[place as usize])
    }

    /// The object without which this one would be freed; none if that is a root, or nothing holds it.
    pub fn dominator(&self, object: ObjectId) -> Option<ObjectId> {
        self.at(self.parents[self.place(object)? as usize])
    }

    /// The objects that are freed with an object, which is the first of them.
    pub fn retained(&self, object: ObjectId) -> impl Iterator<Item = ObjectId> + '_ {
        let range = self.place(object).map_or(0..0, |place| self.range(place));
        self.objects[range].iter().map(|object| ObjectId(*object))
    }

    /// The objects whose immediate dominator this one is; those of the roots for none.
    pub fn children(&self, object: Option<ObjectId>) -> impl Iterator<Item = ObjectId> + '_ {
        let range = match object {
            None => self.range(0),
            Some(object) => self.place(object).map_or(0..0, |place| self.range(place)),
        };
        let end = range.end as Place;
        let mut next = (range.start as Place).saturating_add(1);
        std::iter::from_fn(move || {
            let child = (next < end).then(|| ObjectId(self.objects[next as usize]));
            next = if next < end { self.ends[next as usize] } else { end };
            child
        })
    }

    /// All objects that can be reached with their dominators, which come before them; none for what the roots dominate.
    pub fn walk(&self) -> impl Iterator<Item = (ObjectId, Option<ObjectId>)> + '_ {
        let pair = |(object, parent): (&u32, &u32)| (ObjectId(*object), self.at(*parent));
        self.objects.iter().zip(&self.parents).skip(1).map(pair)
    }

    /// Walks down the tree. For each object that can be reached, with the number of its group: is none of its dominators of the same
    /// group? Sums over those that have none count no byte twice.
    pub fn topmost(
        &self,
        groups: usize,
        group_of: impl Fn(ObjectId) -> Option<u32>,
        mut found: impl FnMut(u32, ObjectId, u64),
    ) {
        let mut covered = vec![0u32; groups];
        for place in 1..self.objects.len() {
            let object = ObjectId(self.objects[place]);
            let Some(group) = group_of(object) else { continue };
            let covered = &mut covered[group as usize];
            if place as u32 >= *covered {
                *covered = self.ends[place];
                found(group, object, self.retained_bytes[place]);
            }
        }
    }

    fn place(&self, object: ObjectId) -> Option<Place> {
        self.places.get(object.0 as usize).copied().filter(|place| *place != NONE)
    }

    fn at(&self, place: Place) -> Option<ObjectId> {
        (place != 0).then(|| ObjectId(self.objects[place as usize]))
    }

    fn range(&self, place: Place) -> Range<usize> {
        place as usize..self.ends[place as usize] as usize
    }
}

/// How many vertices each one dominates, itself included.
fn subtree_lens(idoms: &[u32]) -> Vec<u32> {
    let mut lens = vec![1; idoms.len()];
    for number in (1..idoms.len()).rev() {
        let len = lens[number];
        lens[idoms[number] as usize] += len;
    }
    lens
}

#[cfg(test)]
#[path = "dominator_tree_tests.rs"]
mod tests;
