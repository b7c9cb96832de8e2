//! Collects stacks that text files contain line by line into a profile.
//!
//! In all of these formats processes appear during reading, frames have no addresses, and totals have to be added up.

use crate::Imported;
use crate::rust_name;
use mallow_base::{Frame, add_fields};
use mallow_profile::{
    Address, Availability, LocationId, Process, ProcessIndex, ProfileBuilder, Recording, SiteTotals, StackId,
};
use rustc_hash::FxHashMap;

/// How many names are remembered with their locations. Most files have far fewer.
const NAMES_MAX: usize = 1 << 16;

/// A profile of stacks without addresses.
pub(super) struct TextStacks {
    builder: ProfileBuilder,
    processes: FxHashMap<(u32, String), ProcessIndex>,
    /// Locations of frames that have nothing but a name, as they stand in the file.
    names: FxHashMap<Box<str>, LocationId>,
}

impl TextStacks {
    pub(super) fn new(known: Availability) -> TextStacks {
        let builder = ProfileBuilder::new(Recording::default(), known);
        TextStacks { builder, processes: FxHashMap::default(), names: FxHashMap::default() }
    }

    /// Returns the builder, for features of a single format.
    pub(super) fn builder(&mut self) -> &mut ProfileBuilder {
        &mut self.builder
    }

    /// Returns the process with an id and a command; 0 and empty if the file does not have them.
    pub(super) fn process(&mut self, pid: u32, command: &str) -> ProcessIndex {
        let builder = &mut self.builder;
        let add = || builder.add_process(Process { pid, command: command.to_owned(), ..Process::default() });
        *self.processes.entry((pid, command.to_owned())).or_insert_with(add)
    }

    /// Adds metrics to a stack and to its process.
    pub(super) fn add(
        &mut self,
        process: ProcessIndex,
        innermost_first: impl DoubleEndedIterator<Item = Frame>,
        totals: &SiteTotals,
    ) {
        let mut stack: Option<StackId> = None;
        for frame in innermost_first.rev() {
            let location = self.builder.location(Address::Unknown, vec![frame]);
            stack = Some(self.builder.node(stack, location));
        }
        self.add_site(process, stack, totals);
    }

    /// The same for frames that have nothing but names.
    pub(super) fn add_names<'n>(
        &mut self,
        process: ProcessIndex,
        outermost_first: impl Iterator<Item = &'n str>,
        totals: &SiteTotals,
    ) {
        let mut stack: Option<StackId> = None;
        for name in outermost_first {
            let location = self.location_of(name);
            stack = Some(self.builder.node(stack, location));
        }
        self.add_site(process, stack, totals);
    }

    /// Returns the location of a name, without making a frame of it again.
    fn location_of(&mut self, name: &str) -> LocationId {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let location = self.builder.location(Address::Unknown, vec![named(name)]);
        if self.names.len() == NAMES_MAX {
            self.names.clear();
        }
        self.names.insert(name.into(), location);
        location
    }

    fn add_site(&mut self, process: ProcessIndex, stack: Option<StackId>, totals: &SiteTotals) {
        self.builder.add_site(process, stack, totals);
        let sum = &mut self.builder.process(process).totals;
        add_fields!(sum, totals; allocations, bytes, temporary, peak_bytes, leaked_bytes, leaked_blocks);
    }

    /// Returns the profile. It has at least one process.
    pub(super) fn finish(mut self, warnings: Vec<String>, complete: bool) -> Imported {
        if self.processes.is_empty() {
            self.process(0, "");
        }
        Imported { profile: self.builder.finish(), warnings, complete }
    }
}

/// Returns a frame that has only a name.
pub(super) fn named(function: &str) -> Frame {
    let function = if function.is_empty() { "[unknown]" } else { function };
    Frame { function: rust_name::made_readable(function), ..Frame::default() }
}

/// Removes the offset at the end of `malloc+12` or `malloc+0xc`. Other pluses, such as that of `operator+`, are kept.
pub(super) fn without_offset(text: &str) -> &str {
    let is_offset = |offset: &str| {
        let (digits, radix) = offset.strip_prefix("0x").map_or((offset, 10), |digits| (digits, 16));
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    match text.rsplit_once('+') {
        Some((function, offset)) if !function.is_empty() && is_offset(offset) => function,
        _ => text,
    }
}

/// Returns whether a text is an address, such as `0x7f12`.
pub(super) fn is_address(text: &str) -> bool {
    text.strip_prefix("0x")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_offset_at_the_end_is_cut() {
        for (text, function) in [
            ("malloc+0", "malloc"),
            ("malloc+0x1f", "malloc"),
            ("malloc", "malloc"),
            ("operator+", "operator+"),
            ("operator++(int)+12", "operator++(int)"),
            ("static Int.+ infix(_:_:)+0x10", "static Int.+ infix(_:_:)"),
            ("a+b", "a+b"),
            ("+12", "+12"),
        ] {
            assert_eq!(without_offset(text), function);
        }
        assert!(is_address("0x7f") && !is_address("0x") && !is_address("7f") && !is_address("0xyz"));
    }
}
