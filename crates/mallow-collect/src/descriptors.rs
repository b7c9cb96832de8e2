//! Which file descriptors a region left open, and who opened them.
//!
//! The kernel's own table is the truth: whatever function or system call opened a descriptor, it stands in
//! `/proc/PID/fd`. The recorder adds the stack of the call that gave a number last. So an opener that is not hooked costs
//! a name and never a count.

use mallow_profile::StackId;
use rustc_hash::FxHashMap;

/// The open descriptors of a process: what each number leads to.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    targets: FxHashMap<u64, String>,
}

impl Snapshot {
    /// Those of a process now; empty when they cannot be seen.
    pub(crate) fn of(pid: u32) -> Snapshot {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Snapshot::default() };
        let targets = entries
            .flatten()
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.parse().ok()?;
                // Sockets, pipes and the like are distinguished by the inode in their name.
                let target = std::fs::read_link(entry.path()).ok()?;
                Some((number, target.to_string_lossy().into_owned()))
            })
            .collect();
        Snapshot { targets }
    }
}

/// Which stack opened which descriptor.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// By descriptor: the stack that opened it last, and how many regions had begun by then.
    openers: FxHashMap<u64, (StackId, u64)>,
    regions_begun: u64,
}

impl Descriptors {
    /// Counts the begin of a region; returns its number.
    pub(crate) fn region_begins(&mut self) -> u64 {
        self.regions_begun += 1;
        self.regions_begun
    }

    pub(crate) fn opened(&mut self, number: u64, stack: StackId) {
        self.openers.insert(number, (stack, self.regions_begun));
    }

    /// Returns the descriptors that a region opened and that are open in a later snapshot; `begun` is the region's
    /// number and `before` the snapshot at its begin. A descriptor that was closed and opened for the same file again
    /// is recognised by its opener.
    pub(crate) fn left(&self, begun: u64, before: &Snapshot, after: &Snapshot) -> Vec<Option<StackId>> {
        let mut numbers: Vec<&u64> = after.targets.keys().collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|number| {
                let opener = self.openers.get(number).filter(|(_, at)| *at >= begun).map(|(stack, _)| *stack);
                let is_new = before.targets.get(number) != after.targets.get(number);
                (is_new || opener.is_some()).then_some(opener)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptors_opened_between_two_snapshots_are_found() {
        let pid = std::process::id();
        let mut descriptors = Descriptors::default();
        descriptors.opened(0, StackId(9));
        let begun = descriptors.region_begins();
        let before = Snapshot::of(pid);
        assert!(descriptors.left(begun, &before, &before).is_empty());
        let directory = tempfile::tempdir().unwrap();
        let seen = File::create(directory.path().join("seen")).unwrap();
        let unseen = File::create(directory.path().join("unseen")).unwrap();
        descriptors.opened(seen.as_raw_fd() as u64, StackId(4));
        let left = |number: i32| {
            let mut after = Snapshot::of(pid);
            // Other tests of this process open files too.
            after.targets.retain(|other, _| *other == number as u64);
            descriptors.left(begun, &before, &after)
        };
        assert_eq!(left(seen.as_raw_fd()), [Some(StackId(4))]);
        assert_eq!(left(unseen.as_raw_fd()), [None]);
    }
}
