//! What a runtime's reader knows of frames.

/// What is read of a frame: all that its node depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FrameState {
    /// The current instruction.
    pub place: usize,
    /// The code, with marks of the reader's own in bits that no address has.
    pub code: usize,
}

/// A runtime's frames, as its reader knows them.
pub trait Frames {
    /// The innermost frame of this thread; 0 when it runs no script.
    fn innermost(&self) -> usize;

    /// Reads a frame.
    ///
    /// # Safety
    /// The frame is live.
    unsafe fn look(&self, frame: usize) -> FrameState;

    /// Returns the frame's caller; 0 at the outermost.
    ///
    /// # Safety
    /// The frame is live.
    unsafe fn outward(&self, frame: usize) -> usize;

    /// Returns whether a frame still has this caller, which is 0 at the outermost. May miss it, if [`Frames::outward`] is asked then.
    ///
    /// # Safety
    /// The frame is live.
    #[inline(always)]
    unsafe fn is_called_by(&self, frame: usize, outside: usize) -> bool {
        // SAFETY: by contract.
        unsafe { self.outward(frame) == outside }
    }

    /// Returns whether a frame still has this state and this caller, which is 0 at the outermost. May miss it, if the other two functions are asked
    /// then.
    ///
    /// # Safety
    /// The frame is live.
    #[inline(always)]
    unsafe fn is_unchanged(&self, frame: usize, look: FrameState, outside: usize) -> bool {
        // SAFETY: by contract.
        unsafe { self.look(frame) == look && self.is_called_by(frame, outside) }
    }

    /// Returns whether what was read is still the thread's own: a runtime that ends frees frames of threads that have not ended.
    fn hold(&self) -> bool {
        true
    }

    /// Returns its key in the node table; 0 for a frame that is none of the script's.
    ///
    /// # Safety
    /// The frame is live and has this state.
    unsafe fn key(&self, frame: usize, look: FrameState) -> u64;
}
