//! Samples in code that a JVM made, of which no lines are known.

use super::Folder;
use crate::clock::{PAUSE, PAUSE_READING};
use crate::spaces::Place;
use mallow_jvm::Unread;
use mallow_scripts::unread_sentence;
use mallow_wire::script::{RUNTIME_HOTSPOT, UNREAD_LAYOUT, UNREAD_VERSION};
use std::collections::BTreeMap;
use std::time::Duration;

/// Samples without lines.
#[derive(Debug, Default)]
pub(super) struct WithoutLines {
    /// Processes whose JVM is not read, and why.
    unread: BTreeMap<u32, Unread>,
    /// Samples of others.
    samples: u64,
}

/// So many processes are named.
const NAMED_MAX: usize = 3;

impl Folder {
    /// Returns how long samples may wait at most: code of a process that has ended cannot be read.
    pub(crate) fn pause(&self) -> Duration {
        let reads = self.running.values().any(|running| running.jvm.is_some());
        if reads { PAUSE_READING } else { PAUSE }
    }

    /// Looks at the frames of a process's sample.
    pub(super) fn count_without_lines(&mut self, pid: u32, frames: &[Place]) {
        let Some(jvm) = self.running.get(&pid).and_then(|running| running.jvm.as_ref()) else { return };
        let is_of_jvm =
            |frame: &Place| matches!(frame, Place::Anonymous(behind) if jvm.may_hold(behind.wrapping_sub(1)));
        if !frames.iter().any(is_of_jvm) {
            return;
        }
        match jvm.unread() {
            Some(why) => _ = self.without_lines.unread.insert(pid, why),
            None => self.without_lines.samples += 1,
        }
    }

    /// Returns sentences about them.
    pub(crate) fn java_sentences(&self) -> Vec<String> {
        let WithoutLines { unread, samples } = &self.without_lines;
        let mut sentences: Vec<String> =
            unread.iter().take(NAMED_MAX).map(|(pid, why)| sentence(*pid, *why)).collect();
        if unread.len() > NAMED_MAX {
            sentences
                .push(format!("the same holds for more processes with a JVM: {}", unread.len() - NAMED_MAX));
        }
        if *samples > 0 {
            sentences.push(format!(
                "samples in code that a JVM made and that could not be read, as it was gone or had just come, and have no lines of it: {samples}"
            ));
        }
        sentences
    }
}

fn sentence(pid: u32, why: Unread) -> String {
    match why {
        Unread::Refused => format!(
            "process {pid}: stacks have no lines of Java, because the kernel does not let mallow read its memory: run mallow as its user and \
             have it start the program, or run it with sudo (kernel.yama.ptrace_scope)"
        ),
        Unread::Version(version) => unread_sentence(pid, RUNTIME_HOTSPOT, version << 8, UNREAD_VERSION),
        Unread::Layout => unread_sentence(pid, RUNTIME_HOTSPOT, 0, UNREAD_LAYOUT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    #[test]
    fn what_has_no_lines_is_said() {
        let mut folder = Folder::new(Origin::default());
        assert_eq!(folder.java_sentences(), Vec::<String>::new());
        let whys = [Unread::Refused, Unread::Version(26), Unread::Layout, Unread::Refused, Unread::Refused];
        folder.without_lines = WithoutLines { unread: (7..).zip(whys).collect(), samples: 5 };
        let said = folder.java_sentences();
        let parts =
            ["process 7: stacks have no lines of Java", "the JVM 26: ", "process 9: the JVM: ", ": 2", ": 5"];
        assert_eq!(said.len(), parts.len());
        for (said, part) in said.iter().zip(parts) {
            assert!(said.contains(part), "{part} is missing in {said}");
        }
    }
}
