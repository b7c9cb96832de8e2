//! Tables without doubles, whatever order frames come in: ids that exist, parents before children.

use crate::{Address, Location, LocationId, Module, ModuleId, StackId, StackNode, Stacks};
use hashbrown::HashTable;
use mallow_base::Frame;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::{BuildHasher, Hash};

/// Builds stacks. Every id that a method takes must come from the same builder.
#[derive(Debug, Default)]
pub struct StacksBuilder {
    stacks: Stacks,
    modules: FxHashMap<Module, ModuleId>,
    /// Indices of the locations: a file with a million names has each of them once.
    locations: HashTable<u32>,
    /// Indices of the nodes.
    nodes: HashTable<u32>,
}

impl StacksBuilder {
    /// The id of a module.
    pub fn module(&mut self, module: Module) -> ModuleId {
        let (modules, next) = (&mut self.stacks.modules, self.modules.len() as u32);
        *self.modules.entry(module).or_insert_with_key(|module| {
            modules.push(module.clone());
            ModuleId(next)
        })
    }

    /// Returns the id of a location: an address with its frames, innermost first. Without frames the address is its
    /// name.
    pub fn location(&mut self, address: Address, mut frames: Vec<Frame>) -> LocationId {
        if frames.is_empty() {
            frames.push(self.nameless(address));
        }
        let locations = &mut self.stacks.locations;
        let hash = hash_of((address, &frames));
        let is_it = |at: &u32| {
            let known = &locations[*at as usize];
            known.address == address && known.frames == frames
        };
        if let Some(known) = self.locations.find(hash, is_it) {
            return LocationId(*known);
        }
        let next = locations.len() as u32;
        locations.push(Location { address, frames });
        self.locations.insert_unique(hash, next, |at| {
            let Location { address, frames } = &locations[*at as usize];
            hash_of((*address, frames))
        });
        LocationId(next)
    }

    fn nameless(&self, address: Address) -> Frame {
        match address {
            Address::InModule { module, svma } => Frame {
                function: format!("{svma:#x}"),
                module: self.stacks.modules.get(module.0 as usize).map(|module| module.path.clone()),
                ..Frame::default()
            },
            Address::Anonymous { avma } => Frame { function: format!("{avma:#x}"), ..Frame::default() },
            Address::Unknown => Frame { function: String::from("[unknown]"), ..Frame::default() },
        }
    }

    /// The id of one call on a stack.
    pub fn node(&mut self, parent: Option<StackId>, location: LocationId) -> StackId {
        let nodes = &mut self.stacks.nodes;
        let node = StackNode { parent, location };
        let hash = hash_of(node);
        if let Some(known) = self.nodes.find(hash, |at| nodes[*at as usize] == node) {
            return StackId(*known);
        }
        let next = nodes.len() as u32;
        nodes.push(node);
        self.nodes.insert_unique(hash, next, |at| hash_of(nodes[*at as usize]));
        StackId(next)
    }

    /// Returns the id of a whole stack, outermost call first; `None` if it is empty.
    pub fn stack(&mut self, outermost_first: impl IntoIterator<Item = LocationId>) -> Option<StackId> {
        outermost_first.into_iter().fold(None, |parent, location| Some(self.node(parent, location)))
    }

    /// The stacks.
    pub fn finish(self) -> Stacks {
        self.stacks
    }
}

fn hash_of(value: impl Hash) -> u64 {
    FxBuildHasher.hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_locations_and_nodes_are_found_again() {
        let mut builder = StacksBuilder::default();
        let mut ids = Vec::new();
        for _ in 0..2 {
            let mut parent = None;
            for number in 0..5_000 {
                let frame = Frame { function: format!("f{}", number % 3_000), ..Frame::default() };
                let location = builder.location(Address::Unknown, vec![frame]);
                let node = builder.node(parent, location);
                ids.push((location, node));
                parent = Some(node).filter(|_| number % 7 > 0);
            }
        }
        let stacks = builder.finish();
        assert_eq!((stacks.locations.len(), stacks.nodes.len()), (3_000, 5_000));
        assert_eq!(ids[..5_000], ids[5_000..]);
        let is_first = |(location, node): &(LocationId, StackId)| (location.0, node.0) == (2_999, 2_999);
        assert!(is_first(&ids[2_999]) && ids[3_000].0 == ids[0].0);
    }

    #[test]
    fn an_address_without_a_name_shows_itself() {
        let mut builder = StacksBuilder::default();
        let module = builder.module(Module { path: "/lib/a.so".into(), build_id: Vec::new() });
        builder.location(Address::InModule { module, svma: 0x1f }, Vec::new());
        builder.location(Address::Anonymous { avma: 0x2f }, Vec::new());
        builder.location(Address::Unknown, Vec::new());
        let stacks = builder.finish();
        let named: Vec<_> = stacks.locations.iter().map(|location| &location.frames[0]).collect();
        assert_eq!((named[0].function.as_str(), named[0].module.as_deref()), ("0x1f", Some("/lib/a.so")));
        assert_eq!((named[1].function.as_str(), named[2].function.as_str()), ("0x2f", "[unknown]"));
    }
}
