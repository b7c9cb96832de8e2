//! The loaded modules of a raw file, which are needed to interpret its addresses.
//!
//! heaptrack lists all modules again whenever one is loaded or unloaded. An address is looked up when its stack is
//! first seen, among the modules of that moment.

use super::fields::{Fields, NotThere};
use mallow_profile::{Address, Module, ModuleId, ProfileBuilder};

/// The name of the executable, whose path is in the `x` line.
const EXECUTABLE: &str = "x";
/// The record that removes all modules.
const FORGET: &str = "-";

/// The modules that are loaded at present.
#[derive(Default)]
pub(super) struct Modules {
    executable: Option<String>,
    segments: Vec<Segment>,
    is_sorted: bool,
}

#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// The difference between loaded addresses and those in the module's file.
    bias: u64,
    module: ModuleId,
}

impl Modules {
    pub(super) fn set_executable(&mut self, path: String) {
        self.executable = Some(path);
    }

    /// Parses `<path> <bias> (<address> <bytes>)*`, or `-`.
    pub(super) fn add(
        &mut self,
        path: &str,
        fields: &mut Fields<'_>,
        builder: &mut ProfileBuilder,
    ) -> Result<(), NotThere> {
        if path == FORGET {
            self.segments.clear();
            return Ok(());
        }
        let executable = self.executable.as_deref().filter(|_| path == EXECUTABLE);
        let path = executable.unwrap_or(path).to_owned();
        let module = builder.module(Module { path, build_id: Vec::new() });
        let bias = fields.number("a load address")?;
        while let Some(address) = fields.next_number("the address of a segment")? {
            let bytes = fields.number("the size of a segment")?;
            let start = bias.wrapping_add(address);
            self.segments.push(Segment { start, end: start.saturating_add(bytes), bias, module });
            self.is_sorted = false;
        }
        Ok(())
    }

    /// Returns the place of a return address whose call is at `code`, or just before it.
    pub(super) fn locate(&mut self, code: u64, avma: u64) -> Address {
        if !self.is_sorted {
            self.segments.sort_by_key(|segment| segment.start);
            self.is_sorted = true;
        }
        let behind = self.segments.partition_point(|segment| segment.start <= code);
        let segment = behind.checked_sub(1).map(|index| self.segments[index]);
        match segment.filter(|segment| code < segment.end) {
            Some(Segment { module, bias, .. }) => Address::InModule { module, svma: avma.wrapping_sub(bias) },
            None => Address::Anonymous { avma },
        }
    }
}
