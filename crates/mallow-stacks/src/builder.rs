//! Tables without doubles, whatever order frames come in: ids that exist, parents before children.

use crate::{Address, Location, LocationId, Module, ModuleId, StackId, StackNode, Stacks};
use mallow_base::Frame;
use rustc_hash::FxHashMap;

/// Builds stacks. Every id that a method takes must come from the same builder.
#[derive(Debug, Default)]
pub struct StacksBuilder {
    stacks: Stacks,
    modules: FxHashMap<Module, ModuleId>,
    locations: FxHashMap<(Address, Vec<Frame>), LocationId>,
    nodes: FxHashMap<StackNode, StackId>,
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
        let (locations, next) = (&mut self.stacks.locations, self.locations.len() as u32);
        *self.locations.entry((address, frames)).or_insert_with_key(|(address, frames)| {
            locations.push(Location { address: *address, frames: frames.clone() });
            LocationId(next)
        })
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
        let (nodes, next) = (&mut self.stacks.nodes, self.nodes.len() as u32);
        *self.nodes.entry(StackNode { parent, location }).or_insert_with_key(|node| {
            nodes.push(*node);
            StackId(next)
        })
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

#[cfg(test)]
mod tests {
    use super::*;

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
