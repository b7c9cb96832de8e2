//! Which of a recording's processes are looked at.

use crate::failure::Failure;
use mallow_cpu::CpuProfile;
use mallow_profile::{ProcessIndex, Profile};
use mallow_view::short_command;
use std::cmp::Reverse;
use std::convert::Infallible;
use std::path::Path;
use std::str::FromStr;

/// A choice, as people type it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessChoice {
    /// `main`: the process that mallow started, as the last program that it became.
    Main,
    /// `largest`: the one with the highest peak; of a processor's time, the one with most of it.
    Largest,
    /// All programs that the process with this id became.
    Pid(u32),
    /// All whose program has this name, or else that have it as a word of their command line, both without folders.
    Named(String),
}

impl FromStr for ProcessChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match (text, text.parse()) {
            ("main", _) => ProcessChoice::Main,
            ("largest", _) => ProcessChoice::Largest,
            (_, Ok(pid)) => ProcessChoice::Pid(pid),
            _ => ProcessChoice::Named(text.to_owned()),
        })
    }
}

/// A process image that may be chosen.
struct Candidate<'a> {
    pid: u32,
    command: &'a str,
    /// By which it is the largest.
    size: (u64, u64),
}

/// How many are listed if none has the name.
const LISTED_MAX: usize = 8;
/// Columns of a command that is listed.
const COMMAND_MAX: usize = 30;

impl ProcessChoice {
    /// Returns the chosen candidates, in their order; never none.
    fn among(&self, candidates: &[Candidate<'_>], path: &Path) -> Result<Vec<usize>, Failure> {
        let all = |is: &dyn Fn(&Candidate<'_>) -> bool| -> Vec<usize> {
            (0..candidates.len()).filter(|at| is(&candidates[*at])).collect()
        };
        let chosen = match self {
            ProcessChoice::Main => {
                let first = candidates.first().map(|candidate| candidate.pid);
                candidates.iter().rposition(|candidate| Some(candidate.pid) == first).into_iter().collect()
            }
            ProcessChoice::Largest => {
                let largest = (0..candidates.len()).max_by_key(|at| (candidates[*at].size, Reverse(*at)));
                largest.into_iter().collect()
            }
            ProcessChoice::Pid(pid) => all(&|candidate| candidate.pid == *pid),
            ProcessChoice::Named(name) => match all(&|candidate| words(candidate).next() == Some(name)) {
                of_word if of_word.is_empty() => all(&|candidate| words(candidate).any(|word| word == name)),
                of_program => of_program,
            },
        };
        if chosen.is_empty() { Err(self.refused(candidates, path)) } else { Ok(chosen) }
    }

    fn refused(&self, candidates: &[Candidate<'_>], path: &Path) -> Failure {
        let asked = match self {
            ProcessChoice::Pid(pid) => format!("no process {pid}"),
            ProcessChoice::Named(name) => format!("no process called '{name}'"),
            ProcessChoice::Main | ProcessChoice::Largest => "no process".to_owned(),
        };
        let path = path.display();
        if candidates.is_empty() {
            return Failure::new(format!("{path} has {asked}: it contains none."));
        }
        Failure::new(format!("{path} has {asked}; it has {}.", listed(candidates)))
    }
}

/// The words of a command line without folders; flags are none.
fn words<'a>(candidate: &Candidate<'a>) -> impl Iterator<Item = &'a str> {
    let words = candidate.command.split(' ').filter(|word| !word.is_empty());
    words.enumerate().filter(|(at, word)| *at == 0 || !word.starts_with('-')).map(|(_, word)| {
        let name = word.rsplit('/').next().unwrap_or(word);
        if name.is_empty() { word } else { name }
    })
}

/// `4242 (python3 app.py), 4243 (sh -c ls) and 3 others`, the largest first.
fn listed(candidates: &[Candidate<'_>]) -> String {
    let mut largest: Vec<&Candidate<'_>> = candidates.iter().collect();
    largest.sort_by_key(|candidate| Reverse(candidate.size));
    let named = largest.iter().take(LISTED_MAX).map(|candidate| {
        let command: String =
            short_command(candidate.command).chars().filter(|c| !c.is_control()).take(COMMAND_MAX).collect();
        format!("{} ({command})", candidate.pid)
    });
    let named: Vec<String> = named.collect();
    match largest.len().saturating_sub(LISTED_MAX) {
        0 => named.join(", "),
        1 => format!("{} and one other", named.join(", ")),
        more => format!("{} and {more} others", named.join(", ")),
    }
}

impl ProcessChoice {
    /// Returns the chosen processes of a profile.
    ///
    /// # Errors
    /// There is none; the sentence lists the processes.
    pub(crate) fn of_heap(&self, profile: &Profile, path: &Path) -> Result<Vec<ProcessIndex>, Failure> {
        let chosen = self.among(&candidates(profile), path)?;
        Ok(chosen.into_iter().map(|at| ProcessIndex(at as u32)).collect())
    }

    /// Returns the pid of the chosen process of a profile.
    ///
    /// # Errors
    /// There is none, or several have the name; the sentence lists them.
    pub(crate) fn of_cpu(&self, profile: &CpuProfile, path: &Path) -> Result<u32, Failure> {
        let candidates = cpu_candidates(profile);
        let chosen = self.among(&candidates, path)?;
        let mut pids: Vec<u32> = chosen.into_iter().map(|at| candidates[at].pid).collect();
        pids.sort_unstable();
        pids.dedup();
        match pids[..] {
            [pid] => Ok(pid),
            _ => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                Err(Failure::new(format!(
                    "several processes of {} are called that; give the id of one: {}.",
                    path.display(),
                    pids.join(", ")
                )))
            }
        }
    }
}

fn candidates(profile: &Profile) -> Vec<Candidate<'_>> {
    let all = profile.processes.iter().map(|process| Candidate {
        pid: process.pid,
        command: &process.command,
        size: (process.totals.peak_bytes, process.totals.allocations),
    });
    all.collect()
}

fn cpu_candidates(profile: &CpuProfile) -> Vec<Candidate<'_>> {
    let mut sizes = vec![(0, 0); profile.processes.len()];
    for site in &profile.sites {
        if let Some((time_ns, samples)) = sizes.get_mut(site.process.0 as usize) {
            *time_ns += site.totals.time_ns;
            *samples += site.totals.samples;
        }
    }
    let all = profile.processes.iter().zip(sizes).map(|(process, size)| Candidate {
        pid: process.pid,
        command: &process.name,
        size,
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shim that became Python, its shells, and a worker.
    const COMMANDS: [(u32, &str, u64); 5] = [
        (10, "bash /home/me/.pyenv/shims/python app.py", 90),
        (11, "sed -e s/app.py//", 5),
        (12, "/bin/bash --norc", 6),
        (10, "/opt/python3.11 /srv/app.py --debug", 700),
        (13, "/opt/worker 7", 900),
    ];

    fn chosen(text: &str) -> Result<Vec<usize>, String> {
        let candidates: Vec<Candidate<'_>> = COMMANDS
            .iter()
            .map(|(pid, command, peak)| Candidate { pid: *pid, command, size: (*peak, 1) })
            .collect();
        let choice = text.parse::<ProcessChoice>().unwrap_or(ProcessChoice::Main);
        choice.among(&candidates, Path::new("x.mallow")).map_err(|failure| failure.sentence().to_owned())
    }

    #[test]
    fn each_word_has_its_processes() {
        assert_eq!(chosen("main"), Ok(vec![3]));
        assert_eq!(chosen("largest"), Ok(vec![4]));
        assert_eq!(chosen("10"), Ok(vec![0, 3]));
        assert_eq!(chosen("bash"), Ok(vec![0, 2]));
        assert_eq!(
            chosen("app.py"),
            Ok(vec![0, 3]),
            "a program that has it as a word, where none is called so"
        );
        assert_eq!(chosen("python3.11"), Ok(vec![3]));
    }

    #[test]
    fn who_is_not_there_is_refused_with_those_who_are() {
        assert_eq!(
            chosen("ruby").unwrap_err(),
            "x.mallow has no process called 'ruby'; it has 13 (worker 7), 10 (python3.11 /srv/app.py --debug), \
             10 (bash /home/me/.pyenv/shims/pyt), 12 (bash --norc), 11 (sed -e s/app.py//)."
        );
        assert!(chosen("99").unwrap_err().starts_with("x.mallow has no process 99; it has 13 "));
        let nothing =
            ProcessChoice::Main.among(&[], Path::new("x")).map_err(|failure| failure.sentence().to_owned());
        assert_eq!(nothing.unwrap_err(), "x has no process: it contains none.");
    }
}
