//! The table of frames that all stacks of a report share.

use super::FrameJson;
use mallow_base::Frame;
use std::collections::BTreeMap;

/// Collects frames, each once, in the order in which they come.
#[derive(Default)]
pub(super) struct Table<'a> {
    indices: BTreeMap<&'a Frame, u32>,
    pub(super) frames: Vec<FrameJson>,
}

impl<'a> Table<'a> {
    pub(super) fn stack(&mut self, frames: &'a [Frame]) -> Vec<u32> {
        frames.iter().map(|frame| self.index(frame)).collect()
    }

    fn index(&mut self, frame: &'a Frame) -> u32 {
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let frames = &mut self.frames;
        *self.indices.entry(frame).or_insert_with(|| {
            frames.push(frame.into());
            next
        })
    }
}
