//! What several documents have in common: totals, ends of processes, frames.

use mallow_base::{Frame, mirror};
use mallow_profile::{Exit, Measure, Profile, Totals};
use serde::Serialize;

mirror! {
    /// The metrics of a process or of a run; null for what is not known.
    #[derive(Clone, Copy)]
    pub struct TotalsJson of Totals {
        allocations: Option<u64>,
        bytes: Option<u64>,
        frees: Option<u64>,
        reallocations: Option<u64>,
        temporary: Option<u64>,
        failed: Option<u64>,
        peak_bytes: Option<u64>,
        peak_blocks: Option<u64>,
        leaked_bytes: Option<u64>,
        leaked_blocks: Option<u64>,
    }
}

/// `3`, `{"signal":9}`, `{"exec":true}` or `{"goes_on":true}`.
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
    /// Its recording ended before it did: it recorded itself, or became a program that is not recorded.
    GoesOn {
        /// Always true.
        goes_on: bool,
    },
}

/// A frame of a stack.
#[derive(Serialize)]
pub(crate) struct FrameJson<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a str>,
    inlined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
}

impl<'a> From<&'a Frame> for FrameJson<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            function: &frame.function,
            file: frame.file.as_deref(),
            line: frame.line,
            module: frame.module.as_deref(),
            inlined: frame.inlined,
            language: frame.language.word(),
        }
    }
}

impl From<Exit> for ExitJson {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Status(status) => ExitJson::Status(status),
            Exit::Signal(signal) => ExitJson::Signal { signal },
            Exit::Exec => ExitJson::Exec { exec: true },
            Exit::GoesOn => ExitJson::GoesOn { goes_on: true },
        }
    }
}

impl TotalsJson {
    /// The metrics that the profile's source could tell.
    pub(crate) fn told(totals: &Totals, profile: &Profile) -> Self {
        let known = &profile.known;
        let told = |measure: Measure| measure.is_known(known).then(|| measure.of_totals(totals));
        Self {
            allocations: told(Measure::Allocations),
            bytes: told(Measure::Bytes),
            frees: (known.calls || totals.frees > 0).then_some(totals.frees),
            reallocations: known.calls.then_some(totals.reallocations),
            temporary: told(Measure::Temporary),
            failed: known.calls.then_some(totals.failed),
            peak_bytes: told(Measure::Peak),
            peak_blocks: known.peak_blocks.then_some(totals.peak_blocks),
            leaked_bytes: told(Measure::Leaked),
            leaked_blocks: known.leaked_blocks.then_some(totals.leaked_blocks),
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
        assert_eq!(exit(Some(Exit::GoesOn)), json!({"goes_on": true}));
        assert_eq!(exit(None), Value::Null);
    }
}
