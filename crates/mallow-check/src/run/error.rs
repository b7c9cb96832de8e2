//! Why a test could not be measured.

use mallow_bench::RunEnd;
use mallow_collect::CollectError;
use mallow_profile::Exit;
use mallow_runner::RunnerError;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A test that has no metrics. Each is a sentence with its cause and, where there is one, its cure.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program cannot be started or watched.
    #[error("{0}")]
    Collect(#[from] CollectError),
    /// Its output cannot be kept.
    #[error("cannot write the program's output to '{path}': {cause}")]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// It took too long.
    #[error("the program {} after {} (`timeout` in mallow.toml or --timeout sets how long it may take){output}", overdue(*exit), seconds(*after))]
    TimedOut {
        /// Its deadline.
        after: Duration,
        /// How it ended.
        exit: Option<Exit>,
        /// The end of what it printed.
        output: Reported,
    },
    /// It ended with an error.
    #[error("the program {}{}{output}", ended(*exit), behind_semicolons(killed))]
    Failed {
        /// Its exit status, if the system told.
        exit: Option<Exit>,
        /// The end of what it printed.
        output: Reported,
        /// Processes of it that were killed while memory ran out.
        killed: Vec<String>,
    },
    /// It cannot be started without the recorder.
    #[error("its time and memory cannot be measured: {0}")]
    Untimed(#[from] RunnerError),
    /// Without the recorder it did not end well.
    #[error("without mallow, where its time and memory are measured, the program {}", alone(*end, *after))]
    FailedAlone {
        /// How it ended.
        end: RunEnd,
        /// After how many nanoseconds, and how long it may take.
        after: (u64, Duration),
    },
    /// Somebody pressed Ctrl-C.
    #[error("the check was interrupted")]
    Interrupted,
    /// The recorder did not get into the program.
    #[error("nothing of '{program}' was seen: did it reset LD_PRELOAD or its environment?")]
    NotWatched {
        /// The program.
        program: String,
    },
    /// Events are missing, or are not the recorder's.
    #[error(
        "{faults}: nothing can be judged by them; run the check again, and if it stays so, let the test do less"
    )]
    Incomplete {
        /// What is missing, for each process.
        faults: String,
    },
    /// It marked nothing.
    #[error(
        "the program began no region: it was to call mallow_measure or mallow_region_begin; to count the whole process, say mode = \"process\" in mallow.toml"
    )]
    NoRegion,
    /// It could not mark anything.
    #[error(
        "the program began no region, as its marks are seen by a loader, and it is static: link it dynamically, or count the whole process with mode = \"process\" in mallow.toml"
    )]
    StaticMarks,
    /// There is no `main` to count from.
    #[error(
        "the call of main was not seen, so nothing can be counted from there; mode = \"process\" counts from the start"
    )]
    NoMain,
    /// A region did not end.
    #[error("the region `{region}` began and had not ended when the program did")]
    Unfinished {
        /// Its name.
        region: String,
    },
    /// The mode `slope` needs to know how many operations to ask for.
    #[error(
        "the mode slope needs `ops` in mallow.toml: the program is run with that many operations and with twice as many"
    )]
    NoOperations,
    /// A program that should do more does not.
    #[error(
        "the program allocates as often with {operations} operations as with {double}: does it read MALLOW_OPS, or have {{ops}} among its arguments?"
    )]
    NoSlope {
        /// Operations in the shorter run.
        operations: u64,
        /// Operations in the longer one.
        double: u64,
    },
}

/// The end of a program's output, if it printed anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported(pub String);

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => write!(f, "; it printed nothing"),
            text => write!(f, "; it printed at last:\n{text}"),
        }
    }
}

/// The last lines of a file.
pub(super) fn tail(path: &Path) -> Reported {
    const BYTES: u64 = 4096;
    const LINES: usize = 20;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    Reported(lines[lines.len().saturating_sub(LINES)..].join("\n"))
}

/// What goes on in the same sentence.
fn behind_semicolons(parts: &[String]) -> String {
    parts.iter().map(|part| format!("; {part}")).collect()
}

/// Who was killed when the time was up: the program, or what it had left in the background.
fn overdue(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Status(_)) => format!("{}, and what it left in the background was killed", ended(exit)),
        _ => "was killed".to_owned(),
    }
}

fn seconds(duration: Duration) -> String {
    match duration.as_secs_f64() {
        1.0 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

fn alone(end: RunEnd, (wall_ns, timeout): (u64, Duration)) -> String {
    match end {
        RunEnd::Signal(9) if Duration::from_nanos(wall_ns) >= timeout => {
            format!("was killed after {} (`timeout` in mallow.toml or --timeout)", seconds(timeout))
        }
        RunEnd::Status(status) => ended(Some(Exit::Status(status))),
        RunEnd::Signal(signal) => ended(Some(Exit::Signal(signal))),
    }
}

fn ended(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Status(status)) => format!("ended with status {status}"),
        Some(Exit::Signal(signal)) => format!("was killed by signal {signal}"),
        Some(Exit::Exec) => "became another program".to_owned(),
        Some(Exit::GoesOn) => "went on".to_owned(),
        None => "ended, and the system does not tell how".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_failed_is_quoted_and_a_silent_one_too() {
        let failed = |text: &str| RunError::Failed {
            exit: Some(Exit::Status(3)),
            output: Reported(text.to_owned()),
            killed: Vec::new(),
        };
        assert_eq!(failed("").to_string(), "the program ended with status 3; it printed nothing");
        assert_eq!(failed("a\nb").to_string(), "the program ended with status 3; it printed at last:\na\nb");
        let killed = vec!["process 7: it was killed".to_owned()];
        let failed =
            RunError::Failed { exit: Some(Exit::Signal(9)), output: Reported("a".to_owned()), killed };
        let expected = "the program was killed by signal 9; process 7: it was killed; it printed at last:\na";
        assert_eq!(failed.to_string(), expected);
    }

    #[test]
    fn the_last_lines_are_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
        std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
        assert_eq!(tail(file.path()).0, lines[980..].join("\n"));
        assert_eq!(tail(Path::new("/nonexistent/file")), Reported::default());
    }
}
