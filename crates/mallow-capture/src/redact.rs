//! Leaves the contents of strings out of a Ruby dump, line by line, before anything is written.
//!
//! In a string's place stands a number that is the same for equal strings of one snapshot, and says nothing else: its key is
//! forgotten with the snapshot. So equal strings are still told, and sizes stay as they are.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

/// A quote cannot stand unescaped inside of a value, so what follows this is a content.
const KEY: &[u8] = b"\"value\":\"";

/// How contents are replaced in one snapshot.
pub(crate) struct Redaction {
    key: RandomState,
}

impl Redaction {
    pub(crate) fn new() -> Redaction {
        Redaction { key: RandomState::new() }
    }

    /// Writes a line without contents. From a content without an end nothing is written.
    pub(crate) fn write(&mut self, line: &[u8], out: &mut impl Write) -> io::Result<()> {
        let mut rest = line;
        while let Some(at) = rest.windows(KEY.len()).position(|window| window == KEY) {
            let (before, content) = rest.split_at(at + KEY.len());
            let length = length(content);
            let name = self.key.hash_one(&content[..length]);
            out.write_all(before)?;
            write!(out, "{name:016x}")?;
            rest = if length == content.len() { b"\"}\n" } else { &content[length..] };
        }
        out.write_all(rest)
    }
}

/// Bytes to the quote that ends a content, or to the line's end.
fn length(content: &[u8]) -> usize {
    let mut is_escaped = false;
    let ends = |byte: &u8| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    };
    content.iter().position(ends).unwrap_or(content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(redaction: &mut Redaction, line: &str) -> String {
        let mut out = Vec::new();
        redaction.write(line.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn contents_go_and_equal_ones_stay_equal() {
        let mut redaction = Redaction::new();
        let mut of = |value: &str| {
            let line =
                format!("{{\"type\":\"STRING\", \"bytesize\":6, \"value\":\"{value}\", \"memsize\":40}}\n");
            redacted(&mut redaction, &line)
        };
        let (first, again, other) = (of(r#"se\"cret\\"#), of(r#"se\"cret\\"#), of("another"));
        assert_eq!(first, again);
        assert_ne!(first, other);
        for line in [first, other] {
            let (start, rest) = line.split_once("\"value\":\"").unwrap();
            assert_eq!(start, "{\"type\":\"STRING\", \"bytesize\":6, ");
            assert_eq!(&rest[16..], "\", \"memsize\":40}\n");
            assert!(rest[..16].chars().all(|c| c.is_ascii_hexdigit()), "{rest}");
        }
    }

    #[test]
    fn damage_shows_nothing() {
        let mut redaction = Redaction::new();
        let cut = redacted(&mut redaction, "{\"type\":\"STRING\", \"value\":\"secret\\\"");
        assert!(cut.ends_with("\"}\n") && !cut.contains("secret"), "{cut}");
        assert_eq!(redacted(&mut redaction, "{\"type\":\"ROOT\"}\n"), "{\"type\":\"ROOT\"}\n");
    }
}
