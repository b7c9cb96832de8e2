//! Strings, addresses with their frames, and the tree of stacks, with the numbers of an interpreted file.
//!
//! Numbers in the file count from 1 in the order of lines; 0 means none.

use super::fields::{Fields, NotThere};
use crate::rust_name;
use mallow_base::Frame;
use mallow_profile::{Address, Aggregator, LocationId, ProfileBuilder, StackId};

/// The memory for names is at least this, whatever the file's size.
const NAME_BYTES_MIN: usize = 64 << 20;
/// In addition, names may use this for each byte of the file: frames repeat names that the file contains once, real files some thirty times.
const NAME_BYTES_PER_BYTE: usize = 256;

/// The tables of an interpreted file; for a raw one, only the stacks.
pub(super) struct Frames {
    strings: Vec<String>,
    instructions: Vec<LocationId>,
    /// By number in the file, less 1. `None` for a malformed one.
    traces: Vec<Option<StackId>>,
    /// The bytes that names may still use.
    name_bytes_left: usize,
    unnamed: u64,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            strings: Vec::new(),
            instructions: Vec::new(),
            traces: Vec::new(),
            name_bytes_left: NAME_BYTES_MIN,
            unnamed: 0,
        }
    }
}

impl Frames {
    /// Raises the limit after more of the file was read.
    pub(super) fn afford_more(&mut self, line_bytes: usize) {
        let more = line_bytes.saturating_mul(NAME_BYTES_PER_BYTE);
        self.name_bytes_left = self.name_bytes_left.saturating_add(more);
    }

    pub(super) fn add_string(&mut self, string: String) {
        self.strings.push(rust_name::made_readable(&string));
    }

    /// Parses `i <address> <module> [<function> [<file> <line> (<function> <file> <line>)*]]`.
    pub(super) fn add_instruction(
        &mut self,
        fields: &mut Fields<'_>,
        builder: &mut ProfileBuilder,
    ) -> Result<(), NotThere> {
        let parsed = self.parse_instruction(fields);
        let (address, frames) = parsed.clone().unwrap_or((Address::Unknown, Vec::new()));
        self.instructions.push(builder.location(address, frames));
        parsed.map(|_| ())
    }

    fn parse_instruction(&mut self, fields: &mut Fields<'_>) -> Result<(Address, Vec<Frame>), NotThere> {
        let code = fields.number("an address")?;
        let module = fields.number("a module")?;
        let mut calls = Vec::new();
        let mut function = fields.next_number("a function")?.unwrap_or(0);
        loop {
            let file = fields.next_number("a file")?;
            let line = fields.next_number("a line")?.unwrap_or(0);
            calls.push((function, file.unwrap_or(0), line));
            match fields.next_number("a function")? {
                Some(next) if file.is_some() => function = next,
                _ => break,
            }
        }
        let address =
            if module == 0 { Address::Anonymous { avma: code.saturating_add(1) } } else { Address::Unknown };
        if !self.can_afford(module, &calls) {
            self.unnamed += 1;
            return Ok((address, vec![Frame { function: format!("{code:#x}"), ..Frame::default() }]));
        }
        let physical = calls.len() - 1;
        let frame = |(index, &(function, file, line)): (usize, &(u64, u64, u64))| Frame {
            function: self.string(function).map_or_else(|| format!("{code:#x}"), str::to_owned),
            file: self.string(file).map(str::to_owned),
            line: u32::try_from(line).ok().filter(|&line| line > 0 && file > 0),
            module: self.string(module).map(str::to_owned),
            inlined: index < physical,
            ..Frame::default()
        };
        Ok((address, calls.iter().enumerate().map(frame).collect()))
    }

    /// Returns the string of a number; `None` for 0, for an empty one, and for numbers that have not occurred yet.
    fn string(&self, number: u64) -> Option<&str> {
        entry(&self.strings, number).map(String::as_str).filter(|string| !string.is_empty())
    }

    /// Takes the bytes for the names of these calls from the budget.
    fn can_afford(&mut self, module: u64, calls: &[(u64, u64, u64)]) -> bool {
        let length = |number| self.string(number).map_or(0, str::len);
        let needed = calls.iter().fold(0usize, |sum, &(function, file, _)| {
            sum.saturating_add(length(function) + length(file) + length(module) + size_of::<Frame>())
        });
        // The location is stored twice: in its table, and as the key for its lookup.
        let left = self.name_bytes_left.checked_sub(needed.saturating_mul(2));
        self.name_bytes_left = left.unwrap_or(self.name_bytes_left);
        left.is_some()
    }

    /// Returns the location of an `i` line.
    pub(super) fn instruction(&self, number: u64, builder: &mut ProfileBuilder) -> LocationId {
        let known = entry(&self.instructions, number).copied();
        known.unwrap_or_else(|| builder.location(Address::Unknown, Vec::new()))
    }

    /// Keeps the number of a malformed `t` line.
    pub(super) fn add_no_trace(&mut self) {
        self.traces.push(None);
    }

    /// Adds a call, made by the stack of an earlier `t` line.
    pub(super) fn add_trace(
        &mut self,
        location: LocationId,
        parent: u64,
        builder: &mut ProfileBuilder,
    ) -> Result<(), NotThere> {
        let outer = entry(&self.traces, parent).copied().flatten();
        self.traces.push(Some(builder.node(outer, location)));
        if parent == 0 || outer.is_some() { Ok(()) } else { Err(NotThere("the parent of an earlier line")) }
    }

    /// Returns the stack of a `t` line, as an allocation names it; 0 means none.
    pub(super) fn trace(&self, number: u64) -> Result<StackId, NotThere> {
        match entry(&self.traces, number).copied().flatten() {
            Some(stack) => Ok(stack),
            None if number == 0 => Ok(Aggregator::NO_STACK),
            None => Err(NotThere("the number of an earlier stack")),
        }
    }

    pub(super) fn warning(&self) -> Option<String> {
        (self.unnamed > 0).then(|| {
            format!(
                "the names of {} addresses were left out: they would take far more memory than the file's size justifies",
                self.unnamed
            )
        })
    }
}

/// Returns an entry by its number in the file.
fn entry<T>(table: &[T], number: u64) -> Option<&T> {
    table.get(usize::try_from(number).ok()?.checked_sub(1)?)
}
