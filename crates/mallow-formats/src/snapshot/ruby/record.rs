//! Parses one line of a Ruby dump.
//!
//! It resembles JSON but differs: the name of a file is written unescaped, with quotation marks, line feeds and bytes
//! that are not UTF-8, and Ruby 2.1 does so with every control character. So bytes are parsed, with keys in any
//! order, and the end of a file's name is found by what Ruby writes after it. The format is that of
//! `ext/objspace/objspace_dump.c`, from Ruby 2.1 on.

use memchr::{memchr, memchr2, memmem};

/// The contents of a line. Strings are as in the file, with escapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) address: Option<u64>,
    pub(super) kind: &'a [u8],
    pub(super) class: Option<u64>,
    pub(super) superclass: Option<u64>,
    pub(super) memsize: u64,
    pub(super) slot_size: Option<u64>,
    pub(super) generation: Option<u32>,
    pub(super) file: Option<&'a [u8]>,
    pub(super) line: u32,
    /// The name of a root.
    pub(super) root: Option<&'a [u8]>,
    /// The name of a class.
    pub(super) name: Option<&'a [u8]>,
    /// The name of the class behind a singleton or an unnamed class.
    pub(super) real_class_name: Option<&'a [u8]>,
    pub(super) is_singleton: bool,
    /// The kind of an internal object of the interpreter, or the C structure of an object.
    pub(super) detail: Option<&'a [u8]>,
    /// A string's contents.
    pub(super) value: Option<&'a [u8]>,
    pub(super) bytesize: Option<u64>,
}

/// A line is not in Ruby's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

impl<'a> Record<'a> {
    /// Parses a line. Its references are added to `references`, or skipped if they are not needed.
    pub(super) fn parse(
        line: &'a [u8],
        mut references: Option<&mut Vec<u64>>,
    ) -> Result<Record<'a>, Damaged> {
        let known = references.as_ref().map_or(0, |references| references.len());
        let mut record = Record::default();
        if record.read(line, references.as_deref_mut(), None).is_ok() {
            return Ok(record);
        }
        // The name of the file has quotation marks: it ends before the last line number.
        let end = memmem::rfind(line, b"\", \"line\":").ok_or(Damaged)?;
        if let Some(references) = &mut references {
            references.truncate(known);
        }
        let mut record = Record::default();
        record.read(line, references, Some(end)).map(|()| record)
    }

    fn read(
        &mut self,
        line: &'a [u8],
        mut references: Option<&mut Vec<u64>>,
        file_end: Option<usize>,
    ) -> Result<(), Damaged> {
        let mut scan = Scan { line, at: 0 };
        scan.expect(b'{')?;
        loop {
            scan.expect(b'"')?;
            let key = scan.string()?;
            scan.expect(b':')?;
            if key == b"file" {
                self.file = Some(scan.file(file_end)?);
            } else {
                self.take(key, &mut scan, references.as_deref_mut())?;
            }
            match scan.next()? {
                b',' => scan.skip_blank(),
                b'}' => return Ok(()),
                _ => return Err(Damaged),
            }
        }
    }

    fn take(
        &mut self,
        key: &[u8],
        scan: &mut Scan<'a>,
        references: Option<&mut Vec<u64>>,
    ) -> Result<(), Damaged> {
        match key {
            b"address" => self.address = scan.address()?,
            b"type" => self.kind = scan.text()?,
            b"class" => self.class = scan.address()?,
            b"superclass" => self.superclass = scan.address()?,
            b"references" => match references {
                Some(references) => scan.addresses(references)?,
                None => scan.skip_addresses()?,
            },
            b"memsize" => self.memsize = scan.number()?,
            b"slot_size" => self.slot_size = Some(scan.number()?),
            b"generation" => self.generation = u32::try_from(scan.number()?).ok(),
            b"line" => self.line = scan.number()?.try_into().unwrap_or(0),
            b"bytesize" => self.bytesize = Some(scan.number()?),
            b"value" => self.value = scan.text_if_any()?,
            b"root" => self.root = Some(scan.text()?),
            b"name" => self.name = scan.text_if_any()?,
            b"real_class_name" => self.real_class_name = scan.text_if_any()?,
            b"imemo_type" | b"struct" | b"node_type" => self.detail = scan.text_if_any()?,
            b"singleton" => self.is_singleton = scan.skip_value()? == b"true",
            _ => drop(scan.skip_value()?),
        }
        Ok(())
    }

    /// Returns what can be recovered from a damaged line: its address, and its references.
    pub(super) fn rescue(line: &'a [u8], references: &mut Vec<u64>) -> Option<Record<'a>> {
        let behind = |key: &[u8]| memmem::find(line, key).map(|at| Scan { line, at: at + key.len() });
        let mut record = Record {
            address: behind(b"\"address\":")?.address().ok()?,
            kind: behind(b"\"type\":")?.text().ok()?,
            ..Record::default()
        };
        record.class = behind(b"\"class\":").and_then(|mut scan| scan.address().ok()?);
        if let Some(mut scan) = behind(b"\"references\":") {
            let known = references.len();
            if scan.addresses(references).is_err() {
                references.truncate(known);
            }
        }
        let last = |key: &[u8]| memmem::rfind(line, key).map(|at| Scan { line, at: at + key.len() });
        record.memsize = last(b"\"memsize\":").and_then(|mut scan| scan.number().ok()).unwrap_or(0);
        record.generation = last(b"\"generation\":").and_then(|mut scan| scan.number().ok()?.try_into().ok());
        Some(record)
    }
}

/// A position in a line.
struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Result<u8, Damaged> {
        self.line.get(self.at).copied().ok_or(Damaged)
    }

    fn next(&mut self) -> Result<u8, Damaged> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Damaged> {
        if self.next()? == byte { Ok(()) } else { Err(Damaged) }
    }

    fn skip_blank(&mut self) {
        while self.peek() == Ok(b' ') {
            self.at += 1;
        }
    }

    /// Returns the rest of a string whose opening quote was read.
    fn string(&mut self) -> Result<&'a [u8], Damaged> {
        let start = self.at;
        loop {
            let rest = self.line.get(self.at..).ok_or(Damaged)?;
            let found = memchr2(b'"', b'\\', rest).ok_or(Damaged)?;
            self.at += found + 1;
            if rest[found] == b'"' {
                return Ok(&self.line[start..self.at - 1]);
            }
            self.at += 1;
        }
    }

    fn text(&mut self) -> Result<&'a [u8], Damaged> {
        self.expect(b'"')?;
        self.string()
    }

    /// Parses a string; `None` for a number or `null`.
    fn text_if_any(&mut self) -> Result<Option<&'a [u8]>, Damaged> {
        if self.peek()? == b'"' { self.text().map(Some) } else { self.skip_value().map(|_| None) }
    }

    /// Parses the name of a file: Ruby writes `, "line":` after it, or the next key if it knows no line.
    fn file(&mut self, end: Option<usize>) -> Result<&'a [u8], Damaged> {
        self.expect(b'"')?;
        let start = self.at;
        let Some(end) = end else {
            let name = self.string()?;
            return if is_tail(&self.line[self.at..]) { Ok(name) } else { Err(Damaged) };
        };
        let name = self.line.get(start..end).ok_or(Damaged)?;
        self.at = end + 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<u64, Damaged> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.line.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start { Err(Damaged) } else { Ok(value) }
    }

    /// Parses an address in quotation marks; `None` for any other value.
    fn address(&mut self) -> Result<Option<u64>, Damaged> {
        if self.peek()? != b'"' {
            return self.skip_value().map(|_| None);
        }
        if !self.line[self.at..].starts_with(b"\"0x") {
            return self.text().map(|_| None);
        }
        self.at += 3;
        let mut value = 0u64;
        let mut digits = 0;
        loop {
            let byte = self.next()?;
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                b'"' if digits > 0 => return Ok(Some(value)),
                _ => return Err(Damaged),
            };
            digits += 1;
            if digits > 16 {
                return Err(Damaged);
            }
            value = value << 4 | u64::from(digit);
        }
    }

    /// Parses a list of addresses.
    fn addresses(&mut self, into: &mut Vec<u64>) -> Result<(), Damaged> {
        self.expect(b'[')?;
        self.skip_blank();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            into.extend(self.address()?);
            match self.next()? {
                b',' => self.skip_blank(),
                b']' => return Ok(()),
                _ => return Err(Damaged),
            }
        }
    }

    /// Skips a list of addresses, which contain no brackets.
    fn skip_addresses(&mut self) -> Result<(), Damaged> {
        self.expect(b'[')?;
        let rest = self.line.get(self.at..).ok_or(Damaged)?;
        self.at += memchr(b']', rest).ok_or(Damaged)? + 1;
        Ok(())
    }

    /// Skips any value.
    fn skip_value(&mut self) -> Result<&'a [u8], Damaged> {
        let start = self.at;
        let mut depth = 0u32;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' | b' ' if depth > 0 => self.at += 1,
                b',' | b'}' | b']' => return Err(Damaged),
                _ => {
                    while !matches!(self.peek()?, b',' | b'}' | b']' | b' ' | b'"' | b'[' | b'{') {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Ok(&self.line[start..self.at]);
            }
        }
    }
}

/// Returns whether this is what follows the name of a file, without a second line number: then the name contained none.
fn is_tail(rest: &[u8]) -> bool {
    let (digits, rest) = match rest.strip_prefix(b", \"line\":") {
        Some(rest) => rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count()),
        None => (&b"0"[..], rest),
    };
    let keys: [&[u8]; 4] = [b", \"method\":", b", \"generation\":", b", \"memsize\":", b", \"flags\":"];
    !digits.is_empty()
        && (rest == b"}" || keys.iter().any(|key| rest.starts_with(key)))
        && memmem::find(rest, b"\"line\":").is_none()
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
