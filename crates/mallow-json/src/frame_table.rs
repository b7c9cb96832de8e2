//! The frames of a compact document, each once. A stack is the list of their numbers, innermost first.

use crate::parts::FrameJson;
use mallow_base::Frame;
use mallow_stacks::{LocationId, StackId, Stacks};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

const UNKNOWN: u32 = u32::MAX;

/// The table, in the order in which stacks first have the frames.
pub(crate) struct FrameTable<'a> {
    stacks: &'a Stacks,
    frames: Vec<&'a Frame>,
    /// For each location: where the numbers of its frames begin in `of_frames`.
    begins: Vec<u32>,
    of_frames: Vec<u32>,
}

impl<'a> FrameTable<'a> {
    /// Numbers the frames of some stacks.
    pub(crate) fn of(stacks: &'a Stacks, shown: impl Iterator<Item = Option<StackId>>) -> Self {
        let mut table = Self {
            stacks,
            frames: Vec::new(),
            begins: vec![UNKNOWN; stacks.locations.len()],
            of_frames: Vec::new(),
        };
        let mut numbers = FxHashMap::default();
        let mut seen = vec![false; stacks.nodes.len()];
        for stack in shown {
            // Where one stack was before, its callers were too.
            for id in stacks.chain(stack) {
                if std::mem::replace(&mut seen[id.0 as usize], true) {
                    break;
                }
                table.add(stacks.node(id).location, &mut numbers);
            }
        }
        table
    }

    fn add(&mut self, location: LocationId, numbers: &mut FxHashMap<&'a Frame, u32>) {
        let at = location.0 as usize;
        if self.begins[at] != UNKNOWN {
            return;
        }
        self.begins[at] = self.of_frames.len() as u32;
        for frame in &self.stacks.locations[at].frames {
            let number = *numbers.entry(frame).or_insert_with(|| {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            });
            self.of_frames.push(number);
        }
    }

    /// The numbers of a stack's frames, innermost first.
    pub(crate) fn stack(&self, stack: Option<StackId>) -> impl Iterator<Item = u32> {
        self.stacks.chain(stack).flat_map(|id| {
            let at = self.stacks.node(id).location.0 as usize;
            let begin = self.begins[at] as usize;
            self.of_frames[begin..begin + self.stacks.locations[at].frames.len()].iter().copied()
        })
    }
}

impl Serialize for FrameTable<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.frames.iter().map(|frame| FrameJson::from(*frame)))
    }
}
