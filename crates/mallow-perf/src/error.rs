//! Why nothing could be sampled: a sentence with its cause and the cure.

use mallow_counters::Event;
use mallow_launch::LaunchError;
use std::io;

/// Nothing could be sampled.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// The command could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The kernel refuses perf events.
    #[error("{0}")]
    Refused(String),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// Something else that the system refused.
    #[error("cannot {what}: {cause}")]
    System {
        /// What failed.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}

/// Says what failed of an error of the system.
pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> PerfError {
    move |cause| PerfError::System { what, cause }
}

/// Returns the sentence for a refused event; `asked` is set if the user requested it.
pub(crate) fn refused(cause: &io::Error, pid: Option<u32>, asked: Option<&Event>) -> PerfError {
    const ESRCH: i32 = 3;
    const NO_COUNTER: [i32; 4] = [2, 6, 19, 95];
    if let (Some(ESRCH), Some(pid)) = (cause.raw_os_error(), pid) {
        return PerfError::NoProcess(pid);
    }
    if let (Some(event), Some(true)) = (asked, cause.raw_os_error().map(|errno| NO_COUNTER.contains(&errno)))
    {
        return PerfError::Refused(format!(
            "{} cannot be sampled: this system has no such counter, as in most virtual machines; run it on the machine \
             itself, or sample cpu-clock",
            event.name()
        ));
    }
    PerfError::Refused(sentence(cause.raw_os_error(), paranoid(), is_filtered(), pid))
}

/// The sentence for what can only be seen in the kernel, by whom the kernel hides itself from.
pub(crate) fn hidden(what: &str) -> PerfError {
    let level = paranoid().map_or_else(|| "unknown".to_owned(), |level| level.to_string());
    PerfError::Refused(format!(
        "{what} can only be seen in the kernel, which may not be looked into here: kernel.perf_event_paranoid is {level}; allow \
         it with sudo sysctl kernel.perf_event_paranoid=1, or run mallow with sudo"
    ))
}

fn paranoid() -> Option<i32> {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    level.trim().parse().ok()
}

/// Returns whether a seccomp filter decides which system calls we may make, as in containers.
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

fn sentence(errno: Option<i32>, paranoid: Option<i32>, is_filtered: bool, pid: Option<u32>) -> String {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    const ENOSYS: i32 = 38;
    let cure = match (errno, paranoid) {
        (Some(ENOSYS), _) | (_, None) => {
            "this kernel has no perf events (CONFIG_PERF_EVENTS); mallow record works without them".to_owned()
        }
        (Some(EPERM | EACCES), _) if is_filtered => {
            "a seccomp filter forbids it, as in a container; allow perf_event_open there, with docker run --cap-add \
             PERFMON --security-opt seccomp=unconfined"
                .to_owned()
        }
        (Some(EACCES | EPERM), Some(3..)) => format!(
            "kernel.perf_event_paranoid is {}; allow it with sudo sysctl kernel.perf_event_paranoid=2, or run mallow \
             with sudo",
            paranoid.unwrap_or_default()
        ),
        (Some(EACCES | EPERM), _) if pid.is_some() => {
            "the process belongs to another user; run mallow as its user, or with sudo".to_owned()
        }
        (Some(EACCES | EPERM), _) => {
            "the system does not allow it; run mallow with sudo, or give it the capability CAP_PERFMON".to_owned()
        }
        (Some(errno), _) => io::Error::from_raw_os_error(errno).to_string(),
        (None, _) => "the system does not say why".to_owned(),
    };
    format!("the kernel refuses to sample: {cure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_cure() {
        let cases = [
            (Some(13), Some(3), false, None, "sudo sysctl kernel.perf_event_paranoid=2"),
            (Some(1), Some(2), true, None, "seccomp"),
            (Some(13), Some(2), false, Some(1), "belongs to another user"),
            (Some(38), Some(2), false, None, "has no perf events"),
            (Some(2), None, false, None, "has no perf events"),
            (Some(13), Some(2), false, None, "CAP_PERFMON"),
            (Some(24), Some(2), false, None, "Too many open files"),
        ];
        for (errno, paranoid, filtered, pid, expected) in cases {
            let text = sentence(errno, paranoid, filtered, pid);
            assert!(text.contains(expected), "{text}");
        }
    }
}
