//! A massif file's lines, which have names with values.

use crate::ImportError;
use crate::lines::Lines;

/// Lines that are neither empty nor comments.
pub(super) struct Text<'a> {
    lines: Lines<'a>,
    bytes: u64,
    has_ended: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(lines: Lines<'a>) -> Text<'a> {
        Text { lines, bytes: 0, has_ended: false }
    }

    /// Returns the next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, ImportError> {
        while let Some(line) = self.lines.next_text()? {
            self.bytes = self.bytes.saturating_add(line.len() as u64 + 1);
            if !line.starts_with('#') && !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        self.has_ended = true;
        Ok(None)
    }

    /// Returns how many bytes have been read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns an error about the line that was returned last.
    pub(super) fn expected(&self, expected: impl Into<String>) -> ImportError {
        let mut expected = expected.into();
        if self.has_ended {
            expected.push_str(" behind it");
        }
        self.lines.expected(expected)
    }

    /// Returns the value of the next line, which must have this name.
    pub(super) fn value(&mut self, name: &str) -> Result<String, ImportError> {
        let line = self.next()?;
        let value = line.as_deref().and_then(|line| line.strip_prefix(name)?.strip_prefix('='));
        value
            .map(|value| value.trim().to_owned())
            .ok_or_else(|| self.expected(format!("{name}= and a value")))
    }

    /// Returns the whole number of the next line, which must have this name.
    pub(super) fn number(&mut self, name: &str) -> Result<u64, ImportError> {
        let value = self.value(name)?;
        value.parse().map_err(|_| self.expected(format!("{name}= and a whole number below 2^64")))
    }
}
