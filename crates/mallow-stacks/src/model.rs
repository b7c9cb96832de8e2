//! Stacks as tables.
//!
//! Everything is plain data with public fields; ids are indices into the table that their documentation names
//! and are meaningless in any other profile.

use mallow_base::Frame;

/// The number of a process in its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessIndex(pub u32);

/// Index into [`Stacks::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// Index into [`Stacks::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// Index into [`Stacks::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// The stacks of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Executables and libraries.
    pub modules: Vec<Module>,
    /// Addresses with their symbols.
    pub locations: Vec<Location>,
    /// Stack nodes; a parent comes before its children.
    pub nodes: Vec<StackNode>,
}

/// An executable or library as it was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its path as the loader knew it.
    pub path: String,
    /// Its build id; empty when it has none.
    pub build_id: Vec<u8>,
}

/// An address on a stack, and its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address, for symbolization elsewhere.
    pub address: Address,
    /// Innermost (inlined) frame first; never empty.
    pub frames: Vec<Frame>,
}

/// The address of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// In a module: the address as stated in its file. A return address points behind the call.
    InModule {
        /// The module.
        module: ModuleId,
        /// The address as stated in the module's file.
        svma: u64,
    },
    /// In code outside any module, such as JIT-compiled code: the mapped address.
    Anonymous {
        /// The address as mapped.
        avma: u64,
    },
    /// Another tool's file gave frames and no address.
    Unknown,
}

/// A stack is a node and its parents up to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The caller; none for an outermost frame.
    pub parent: Option<StackId>,
    /// The location of this frame.
    pub location: LocationId,
}

/// The weight of one stack in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<W> {
    /// The process.
    pub process: ProcessIndex,
    /// The stack; none when no stack was taken.
    pub stack: Option<StackId>,
    /// The metrics.
    pub totals: W,
}

/// Sites that are read one by one, wherever their metrics are kept.
pub trait SiteList<W> {
    /// Returns how many there are.
    fn count(&self) -> usize;

    /// The site at a place below that.
    fn at(&self, place: usize) -> Site<W>;
}

impl<W: Copy> SiteList<W> for [Site<W>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, place: usize) -> Site<W> {
        self[place]
    }
}

impl Stacks {
    /// A node of the table.
    pub fn node(&self, stack: StackId) -> StackNode {
        self.nodes[stack.0 as usize]
    }

    /// The nodes of a stack, leaf first.
    pub fn chain(&self, stack: Option<StackId>) -> impl Iterator<Item = StackId> {
        std::iter::successors(stack, |id| self.node(*id).parent)
    }

    /// The frames of a stack, leaf first, inlined frames in their place.
    pub fn frames(&self, stack: Option<StackId>) -> impl Iterator<Item = &Frame> {
        self.chain(stack).flat_map(|id| &self.locations[self.node(id).location.0 as usize].frames)
    }

    /// Leaves at each location the function that the code belongs to, without those that were inlined into it.
    pub fn leave_out_inlined(&mut self) {
        for location in &mut self.locations {
            location.frames.drain(..location.frames.len().saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_inlined_functions_each_location_is_one_function() {
        let frame =
            |function: &str, inlined| Frame { function: function.into(), inlined, ..Frame::default() };
        let location = |frames| Location { address: Address::Unknown, frames };
        let mut stacks = Stacks {
            locations: vec![
                location(vec![frame("write", true), frame("push", true), frame("parse", false)]),
                location(vec![frame("main", false)]),
            ],
            ..Stacks::default()
        };
        stacks.leave_out_inlined();
        assert_eq!(
            stacks.locations,
            [location(vec![frame("parse", false)]), location(vec![frame("main", false)])]
        );
    }
}
