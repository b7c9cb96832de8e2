//! What several documents have in common: totals, ends of processes, frames.

use mallow_base::Frame;
use mallow_profile::{Exit, Totals};
use serde::Serialize;

/// The figures of a process or of a run; null for what is not known.
#[derive(Clone, Copy, Serialize)]
pub struct TotalsJson {
    pub(crate) allocations: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) frees: Option<u64>,
    pub(crate) reallocations: Option<u64>,
    pub(crate) temporary: Option<u64>,
    pub(crate) failed: Option<u64>,
    pub(crate) peak_bytes: Option<u64>,
    pub(crate) peak_blocks: Option<u64>,
    pub(crate) leaked_bytes: Option<u64>,
    pub(crate) leaked_blocks: Option<u64>,
}

/// `3`, `{"signal":9}`, or `{"exec":true}`.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub enum ExitJson {
    /// Its status.
    Status(i32),
    /// Killed by a signal.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// It became another program.
    Exec {
        /// Always true.
        exec: bool,
    },
}

/// A frame of a stack.
#[derive(Serialize)]
pub struct FrameJson<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a str>,
    inlined: bool,
}

impl<'a> From<&'a Frame> for FrameJson<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            function: &frame.function,
            file: frame.file.as_deref(),
            line: frame.line,
            module: frame.module.as_deref(),
            inlined: frame.inlined,
        }
    }
}

impl From<Exit> for ExitJson {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Status(status) => ExitJson::Status(status),
            Exit::Signal(signal) => ExitJson::Signal { signal },
            Exit::Exec => ExitJson::Exec { exec: true },
        }
    }
}

impl From<&Totals> for TotalsJson {
    fn from(totals: &Totals) -> Self {
        Self {
            allocations: Some(totals.allocations),
            bytes: Some(totals.bytes),
            frees: Some(totals.frees),
            reallocations: Some(totals.reallocations),
            temporary: Some(totals.temporary),
            failed: Some(totals.failed),
            peak_bytes: Some(totals.peak_bytes),
            peak_blocks: Some(totals.peak_blocks),
            leaked_bytes: Some(totals.leaked_bytes),
            leaked_blocks: Some(totals.leaked_blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn ends_of_processes() {
        let exit = |exit: Option<Exit>| serde_json::to_value(exit.map(ExitJson::from)).unwrap();
        assert_eq!(exit(Some(Exit::Status(3))), json!(3));
        assert_eq!(exit(Some(Exit::Signal(9))), json!({"signal": 9}));
        assert_eq!(exit(Some(Exit::Exec)), json!({"exec": true}));
        assert_eq!(exit(None), Value::Null);
    }
}
