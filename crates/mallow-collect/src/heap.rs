//! Does a process's memory come by `malloc`? If it does not, figures of what was recorded are not those of its heap, and nothing
//! may be said or judged by them.
//!
//! Two witnesses: the names of an allocator in the executable (`linked`), and, where there are no names, resident memory that no
//! recorded block explains (`resident`). The judgement is a pure function of both.

mod linked;
mod own_allocator;
mod resident;

pub(crate) use linked::Executables;
pub use linked::{Linked, linked_into};
pub use own_allocator::{NotSeen, OwnAllocator};
pub(crate) use resident::MemoryWatch;

use crate::mapping::Mapping;
use mallow_base::{Bytes, printable};
use std::path::Path;

/// Metrics of a process's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapMetrics {
    /// The most private memory that belonged to no file, no stack and no static data.
    pub resident_bytes: u64,
    /// The most of that in mappings in which no block that was recorded ever lay, as far as that is known.
    pub foreign_bytes: u64,
    /// The most that lived at once of what was recorded.
    pub recorded_bytes: u64,
    /// How many threads allocated, including those that ran one after another.
    pub threads: u64,
    /// Whether calls of an allocator in the executable are recorded.
    pub has_linked_allocator: bool,
}

/// Which allocator a process's memory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeapSource {
    /// By `malloc`, as far as can be seen.
    Malloc,
    /// An allocator that reports its calls, in a static program.
    Core,
    /// From an allocator in the executable, not all of whose calls are seen.
    OwnAllocator(OwnAllocator),
    /// For the greater part from a runtime's own heap.
    Managed {
        /// Such as `Go`.
        runtime: String,
    },
    /// For the greater part from the kernel: an allocator of its own that has no names, or mappings of its own.
    Unexplained,
}

/// The minimum of unexplained resident memory that is reported.
const UNEXPLAINED_MIN_BYTES: u64 = 8 << 20;
/// The minimum of memory in which no recorded block ever lay that is reported. The recorder's own is less.
const FOREIGN_MIN_BYTES: u64 = 16 << 20;
/// The minimum of a runtime's own heap that is reported.
const MANAGED_MIN_BYTES: u64 = 32 << 20;

impl HeapMetrics {
    /// Returns how much memory an allocator may hold for what was recorded. It keeps what was freed, and its blocks
    /// are fragmented: twice the peak. With several threads some arenas may have had their own peak at another time.
    pub fn explained_bytes(&self) -> u64 {
        const ARENAS_MAX: u64 = 4;
        self.recorded_bytes.saturating_mul(2 + self.threads.saturating_sub(1).min(ARENAS_MAX))
    }

    /// Returns whether a quarter of what is resident was recorded, or there is little of it. Every runtime has some megabytes of its own.
    pub fn a_quarter_is_recorded(&self) -> bool {
        self.resident_bytes < MANAGED_MIN_BYTES || self.resident_bytes / 4 <= self.recorded_bytes
    }

    /// Returns whether there is much memory that no recorded block can explain, because none ever lay there, and it is most of what there is.
    pub fn are_foreign(&self) -> bool {
        self.foreign_bytes >= FOREIGN_MIN_BYTES && self.foreign_bytes / 4 > self.recorded_bytes
    }

    /// Returns whether what was recorded explains a part of the resident memory that is worth a name, or there is little of it. A linked allocator
    /// may need memory of its own for each thread: mimalloc 3 more than a MiB. The C library's `malloc` does not.
    pub fn are_explained(&self) -> bool {
        const THREAD_BYTES: u64 = 2 << 20;
        const THREADS_MAX: u64 = 64;
        let threads =
            if self.has_linked_allocator { self.threads.saturating_sub(1).min(THREADS_MAX) } else { 0 };
        self.resident_bytes < UNEXPLAINED_MIN_BYTES + threads * THREAD_BYTES
            || self.resident_bytes / 4 <= self.explained_bytes()
    }
}

/// Returns where the memory comes from: `allocator` is one in the executable that is not recorded, `runtime` the
/// managed runtime that the process is.
pub fn heap_source(
    metrics: &HeapMetrics,
    allocator: Option<OwnAllocator>,
    runtime: Option<&str>,
) -> HeapSource {
    match (allocator, runtime) {
        (Some(own), _) => HeapSource::OwnAllocator(own),
        (None, Some(runtime)) if !metrics.a_quarter_is_recorded() => {
            HeapSource::Managed { runtime: runtime.to_owned() }
        }
        (None, None) if !metrics.are_explained() || metrics.are_foreign() => HeapSource::Unexplained,
        (None, _) => HeapSource::Malloc,
    }
}

/// What a sentence calls a process: `process 7 (app)`, of many the one that is meant.
pub(crate) fn who(pid: u32, mapping: &Mapping) -> String {
    let name = mapping.executable().and_then(Path::file_name);
    let name = name.map(|name| format!(" ({})", printable(&name.to_string_lossy())));
    format!("process {pid}{}", name.unwrap_or_default())
}

impl HeapSource {
    /// Returns whether the recorded metrics are not those of the process's heap, so that no verdict may use them.
    pub fn is_blind(&self) -> bool {
        matches!(self, HeapSource::OwnAllocator(_) | HeapSource::Unexplained)
    }

    /// Returns the sentence about a process, `who`; `None` if its memory comes from `malloc`.
    pub fn sentence(&self, who: &str, metrics: &HeapMetrics) -> Option<String> {
        let without_malloc =
            if metrics.are_explained() { metrics.foreign_bytes } else { metrics.resident_bytes };
        let (resident, recorded) = (Bytes(metrics.resident_bytes), Bytes(metrics.recorded_bytes));
        match self {
            HeapSource::Malloc => None,
            HeapSource::Core => Some(format!(
                "{who} is a static program that is recorded by the mallow-alloc in it: what C code in it allocates and what programs \
                 it starts is not seen"
            )),
            HeapSource::OwnAllocator(own) => Some(own.sentence(who)),
            HeapSource::Managed { runtime } => Some(format!(
                "{who}: {runtime} keeps its objects in a heap of its own, which does not come from malloc: {resident} were \
                 resident there, and {recorded} at most were recorded"
            )),
            HeapSource::Unexplained => Some(format!(
                "{who}: {} of its memory did not come from malloc, from which it had {recorded} at most: it has an \
                 allocator of its own, or takes memory from the kernel itself, so its metrics are not those of its heap",
                Bytes(without_malloc)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn of(resident_bytes: u64, recorded_bytes: u64, threads: u64) -> HeapSource {
        let metrics = HeapMetrics { resident_bytes, recorded_bytes, threads, ..HeapMetrics::default() };
        heap_source(&metrics, None, None)
    }

    #[test]
    fn unexplained_memory_is_reported_as_not_from_malloc() {
        assert_eq!(of(13 * MIB, 10_000, 1), HeapSource::Unexplained);
        assert_eq!(of(1000 * MIB, 100 * MIB, 1), HeapSource::Unexplained);
    }

    #[test]
    fn small_amounts_and_allocator_overhead_are_not_reported() {
        assert_eq!(of(7 * MIB, 0, 1), HeapSource::Malloc);
        // A heap that was freed and is kept, one that is fragmented, and arenas of threads that ran one after
        // another.
        assert_eq!(of(100 * MIB, 100 * MIB, 1), HeapSource::Malloc);
        assert_eq!(of(100 * MIB, 13 * MIB, 1), HeapSource::Malloc);
        assert_eq!(of(100 * MIB, 5 * MIB, 1000), HeapSource::Malloc);
    }

    /// What threads and fragmentation excuse lies where blocks were.
    #[test]
    fn memory_where_no_block_ever_was_is_not_excused() {
        let foreign = |foreign_bytes, recorded_bytes| {
            let resident_bytes = foreign_bytes + recorded_bytes;
            let metrics = HeapMetrics {
                resident_bytes,
                foreign_bytes,
                recorded_bytes,
                threads: 12,
                ..HeapMetrics::default()
            };
            (heap_source(&metrics, None, None), metrics)
        };
        let (source, metrics) = foreign(96 * MIB, 5 * MIB);
        assert!(metrics.are_explained());
        assert_eq!(
            source.sentence("process 7 (app)", &metrics).unwrap(),
            "process 7 (app): 96.0 MiB of its memory did not come from malloc, from which it had 5.00 MiB at most: it has an allocator \
             of its own, or takes memory from the kernel itself, so its metrics are not those of its heap"
        );
        for (foreign_bytes, recorded_bytes) in [(15 * MIB, 2 * MIB), (96 * MIB, 24 * MIB)] {
            assert_eq!(foreign(foreign_bytes, recorded_bytes).0, HeapSource::Malloc);
        }
        let (_, metrics) = foreign(96 * MIB, 5 * MIB);
        assert_eq!(
            heap_source(&metrics, None, Some("Node")),
            HeapSource::Managed { runtime: "Node".to_owned() }
        );
    }

    #[test]
    fn threads_excuse_only_what_a_linked_allocator_holds_for_them() {
        let linked = |resident_bytes| {
            let metrics = HeapMetrics {
                resident_bytes,
                threads: 5,
                has_linked_allocator: true,
                ..HeapMetrics::default()
            };
            heap_source(&metrics, None, None)
        };
        assert_eq!((linked(15 * MIB), linked(16 * MIB)), (HeapSource::Malloc, HeapSource::Unexplained));
        assert_eq!(of(9 * MIB, 0, 5), HeapSource::Unexplained);
        assert_eq!(of(130 * MIB, 0, 65), HeapSource::Unexplained);
    }

    #[test]
    fn allocator_symbols_decide_alone_and_runtimes_only_with_unexplained_memory() {
        let metrics = HeapMetrics::default();
        let own = OwnAllocator { name: "mimalloc".to_owned(), library: None, why: NotSeen::NotLookedAt };
        assert!(heap_source(&metrics, Some(own), Some("Go")).is_blind());
        assert_eq!(heap_source(&metrics, None, Some("Go")), HeapSource::Malloc);
        let much = HeapMetrics { resident_bytes: 50 * MIB, ..metrics };
        let managed = heap_source(&much, None, Some("Go"));
        assert!(!managed.is_blind());
        assert!(
            managed
                .sentence("process 7", &much)
                .unwrap()
                .starts_with("process 7: Go keeps its objects in a heap of its own")
        );
    }
}
