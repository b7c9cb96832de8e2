//! A streaming JSON parser, which reads once and in blocks: a snapshot of gigabytes consists of numbers, and none of them is kept here.
//!
//! A premature end of the stream is not an error here: the caller decides what is missing.

use crate::{Format, ImportError, Position};
use std::io::{self, Read};

/// The number of bytes that are read at once.
const BLOCK_BYTES: usize = 256 << 10;
/// Zeros after what was read: room for a number, its separator, and one more byte.
const BEHIND_BYTES: usize = 32;
/// Numbers have no more digits than this.
const DIGITS_MAX: usize = 19;

/// Why parsing stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The stream ended.
    End,
    /// The stream continues with something unexpected.
    Error(ImportError),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Error(error.into())
    }
}

/// Whether another element follows in an array or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Another,
    Nothing,
}

/// An element of nested arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Number(u64),
    Close,
}

/// A JSON stream at a position.
pub(super) struct Json<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// The position of the buffer in the stream.
    before: u64,
    is_at_end: bool,
}

impl<R: Read> Json<R> {
    pub(super) fn new(reader: R) -> Json<R> {
        Json {
            reader,
            buffer: vec![0; BLOCK_BYTES + BEHIND_BYTES],
            at: 0,
            end: 0,
            before: 0,
            is_at_end: false,
        }
    }

    /// Returns the position in the stream.
    pub(super) fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Continues at another position, from which `reader` reads.
    pub(super) fn go_on(&mut self, position: u64, reader: R) {
        self.reader = reader;
        (self.at, self.end, self.before, self.is_at_end) = (0, 0, position, false);
    }

    /// Returns the error that something else was expected here.
    pub(super) fn expected(&self, what: impl Into<String>) -> Stop {
        let position = Position::Byte(self.position());
        Stop::Error(ImportError::Damaged { format: Format::V8Heap, position, expected: what.into() })
    }

    /// Reads more, until more is there than before or the stream has ended.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.end, 0);
        self.before += self.at as u64;
        self.end -= self.at;
        self.at = 0;
        while !self.is_at_end && self.end < BEHIND_BYTES {
            match self.reader.read(&mut self.buffer[self.end..BLOCK_BYTES]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A truncated archive.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.is_at_end = true,
                Err(error) => return Err(error),
            }
        }
        self.buffer[self.end..self.end + BEHIND_BYTES].fill(0);
        Ok(())
    }

    /// Returns the byte at the position.
    fn byte(&mut self) -> Result<u8, Stop> {
        if self.at == self.end {
            self.fill()?;
            if self.at == self.end {
                return Err(Stop::End);
            }
        }
        Ok(self.buffer[self.at])
    }

    /// Returns the next byte that is not a blank, without taking it.
    pub(super) fn peek(&mut self) -> Result<u8, Stop> {
        loop {
            match self.byte()? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Ok(byte),
            }
        }
    }

    /// Takes this byte, after blanks.
    pub(super) fn take(&mut self, byte: u8, what: &str) -> Result<(), Stop> {
        if self.peek()? != byte {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Opens an array or an object; returns whether it has any element.
    pub(super) fn open(&mut self, open: u8, close: u8, what: &str) -> Result<Next, Stop> {
        self.take(open, what)?;
        if self.peek()? != close {
            return Ok(Next::Another);
        }
        self.at += 1;
        Ok(Next::Nothing)
    }

    /// After an element, returns whether there is another one.
    pub(super) fn next(&mut self, close: u8) -> Result<Next, Stop> {
        match self.peek()? {
            b',' => {
                self.at += 1;
                Ok(Next::Another)
            }
            byte if byte == close => {
                self.at += 1;
                Ok(Next::Nothing)
            }
            _ => Err(self.expected(format!("a comma or `{}`", char::from(close)))),
        }
    }

    /// Takes the key of an object and its colon.
    pub(super) fn key(&mut self) -> Result<Vec<u8>, Stop> {
        const KEY_BYTES_MAX: usize = 256;
        let mut key = Vec::new();
        self.peek()?;
        self.string(KEY_BYTES_MAX, &mut key)?;
        self.take(b':', "a colon")?;
        Ok(key)
    }

    /// Takes an array of records with a fixed number of numbers. What `take` refuses is an error at its position. An
    /// incomplete record at the end of the stream is dropped.
    pub(super) fn records<const MAX: usize>(
        &mut self,
        fields: usize,
        mut take: impl FnMut(&[u64; MAX]) -> Result<(), &'static str>,
    ) -> Result<(), Stop> {
        assert!((1..=MAX).contains(&fields));
        if self.open(b'[', b']', "an array of numbers")? == Next::Nothing {
            return Ok(());
        }
        let mut record = [0; MAX];
        loop {
            let mut next = Next::Another;
            for field in &mut record[..fields] {
                if next == Next::Nothing {
                    return Err(self.expected(format!("a record of {fields} numbers")));
                }
                (*field, next) = self.number()?;
            }
            take(&record).map_err(|what| self.expected(what))?;
            if next == Next::Nothing {
                return Ok(());
            }
        }
    }

    /// Takes a number of an array, and its separator.
    #[inline]
    fn number(&mut self) -> Result<(u64, Next), Stop> {
        if self.end - self.at < BEHIND_BYTES {
            self.fill()?;
        }
        if !self.buffer[self.at].is_ascii_digit() && !self.peek()?.is_ascii_digit() {
            return Err(self.expected("a whole number that is not negative"));
        }
        if self.end - self.at < BEHIND_BYTES {
            self.fill()?;
        }
        let bytes = &self.buffer[self.at..];
        let mut digits = 0;
        let mut value = 0u64;
        while let digit @ 0..=9 = bytes[digits].wrapping_sub(b'0') {
            value = value.wrapping_mul(10).wrapping_add(digit.into());
            digits += 1;
        }
        if digits > DIGITS_MAX {
            return Err(self.expected(format!("a number of at most {DIGITS_MAX} digits")));
        }
        // Most are `12,3`; V8 ends a record with `0\n,9`.
        let behind = match (bytes[digits], bytes[digits + 1]) {
            (b',', _) => 1,
            (b'\n', b',') => 2,
            _ => 0,
        };
        self.at += digits + behind;
        if behind > 0 {
            return Ok((value, Next::Another));
        }
        Ok((value, self.next(b']')?))
    }

    /// Takes an array of numbers and of such arrays. What `take` refuses is an error at its position.
    pub(super) fn nested(
        &mut self,
        mut take: impl FnMut(Token) -> Result<(), &'static str>,
    ) -> Result<(), Stop> {
        let mut depth = 0u64;
        loop {
            let token = match self.peek()? {
                b'[' => Token::Open,
                b']' if depth > 0 => Token::Close,
                b',' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ if depth > 0 => {
                    let (number, next) = self.number()?;
                    take(Token::Number(number)).map_err(|what| self.expected(what))?;
                    if next == Next::Another {
                        continue;
                    }
                    // The end of the array was taken with the number.
                    self.at -= 1;
                    Token::Close
                }
                _ => return Err(self.expected("an array")),
            };
            self.at += 1;
            take(token).map_err(|what| self.expected(what))?;
            depth = if token == Token::Open { depth + 1 } else { depth - 1 };
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Takes a number outside of an array.
    pub(super) fn lone_number(&mut self) -> Result<Option<u64>, Stop> {
        let mut text = Vec::new();
        self.value(DIGITS_MAX + 1, &mut text)?;
        Ok(std::str::from_utf8(&text).ok().and_then(|text| text.trim_ascii().parse().ok()))
    }

    /// Takes a value of any type. Its first bytes are appended to `out`, with a blank or two.
    pub(super) fn value(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
        self.peek()?;
        let mut depth = 0u64;
        loop {
            let byte = self.byte()?;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => return Ok(()),
                b'}' | b']' => depth -= 1,
                b'"' => {
                    self.raw_string(bytes_max, out)?;
                    if depth == 0 {
                        return Ok(());
                    }
                    continue;
                }
                _ => {}
            }
            if out.len() < bytes_max {
                out.push(byte);
            }
            self.at += 1;
            if depth == 0 && matches!(byte, b'}' | b']') {
                return Ok(());
            }
        }
    }

    /// Takes a string as it is written, with its quotation marks.
    fn raw_string(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Result<(), Stop> {
        let mut is_escaped = false;
        let mut is_inside = false;
        loop {
            let byte = self.byte()?;
            self.at += 1;
            if out.len() < bytes_max {
                out.push(byte);
            }
            if byte == b'"' && !is_escaped {
                if is_inside {
                    return Ok(());
                }
                is_inside = true;
            }
            is_escaped = byte == b'\\' && !is_escaped;
        }
    }

    /// Takes a string. At least its first `bytes_max` bytes are appended to `out` as UTF-8, if they are valid.
    /// Returns the number of its UTF-16 units as far as that matters: at least that number, or the exact one.
    pub(super) fn string(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> Result<usize, Stop> {
        out.clear();
        self.take(b'"', "a string")?;
        let mut units = 0;
        let mut high = None;
        loop {
            self.byte()?;
            let here = &self.buffer[self.at..self.end];
            let plain = memchr::memchr2(b'"', b'\\', here).unwrap_or(here.len());
            if plain > 0 {
                high = None;
                units += utf16_len(&here[..plain]);
                let room = bytes_max.saturating_sub(out.len());
                out.extend_from_slice(&here[..plain.min(room)]);
                self.at += plain;
                continue;
            }
            self.at += 1;
            if here[0] == b'"' {
                return Ok(units);
            }
            let unit = self.escape()?;
            units += 1;
            if out.len() < bytes_max {
                push_unit(unit, &mut high, out);
            }
        }
    }

    /// Returns the UTF-16 unit of an escape.
    fn escape(&mut self) -> Result<u16, Stop> {
        let byte = self.byte()?;
        self.at += 1;
        Ok(match byte {
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => {
                let mut unit = 0;
                for _ in 0..4 {
                    let digit = char::from(self.byte()?).to_digit(16);
                    let digit = digit.ok_or_else(|| self.expected("a hexadecimal digit"))?;
                    unit = unit << 4 | digit as u16;
                    self.at += 1;
                }
                unit
            }
            byte => byte.into(),
        })
    }
}

/// Returns how many UTF-16 units some UTF-8 has.
fn utf16_len(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        return bytes.len();
    }
    let of_byte = |byte: &u8| match byte {
        0x80..=0xbf => 0,
        0xf0.. => 2,
        _ => 1,
    };
    bytes.iter().map(of_byte).sum()
}

/// Appends a unit, which may be half of a character: `high` is its first half, whose replacement is in `out` already.
fn push_unit(unit: u16, high: &mut Option<u16>, out: &mut Vec<u8>) {
    let before = high.take();
    let pair = before.and_then(|before| char::decode_utf16([before, unit]).next().and_then(Result::ok));
    let pair = pair.filter(|_| matches!(unit, 0xdc00..=0xdfff));
    let character = pair.or_else(|| char::from_u32(unit.into()));
    if pair.is_some() {
        out.truncate(out.len() - char::REPLACEMENT_CHARACTER.len_utf8());
    }
    if matches!(unit, 0xd800..=0xdbff) {
        *high = Some(unit);
    }
    let mut bytes = [0; 4];
    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
