//! Why the kernel does not count something, and what to do.

use rustix::io::Errno;

/// Why an event is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The processor, as this system sees it, has no counter for it.
    NoCounter,
    /// The setting `perf_event_paranoid`, or a container's rules.
    NotPermitted,
    /// The call itself is refused, as containers' filters do.
    NoCall,
    /// Anything else.
    Other(Errno),
}

impl Refusal {
    /// What an error number means.
    pub(crate) fn of(error: Errno) -> Refusal {
        match error {
            Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::NXIO => Refusal::NoCounter,
            Errno::ACCESS | Errno::PERM => Refusal::NotPermitted,
            Errno::NOSYS => Refusal::NoCall,
            other => Refusal::Other(other),
        }
    }

    /// One sentence about events that were refused for the same reason.
    pub fn sentence(self, names: &[&str]) -> String {
        let names = names.join(", ");
        let count = if names.contains(',') { "are" } else { "is" };
        match self {
            Refusal::NoCounter => format!(
                "{names} {count} not counted: this system has no such counter, as in most virtual machines; run it on the machine itself, or \
                 have the virtual machine pass the counters on."
            ),
            Refusal::NotPermitted => format!(
                "{names} {count} not counted: it is not permitted here (kernel.perf_event_paranoid is {}); \
                 `sysctl kernel.perf_event_paranoid=2` permits it, in a container the capability PERFMON does.",
                paranoid()
            ),
            Refusal::NoCall => format!(
                "{names} {count} not counted: perf_event_open is refused here, as containers' filters of system calls do; start the container \
                 with a filter that lets it pass (Docker: --security-opt seccomp=unconfined)."
            ),
            Refusal::Other(error) => format!("{names} {count} not counted: perf_event_open said: {error}."),
        }
    }
}

fn paranoid() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_to_do() {
        let two = ["cycles", "instructions"];
        for (error, needle) in [
            (Errno::NOENT, "no such counter"),
            (Errno::ACCESS, "perf_event_paranoid"),
            (Errno::NOSYS, "seccomp"),
            (Errno::INVAL, "Invalid argument"),
        ] {
            let sentence = Refusal::of(error).sentence(&two);
            assert!(sentence.starts_with("cycles, instructions are not counted"), "{sentence}");
            assert!(sentence.contains(needle), "{sentence}");
        }
        assert!(Refusal::NoCounter.sentence(&["cycles"]).starts_with("cycles is not counted"));
    }
}
