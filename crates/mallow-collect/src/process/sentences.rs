//! What is to be said of a process when it has ended.

use super::TracedProcess;
use crate::unseen;
use mallow_profile::EventsLost;
use mallow_wire::shared::{FEATURE_PYTHON_OBJECTS, PYTHON_OBJECTS_ELSEWHERE};
use std::sync::atomic::Ordering;

impl TracedProcess {
    /// Returns whether blocks of Python's allocator were requested, and whether there was one to hook.
    pub(crate) fn python_objects(&self) -> (bool, bool) {
        let is_wanted = self.at_start().features & FEATURE_PYTHON_OBJECTS != 0;
        (is_wanted, self.header().python_objects.load(Ordering::Relaxed) != 0)
    }

    /// The sentence for one that was not waited for.
    pub(crate) fn still_ran(&self) -> String {
        unseen::still_ran(self.pid, &self.mapping)
    }

    /// Returns the results of a recorder with self-checks.
    pub(crate) fn verification(&self) -> Option<String> {
        let (header, pid) = (self.mapping.header(), self.pid);
        let value = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (value(&header.verify_stacks) > 0).then(|| {
            format!(
                "process {pid}: of {} stacks {} differ from a walk from scratch; of {} stacks {} differ from the C runtime's unwinder",
                value(&header.verify_stacks),
                header.verify_mismatches.load(Ordering::Relaxed),
                value(&header.verify_judged),
                value(&header.verify_judge_mismatches),
            ) + &self.verified_scripts()
        })
    }

    /// The same for the stacks of scripts; nothing where there are none.
    fn verified_scripts(&self) -> String {
        let (scripts, pairs) = (&self.mapping.header().scripts, self.stacks.pairs());
        match scripts.verify_stacks.load(Ordering::Relaxed) {
            0 => String::new(),
            stacks => format!(
                "\nprocess {}: of {stacks} stacks of scripts {} differ from scratch; of {} pairs {} have more calls of the interpreter, {} fewer",
                self.pid,
                scripts.verify_mismatches.load(Ordering::Relaxed),
                pairs.count,
                pairs.other_list,
                pairs.uncalled,
            ),
        }
    }

    /// The sentence for a process that was left, if it was.
    fn abandoned(&self) -> Option<String> {
        let why = self.beyond()?;
        Some(format!(
            "process {}: it was taken for damaged and left, because {why}; what it did from then on is missing",
            self.pid
        ))
    }

    /// The sentence for what the program wrote over, if it did.
    fn damage(&self) -> Option<String> {
        (self.damages > 0).then(|| {
            format!(
                "process {}: the program wrote over the recorder's memory ({} times seen), so its metrics are unreliable",
                self.pid, self.damages
            )
        })
    }

    /// The sentence for stacks that are not whole, if there are any.
    fn cut_stacks(&self) -> Option<String> {
        let (pid, cut) = (self.pid, self.stacks.cut());
        (cut > 0).then(|| {
            format!("process {pid}: the stack table was full, so the stacks of {cut} events lack their inner frames")
        })
    }

    /// The sentence for its frees and allocations that do not meet; to be called when its rings are read to their ends.
    pub(crate) fn unpaired(&self) -> Option<String> {
        let unpaired = (self.pairing.frees_unmatched(), self.pairing.freed_unseen());
        if self.own { None } else { unseen::unpaired(&self.mapping, self.pid, self.events_lost(), unpaired) }
    }

    /// Its events that were not recorded.
    pub(super) fn events_lost(&self) -> EventsLost {
        unseen::events_lost(&self.mapping, self.damages > 0 || self.beyond().is_some())
    }

    /// Returns why its metrics are not those of the program, if they are not: no verdict may use them.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        let loss = unseen::loss(self.events_lost(), self.pid);
        [self.abandoned(), loss, self.damage(), self.cut_stacks()].into_iter().flatten()
    }

    /// Returns what is missing of this process in the trace, if anything.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let pid = self.pid;
        let mut warnings = unseen::warnings(&self.mapping, pid);
        warnings.extend(self.faults());
        warnings.extend(self.stacks.scripts().sentences(pid, &self.mapping));
        let is_asked = self.header().runtime_asked.load(Ordering::Relaxed) != 0;
        if is_asked && !self.code_lists.has_map() && self.has_made_code() {
            warnings.push(format!(
                "process {pid}: it was asked to write down what code it makes, and has not: its methods have no names (a JVM that is killed writes nothing)"
            ));
        }
        if self.header().python_objects.load(Ordering::Relaxed) == PYTHON_OBJECTS_ELSEWHERE {
            warnings.push(format!(
                "process {pid}: PYTHONMALLOC chooses its allocator, so what Python hands out itself is recorded only as far as that takes it from malloc"
            ));
        }
        warnings
    }
}
