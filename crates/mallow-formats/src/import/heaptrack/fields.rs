//! The fields of a line: hexadecimal numbers, words, and strings that are preceded by their length.

/// A field is missing or malformed; says what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotThere(pub(super) &'static str);

/// The rest of a line after its kind.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a [u8]) -> Fields<'a> {
        Fields(line)
    }

    /// Returns the next number; `None` at the line's end.
    pub(super) fn next_number(&mut self, expected: &'static str) -> Result<Option<u64>, NotThere> {
        let word = self.next_word();
        if word.is_empty() { Ok(None) } else { hex(word).map(Some).ok_or(NotThere(expected)) }
    }

    /// Returns the next number.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<u64, NotThere> {
        self.next_number(expected)?.ok_or(NotThere(expected))
    }

    /// Returns the next word.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<String, NotThere> {
        let word = self.next_word();
        if word.is_empty() { Err(NotThere(expected)) } else { Ok(text(word)) }
    }

    /// Returns the rest of the line, without the blank before it.
    pub(super) fn rest(&mut self) -> String {
        let rest = std::mem::take(&mut self.0);
        text(rest.strip_prefix(b" ").unwrap_or(rest))
    }

    /// Parses a number of bytes, a blank, and that many bytes.
    pub(super) fn sized(&mut self) -> Result<String, NotThere> {
        let length = self.number("the length of a string")?;
        let rest = self.0.strip_prefix(b" ").unwrap_or(self.0);
        let length = usize::try_from(length).ok().filter(|&length| length <= rest.len());
        let (string, rest) = rest.split_at(length.ok_or(NotThere("a string of the length before it"))?);
        self.0 = rest;
        Ok(text(string))
    }

    /// Returns the next word; empty at the line's end.
    fn next_word(&mut self) -> &'a [u8] {
        let start = self.0.iter().position(|&byte| byte != b' ').unwrap_or(self.0.len());
        let rest = &self.0[start..];
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        self.0 = &rest[end..];
        &rest[..end]
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses a hexadecimal number of at most 64 bits.
fn hex(word: &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for &byte in word {
        let digit = char::from(byte).to_digit(16)?;
        if number >> 60 != 0 {
            return None;
        }
        number = number << 4 | u64::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_sixty_four_bits() {
        let mut fields = Fields::new(b" 1000000000000000  ffffffffffffffff 10000000000000000 0x5");
        assert_eq!(fields.number("a number"), Ok(1 << 60));
        assert_eq!(fields.number("a number"), Ok(u64::MAX));
        assert_eq!(fields.number("a number"), Err(NotThere("a number")));
        assert_eq!(fields.next_number("a size"), Err(NotThere("a size")));
        assert_eq!(fields.next_number("a size"), Ok(None));
    }

    #[test]
    fn a_sized_string_may_hold_blanks() {
        let mut fields = Fields::new(b" 9 /my  path 1f");
        assert_eq!(fields.sized().unwrap(), "/my  path");
        assert_eq!(fields.number("an address"), Ok(0x1f));
        assert!(Fields::new(b" 1000000000000000 a").sized().is_err());
        assert_eq!(Fields::new(b" 0 ").sized().unwrap(), "");
        assert_eq!(Fields::new(b" two words").rest(), "two words");
    }
}
