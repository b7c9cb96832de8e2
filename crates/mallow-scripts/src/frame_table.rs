//! Frames of scripts, each once, by a number.

use mallow_base::Frame;
use rustc_hash::FxHashMap;

/// The frames of all processes.
#[derive(Clone, Debug, Default)]
pub struct FrameTable {
    frames: Vec<Frame>,
    numbers: FxHashMap<Frame, u32>,
}

impl FrameTable {
    /// The number of a frame: a new one for a frame that is new.
    pub fn number(&mut self, frame: Frame) -> u32 {
        let frames = &mut self.frames;
        *self.numbers.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            frames.len() as u32 - 1
        })
    }

    /// The frame with a number.
    pub fn frame(&self, number: u32) -> Option<&Frame> {
        self.frames.get(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_frames_have_one_number() {
        let mut table = FrameTable::default();
        let frame = |name: &str| Frame { function: name.into(), ..Frame::default() };
        assert_eq!(["a", "b", "a"].map(|name| table.number(frame(name))), [0, 1, 0]);
        assert_eq!((table.frame(1), table.frame(2)), (Some(&frame("b")), None));
    }
}
