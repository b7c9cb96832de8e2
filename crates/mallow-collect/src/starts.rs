//! Programs that were started and never registered, named.
//!
//! The recorder notes each program before it takes a process's place. Whoever registers later than that, under the same
//! number, is that program. The others were not recorded, and the note says why as far as anybody knows.

use crate::mapping::{Mapping, Noted};
use crate::moment::Moment;
use mallow_launch::{PRIVILEGED, has_capabilities, obstacle_sentence};
use mallow_wire::executable::Obstacle;
use mallow_wire::starts::*;
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Programs that are named; the others are counted.
const NAMED_MAX: usize = 10;
/// How many registrations are kept for notes that come after them.
const MET_MAX: usize = 1024;
/// Programs of which it is open whether they will register.
const PENDING_MAX: usize = 1024;

/// Which programs were started, and which have registered.
#[derive(Debug)]
pub(crate) struct Starts {
    /// The number of our network namespace; 0 when it is not known.
    network: u64,
    /// Processes that have registered, and when.
    met: VecDeque<(u32, Moment)>,
    pending: VecDeque<Noted>,
    /// Path, reason, first process, and how many, in the order in which they were found.
    named: Vec<(String, String, u32, u64)>,
    others: u64,
}

impl Default for Starts {
    fn default() -> Starts {
        let network = std::fs::metadata("/proc/self/ns/net").map_or(0, |file| file.ino());
        Starts { network, met: VecDeque::new(), pending: VecDeque::new(), named: Vec::new(), others: 0 }
    }
}

impl Starts {
    /// A process, as it sees itself, has registered.
    pub(crate) fn meet(&mut self, pid: u32, at: Moment) {
        if self.met.len() == MET_MAX {
            self.met.pop_front();
        }
        self.met.push_back((pid, at));
        self.pending.retain(|noted| !noted.becomes(pid, at));
    }

    /// Takes what a process has noted that was that number of all to register. `seen` is how many notes were taken before.
    pub(crate) fn take(&mut self, mapping: &Mapping, index: u32, seen: &mut u32) {
        let noted = mapping.header().starts_noted.load(std::sync::atomic::Ordering::Acquire);
        if noted != *seen {
            *seen = noted;
            let used = mapping.header().starts_high.load(std::sync::atomic::Ordering::Relaxed) as usize;
            let notes = (0..used.min(START_NOTES)).filter_map(|place| mapping.take_start(place, index));
            notes.for_each(|noted| self.note(noted));
        }
    }

    /// Returns whether a process has registered, as far as that is remembered.
    pub(crate) fn has_met(&self, pid: u32) -> bool {
        self.met.iter().any(|(met, _)| *met == pid)
    }

    /// What a process, as it sees itself, has noted last that has not failed and was not seen to register.
    pub(crate) fn pending_of(&self, pid: u32) -> Option<&Noted> {
        self.pending.iter().rev().find(|noted| noted.pid == pid)
    }

    fn note(&mut self, noted: Noted) {
        if noted.found == FOUND_FAILED {
            self.pending.retain(|other| other.pid != noted.pid || other.at != noted.at);
        } else if !self.met.iter().any(|(pid, at)| noted.becomes(*pid, *at)) {
            if self.pending.len() == PENDING_MAX
                && let Some(oldest) = self.pending.pop_front()
            {
                self.name(oldest);
            }
            self.pending.push_back(noted);
        }
    }

    fn name(&mut self, noted: Noted) {
        let reason = noted.reason(self.network);
        let known = self.named.iter().position(|(path, other, ..)| *path == noted.path && *other == reason);
        match known {
            Some(at) => self.named[at].3 += 1,
            None if self.named.len() < NAMED_MAX => self.named.push((noted.path, reason, noted.pid, 1)),
            None => self.others += 1,
        }
    }

    /// Returns a sentence for each program that never registered, once; to be called when none can register any more.
    pub(crate) fn sentences(&mut self) -> Vec<String> {
        for noted in std::mem::take(&mut self.pending) {
            self.name(noted);
        }
        let named = std::mem::take(&mut self.named);
        let sentence = |(path, reason, pid, count): (String, String, u32, u64)| match count {
            1 if pid == 0 => format!("a process ({path}) was not recorded: {reason}"),
            1 => format!("process {pid} ({path}) was not recorded: {reason}"),
            _ if pid == 0 => format!("{count} processes ({path}) were not recorded: {reason}"),
            _ => format!("{count} processes ({path}, the first was {pid}) were not recorded: {reason}"),
        };
        let mut sentences: Vec<String> = named.into_iter().map(sentence).collect();
        let others = std::mem::take(&mut self.others);
        if others > 0 {
            sentences.push(format!("{others} more processes of other programs were not recorded"));
        }
        sentences
    }
}

const STATIC: &str = "it is a static program, which loads no libraries, and into which mallow gets only when it starts it itself; name it as the command, \
    without a wrapper, a shell or a script in front, or link it dynamically";

impl Noted {
    /// Returns whether a process that registers like this is the program. One that cannot load the library is not,
    /// although it may `exec` another one.
    fn becomes(&self, pid: u32, at: Moment) -> bool {
        self.pid == pid && at.follows(self.at) && self.may_register()
    }

    /// Returns whether the program itself may register.
    pub(crate) fn may_register(&self) -> bool {
        !matches!(self.found, FOUND_STATIC..=FOUND_SANITIZER | FOUND_FILTERED)
    }

    fn reason(&self, network: u64) -> String {
        let reason = match self.found {
            FOUND_STATIC => STATIC,
            FOUND_OTHER_MACHINE => obstacle_sentence(Obstacle::OtherMachine),
            FOUND_SANITIZER => obstacle_sentence(Obstacle::Sanitizer),
            FOUND_PRIVILEGED => PRIVILEGED,
            FOUND_CLEARED => {
                "it was started with an environment that does not hold LD_PRELOAD and MALLOW_SESSION as mallow set them"
            }
            FOUND_ELSEWHERE => {
                "where it was started mallow's library is not to be found or not to be opened (another root, another /tmp, a sandbox); \
                 TMPDIR names a folder for it that may be read there"
            }
            FOUND_LIMITED => {
                "a limit on memory, on the length of files or on their number (ulimit -v, -f, -n) leaves no room for it"
            }
            FOUND_FILTERED => {
                "it was started behind a filter of system calls (seccomp) that does not let through what mallow needs"
            }
            _ if has_capabilities(Path::new(&self.path)) => PRIVILEGED,
            _ if self.network != 0 && network != 0 && self.network != network => {
                "it was started in another network namespace that does not see mallow's folder either, so mallow cannot be reached"
            }
            _ => {
                "it did not introduce itself: it ended before it could, or it cannot reach mallow (another network namespace, a limit \
                 on memory or files)"
            }
        };
        reason.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(pid: u32, time_ns: u64, found: u32, path: &str) -> Noted {
        Noted { pid, at: Moment::at(0, time_ns, 1), network: 0, found, path: path.into() }
    }

    fn registered(time_ns: u64) -> Moment {
        Moment::at(0, time_ns, 2)
    }

    fn after(steps: impl FnOnce(&mut Starts)) -> Vec<String> {
        let mut starts = Starts::default();
        steps(&mut starts);
        starts.sentences()
    }

    #[test]
    fn a_start_matches_the_process_that_registers_in_either_order() {
        assert!(
            after(|starts| {
                starts.note(noted(7, 100, 0, "/a"));
                starts.meet(7, registered(101))
            })
            .is_empty()
        );
        assert!(
            after(|starts| {
                starts.meet(7, registered(101));
                starts.note(noted(7, 100, 0, "/a"))
            })
            .is_empty()
        );
        // The process before the start, and another one.
        for (pid, started_ns) in [(7, 99), (8, 101)] {
            let told = after(|starts| {
                starts.meet(pid, registered(started_ns));
                starts.note(noted(7, 100, 0, "/a"))
            });
            assert!(
                told[0].starts_with("process 7 (/a) was not recorded: it did not introduce itself"),
                "{told:?}"
            );
        }
    }

    #[test]
    fn a_failed_start_is_not_reported() {
        assert!(
            after(|starts| {
                starts.note(noted(7, 100, 0, "/a"));
                starts.note(noted(7, 100, FOUND_FAILED, ""))
            })
            .is_empty()
        );
    }

    #[test]
    fn a_static_program_is_named_although_another_follows_in_its_process() {
        let told = after(|starts| {
            starts.note(noted(7, 100, FOUND_STATIC, "/a"));
            starts.meet(7, registered(101))
        });
        assert!(told[0].contains("it is a static program"), "{told:?}");
    }

    #[test]
    fn a_shell_whose_number_nobody_knows_has_none() {
        let shells = |count: u64| {
            after(|starts| (0..count).for_each(|time| starts.note(noted(0, time, FOUND_CLEARED, "/bin/sh"))))
        };
        assert!(shells(1)[0].starts_with("a process (/bin/sh) was not recorded: "), "{:?}", shells(1));
        assert!(shells(3)[0].starts_with("3 processes (/bin/sh) were not recorded: "), "{:?}", shells(3));
    }

    #[test]
    fn many_unrecorded_programs_are_counted() {
        let told = after(|starts| {
            for pid in 1..=3000 {
                starts.note(noted(pid, 1, FOUND_STATIC, "/same"));
            }
            for pid in 0..30 {
                starts.note(noted(pid, 1, FOUND_STATIC, &format!("/{pid}")));
            }
        });
        assert_eq!(told.len(), NAMED_MAX + 1);
        assert!(told[0].starts_with("3000 processes (/same, the first was 1) were not recorded"), "{told:?}");
        assert_eq!(told[NAMED_MAX], "21 more processes of other programs were not recorded");
    }
}
