//! Which processes belong to the server, and their metrics in `/proc`.

use mallow_evidence::Memory;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fs;

/// A process, distinguished from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks since the machine's start.
    pub(crate) started_ticks: u64,
}

struct Stat {
    process: Process,
    parent: u32,
    group: u32,
    is_zombie: bool,
    threads: u64,
}

/// Returns the live processes of the server: `root`, its descendants, those in its group, those that are `recorded`, and those of `known` that
/// have left all of them. Also returns the number of their threads.
pub(crate) fn of_server(
    root: u32,
    group: Option<u32>,
    recorded: &[u32],
    known: &FxHashSet<Process>,
) -> (Vec<Process>, u64) {
    let all: FxHashMap<u32, Stat> = everybody().map(|stat| (stat.process.pid, stat)).collect();
    let is_ours = |stat: &Stat| {
        group == Some(stat.group)
            || known.contains(&stat.process)
            || recorded.contains(&stat.process.pid)
            || ancestors(stat, &all).any(|pid| pid == root)
    };
    let ours = || all.values().filter(|stat| !stat.is_zombie && is_ours(stat));
    let mut processes: Vec<Process> = ours().map(|stat| stat.process).collect();
    processes.sort_unstable_by_key(|process| process.pid);
    (processes, ours().map(|stat| stat.threads).sum())
}

/// Returns a process and its ancestors, as far as they are known.
fn ancestors<'a>(stat: &Stat, all: &'a FxHashMap<u32, Stat>) -> impl Iterator<Item = u32> + use<'a> {
    /// The table changes while it is read: a reused pid could create a cycle.
    const DEPTH_MAX: usize = 64;
    let parent_of = |pid: &u32| all.get(pid).map(|stat| stat.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(stat.process.pid), parent_of).take(DEPTH_MAX)
}

fn everybody() -> impl Iterator<Item = Stat> {
    let all = procfs::process::all_processes().into_iter().flatten();
    all.filter_map(|process| Some(Stat::of(&process.ok()?.stat().ok()?)))
}

fn stat(pid: u32) -> Option<Stat> {
    Some(Stat::of(&procfs::process::Process::new(pid.cast_signed()).ok()?.stat().ok()?))
}

impl Stat {
    fn of(stat: &procfs::process::Stat) -> Stat {
        Stat {
            process: Process { pid: stat.pid.cast_unsigned(), started_ticks: stat.starttime },
            parent: stat.ppid.cast_unsigned(),
            group: stat.pgrp.cast_unsigned(),
            is_zombie: matches!(stat.state, 'Z' | 'X'),
            threads: stat.num_threads.cast_unsigned(),
        }
    }
}

/// Returns the process with that pid, if it exists and is not a zombie.
pub(crate) fn process(pid: u32) -> Option<Process> {
    stat(pid).filter(|stat| !stat.is_zombie).map(|stat| stat.process)
}

/// Returns the number of open descriptors of a process; 0 of one that has ended, and where nobody may read them: [`add_memory`] then says so.
pub(crate) fn descriptors(pid: u32) -> u64 {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |entries| entries.count() as u64)
}

/// Returns whether a process is a language runtime that collects garbage, by its executable's name.
pub(crate) fn is_managed(pid: u32) -> bool {
    const RUNTIMES: [&str; 9] =
        ["ruby", "python", "pypy", "node", "deno", "bun", "java", "dotnet", "beam.smp"];
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    RUNTIMES.iter().any(|runtime| {
        // A version may follow, but not another word: `nodejs` and `python3.11`, but not `nodemon`.
        name.strip_prefix(runtime)
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || "js-".contains(c)))
    })
}

/// Returns the resident bytes of a process, from `statm`.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Resident and swapped bytes, and number, of the mappings with the same name.
pub(crate) type Mappings = BTreeMap<String, (u64, u64)>;

/// The name of the recorder's shared memory among a process's mappings.
const RECORDER_MAPPING: &str = "/memfd:mallow (deleted)";

/// Adds the mappings of a process to both sums. Returns the system's error if they cannot be read.
pub(crate) fn add_memory(pid: u32, memory: &mut Memory, mappings: &mut Mappings) -> std::io::Result<()> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps"))?;
    add_smaps(&text, memory, mappings);
    Ok(())
}

/// The metrics of one mapping, in bytes.
#[derive(Default)]
struct Mapping {
    name: String,
    is_arena: bool,
    rss: u64,
    pss: u64,
    private: u64,
    swap: u64,
    anonymous: u64,
    huge: u64,
}

fn add_smaps(text: &str, memory: &mut Memory, mappings: &mut Mappings) {
    let mut current: Option<Mapping> = None;
    for line in text.lines() {
        match field(line) {
            Some((name, kib)) => {
                if let Some(mapping) = &mut current {
                    mapping.note(name, kib * 1024);
                }
            }
            None => {
                if let Some(name) = mapping_name(line) {
                    let is_arena = name == ANONYMOUS && begins_an_arena(line);
                    add_mapping(
                        current.replace(Mapping { name, is_arena, ..Mapping::default() }),
                        memory,
                        mappings,
                    );
                }
            }
        }
    }
    add_mapping(current, memory, mappings);
}

/// Parses `Rss:      12 kB`.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    let kib = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    (!name.contains(' ')).then_some((name, kib))
}

/// Returns the last field of `start-end rights offset device inode   name`; `None` for a line that does not start a mapping.
fn mapping_name(line: &str) -> Option<String> {
    let mut rest = line;
    for field in 0..5 {
        let (word, behind) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        if field == 0 && !word.contains('-') {
            return None;
        }
        rest = behind;
    }
    let name = rest.trim();
    Some(if name.is_empty() { ANONYMOUS.to_owned() } else { name.to_owned() })
}

const ANONYMOUS: &str = "[anonymous]";

/// Returns whether a mapping starts where glibc puts the heaps of its arenas: it aligns them to their maximum size,
/// so that it can find a heap by an address in it (`HEAP_MAX_SIZE` in malloc/arena.c). Others start there by chance,
/// once in thousands of times.
fn begins_an_arena(line: &str) -> bool {
    const ARENA_ALIGNMENT: u64 = 64 << 20;
    let start = line.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
    let is_writable = line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"));
    is_writable && start.is_some_and(|start| start.is_multiple_of(ARENA_ALIGNMENT))
}

impl Mapping {
    fn note(&mut self, name: &str, bytes: u64) {
        match name {
            "Rss" => self.rss = bytes,
            "Pss" => self.pss = bytes,
            "Private_Clean" | "Private_Dirty" => self.private += bytes,
            "Swap" => self.swap = bytes,
            "Anonymous" => self.anonymous = bytes,
            "AnonHugePages" => self.huge = bytes,
            _ => {}
        }
    }

    fn is_shared_memory(&self) -> bool {
        ["/memfd:", "/dev/shm/", "/SYSV", "/dev/zero"].iter().any(|start| self.name.starts_with(start))
    }
}

fn add_mapping(mapping: Option<Mapping>, memory: &mut Memory, mappings: &mut Mappings) {
    let Some(mapping) = mapping else { return };
    if mapping.name == RECORDER_MAPPING {
        memory.recorder_bytes += mapping.rss;
        return;
    }
    memory.rss_bytes += mapping.rss;
    memory.pss_bytes += mapping.pss;
    memory.uss_bytes += mapping.private;
    memory.swap_bytes += mapping.swap;
    memory.anonymous_bytes += mapping.anonymous;
    memory.huge_bytes += mapping.huge;
    let backed = mapping.rss.saturating_sub(mapping.anonymous);
    if mapping.is_shared_memory() {
        memory.shared_bytes += backed;
    } else {
        memory.file_bytes += backed;
    }
    if mapping.name == "[heap]" {
        memory.brk_bytes += mapping.anonymous;
    }
    if mapping.is_arena {
        memory.arena_bytes += mapping.anonymous;
    }
    let sum = mappings.entry(mapping.name).or_default();
    *sum = (sum.0 + mapping.rss + mapping.swap, sum.1 + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_summed_by_name_and_the_recorders_stand_apart() {
        let mapping = |range: &str, name: &str, rss: u64, anonymous: u64| {
            format!(
                "{range} rw-p 00000000 00:00 0                          {name}\nSize:             900 kB\n\
                 Rss:              {rss} kB\nPss:                {rss} kB\nPrivate_Dirty:   {anonymous} kB\n\
                 Anonymous:        {anonymous} kB\nSwap:     1 kB\nVmFlags: rd wr mr\n"
            )
        };
        let text = [
            mapping("55d0-55d1", "[heap]", 100, 100),
            mapping("7f00-7f01", "", 40, 40),
            mapping("7f01-7f02", "", 20, 20),
            mapping("7f5404000000-7f5404021000", "", 12, 12),
            mapping("7f5404021000-7f5408000000", "", 0, 0),
            mapping("7f02-7f03", "/usr/lib/with space.so", 30, 10),
            mapping("7f03-7f04", "/memfd:mallow (deleted)", 500, 0),
            mapping("7f04-7f05", "/dev/shm/ring", 8, 0),
        ]
        .concat();
        let (mut memory, mut mappings) = (Memory::default(), Mappings::new());
        add_smaps(&text, &mut memory, &mut mappings);
        let kib = |bytes: u64| bytes / 1024;
        assert_eq!((kib(memory.rss_bytes), kib(memory.recorder_bytes)), (210, 500));
        assert_eq!((kib(memory.anonymous_bytes), kib(memory.brk_bytes)), (182, 100));
        assert_eq!(kib(memory.arena_bytes), 12);
        assert_eq!((kib(memory.file_bytes), kib(memory.shared_bytes)), (20, 8));
        assert_eq!(kib(memory.swap_bytes), 7);
        assert_eq!(mappings["[anonymous]"], (76 * 1024, 4));
        assert_eq!(mappings["/usr/lib/with space.so"], (31 * 1024, 1));
        assert_eq!(mappings.len(), 4);
    }

    #[test]
    fn we_and_our_children_are_found() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let ours = process(std::process::id()).unwrap();
        let (found, threads) = of_server(ours.pid, None, &[], &FxHashSet::default());
        assert!(found.contains(&ours) && found.iter().any(|process| process.pid == child.id()));
        assert!(threads >= 2);
        child.kill().unwrap();
        // A zombie does not count.
        while process(child.id()).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        let (mut memory, mut mappings) = (Memory::default(), Mappings::new());
        add_memory(ours.pid, &mut memory, &mut mappings).unwrap();
        assert!(memory.rss_bytes > 1 << 20 && memory.uss_bytes <= memory.rss_bytes);
        assert!(descriptors(ours.pid) >= 3);
    }
}
