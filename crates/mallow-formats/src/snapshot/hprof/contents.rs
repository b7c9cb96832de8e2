//! Finds strings with equal contents.
//!
//! A string's characters are in a separate array, before or after it in the file. So each array of bytes and
//! characters gets a number for its contents while it is read, by a 64-bit hash; of contents that occur twice, the
//! part that is shown is stored. Strings are counted when all arrays are known. Among ten million different contents,
//! the probability that two have the same hash is 3 in a million.

use super::records::{BYTE, CHAR};
use mallow_heapsnap::{DuplicateString, DuplicateStrings, ObjectId, TEXT_CHARS_MAX};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

/// The number of bytes of a content that are stored: what is shown of it in UTF-16, and one more character, which shows that there is more.
const KEPT_BYTES: usize = 2 * (TEXT_CHARS_MAX + 1);
/// An unknown content.
const UNKNOWN: u32 = u32::MAX;

/// The encoding of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coder {
    /// One byte each.
    Latin1,
    /// Two bytes each; in memory order if they are bytes.
    Utf16,
    /// As the type of the array says.
    ByArray,
    /// A part of the array.
    Part,
}

/// The contents of arrays that may belong to strings.
#[derive(Default)]
pub(super) struct Contents {
    /// The number of each hash.
    numbers: FxHashMap<u64, u32>,
    /// The index of its text plus 1, if it occurred again.
    kept: Vec<u32>,
    texts: Vec<Text>,
    /// A bit for each object: whether it is one of the arrays.
    arrays: Vec<u64>,
    /// The content of each of them.
    of_arrays: Vec<u32>,
    /// Of the array that is being read.
    hash: FxHasher,
    beginning: Vec<u8>,
}

/// The beginning of an array whose content occurs again.
#[derive(Debug)]
struct Text {
    beginning: Box<[u8]>,
    /// The array's type.
    kind: u8,
}

/// A string and its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringObject {
    pub(super) bytes: u64,
    pub(super) coder: Coder,
    /// The array; `None` for a string without one.
    pub(super) value: Option<(ObjectId, u64)>,
}

/// The strings with the same content.
#[derive(Clone, Copy, Debug, Default)]
struct Strings {
    strings: u64,
    bytes: u64,
    /// The size of one string with one array.
    one_bytes: u64,
}

impl Contents {
    /// Adds elements of an array of bytes or characters.
    pub(super) fn elements(&mut self, first: u32, bytes: &[u8]) {
        if first == 0 {
            self.hash = FxHasher::default();
            self.beginning.clear();
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(KEPT_BYTES)]);
        }
        self.hash.write(bytes);
    }

    /// Completes an array.
    pub(super) fn array(&mut self, object: ObjectId, kind: u8, len: u32) {
        if len == 0 {
            self.elements(0, &[]);
        }
        self.hash.write_u8(kind);
        self.hash.write_u32(len);
        let next = self.kept.len() as u32;
        let number = *self.numbers.entry(self.hash.finish()).or_insert(next);
        if number == next {
            self.kept.push(0);
        } else if self.kept[number as usize] == 0 {
            self.texts.push(Text { beginning: self.beginning.as_slice().into(), kind });
            self.kept[number as usize] = self.texts.len() as u32;
        }
        self.push(object, number);
    }

    /// Adds an array whose contents the file leaves out.
    pub(super) fn push_unknown(&mut self, object: ObjectId) {
        self.push(object, UNKNOWN);
    }

    fn push(&mut self, object: ObjectId, content: u32) {
        let word = object.0 as usize / 64;
        if self.arrays.len() <= word {
            self.arrays.resize(word + 1, 0);
        }
        self.arrays[word] |= 1 << (object.0 % 64);
        self.of_arrays.push(content);
    }

    /// Counts the strings. Strings that share one array waste next to nothing, so they are reported only if their
    /// content also occurs in another array.
    pub(super) fn duplicates(mut self, strings: impl Iterator<Item = StringObject>) -> DuplicateStrings {
        self.numbers = FxHashMap::default();
        let ranks = self.ranks();
        let mut uncompared = 0;
        // Bytes of either kind.
        let mut sums = vec![Strings::default(); 2 * self.texts.len()];
        let mut is_counted = vec![false; self.of_arrays.len()];
        for string in strings {
            let rank = string.value.and_then(|(array, _)| self.rank(&ranks, array));
            let content = rank.map_or(UNKNOWN, |rank| self.of_arrays[rank]);
            let (Some(rank), Some((_, array_bytes)), Some(kept)) =
                (rank, string.value, self.kept.get(content as usize))
            else {
                uncompared += 1;
                continue;
            };
            if string.coder == Coder::Part {
                uncompared += 1;
            } else if let Some(text) = kept.checked_sub(1) {
                let sum = &mut sums[2 * text as usize + usize::from(string.coder == Coder::Utf16)];
                sum.strings += 1;
                sum.bytes += string.bytes;
                sum.one_bytes = string.bytes + array_bytes;
                if !std::mem::replace(&mut is_counted[rank], true) {
                    sum.bytes += array_bytes;
                }
            }
        }
        let value = |(at, sum): (usize, &Strings)| self.texts[at / 2].duplicate(at % 2 == 1, *sum);
        let values = sums.iter().enumerate().filter(|(_, sum)| sum.strings > 1).map(value).collect();
        DuplicateStrings::new(values, uncompared)
    }

    /// Returns how many arrays there are before each word of bits.
    fn ranks(&self) -> Vec<u32> {
        let before = |sum: &mut u32, word: &u64| {
            let before = *sum;
            *sum += word.count_ones();
            Some(before)
        };
        self.arrays.iter().scan(0, before).collect()
    }

    fn rank(&self, ranks: &[u32], object: ObjectId) -> Option<usize> {
        let (word, bit) = (object.0 as usize / 64, 1u64 << (object.0 % 64));
        let bits = self.arrays.get(word).filter(|bits| **bits & bit != 0)?;
        Some((ranks[word] + (bits & (bit - 1)).count_ones()) as usize)
    }
}

impl Text {
    fn duplicate(&self, is_utf16: bool, sum: Strings) -> DuplicateString {
        let text = self.decoded(is_utf16);
        let is_whole = self.beginning.len() < KEPT_BYTES && text.chars().count() <= TEXT_CHARS_MAX;
        DuplicateString {
            text: text.chars().take(TEXT_CHARS_MAX).collect(),
            is_whole,
            strings: sum.strings,
            bytes: sum.bytes,
            wasted_bytes: sum.bytes.saturating_sub(sum.one_bytes),
        }
    }

    fn decoded(&self, is_utf16: bool) -> String {
        if self.kind == BYTE && !is_utf16 {
            return self.beginning.iter().map(|byte| char::from(*byte)).collect();
        }
        // Bytes are in memory order, and machines that run a JVM are little-endian.
        let unit = |bytes: &[u8]| match (self.kind, bytes) {
            (CHAR, [high, low]) => u16::from_be_bytes([*high, *low]),
            (_, [low, high]) => u16::from_le_bytes([*low, *high]),
            _ => 0,
        };
        let units = self.beginning.chunks_exact(2).map(unit);
        char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }
}
