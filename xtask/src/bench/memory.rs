//! Memory of a process and everything below it, sampled from outside while it runs.

use procfs::process::{Process, all_processes};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The distance of samples, and a shorter one at first: some programs live for few milliseconds only.
const INTERVAL: Duration = Duration::from_millis(10);
const INTERVAL_FIRST: Duration = Duration::from_millis(2);
const FIRST: Duration = Duration::from_millis(100);

/// The greatest metrics that any sample saw, each for itself.
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
    let root = root.cast_signed();
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

fn sample(pids: &[i32], executable: &Path, peaks: &mut Peaks) {
    let (mut together, mut program, mut threads) = (0, 0, 0);
    for &pid in pids {
        // One that ended meanwhile holds nothing.
        let Some((process, proportional, resident)) = sizes(pid) else { continue };
        together += proportional;
        if process.exe().is_ok_and(|path| path == executable) {
            program += resident;
            threads += process.stat().map_or(0, |stat| stat.num_threads.cast_unsigned());
        }
    }
    peaks.together_bytes = peaks.together_bytes.max(together);
    peaks.program_bytes = peaks.program_bytes.max(program);
    peaks.threads = peaks.threads.max(threads);
}

/// A process with its proportional and its full resident bytes.
fn sizes(pid: i32) -> Option<(Process, u64, u64)> {
    let process = Process::new(pid).ok()?;
    let rollup = process.smaps_rollup().ok()?;
    let sizes = &rollup.memory_map_rollup.iter().next()?.extension.map;
    let (proportional, resident) = (*sizes.get("Pss")?, *sizes.get("Rss")?);
    Some((process, proportional, resident))
}

/// (process, parent) of every process.
fn parents() -> Vec<(i32, i32)> {
    let stats = all_processes().into_iter().flatten().filter_map(|process| process.ok()?.stat().ok());
    stats.map(|stat| (stat.pid, stat.ppid)).collect()
}

/// `root` and everything below it.
fn tree(root: i32, parents: &[(i32, i32)]) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
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
    fn a_process_that_holds_memory_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let executable = super::super::programs::executable("sleep").unwrap().canonicalize().unwrap();
        let mut peaks = Peaks::default();
        // Between fork and exec it is still this program.
        for _ in 0..1000 {
            sample(&tree(child.id().cast_signed(), &parents()), &executable, &mut peaks);
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
