//! Memory of a process and everything below it, sampled from outside while it runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The distance of samples, and a shorter one at first: some programs live for few milliseconds only.
const INTERVAL: Duration = Duration::from_millis(10);
const INTERVAL_FIRST: Duration = Duration::from_millis(2);
const FIRST: Duration = Duration::from_millis(100);

/// The greatest figures that any sample saw, each for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Peaks {
    /// Proportional set size of all processes together: a page that n of them share counts once.
    pub(super) together_bytes: u64,
    /// Resident size of the measured program alone, shared pages in full.
    pub(super) program_bytes: u64,
    /// Threads of the measured program.
    pub(super) threads: u64,
}

/// Sampling that goes on in a thread until it is stopped.
pub(super) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Peaks>,
}

/// Samples the process `root` and everything below it; those that run `executable` are the measured program.
pub(super) fn watch(root: u32, executable: &Path) -> Watch {
    // What `/proc` names is the file behind all links.
    let executable = executable.canonicalize().unwrap_or_else(|_| executable.to_owned());
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_over);
    let thread = thread::spawn(move || {
        let started = Instant::now();
        let mut peaks = Peaks::default();
        let (mut pids, mut listed) = (tree(root, &parents()), started);
        while !seen.load(Ordering::Relaxed) {
            // Listing the whole machine's processes costs more than the sample.
            if listed.elapsed() >= INTERVAL {
                (pids, listed) = (tree(root, &parents()), Instant::now());
            }
            sample(&pids, &executable, &mut peaks);
            thread::sleep(if started.elapsed() < FIRST { INTERVAL_FIRST } else { INTERVAL });
        }
        peaks
    });
    Watch { is_over, thread }
}

impl Watch {
    /// Ends the sampling.
    pub(super) fn stop(self) -> Peaks {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn sample(pids: &[u32], executable: &Path, peaks: &mut Peaks) {
    let (mut together, mut program, mut threads) = (0, 0, 0);
    for &pid in pids {
        // One that ended meanwhile holds nothing.
        let Some((proportional, resident)) = sizes(pid) else { continue };
        together += proportional;
        if std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == executable) {
            program += resident;
            threads += stat_fields(pid, [20]).map_or(0, |[threads]| threads);
        }
    }
    peaks.together_bytes = peaks.together_bytes.max(together);
    peaks.program_bytes = peaks.program_bytes.max(program);
    peaks.threads = peaks.threads.max(threads);
}

/// Proportional and full resident bytes of a process.
fn sizes(pid: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some((kilobytes(&text, "Pss:")? * 1024, kilobytes(&text, "Rss:")? * 1024))
}

/// The figure of a line such as `Rss:    1234 kB`.
pub(super) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// (process, parent) of every process.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, u32::try_from(stat_fields(pid, [4])?[0]).ok()?))).collect()
}

/// `root` and everything below it.
fn tree(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// Numbers of `/proc/PID/stat`, counted from 1 as proc(5) does. The second field, the name, may hold anything, so
/// the others are looked for behind its bracket; fields before 4 cannot be had.
pub(super) fn stat_fields<const N: usize>(pid: u32, fields: [usize; N]) -> Option<[u64; N]> {
    fields_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, fields)
}

fn fields_of<const N: usize>(text: &str, fields: [usize; N]) -> Option<[u64; N]> {
    let words: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let mut numbers = [0; N];
    for (number, field) in numbers.iter_mut().zip(fields) {
        *number = words.get(field.checked_sub(3)?)?.parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_holds_grandchildren_and_nobody_else() {
        let parents = [(1, 0), (5, 1), (6, 5), (9, 6), (7, 1), (8, 5)];
        assert_eq!(tree(5, &parents), [5, 6, 8, 9]);
    }

    #[test]
    fn fields_are_found_behind_any_name() {
        let text = "77 (a) S 1 (b) R 42 1 1 0 -1 4194560 1 2 3 4 250 7 0 0 20 0 6 0 1 2 3\n";
        assert_eq!(fields_of(text, [4, 14, 15, 20]), Some([42, 250, 7, 6]));
        assert_eq!(fields_of(text, [60]), None);
        assert_eq!(fields_of("garbage", [4]), None);
    }

    #[test]
    fn kilobytes_are_read() {
        assert_eq!(kilobytes("Rss:  12 kB\nPss:   7 kB\n", "Pss:"), Some(7));
        assert_eq!(kilobytes("Rss:  12 kB\n", "Pss:"), None);
    }

    #[test]
    fn a_process_that_holds_memory_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let executable = super::super::programs::executable("sleep").unwrap().canonicalize().unwrap();
        let mut peaks = Peaks::default();
        // Between fork and exec it is still this program.
        for _ in 0..1000 {
            sample(&tree(child.id(), &parents()), &executable, &mut peaks);
            if peaks.program_bytes > 0 {
                break;
            }
            thread::sleep(INTERVAL_FIRST);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(peaks.together_bytes > 0 && peaks.program_bytes > 0, "{peaks:?}");
        assert_eq!(peaks.threads, 1);
    }
}
