//! Strings, addresses with their frames, stacks, and pairs of size and stack: the tables that events refer to.

use mallow_base::Frame;
use mallow_profile::{Address, Location, Profile, StackId};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// The numbers of entries, for the comments at the end.
pub(super) struct Counts {
    pub(super) strings: usize,
    pub(super) instructions: usize,
}

/// Writes all `s`, `i` and `t` lines. A stack's number is its id plus 1.
pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<Counts> {
    let mut strings = FxHashMap::default();
    for (index, location) in profile.stacks.locations.iter().enumerate() {
        write_instruction(index, location, &mut strings, out)?;
    }
    for stack in &profile.stacks.nodes {
        let parent = stack.parent.map_or(0, |parent| parent.0 + 1);
        writeln!(out, "t {:x} {parent:x}", stack.location.0 + 1)?;
    }
    Ok(Counts { strings: strings.len(), instructions: profile.stacks.locations.len() })
}

fn write_instruction<'a>(
    index: usize,
    location: &'a Location,
    strings: &mut FxHashMap<&'a str, usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut number = |text: Option<&'a str>, out: &mut dyn Write| match text.filter(|text| !text.is_empty()) {
        Some(text) => string(text, strings, out),
        None => Ok(0),
    };
    // The address of the call, as in heaptrack's own files. Without one, a number that no other location has.
    let code = match location.address {
        Address::InModule { svma, .. } => svma.saturating_sub(1),
        Address::Anonymous { avma } => avma.saturating_sub(1),
        Address::Unknown => index as u64 + 1,
    };
    let module = number(location.frames.last().and_then(|frame| frame.module.as_deref()), out)?;
    let mut record = format!("i {code:x} {module:x}");
    for Frame { function, file, line, .. } in &location.frames {
        let (function, file) = (number(Some(function), out)?, number(file.as_deref(), out)?);
        record += &format!(" {function:x} {file:x} {:x}", line.unwrap_or(0));
    }
    writeln!(out, "{record}")
}

/// Returns the number of a string; writes it if it is new.
fn string<'a>(
    text: &'a str,
    strings: &mut FxHashMap<&'a str, usize>,
    out: &mut dyn Write,
) -> io::Result<usize> {
    if let Some(&number) = strings.get(text) {
        return Ok(number);
    }
    let number = strings.len() + 1;
    strings.insert(text, number);
    let line = one_line(text);
    writeln!(out, "s {:x} {line}", line.len())?;
    Ok(number)
}

/// The number of a pair of size and stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair(pub(super) u64);

impl Pair {
    /// Never allocated. heaptrack counts a free of pair 0 after any other free as temporary, so no real pair may have this number.
    pub(super) const NONE: Pair = Pair(0);
}

/// All pairs, by size and number of the stack.
#[derive(Default)]
pub(super) struct Pairs {
    numbers: FxHashMap<(u64, u32), Pair>,
    in_order: Vec<(u64, u32)>,
}

impl Pairs {
    pub(super) fn number(&mut self, size: u64, stack: Option<StackId>) -> Pair {
        let key = (size, stack.map_or(0, |stack| stack.0 + 1));
        let in_order = &mut self.in_order;
        *self.numbers.entry(key).or_insert_with(|| {
            in_order.push(key);
            Pair(in_order.len() as u64)
        })
    }

    /// Writes the `a` lines. [`Pair::NONE`] gets the first stack, so that heaptrack shows no additional stack.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some((_, stack)) = self.in_order.first() else { return Ok(()) };
        writeln!(out, "a 0 {stack:x}")?;
        for (size, stack) in &self.in_order {
            writeln!(out, "a {size:x} {stack:x}")?;
        }
        Ok(())
    }
}

/// Pairs that are written when they are needed for the first time.
#[derive(Default)]
pub(super) struct PairLog {
    numbers: FxHashMap<(u64, u32), Pair>,
}

impl PairLog {
    /// Returns the number of a pair; writes it if it is new.
    pub(super) fn number(
        &mut self,
        size: u64,
        stack: Option<StackId>,
        out: &mut dyn Write,
    ) -> io::Result<Pair> {
        let key = (size, stack.map_or(0, |stack| stack.0 + 1));
        if let Some(pair) = self.numbers.get(&key) {
            return Ok(*pair);
        }
        if self.numbers.is_empty() {
            // As [`Pairs::write`] writes [`Pair::NONE`].
            writeln!(out, "a 0 {:x}", key.1)?;
        }
        let pair = Pair(self.numbers.len() as u64 + 1);
        self.numbers.insert(key, pair);
        writeln!(out, "a {size:x} {:x}", key.1)?;
        Ok(pair)
    }
}

/// Replaces line breaks, which would end the record.
pub(super) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
