//! The lines of a text file, with their numbers for error messages.

use crate::{Format, ImportError, Position};
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// The maximum length of a line: no tool writes longer ones, and they would have to fit into memory.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Returns whether a compressed stream ended before its end.
pub(crate) fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// Reads one line after the other into one buffer.
pub(crate) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    format: Format,
    buffer: Vec<u8>,
    number: u64,
    /// Set where a compressed stream ends before its end, which ends the lines; none where that is an error.
    torn: Option<Rc<Cell<bool>>>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(reader: Box<dyn BufRead + 'a>, format: Format) -> Lines<'a> {
        Lines { reader, format, buffer: Vec::new(), number: 0, torn: None }
    }

    /// Ends where a compressed stream was cut, and says so. heaptrack's reader tells of it by itself.
    pub(crate) fn until_cut(mut self, torn: Rc<Cell<bool>>) -> Lines<'a> {
        self.torn = Some(torn).filter(|_| self.format != Format::Heaptrack);
        self
    }

    /// Returns the next line without its line break; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, ImportError> {
        self.buffer.clear();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer);
        let read = match (read, &self.torn) {
            (Err(error), Some(torn)) if is_cut(&error) => {
                torn.set(true);
                return Ok(None);
            }
            (read, _) => read?,
        };
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
