//! Which frames of a stack are to be seen.

use crate::plumbing;
use mallow_base::Frame;

/// Which frames of a stack are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameVisibility {
    /// Every frame.
    All,
    /// Without what a runtime does before the program starts. Where the innermost frame is the answer, as it is for a processor's
    /// time, the allocator is no plumbing.
    WithoutStart,
    /// Without that, and without the allocator's plumbing on the leaf side.
    WithoutPlumbing,
    /// Without that, and without functions that one of these globs matches.
    WithoutOwn(&'static [String]),
}

impl FrameVisibility {
    /// Hides plumbing, the program's own included. The patterns live as long as the command.
    pub fn without_plumbing(own: Vec<String>) -> FrameVisibility {
        if own.is_empty() {
            FrameVisibility::WithoutPlumbing
        } else {
            FrameVisibility::WithoutOwn(own.leak())
        }
    }

    /// Returns whether a frame on the leaf side is folded away.
    pub(crate) fn hides(self, frame: &Frame) -> bool {
        match self {
            FrameVisibility::All | FrameVisibility::WithoutStart => false,
            FrameVisibility::WithoutPlumbing => plumbing::is_leaf(frame, &[]),
            FrameVisibility::WithoutOwn(own) => plumbing::is_leaf(frame, own),
        }
    }
}
