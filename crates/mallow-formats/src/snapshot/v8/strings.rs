//! The strings: names of classes, functions and properties, and the values of the program's strings.
//!
//! A string's number in the file is the number of its name, so no mapping is needed. Of strings that are only values,
//! no more is stored than a report shows.

use super::json::{Json, Next, Stop};
use mallow_heapsnap::{NameId, Names, TEXT_CHARS_MAX};
use rustc_hash::FxHashMap;
use std::io::Read;

/// By default, V8 truncates a string's value after this (`--heap-snapshot-string-limit`): strings of this length may be longer.
const VALUE_UNITS_MAX: usize = 1024;
/// Names are truncated after this. A browser's classes are C++ templates, of which many begin with the same hundreds of characters.
const NAME_CHARS_MAX: usize = 4096;
/// The name of the edge from a table of a WeakMap, or from a key, to a value begins with a number and this.
const PAIR: &[u8] = b" / part of key (";

/// One bit for each number.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Sets a bit; returns whether it was not set. Numbers beyond the end are ignored.
    pub(super) fn set(&mut self, at: u32) -> bool {
        let Some(word) = self.0.get_mut(at as usize / 64) else { return false };
        let was = *word;
        *word |= 1 << (at % 64);
        was != *word
    }
}

/// Which strings are only values.
pub(super) struct Uses {
    values: Bits,
    names: Bits,
}

impl Uses {
    /// Nothing is known of numbers below this; higher ones are names.
    pub(super) fn new(len: usize) -> Uses {
        Uses { values: Bits::new(len), names: Bits::new(len) }
    }

    pub(super) fn is_value(&mut self, string: u32) {
        self.values.set(string);
    }

    pub(super) fn is_name(&mut self, string: u32) {
        self.names.set(string);
    }

    fn chars_max(&self, string: u32) -> usize {
        let is_value = self.values.has(string) && !self.names.has(string);
        if is_value { TEXT_CHARS_MAX } else { NAME_CHARS_MAX }
    }
}

/// The type of nodes that are strings with a value.
pub(super) const STRING: &str = "string";

/// All strings of a file.
#[derive(Default)]
pub(super) struct Strings {
    pub(super) names: Names,
    /// Those that are truncated here, ascending.
    cut: Vec<u32>,
    /// Those that may be truncated in the file, ascending.
    long: Vec<u32>,
    /// Names of edges to values of WeakMaps: the string, and the table's id.
    pub(super) weak_pairs: FxHashMap<u32, u64>,
    /// `system / ExternalStringData`.
    pub(super) external_data: Option<u32>,
    /// `(Document DOM trees)`.
    pub(super) document_trees: Option<u32>,
}

impl Strings {
    pub(super) fn read(&mut self, json: &mut Json<impl Read>, uses: &Uses) -> Result<(), Stop> {
        // A pair's name ends with the id of its table, which must not be truncated.
        const BYTES_MAX: usize = 4096;
        let mut next = json.open(b'[', b']', "an array of strings")?;
        let mut bytes = Vec::new();
        while next == Next::Another {
            let string = self.names.len();
            let Ok(number) = u32::try_from(string) else {
                return Err(json.expected("fewer than 2^32 strings"));
            };
            let units = json.string(BYTES_MAX, &mut bytes)?;
            if units >= VALUE_UNITS_MAX {
                self.long.push(number);
            }
            match &bytes[..] {
                b"system / ExternalStringData" => self.external_data = Some(number),
                b"(Document DOM trees)" => self.document_trees = Some(number),
                pair if bytes.first().is_some_and(u8::is_ascii_digit) => {
                    self.weak_pairs.extend(table_of_pair(pair).map(|table| (number, table)));
                }
                _ => {}
            }
            self.push(&bytes, uses.chars_max(number));
            next = json.next(b']')?;
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8], chars_max: usize) {
        let text = String::from_utf8_lossy(bytes);
        let end = if text.len() <= chars_max { None } else { text.char_indices().nth(chars_max) };
        let shown = end.map_or(&text[..], |(end, _)| &text[..end]);
        let NameId(number) = self.names.push(shown);
        if shown.len() < text.len() {
            self.cut.push(number);
        }
    }

    /// Returns whether two strings with this number are certainly equal.
    pub(super) fn is_comparable(&self, string: u32) -> bool {
        (string as usize) < self.names.len() && self.long.binary_search(&string).is_err()
    }

    /// Returns whether it is complete.
    pub(super) fn is_whole(&self, string: u32) -> bool {
        self.is_comparable(string) && self.cut.binary_search(&string).is_err()
    }
}

/// Returns the id of the table in `N / part of key (K @ID) -> value (V @ID) pair in WeakMap (table @ID)`.
fn table_of_pair(name: &[u8]) -> Option<u64> {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = name[digits..].strip_prefix(PAIR).filter(|_| digits > 0)?;
    let rest = rest.strip_suffix(b")")?;
    let table = rest.iter().rposition(|byte| *byte == b'@')?;
    let middle = rest[..table].strip_suffix(b") pair in WeakMap (table ")?;
    // The names of key and value may be anything; both end with an id.
    memchr::memmem::find(middle, b") -> value (")?;
    std::str::from_utf8(&rest[table + 1..]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_names_its_table() {
        let table = |name: &str| table_of_pair(name.as_bytes());
        let pair =
            "2 / part of key (Object @7) -> value (a) -> value (b @9 @9) pair in WeakMap (table @1234)";
        assert_eq!(table(pair), Some(1234));
        assert_eq!(table(&pair[2..]), None);
        assert_eq!(table(&pair[..pair.len() - 1]), None);
        assert_eq!(table("2 / part of key (Object @7) pair in WeakMap (table @1)"), None);
        assert_eq!(table("2 / part of key () -> value () pair in WeakMap (table @x)"), None);
    }

    #[test]
    fn strings_are_cut_where_nobody_looks() {
        let text = format!("[{:?},{:?},{:?},\"k\"]", "a".repeat(100), "é".repeat(600), "b".repeat(5000));
        let mut strings = Strings::default();
        let mut uses = Uses::new(4);
        assert!(uses.values.set(0) && uses.values.set(2) && uses.names.set(2) && !uses.names.set(2));
        strings.read(&mut Json::new(text.as_bytes()), &uses).unwrap();
        let lens = (0..4).map(|at| strings.names.get(NameId(at)).chars().count());
        assert_eq!(lens.collect::<Vec<_>>(), [80, 600, 4096, 1]);
        assert_eq!([0, 1, 2, 3, 4].map(|at| strings.is_whole(at)), [false, true, false, true, false]);
        assert_eq!([0, 1, 2, 3, 4].map(|at| strings.is_comparable(at)), [true, true, false, true, false]);
    }
}
