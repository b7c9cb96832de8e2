//! What is kept of a frame of the last stack, besides its slot and its return address.

use mallow_wire::shared::NODE_ROOT;

/// The state that is kept of a frame besides its slot and return address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct State {
    /// rbp, as execution resumes in this frame.
    pub(crate) bp: usize,
    /// The hash of the stack from here outwards.
    pub(crate) hash: u64,
    /// Its node, or [`NOT_ASKED`].
    pub(crate) node: u32,
    /// Behind the last extra word that was read to leave this frame, `<< 3`; whether its key is kept, `<< 2`; whether `ra` is
    /// exact, `<< 1`; and whether `bp` matters.
    pub(crate) mark: u32,
}

/// Marks a frame whose node was not looked up: only nodes of innermost frames are needed, and of the callers in new
/// stacks. No frame has this node.
pub(crate) const NOT_ASKED: u32 = NODE_ROOT;

impl State {
    #[inline(always)]
    pub(crate) fn bp_matters(&self) -> bool {
        self.mark & 1 != 0
    }

    #[inline(always)]
    pub(crate) fn is_exact(&self) -> bool {
        self.mark & 2 != 0
    }

    #[inline(always)]
    pub(crate) fn has_key(&self) -> bool {
        self.mark & 4 != 0
    }

    #[inline(always)]
    pub(crate) fn extras_end(&self) -> usize {
        (self.mark >> 3) as usize
    }
}
