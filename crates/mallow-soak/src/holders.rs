//! Which allocator holds a process's memory if malloc does not: according to its recording, and to its executable.

use mallow_collect::{HeapSource, Linked, LiveHeap, linked_into};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The executables that were seen, by device and inode. A process may exec another program.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    known: RefCell<FxHashMap<(u64, u64), Linked>>,
}

impl Holders {
    /// Returns the name of the allocator, in one of these processes.
    pub(crate) fn of(&self, pids: &[u32], look: Option<&LiveHeap>) -> Option<String> {
        let is_go = |pid: &u32| self.linked(*pid).is_some_and(|linked| linked.is_go);
        if pids.iter().any(is_go) {
            return Some("go".to_owned());
        }
        let recorded =
            || look.iter().flat_map(|look| &look.processes).filter(|seen| pids.contains(&seen.pid));
        let is_recorded = |pid: u32| recorded().any(|seen| seen.pid == pid);
        recorded().find_map(|seen| name(&seen.source)).or_else(|| {
            let unrecorded = pids.iter().filter(|pid| !is_recorded(**pid));
            // A static program contains the C library's own malloc.
            let linked = |pid: &u32| self.linked(*pid)?.allocator.filter(|name| *name != "malloc");
            unrecorded.copied().find_map(|pid| linked(&pid)).map(str::to_owned)
        })
    }

    fn linked(&self, pid: u32) -> Option<Linked> {
        let file = File::open(format!("/proc/{pid}/exe")).ok()?;
        let about = file.metadata().ok()?;
        let mut known = self.known.borrow_mut();
        Some(known.entry((about.dev(), about.ino())).or_insert_with(|| linked_into(file)).clone())
    }
}

fn name(source: &HeapSource) -> Option<String> {
    match source {
        HeapSource::OwnAllocator(own) => Some(own.name.clone()),
        HeapSource::Unexplained => Some("unknown".to_owned()),
        // A runtime reports its metrics, or is recognised by its executable.
        HeapSource::Malloc | HeapSource::Core | HeapSource::Managed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_collect::{LiveProcess, NotSeen, OwnAllocator};

    fn process(pid: u32, source: HeapSource) -> LiveProcess {
        LiveProcess {
            index: 0,
            pid,
            live_bytes: 0,
            live_blocks: 0,
            allocations: 0,
            has_helper_thread: false,
            sites: Vec::new(),
            heap: mallow_collect::HeapMetrics::default(),
            source,
        }
    }

    #[test]
    fn every_process_is_asked_that_is_alive() {
        let own = HeapSource::OwnAllocator(OwnAllocator {
            name: "mimalloc".into(),
            library: None,
            why: NotSeen::NotLookedAt,
        });
        let look = LiveHeap {
            processes: vec![process(1, HeapSource::Malloc), process(2, own)],
            ..LiveHeap::default()
        };
        let holders = Holders::default();
        assert_eq!(holders.of(&[1, 2], Some(&look)).as_deref(), Some("mimalloc"));
        assert_eq!(holders.of(&[1], Some(&look)), None);
        let look = LiveHeap { processes: vec![process(3, HeapSource::Unexplained)], ..LiveHeap::default() };
        assert_eq!(holders.of(&[3], Some(&look)).as_deref(), Some("unknown"));
        assert_eq!(holders.of(&[std::process::id()], None), None);
    }
}
