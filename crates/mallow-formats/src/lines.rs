//! The lines of a text file, with their numbers for error messages.

use crate::{Format, ImportError, Position};
use std::io::{BufRead, Read};

/// The maximum length of a line: no tool writes longer ones, and they would have to fit into memory.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Reads one line after the other into one buffer.
pub(crate) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    format: Format,
    buffer: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(reader: Box<dyn BufRead + 'a>, format: Format) -> Lines<'a> {
        Lines { reader, format, buffer: Vec::new(), number: 0 }
    }

    /// Returns the next line without its line break; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, ImportError> {
        self.buffer.clear();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        } else if read as u64 == LINE_BYTES_MAX {
            return Err(self.expected("a line of less than 16 MiB"));
        }
        Ok(Some(&self.buffer))
    }

    /// Returns the next line as text; bytes that are not UTF-8 are replaced.
    pub(crate) fn next_text(&mut self) -> Result<Option<String>, ImportError> {
        Ok(self.next()?.map(|line| String::from_utf8_lossy(line).into_owned()))
    }

    /// Returns the number of the line that was returned last, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns an error about the line that was returned last.
    pub(crate) fn expected(&self, expected: impl Into<String>) -> ImportError {
        let position = Position::Line(self.number.max(1));
        ImportError::Damaged { format: self.format, position, expected: expected.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn lines_are_counted_and_their_ends_cut() {
        let mut lines = Lines::new(Box::new(Cursor::new(b"one\r\n\nthree")), Format::Folded);
        assert_eq!(lines.next().unwrap(), Some(&b"one"[..]));
        assert_eq!(lines.next().unwrap(), Some(&b""[..]));
        assert_eq!(lines.next_text().unwrap().as_deref(), Some("three"));
        assert_eq!(lines.number(), 3);
        assert_eq!(
            lines.expected("a count").to_string(),
            "this file of folded stacks makes no sense at line 3: a count was expected"
        );
        assert!(lines.next().unwrap().is_none());
    }
}
