//! The programs that a recording's processes ran, those that matter first.
//!
//! A shim or a build starts forty shells around the one program that it is about. What matters is what holds memory: the programs with the
//! highest peaks have a row each, all others are one row, with their sums and how often each was run.

use mallow_profile::{Process, Profile, Totals};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Programs with a row of their own.
const FIRST_MAX: usize = 3;
/// The part of the highest peak from which a program has one.
const PEAK_SHARE_MIN: f64 = 0.10;

/// The programs that ran. After an `exec` a process counts as another program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Programs<'a> {
    /// The highest peak first; empty where only one program ran.
    pub first: Vec<&'a Process>,
    /// All others.
    pub others: OtherPrograms,
}

/// Programs as one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherPrograms {
    /// The number of processes.
    pub count: usize,
    /// Their names and how often each ran, most often first.
    pub names: Vec<(String, usize)>,
    /// Their sums; of peaks too.
    pub totals: Totals,
}

impl<'a> Programs<'a> {
    /// Those of a profile.
    pub fn of(profile: &'a Profile) -> Programs<'a> {
        if profile.processes.len() < 2 {
            return Programs::default();
        }
        let mut first: Vec<&Process> = profile.processes.iter().collect();
        first.sort_by_key(|process| Reverse((process.totals.peak_bytes, process.totals.allocations)));
        let highest = first.first().map_or(0, |process| process.totals.peak_bytes);
        let is_high =
            |process: &&&Process| process.totals.peak_bytes as f64 >= PEAK_SHARE_MIN * highest as f64;
        let count = first.iter().take(FIRST_MAX).take_while(is_high).count();
        let others = OtherPrograms::of(&first.split_off(count));
        Programs { first, others }
    }
}

impl OtherPrograms {
    /// These as one row.
    pub fn of(processes: &[&Process]) -> OtherPrograms {
        let (mut totals, mut names) = (Totals::default(), BTreeMap::new());
        for process in processes {
            totals.add(&process.totals);
            *names.entry(program(process)).or_insert(0) += 1;
        }
        let mut names: Vec<(String, usize)> = names.into_iter().collect();
        names.sort_by_key(|(_, count)| Reverse(*count));
        OtherPrograms { count: processes.len(), names, totals }
    }
}

/// Returns a command line without the folders of its program: the arguments distinguish processes.
pub fn short_command(command: &str) -> &str {
    let word = command.split(' ').next().unwrap_or_default();
    let folders = word.rfind('/').map_or(0, |slash| slash + 1);
    if folders == word.len() { command } else { &command[folders..] }
}

/// The name of a process's program, without folders.
fn program(process: &Process) -> String {
    match short_command(&process.command).split(' ').next().unwrap_or_default() {
        "" => "a program without a name".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, command: &str, peak_bytes: u64) -> Process {
        let totals = Totals { allocations: 10, peak_bytes, ..Totals::default() };
        Process { pid, command: command.into(), totals, ..Process::default() }
    }

    #[test]
    fn processes_with_most_memory_come_first_and_sums_are_complete() {
        let mut profile = Profile { processes: vec![process(1, "/bin/app x", 1000)], ..Profile::default() };
        assert_eq!(Programs::of(&profile), Programs::default(), "one program needs no list");
        let shells = (2..40).map(|pid| process(pid, "/bin/bash -c true", 90));
        profile.processes.extend(shells);
        profile.processes.extend([process(50, "sed s", 5), process(51, "worker", 100), process(52, "", 1)]);
        let programs = Programs::of(&profile);
        assert_eq!(programs.first.iter().map(|process| process.pid).collect::<Vec<_>>(), [1, 51]);
        let others = programs.others;
        let names: Vec<(&str, usize)> =
            others.names.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(names, [("bash", 38), ("a program without a name", 1), ("sed", 1)]);
        assert_eq!(
            (others.count, others.totals.allocations, others.totals.peak_bytes),
            (40, 400, 38 * 90 + 6)
        );
    }

    #[test]
    fn commands_are_shown_without_the_folders_of_their_programs() {
        for (command, short) in
            [("/usr/bin/ls -l /tmp", "ls -l /tmp"), ("ls", "ls"), ("", ""), ("/ x", "/ x")]
        {
            assert_eq!(short_command(command), short);
        }
    }

    #[test]
    fn no_more_than_three_have_a_row() {
        let processes: Vec<Process> = (0..5).map(|pid| process(pid, "worker", 100)).collect();
        let profile = Profile { processes, ..Profile::default() };
        let programs = Programs::of(&profile);
        assert_eq!((programs.first.len(), programs.others.count), (3, 2));
        assert_eq!(programs.first[0].pid, 0, "of equal ones the first");
    }
}
