//! Processes that a command has started, as `/proc` tells of them.

use crate::preload::LIBRARY_NAME_START;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// In so long numbers of processes do not begin again: those of later ones are larger.
const GROWING: Duration = Duration::from_secs(2);
/// So many numbers are tried one by one in less time than the kernel lists all processes.
const TRIED_MAX: u32 = 300;

/// Returns whether `/proc` is of another namespace of processes, in which ours has another number: what it says of process 7, and the memory of process 7 there, is
/// another one's than our process 7.
pub fn are_of_others() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // Our number in the namespace of `/proc`, in the one below, and so on up to our own.
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().count() > 1)
}

/// Returns numbers among which are those of all processes that were started after process `first`, which was started at a time.
pub fn numbers_after(first: u32, began: Instant) -> Vec<u32> {
    let last = last_number().filter(|last| (first..=first + TRIED_MAX).contains(last));
    match last.filter(|_| began.elapsed() < GROWING) {
        Some(last) => (first + 1..=last).collect(),
        None => {
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        }
    }
}

/// Returns whether a number is that of a process that runs and was started with a variable in its environment, `NAME=value` and the zero byte behind it.
pub fn has_variable(number: u32, variable: &[u8]) -> bool {
    let environment = environment_of(number).unwrap_or_default();
    environment.windows(variable.len()).any(|at| at == variable) && !is_thread(number)
}

/// The environment that a process was started with; empty of one that has ended.
fn environment_of(number: u32) -> io::Result<Vec<u8>> {
    // While it becomes another program there is none for some microseconds, although it has the program's file already.
    const STEPS: u32 = 5;
    const STEP: Duration = Duration::from_micros(200);
    let mut environment = std::fs::read(format!("/proc/{number}/environ"))?;
    for _ in 0..STEPS {
        if !environment.is_empty() || std::fs::read_link(format!("/proc/{number}/exe")).is_err() {
            break;
        }
        std::thread::sleep(STEP);
        environment = std::fs::read(format!("/proc/{number}/environ"))?;
    }
    Ok(environment)
}

/// Returns whether a process is there and runs: one that nobody has waited for has a number still.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold whatever it likes; the state follows it.
    let state = stat.rsplitn(2, |byte| *byte == b')').next().and_then(|rest| rest.get(1));
    state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
}

/// What the kernel calls a process; empty when it has ended.
pub fn name_of(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// Returns the table of a process's mappings, which is empty when it has ended.
///
/// # Errors
/// The system's, such as that nobody but the process's user may read it.
pub fn mappings_of(pid: u32) -> io::Result<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/maps"))
}

/// Returns whether the library that is preloaded is among mappings.
pub fn has_library(mappings: &[u8]) -> bool {
    let name = [b"/", LIBRARY_NAME_START.as_bytes()].concat();
    mappings.windows(name.len()).any(|at| at == name)
}

/// The number of our time namespace; 0 where there are none.
pub fn time_namespace() -> u64 {
    static OURS: OnceLock<u64> = OnceLock::new();
    *OURS.get_or_init(|| time_namespace_of("self").unwrap_or(0))
}

fn time_namespace_of(process: &str) -> Option<u64> {
    Some(std::fs::metadata(format!("/proc/{process}/ns/time")).ok()?.ino())
}

/// Returns how far the monotonic clock of a process is ahead of ours: it is where it is in another time namespace. None of a process that has ended.
pub fn clock_ahead_ns(pid: u32) -> Option<i64> {
    let pid = pid.to_string();
    match time_namespace_of(&pid)? == time_namespace() {
        true => Some(0),
        false => Some(clock_offset_ns(&pid)? - clock_offset_ns("self")?),
    }
}

/// The offset of the monotonic clock where a process is, as `timens_offsets` has it in a line of a name, seconds and nanoseconds.
fn clock_offset_ns(of: &str) -> Option<i64> {
    let offsets = std::fs::read_to_string(format!("/proc/{of}/timens_offsets")).ok()?;
    let mut numbers = offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?.split_whitespace();
    let [seconds, nanoseconds] = [(); 2].map(|()| numbers.next()?.parse::<i64>().ok());
    seconds?.checked_mul(1_000_000_000)?.checked_add(nanoseconds?)
}

/// Returns whether a number is that of a thread beside a process's first, which has a folder too.
fn is_thread(number: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.is_some_and(|group| group.trim() != number.to_string())
}

/// The number of the process or thread that was started last, as far as the system tells.
fn last_number() -> Option<u32> {
    std::fs::read_to_string("/proc/loadavg").ok()?.trim_end().rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_found_by_its_variable_and_its_threads_and_others_are_not() {
        let began = Instant::now();
        let mut first = Command::new("true").spawn().unwrap();
        let mut child = Command::new("sleep").arg("100").env("STARTED_TEST", "17").spawn().unwrap();
        for began in [Some(began), began.checked_sub(2 * GROWING)].into_iter().flatten() {
            let found = numbers_after(first.id(), began);
            let found: Vec<u32> =
                found.into_iter().filter(|pid| has_variable(*pid, b"STARTED_TEST=17\0")).collect();
            assert_eq!(found, [child.id()]);
        }
        assert!(!has_variable(child.id(), b"STARTED_TEST=1\0"));
        assert_eq!(name_of(child.id()), "sleep");
        first.wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!has_variable(child.id(), b"STARTED_TEST=17\0"));
    }

    #[test]
    fn a_thread_has_a_number_and_is_no_process() {
        let own_number = || rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert!(std::thread::spawn(move || is_thread(own_number())).join().unwrap());
        assert!(!is_thread(std::process::id()));
    }

    #[test]
    fn the_library_is_known_by_its_name() {
        assert!(!has_library(b"7f2b40100000-7f2b40120000 r-xp 00000000 08:01 9 /usr/lib/libc.so.6\n"));
        assert!(has_library(
            b"7f2b40100000-7f2b40120000 r-xp 00000000 08:01 9 /tmp/mallow-0/libmallow_preload-1.so\n"
        ));
    }
}
