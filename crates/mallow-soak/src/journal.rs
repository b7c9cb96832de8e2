//! The journal as a file: written line by line during a soak, read, and continued.

use crate::error::SoakError;
use mallow_evidence::{JournalHead, JournalRead, Sample};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Creates one. An existing file is not overwritten.
    pub(crate) fn begin(path: &Path, head: &JournalHead) -> Result<Journal, SoakError> {
        let file = mallow_files::create_new(path);
        let file = file.map_err(|cause| SoakError::CannotWrite { path: path.to_owned(), cause })?;
        let mut journal = Journal { path: path.to_owned(), file };
        journal.line(head)?;
        Ok(journal)
    }

    /// Continues one, after its last whole line.
    pub(crate) fn go_on(path: &Path) -> Result<(Journal, JournalRead), SoakError> {
        let cannot = |cause| SoakError::CannotWrite { path: path.to_owned(), cause };
        let read = read_journal(path)?;
        let text = std::fs::read(path).map_err(cannot)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let file = mallow_files::append(path).map_err(cannot)?;
        file.set_len(whole as u64).map_err(cannot)?;
        Ok((Journal { path: path.to_owned(), file }, read))
    }

    /// Appends a sample. It is in the file when this returns.
    pub(crate) fn add(&mut self, sample: &Sample) -> Result<(), SoakError> {
        self.line(sample)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), SoakError> {
        let mut line =
            serde_json::to_vec(value).map_err(io::Error::from).map_err(|cause| self.cannot(cause))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|cause| self.cannot(cause))
    }

    fn cannot(&self, cause: io::Error) -> SoakError {
        SoakError::CannotWrite { path: self.path.clone(), cause }
    }
}

/// Reads a journal, even while it is still being written.
///
/// # Errors
/// If it cannot be read, is not a journal, or has an invalid whole line.
pub fn read_journal(path: &Path) -> Result<JournalRead, SoakError> {
    let wrong = |cause: String| SoakError::CannotRead { path: path.to_owned(), cause };
    let text = std::fs::read_to_string(path).map_err(|cause| wrong(cause.to_string()))?;
    JournalRead::from_text(&text).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_evidence::{Phase, SCHEMA};

    fn head() -> JournalHead {
        JournalHead {
            schema: SCHEMA.into(),
            command: vec!["server".into()],
            work: "x".into(),
            started_unix_us: 7,
            process: (1, 2),
        }
    }

    #[test]
    fn a_journal_is_read_while_it_is_written_and_gone_on_with_behind_a_cut_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("soak.jsonl");
        let mut journal = Journal::begin(&path, &head()).unwrap();
        let sample = |number| Sample { number, phase: Phase::Measured, seconds: 0.5, ..Sample::default() };
        journal.add(&sample(1)).unwrap();
        journal.file.write_all(b"{\"number\":2,\"ph").unwrap();
        let read = read_journal(&path).unwrap();
        assert_eq!(read, JournalRead { head: head(), samples: vec![sample(1)] });
        let (mut journal, read) = Journal::go_on(&path).unwrap();
        assert_eq!(read.samples.len(), 1);
        journal.add(&sample(2)).unwrap();
        assert_eq!(read_journal(&path).unwrap().samples, [sample(1), sample(2)]);
        assert!(matches!(Journal::begin(&path, &head()), Err(SoakError::CannotWrite { .. })));
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("soak.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        assert!(read_journal(&path).unwrap_err().to_string().contains("no journal of a soak"));
        let head = serde_json::to_string(&head()).unwrap();
        std::fs::write(&path, format!("{head}\n{{\"number\":true}}\n")).unwrap();
        assert!(read_journal(&path).unwrap_err().to_string().contains("line 2"), "no line");
    }
}
