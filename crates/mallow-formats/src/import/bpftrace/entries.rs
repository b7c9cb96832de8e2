//! Parses the entries of bpftrace's maps, without interpreting them.

use crate::ImportError;
use crate::lines::Lines;

/// One entry of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The map's name without `@`; may be empty.
    pub(crate) map: String,
    /// The keys that are not stacks.
    pub(crate) keys: Vec<String>,
    /// Whether one of the keys is a stack, even an empty one.
    pub(crate) has_stack: bool,
    /// The frames as printed, innermost first, without blanks around them.
    pub(crate) frames: Vec<String>,
    /// Its value.
    pub(crate) value: Value,
    /// Whether two empty lines precede it, as they precede everything that bpftrace prints when it ends.
    pub(crate) is_first_of_end: bool,
}

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Of `count()`, `sum()` and the like.
    Number(u64),
    /// Of `stats()`.
    Stats {
        /// The number of values.
        count: u64,
        /// Their sum.
        total: u64,
    },
    /// A histogram, a text, a negative number.
    Other,
}

/// Parses one entry after the other.
pub(crate) struct Entries<'a> {
    lines: Lines<'a>,
    is_cut: bool,
    is_at_end: bool,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(lines: Lines<'a>) -> Entries<'a> {
        Entries { lines, is_cut: false, is_at_end: false }
    }

    /// Returns the next entry; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, ImportError> {
        let mut empty = 0;
        loop {
            let Some(line) = self.lines.next_text()? else { return Ok(None) };
            let Some((map, keys)) = line.strip_prefix('@').and_then(|line| line.split_once('[')) else {
                empty = if line.is_empty() { empty + 1 } else { 0 };
                continue;
            };
            if !map.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                continue;
            }
            self.is_at_end |= empty >= 2;
            let mut entry = Entry {
                map: map.to_owned(),
                keys: Vec::new(),
                has_stack: false,
                frames: Vec::new(),
                value: Value::Other,
                is_first_of_end: empty >= 2,
            };
            if let Some((keys, value)) = keys.rsplit_once("]: ") {
                entry.add_keys(keys);
                entry.value = value_of(value);
                return Ok(Some(entry));
            }
            entry.add_keys(keys);
            entry.has_stack = true;
            return self.rest_of(entry);
        }
    }

    /// Parses up to the line that closes the entry. That line begins with the bracket, or with a comma and further keys.
    fn rest_of(&mut self, mut entry: Entry) -> Result<Option<Entry>, ImportError> {
        while let Some(line) = self.lines.next_text()? {
            let Some(keys) = line.strip_prefix([']', ',']) else {
                if !line.trim().is_empty() {
                    entry.frames.push(line.trim().to_owned());
                }
                continue;
            };
            match line.split_once("]: ").or_else(|| line.split_once("]:")) {
                Some((before, value)) => {
                    entry.add_keys(before.trim_start_matches(','));
                    entry.value = value_of(value);
                    return Ok(Some(entry));
                }
                // Between two stacks, such as the kernel's and the program's.
                None => entry.add_keys(keys),
            }
        }
        self.is_cut = true;
        Ok(None)
    }

    /// Returns whether the last entry belongs to the output at bpftrace's end, as far as the file has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Returns whether the file ended within an entry.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns an error about the file as a whole.
    pub(crate) fn expected(&self, expected: &str) -> ImportError {
        self.lines.expected(expected)
    }
}

impl Entry {
    fn add_keys(&mut self, keys: &str) {
        let keys = keys.split(", ").map(|key| key.trim().trim_end_matches(',').trim());
        self.keys.extend(keys.filter(|key| !key.is_empty()).map(str::to_owned));
    }
}

fn value_of(text: &str) -> Value {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Value::Number(number);
    }
    let part = |name: &str| {
        let part = text.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix(' '));
        part.and_then(|number| number.parse().ok())
    };
    match (part("count"), part("total")) {
        (Some(count), Some(total)) => Value::Stats { count, total },
        _ => Value::Other,
    }
}
