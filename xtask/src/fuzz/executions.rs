//! How many inputs each target has run over all recorded runs. One run says little: rare faults need many, and those add up
//! over runs only if somebody counts.
//!
//! A line is a target's part of one run: `date,commit,target,seconds,inputs,verdict`.

use crate::run;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "fuzz.csv";
const COLUMNS: &str = "date,commit,target,seconds,inputs,verdict";

/// The part of one target in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) target: String,
    pub(super) seconds: u32,
    /// None when libFuzzer did not say: then it died.
    pub(super) inputs: Option<u64>,
    pub(super) is_ok: bool,
}

/// The file, to which the parts of one run are added.
pub(super) struct Record {
    path: PathBuf,
    /// What each line of this run begins with: the date, and the commit.
    beginning: String,
}

impl Record {
    /// The file in `folder`, with its first line; it is made when it is not there.
    pub(super) fn open(root: &Path, folder: &Path) -> Result<Record, String> {
        let date = run::captured(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
        let git = |words: &[&str]| run::captured(Command::new("git").args(words).current_dir(root));
        let mut commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
        if !git(&["status", "--porcelain", "--", ":/", ":!/bench/record"])?.is_empty() {
            commit.push_str("+changes");
        }
        let record = Record { path: folder.join(FILE), beginning: format!("{},{commit}", date.trim()) };
        if !record.path.exists() {
            record.append(COLUMNS)?;
        }
        Ok(record)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the part of a target.
    pub(super) fn add(&self, part: &Part) -> Result<(), String> {
        let inputs = part.inputs.map_or_else(|| "unknown".to_owned(), |inputs| inputs.to_string());
        let verdict = if part.is_ok { "passed" } else { "FAILED" };
        let Part { target, seconds, .. } = part;
        self.append(&format!("{},{target},{seconds},{inputs},{verdict}", self.beginning))
    }

    /// Returns what all runs in the file come to, in a sentence.
    pub(super) fn sum(&self) -> Result<String, String> {
        let csv = std::fs::read_to_string(&self.path)
            .map_err(|error| format!("{} cannot be read: {error}.", self.path.display()))?;
        Ok(sum(&csv))
    }

    fn append(&self, line: &str) -> Result<(), String> {
        let file = std::fs::File::options().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .map_err(|error| format!("{} cannot be written: {error}.", self.path.display()))
    }
}

/// What the lines come to, in a sentence.
fn sum(csv: &str) -> String {
    let mut by_target: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut failed, mut at_least) = (0, "");
    for line in csv.lines().skip(1) {
        let mut columns = line.split(',');
        let (Some(target), Some(inputs)) = (columns.nth(2), columns.nth(1)) else { continue };
        failed += u32::from(columns.next() == Some("FAILED"));
        let inputs: Option<u64> = inputs.parse().ok();
        if inputs.is_none() {
            at_least = "at least ";
        }
        *by_target.entry(target).or_default() += inputs.unwrap_or(0);
    }
    let total: u64 = by_target.values().sum();
    let least = by_target.iter().min_by_key(|(_, inputs)| **inputs);
    let least =
        least.map_or_else(String::new, |(target, inputs)| format!(", the fewest {inputs} by {target}"));
    let failed = if failed == 0 { String::new() } else { format!("; parts of runs that FAILED: {failed}") };
    format!("{at_least}{total} inputs in all recorded runs over {} targets{least}{failed}", by_target.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_and_what_died_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let part =
            |target: &str, inputs, is_ok| Part { target: target.to_owned(), seconds: 60, inputs, is_ok };
        for parts in [
            [part("dhat", Some(1000), true), part("elf", Some(10), true)],
            [part("dhat", Some(234), true), part("elf", None, false)],
        ] {
            let record = Record::open(root, folder.path()).unwrap();
            parts.iter().for_each(|part| record.add(part).unwrap());
        }
        let record = Record::open(root, folder.path()).unwrap();
        assert_eq!(
            record.sum().unwrap(),
            "at least 1244 inputs in all recorded runs over 2 targets, the fewest 10 by elf; parts of runs that FAILED: 1"
        );
        let text = std::fs::read_to_string(record.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!([lines.len(), lines[0].len()], [5, COLUMNS.len()]);
        assert!(lines[4].ends_with(",elf,60,unknown,FAILED"), "{text}");
    }
}
