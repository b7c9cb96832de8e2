//! Whether the kernel killed processes because memory ran out, while they were collected from.
//!
//! Whom it kills ends by SIGKILL, as whom anybody else kills. But it counts them, since Linux 4.13, in `oom_kill` of `/proc/vmstat`: those of the
//! whole machine, whether all its memory ran out or that of a container.

use mallow_profile::Exit;
use std::path::Path;

const COUNTS: &str = "/proc/vmstat";

/// How often it had done so at the beginning; none where that cannot be known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KilledBefore(Option<u64>);

impl KilledBefore {
    /// Counts from now on.
    pub(crate) fn now() -> KilledBefore {
        KilledBefore(killed(Path::new(COUNTS)))
    }

    /// Returns what to say of a process that ended so.
    pub(crate) fn sentence(self, pid: u32, exit: Option<Exit>) -> Option<String> {
        self.sentence_with(pid, exit, || killed(Path::new(COUNTS)))
    }

    fn sentence_with(
        self,
        pid: u32,
        exit: Option<Exit>,
        now: impl FnOnce() -> Option<u64>,
    ) -> Option<String> {
        let before = self.0.filter(|_| exit == Some(Exit::Signal(9)))?;
        let processes = now()?.checked_sub(before).filter(|killed| *killed > 0)?;
        let whom = if processes == 1 { "a process".to_owned() } else { format!("{processes} processes") };
        Some(format!(
            "process {pid}: it was killed by SIGKILL, and the kernel killed {whom} for want of memory meanwhile (oom_kill in {COUNTS}): is a \
             container's limit of memory, or a control group's, too low for it?"
        ))
    }
}

fn killed(counts: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(counts).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_killed_while_memory_ran_out_has_a_sentence() {
        let said = |before, exit, now| KilledBefore(before).sentence_with(7, exit, || now);
        let by_kill = Some(Exit::Signal(9));
        assert_eq!(said(Some(3), by_kill, Some(3)), None);
        assert_eq!(said(Some(3), Some(Exit::Signal(15)), Some(4)), None);
        assert_eq!(said(Some(3), Some(Exit::Status(137)), Some(4)), None);
        assert_eq!(said(Some(3), None, Some(4)), None);
        assert_eq!((said(None, by_kill, Some(4)), said(Some(3), by_kill, None)), (None, None));
        let [one, two] = [4, 5].map(|now| said(Some(3), by_kill, Some(now)).unwrap());
        assert!(one.contains("process 7: ") && one.contains(" killed a process for want of memory"), "{one}");
        assert!(two.contains(" killed 2 processes for want of memory"), "{two}");
    }

    #[test]
    fn the_count_is_read_from_among_the_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, expected) in [
            ("numa_hit 4\noom_kill 12\noom_kill_other 5\n", Some(12)),
            ("oom_kill_other 5\n", None),
            ("oom_kill x\n", None),
        ] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(killed(file.path()), expected, "{text}");
        }
        assert_eq!(killed(Path::new("/nonexistent/vmstat")), None);
        assert!(killed(Path::new(COUNTS)).is_some(), "this kernel counts them");
    }
}
