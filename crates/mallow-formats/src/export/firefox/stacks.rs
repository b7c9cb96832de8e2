//! Converts a stack for the Firefox Profiler.

use crate::export::rooted::name;
use fxprof_processed_profile as fxprof;
use fxprof_processed_profile::{CategoryHandle, FrameFlags, FrameInfo, StackHandle, ThreadHandle};
use mallow_stacks::{StackId, Stacks};

/// Returns the handle of a stack. An event without one has a frame that says so.
pub(super) fn handle(
    made: &mut fxprof::Profile,
    thread: ThreadHandle,
    stacks: &Stacks,
    stack: Option<StackId>,
) -> Option<StackHandle> {
    let mut names: Vec<_> = stacks.frames(stack).map(name).collect();
    if names.is_empty() {
        names.push("(no stack was taken)".into());
    }
    let frames: Vec<FrameInfo> = names
        .into_iter()
        .rev()
        .map(|name| FrameInfo {
            frame: fxprof::Frame::Label(made.intern_string(&name)),
            category_pair: CategoryHandle::OTHER.into(),
            flags: FrameFlags::empty(),
        })
        .collect();
    made.intern_stack_frames(thread, frames.into_iter())
}
