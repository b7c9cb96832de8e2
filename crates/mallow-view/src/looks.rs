//! Which stacks look the same: a number for each, equal where the visible frames are.
//!
//! Whether a call was inlined is not to be seen, so it makes no difference, and neither does which frames are of one address: a compiler
//! inlines a function into one caller and not into another. What a stack looks like is found out for those that are asked about, because a
//! summary asks about few of a large recording's.
//!
//! Who asks about all of them has the locations compared first, unless some call stands twice under one caller. A location's places, outermost
//! first, mostly neither begin nor continue those of another location. Where that holds for all locations of a stack, no other stack looks like
//! it, and its number is its own: the first location can be read in one way only, so another stack that looked the same would have the same
//! first location, and so on inwards. Half a million stacks then need no map.

mod prefixes;

use crate::FrameVisibility;
use mallow_base::{Frame, Place};
use mallow_stacks::{StackId, Stacks};
use rustc_hash::FxHashMap;

/// An id of a stack's visible frames; `None` if it has no frame.
pub(crate) type Appearance = Option<u32>;

const UNKNOWN: u32 = u32::MAX;

/// Where the visible part of a stack begins.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) node: StackId,
    pub(crate) location: usize,
    /// How many frames of the location are hidden.
    pub(crate) skip: usize,
    /// How many frames are hidden in all.
    pub(crate) folded: usize,
}

/// Stacks, and a cache of their appearances.
pub(crate) struct Appearances<'a> {
    stacks: &'a Stacks,
    shown: FrameVisibility,
    /// For each location: how many frames on its leaf side are plumbing.
    plumbing: Vec<u32>,
    places: FxHashMap<Place<'a>, u32>,
    /// For each location: where the numbers of its frames begin in `of_frames`.
    begins: Vec<u32>,
    of_frames: Vec<u32>,
    /// For each location whether its places neither begin nor continue another's; empty where locations were not compared.
    apart: Vec<bool>,
    /// For each stack node: the number of the whole stack from it outwards. Below the count of nodes it is the node's own.
    numbers: Vec<u32>,
    /// Other stacks' numbers by that of the callers, [`UNKNOWN`] where there is none, and that of the innermost frame's place.
    by_callers: FxHashMap<(u32, u32), u32>,
}

impl<'a> Appearances<'a> {
    /// For who asks about few stacks.
    pub(crate) fn of(stacks: &'a Stacks, shown: FrameVisibility) -> Appearances<'a> {
        Appearances {
            stacks,
            shown,
            plumbing: vec![UNKNOWN; stacks.locations.len()],
            places: FxHashMap::default(),
            begins: Vec::new(),
            of_frames: Vec::new(),
            apart: Vec::new(),
            numbers: Vec::new(),
            by_callers: FxHashMap::default(),
        }
    }

    /// For who asks about most stacks.
    pub(crate) fn of_all(stacks: &'a Stacks, shown: FrameVisibility) -> Appearances<'a> {
        let mut looks = Appearances::of(stacks, shown);
        if !has_each_call_once(stacks) {
            return looks;
        }
        looks.begins = vec![UNKNOWN; stacks.locations.len()];
        for location in 0..stacks.locations.len() {
            looks.number_frames(location);
        }
        let places = |location: usize| {
            let begin = looks.begins[location] as usize;
            &looks.of_frames[begin..begin + stacks.locations[location].frames.len()]
        };
        looks.apart = prefixes::apart(stacks.locations.len(), places);
        looks
    }

    /// Passes over what is hidden on the leaf side. The outermost frame stays, whatever it is.
    pub(crate) fn naming(&mut self, stack: Option<StackId>) -> Option<Named> {
        let (mut node, mut folded) = (stack?, 0);
        loop {
            let at = self.stacks.node(node);
            let location = at.location.0 as usize;
            let count = self.stacks.locations[location].frames.len();
            let plumbing = self.plumbing_of(location);
            match at.parent {
                Some(parent) if plumbing == count => {
                    folded += plumbing;
                    node = parent;
                }
                _ => {
                    let skip = plumbing.min(count.saturating_sub(1));
                    return Some(Named { node, location, skip, folded: folded + skip });
                }
            }
        }
    }

    fn plumbing_of(&mut self, location: usize) -> usize {
        if matches!(self.shown, FrameVisibility::All | FrameVisibility::WithoutStart) {
            return 0;
        }
        if self.plumbing[location] == UNKNOWN {
            let frames = &self.stacks.locations[location].frames;
            let hidden = frames.iter().take_while(|frame| self.shown.hides(frame)).count();
            self.plumbing[location] = hidden as u32;
        }
        self.plumbing[location] as usize
    }

    /// The frames that are shown, leaf first.
    pub(crate) fn visible(&self, named: Option<Named>) -> impl Iterator<Item = &'a Frame> + use<'a> {
        let (stack, skip) = named.map_or((None, 0), |named| (Some(named.node), named.skip));
        self.stacks.frames(stack).skip(skip)
    }

    /// Returns the appearance of a stack, and how many frames are hidden on its leaf side.
    pub(crate) fn of_stack(&mut self, stack: Option<StackId>) -> (Appearance, usize) {
        let Some(named) = self.naming(stack) else { return (None, 0) };
        let number = match named.skip {
            0 => self.number(Some(named.node)),
            skip => {
                let callers = self.number(self.stacks.nodes[named.node.0 as usize].parent);
                self.inside(callers, named.location, skip)
            }
        };
        ((number != UNKNOWN).then_some(number), named.folded)
    }

    /// The number of a whole stack.
    fn number(&mut self, stack: Option<StackId>) -> u32 {
        let stacks = self.stacks;
        self.numbers.resize(stacks.nodes.len(), UNKNOWN);
        let (mut chain, mut at) = (Vec::new(), stack);
        let mut number = loop {
            match at {
                None => break UNKNOWN,
                Some(id) if self.numbers[id.0 as usize] != UNKNOWN => break self.numbers[id.0 as usize],
                Some(id) => {
                    chain.push(id);
                    at = stacks.node(id).parent;
                }
            }
        };
        for id in chain.into_iter().rev() {
            let location = stacks.node(id).location.0 as usize;
            let callers_are_apart = number == UNKNOWN || (number as usize) < stacks.nodes.len();
            number = match self.apart.get(location) {
                Some(true) if callers_are_apart => id.0,
                _ => self.inside(number, location, 0),
            };
            self.numbers[id.0 as usize] = number;
        }
        number
    }

    /// The number of what is called at a location, without as many of its innermost frames as are to be skipped.
    fn inside(&mut self, callers: u32, location: usize, skip: usize) -> u32 {
        self.number_frames(location);
        let begin = self.begins[location] as usize;
        let end = begin + self.stacks.locations[location].frames.len();
        let mut number = callers;
        for place in self.of_frames[begin + skip..end].iter().rev() {
            let next = (self.stacks.nodes.len() + self.by_callers.len()) as u32;
            number = *self.by_callers.entry((number, *place)).or_insert(next);
        }
        number
    }

    /// Numbers the places of a location's frames.
    fn number_frames(&mut self, location: usize) {
        self.begins.resize(self.stacks.locations.len(), UNKNOWN);
        if self.begins[location] != UNKNOWN {
            return;
        }
        self.begins[location] = self.of_frames.len() as u32;
        for frame in &self.stacks.locations[location].frames {
            let next = self.places.len() as u32;
            self.of_frames.push(*self.places.entry(frame.place()).or_insert(next));
        }
    }
}

/// Whether no caller calls the same location at two nodes. A trace has the nodes of each process by themselves, and files of others are as they are.
fn has_each_call_once(stacks: &Stacks) -> bool {
    let nodes = &stacks.nodes;
    // The calls of each caller in a chain, by the index of a node, counted from 1; those of none come last.
    let mut last_call = vec![0; nodes.len() + 1];
    let mut call_before = vec![0; nodes.len() + 1];
    for (node, number) in nodes.iter().zip(1_u32..) {
        let caller = node.parent.map_or(nodes.len(), |parent| parent.0 as usize);
        call_before[number as usize] = std::mem::replace(&mut last_call[caller], number);
    }
    // By location the last caller that calls it, counted from 1.
    let mut called_by = vec![0; stacks.locations.len()];
    last_call.iter().zip(1_u32..).all(|(last, caller)| {
        let before = |call: &u32| Some(call_before[*call as usize]).filter(|call| *call != 0);
        let mut calls = std::iter::successors(Some(*last).filter(|call| *call != 0), before);
        calls.all(|call| {
            let location = nodes[call as usize - 1].location.0 as usize;
            std::mem::replace(&mut called_by[location], caller) != caller
        })
    })
}

#[cfg(test)]
#[path = "looks_tests.rs"]
mod tests;
