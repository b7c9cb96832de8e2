//! The modules of a process, as its log tells them.

use crate::mapping::Mapping;
use mallow_trace::MappedModule;
use rustc_hash::FxHashSet;

/// The executable and libraries that were on a process's stacks.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    list: Vec<MappedModule>,
    /// Generation, start and end of each.
    met: FxHashSet<(u64, u64, u64)>,
    offset: usize,
    text_bytes: u64,
}

/// The size of a module without its strings.
const MODULE_BYTES: usize = 128;
/// The maximal size of all their strings. A log has room for an eighth of it, but each of its short records may refer
/// to a long one.
const TEXT_BYTES_MAX: u64 = 8 << 20;

impl Modules {
    /// All that were read.
    pub(crate) fn list(&self) -> &[MappedModule] {
        &self.list
    }

    /// Converts it to a list.
    pub(crate) fn into_list(self) -> Vec<MappedModule> {
        self.list
    }

    /// About how many bytes of memory they take.
    pub(crate) fn held_bytes(&self) -> u64 {
        2 * (self.text_bytes + (self.list.len() * MODULE_BYTES) as u64)
    }

    /// Returns whether they are more than any recorder logs. Then no more are read.
    pub(crate) fn are_too_many(&self) -> bool {
        self.text_bytes > TEXT_BYTES_MAX
    }

    /// Reads what is new.
    pub(crate) fn read(&mut self, mapping: &Mapping) {
        while !self.are_too_many()
            && let Some((module, next)) = mapping.module(self.offset)
        {
            // Two threads that see one at the same time may both log it.
            if self.met.insert((module.generation, module.start_avma, module.end_avma)) {
                self.text_bytes += (module.path.len() + module.build_id.len()) as u64;
                self.list.push(module);
            }
            self.offset = next;
        }
    }

    /// Reads the records after unfinished ones too, which no thread can finish any more.
    pub(crate) fn read_to_the_end(&mut self, mapping: &Mapping) {
        self.read(mapping);
        while let Some(behind) = mapping.behind_unfilled_module(self.offset).filter(|_| !self.are_too_many())
        {
            self.offset = behind;
            self.read(mapping);
        }
    }
}
