//! A snapshot in a massif file.

use super::text::Text;
use super::tree::{self, Leaf, Names, Tree};
use crate::ImportError;
use mallow_profile::LiveSample;
use std::rc::Rc;

/// The unit of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Instructions,
    Milliseconds,
    Bytes,
}

/// What was live at a moment.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) sample: LiveSample,
    /// The bytes by stack, if it is a detailed snapshot.
    pub(super) tree: Option<Rc<Tree>>,
    pub(super) is_peak: bool,
}

impl Clock {
    pub(super) fn of_word(word: &str) -> Option<Clock> {
        Some(match word {
            "i" => Clock::Instructions,
            "ms" => Clock::Milliseconds,
            "B" => Clock::Bytes,
            _ => return None,
        })
    }

    /// Converts a time to the profile's unit.
    fn time(self, text: &str) -> Option<u64> {
        match self {
            Clock::Instructions | Clock::Bytes => text.parse().ok(),
            Clock::Milliseconds => text.parse::<u64>().ok().map(|ms| ms.saturating_mul(1000)),
        }
    }
}

impl Snapshot {
    /// Returns the requested bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.sample.live_bytes
    }

    /// Returns the bytes by stack; without a tree they have no stack.
    pub(super) fn leaves(&self) -> Vec<Leaf> {
        match &self.tree {
            Some(tree) => tree.leaves.clone(),
            None if self.bytes() > 0 => vec![Leaf { innermost_first: Vec::new(), bytes: self.bytes() }],
            None => Vec::new(),
        }
    }
}

/// Returns the next snapshot; `None` at the end.
pub(super) fn next(
    text: &mut Text<'_>,
    clock: Clock,
    names: &mut Names,
) -> Result<Option<Snapshot>, ImportError> {
    let Some(first) = text.next()? else { return Ok(None) };
    let number = first.strip_prefix("snapshot=").and_then(|number| number.trim().parse::<u64>().ok());
    number.ok_or_else(|| text.expected("snapshot= and a number"))?;
    let time = text.value("time")?;
    let time_us = clock.time(&time).ok_or_else(|| text.expected("time= and a number"))?;
    let sample = LiveSample {
        time_us,
        live_bytes: text.number("mem_heap_B")?,
        overhead_bytes: text.number("mem_heap_extra_B")?,
        stack_bytes: text.number("mem_stacks_B")?,
    };
    let kind = text.value("heap_tree")?;
    let tree = match kind.as_str() {
        "empty" => None,
        "detailed" | "peak" => Some(Rc::new(tree::read(text, names, sample.live_bytes)?)),
        _ => return Err(text.expected("heap_tree= and empty, detailed or peak")),
    };
    Ok(Some(Snapshot { sample, tree, is_peak: kind == "peak" }))
}
