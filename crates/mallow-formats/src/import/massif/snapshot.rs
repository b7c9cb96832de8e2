//! One moment in a massif file.

use super::tree::{self, Leaf, Names, Tree};
use crate::ImportError;
use crate::lines::Lines;
use mallow_profile::LiveSample;
use std::rc::Rc;

/// What times are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Instructions,
    Milliseconds,
    Bytes,
}

/// Lines that say something: neither empty nor comments.
pub(super) struct Text<'a> {
    lines: Lines<'a>,
    bytes: u64,
    has_ended: bool,
}

/// What was live at a moment.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) sample: LiveSample,
    /// What it was made of, if it was looked at closely.
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

    /// A time in the profile's unit.
    fn time(self, text: &str) -> Option<u64> {
        match self {
            Clock::Instructions | Clock::Bytes => text.parse().ok(),
            Clock::Milliseconds => text.parse::<u64>().ok().map(|ms| ms.saturating_mul(1000)),
        }
    }
}

impl<'a> Text<'a> {
    pub(super) fn new(lines: Lines<'a>) -> Text<'a> {
        Text { lines, bytes: 0, has_ended: false }
    }

    /// The next line; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, ImportError> {
        while let Some(line) = self.lines.next_text()? {
            self.bytes = self.bytes.saturating_add(line.len() as u64 + 1);
            if !line.starts_with('#') && !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        self.has_ended = true;
        Ok(None)
    }

    /// How many bytes have been read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An error about the line that was given last.
    pub(super) fn expected(&self, expected: impl Into<String>) -> ImportError {
        let mut expected = expected.into();
        if self.has_ended {
            expected.push_str(" behind it");
        }
        self.lines.expected(expected)
    }

    /// The value of the next line, which has to have this name.
    fn value(&mut self, name: &str) -> Result<String, ImportError> {
        let line = self.next()?;
        let value = line.as_deref().and_then(|line| line.strip_prefix(name)?.strip_prefix('='));
        value
            .map(|value| value.trim().to_owned())
            .ok_or_else(|| self.expected(format!("{name}= and a value")))
    }

    fn number(&mut self, name: &str) -> Result<u64, ImportError> {
        let value = self.value(name)?;
        value.parse().map_err(|_| self.expected(format!("{name}= and a whole number below 2^64")))
    }
}

impl Snapshot {
    /// Bytes that were asked for.
    pub(super) fn bytes(&self) -> u64 {
        self.sample.live_bytes
    }

    /// What they were made of; without a tree they stand at no stack.
    pub(super) fn leaves(&self) -> Vec<Leaf> {
        match &self.tree {
            Some(tree) => tree.leaves.clone(),
            None if self.bytes() > 0 => vec![Leaf { innermost_first: Vec::new(), bytes: self.bytes() }],
            None => Vec::new(),
        }
    }
}

/// The next snapshot; none at the end.
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
