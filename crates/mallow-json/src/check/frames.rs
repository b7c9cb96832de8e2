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
            frames.push(FrameJson {
                function: frame.function.clone(),
                file: frame.file.clone(),
                line: frame.line,
                module: frame.module.clone(),
                inlined: frame.inlined,
            });
            next
        })
    }
}

impl From<&FrameJson> for Frame {
    fn from(json: &FrameJson) -> Frame {
        Frame {
            function: json.function.clone(),
            file: json.file.clone(),
            line: json.line,
            module: json.module.clone(),
            inlined: json.inlined,
        }
    }
}
