//! What the source of a profile does not contain: said once, and left out everywhere else.

use super::Page;
use crate::wrapped;
use mallow_profile::{Availability, TimeUnit};
use mallow_view::{Measure, SortKey};

impl Page<'_> {
    /// Returns the kind of file, unless it is a recording of mallow's.
    pub(super) fn foreign_name(&self) -> Option<String> {
        match self.subject.origin.is_trace {
            true if self.profile.recording.counting_version > 0 => None,
            true => Some("imported trace".to_owned()),
            false => Some(self.subject.origin.name.to_owned()),
        }
    }

    /// Returns a sentence about what the file does not contain, and what its times are.
    pub(super) fn unavailable(&self) -> Vec<String> {
        let Some(name) = self.foreign_name() else { return Vec::new() };
        let missing = missing(&self.profile.known);
        let mut words = Vec::new();
        if let Some((last, others)) = missing.split_last() {
            let list = if others.is_empty() {
                (*last).to_owned()
            } else {
                format!("{} and {last}", others.join(", "))
            };
            words.push(format!("This {name} does not contain {list}."));
        }
        match self.profile.recording.time_unit {
            TimeUnit::Microseconds => {}
            TimeUnit::Instructions => {
                words.push("Its times are counted in instructions executed.".to_owned())
            }
            TimeUnit::Bytes => words.push("Its times are counted in bytes allocated and freed.".to_owned()),
        }
        wrapped(&words.join(" "), self.style.width)
    }

    /// Returns whether a measure can be shown.
    pub(super) fn has(&self, measure: Measure) -> bool {
        measure.is_known(&self.profile.known)
    }

    /// Returns the table of a key, or a line that says why there is none.
    pub(super) fn if_available(&self, key: SortKey, table: impl FnOnce() -> Vec<String>) -> Vec<String> {
        if key.is_known(&self.profile.known) {
            return table();
        }
        let name = self.foreign_name().unwrap_or_else(|| "trace".to_owned());
        vec![format!("{}: this {name} does not contain this metric", self.style.bold(key.word()))]
    }
}

fn missing(known: &Availability) -> Vec<&'static str> {
    let has_blocks = (!known.peak || known.peak_blocks)
        && (!known.leaked || known.leaked_blocks)
        && (!known.own_maximum || known.own_maximum_blocks);
    let allocated = match (known.allocations, known.bytes) {
        (true, true) => None,
        (true, false) => Some("bytes allocated"),
        (false, true) => Some("numbers of allocations"),
        (false, false) => Some("what was allocated and freed again"),
    };
    let all = [
        (allocated.is_none(), allocated.unwrap_or_default()),
        (has_blocks, "numbers of live blocks"),
        (known.temporary, "temporary allocations"),
        (known.peak, "the peak by site"),
        (known.leaked, "leaks"),
        (known.own_maximum, "each site's own maximum"),
        (known.lifetimes, "lifetimes"),
        (known.times, "times of allocations"),
        (known.calls, "reallocations"),
        (known.calls, "failed calls"),
    ];
    all.into_iter().filter(|(told, _)| !told).map(|(_, words)| words).collect()
}
