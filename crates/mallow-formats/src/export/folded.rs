//! Folded stacks: one stack per line, frames from the outermost call inwards, separated by semicolons, a blank, a metric.
//!
//! The metric is the requested one; a format without a unit cannot say which, so a comment in the first line does (`# metric: bytes`), which other
//! readers pass over. Names are complete and all frames are included; `mallow flamegraph --folded` writes short names without plumbing.

use super::rooted::{Rooted, name, of_line};
use crate::format::METRIC_COMMENT;
use mallow_base::Frame;
use mallow_stacks::{Metric, StackProfile};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::rc::Rc;

/// Writes a profile.
pub(super) fn write<M: Metric>(
    profile: &impl StackProfile<Weights = M::Weights>,
    metric: M,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let mut warnings = Vec::new();
    if !profile.knows(metric) {
        warnings.push(format!(
            "the profile does not contain the metric {}, so there are no stacks",
            metric.word()
        ));
    }
    let rooted = Rooted::of(profile);
    let mut names = Names::default();
    // Stacks that differ only in lines or addresses are merged here. The place of the first one is kept.
    let mut lines = FxHashMap::<Box<[u32]>, Line>::default();
    for site in profile.sites() {
        let value = metric.of_site(&site.totals);
        if value == 0 {
            continue;
        }
        let place = lines.len();
        let stack = names.of_stack(&rooted.outermost_first(site));
        let line = lines.entry(stack).or_insert(Line { place, value: 0 });
        line.value = line.value.saturating_add(value);
    }
    let mut lines: Vec<(Box<[u32]>, Line)> = lines.into_iter().collect();
    lines.sort_unstable_by_key(|(_, line)| line.place);
    writeln!(out, "{METRIC_COMMENT}{}", metric.word())?;
    for (stack, line) in &lines {
        let mut separator = "";
        for name in stack {
            write!(out, "{separator}{}", names.texts[*name as usize])?;
            separator = ";";
        }
        writeln!(out, " {}", line.value)?;
    }
    warnings.push(format!(
        "folded stacks have one number without a unit; it is {}, which the first line says",
        metric.word()
    ));
    let mut frames = profile.stacks().locations.iter().flat_map(|location| &location.frames);
    if frames.any(|frame| frame.file.is_some()) {
        warnings.push(String::from("folded stacks have no place for source lines"));
    }
    Ok(warnings)
}

/// What a stack's line says beside its names.
struct Line {
    /// How many lines stand before it.
    place: usize,
    value: u64,
}

/// The names of frames, each once: a stack of them is a fifth of its line.
#[derive(Default)]
struct Names<'a> {
    texts: Vec<Rc<str>>,
    numbers: FxHashMap<Rc<str>, u32>,
    /// Those of frames that were met, by address.
    met: FxHashMap<*const Frame, u32>,
    frames: PhantomData<&'a Frame>,
}

impl<'a> Names<'a> {
    /// The numbers of a stack's names.
    fn of_stack(&mut self, frames: &[&'a Frame]) -> Box<[u32]> {
        if frames.is_empty() {
            return [self.number("(no stack was taken)")].into();
        }
        frames.iter().map(|frame| self.of_frame(frame)).collect()
    }

    fn of_frame(&mut self, frame: &'a Frame) -> u32 {
        if let Some(number) = self.met.get(&std::ptr::from_ref(frame)) {
            return *number;
        }
        let number = self.number(&of_line(&name(frame)));
        self.met.insert(frame, number);
        number
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (text, number) = (Rc::<str>::from(text), self.texts.len() as u32);
        self.texts.push(Rc::clone(&text));
        self.numbers.insert(text, number);
        number
    }
}
