//! The header of a DHAT file: everything except the program points.

use crate::{Format, ImportError};
use mallow_profile::TimeUnit;
use serde::Deserialize;

/// The version, which is checked first: in another version the rest may have another meaning.
#[derive(Deserialize)]
#[serde(expecting = "a JSON object")]
pub(super) struct Version {
    #[serde(rename = "dhatFileVersion")]
    version: u64,
}

/// Everything except the program points. Version 1 has other names for times, and neither mode nor units.
#[derive(Deserialize)]
#[serde(expecting = "a JSON object")]
pub(super) struct Header {
    #[serde(rename = "dhatFileVersion")]
    version: u64,
    mode: Option<String>,
    verb: Option<String>,
    #[serde(rename = "bklt")]
    lifetimes: Option<bool>,
    #[serde(rename = "bkacc")]
    accesses: Option<bool>,
    #[serde(rename = "tu")]
    time_unit: Option<String>,
    #[serde(rename = "cmd")]
    command: Option<String>,
    pub(super) pid: Option<u64>,
    #[serde(rename = "te", alias = "ei")]
    pub(super) ended: Option<u64>,
    #[serde(rename = "tg", alias = "mi")]
    pub(super) peak: Option<u64>,
    /// The frames; number 0 is the root of the viewer's tree.
    #[serde(rename = "ftbl")]
    pub(super) frames: Vec<String>,
}

impl Version {
    /// Returns an error for an unknown version.
    pub(super) fn check(&self) -> Result<(), ImportError> {
        if matches!(self.version, 1 | 2) {
            return Ok(());
        }
        Err(unsupported(format!(
            "it has version {} of the format, and versions 1 and 2 are known",
            self.version
        )))
    }
}

impl Header {
    /// Returns an error if the file is not a heap profile.
    pub(super) fn check(&self) -> Result<(), ImportError> {
        let mode = self.mode.as_deref().unwrap_or("heap");
        let what = match mode {
            "copy" => "copies of memory",
            "ad-hoc" | "rust-ad-hoc" => "events of the program's own choice",
            _ => match self.verb.as_deref() {
                None | Some("Allocated") => return Ok(()),
                Some(_) => "something else",
            },
        };
        Err(unsupported(format!(
            "its mode is {mode}, which counts {what} and no allocations; only heap files are read"
        )))
    }

    /// Returns whether it has lifetimes, the peak and the end.
    pub(super) fn has_lifetimes(&self) -> bool {
        self.lifetimes.unwrap_or(self.version == 1)
    }

    /// Returns whether reads and writes of blocks were counted.
    pub(super) fn has_accesses(&self) -> bool {
        self.accesses.unwrap_or(self.version == 1)
    }

    /// Returns whether it was written by Valgrind, whose maxima of single sites are sometimes too low.
    pub(super) fn is_valgrinds(&self) -> bool {
        self.mode.as_deref().is_none_or(|mode| mode == "heap")
    }

    /// Returns the command line.
    pub(super) fn command(&self) -> String {
        self.command.clone().unwrap_or_default()
    }

    /// Returns the unit of times, and whether it is known.
    pub(super) fn time_unit(&self, warnings: &mut Vec<String>) -> (TimeUnit, bool) {
        match self.time_unit.as_deref() {
            Some("instrs") => (TimeUnit::Instructions, true),
            None if self.version == 1 => (TimeUnit::Instructions, true),
            // The micro sign, and the Greek letter that looks like it.
            Some("\u{b5}s" | "\u{3bc}s" | "us") => (TimeUnit::Microseconds, true),
            Some("bytes") => (TimeUnit::Bytes, true),
            unit => {
                let unit = unit.unwrap_or("no unit");
                warnings.push(format!(
                    "times and lifetimes are left out: they are counted in {unit}, which is not known"
                ));
                (TimeUnit::Microseconds, false)
            }
        }
    }
}

fn unsupported(reason: String) -> ImportError {
    ImportError::Unsupported { format: Format::Dhat, reason }
}
