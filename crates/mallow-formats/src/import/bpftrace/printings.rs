//! Decides which entries of a map count, if the map was printed more than once.
//!
//! bpftrace prints every map when it ends, after two empty lines, whatever the script printed before with
//! `print(@map)`. If a map was never cleared, each output contains all of it, and the last one counts; if it was
//! cleared in between, all outputs are added up. Within an output, numbers only rise, because bpftrace sorts them
//! that way.

use super::entries::{Entries, Entry, Value};
use crate::ImportError;
use rustc_hash::FxHashMap;

/// The entries that count, and notes on maps that were printed more than once.
#[derive(Debug, Default)]
pub(crate) struct Printings {
    /// In the order of the file, map by map.
    pub(crate) entries: Vec<Entry>,
    /// A sentence for each map that was printed more than once.
    pub(crate) warnings: Vec<String>,
}

/// The outputs of a map.
#[derive(Default)]
struct Printed {
    /// What the script printed; a new output begins where a number is lower than the one before.
    by_script: Vec<Vec<Entry>>,
    /// What bpftrace printed when it ended.
    at_end: Vec<Entry>,
}

impl Printings {
    /// Parses all entries.
    pub(crate) fn of(entries: &mut Entries<'_>) -> Result<Printings, ImportError> {
        let mut names: Vec<String> = Vec::new();
        let mut maps: FxHashMap<String, Printed> = FxHashMap::default();
        while let Some(entry) = entries.next()? {
            if entry.is_first_of_end {
                maps.values_mut().for_each(Printed::end_was_not_yet);
            }
            if !maps.contains_key(&entry.map) {
                names.push(entry.map.clone());
            }
            maps.entry(entry.map.clone()).or_default().add(entry, entries.is_at_end());
        }
        let mut all = Printings::default();
        for name in names {
            let (entries, warning) = maps.remove(&name).unwrap_or_default().counting(&name);
            all.entries.extend(entries);
            all.warnings.extend(warning);
        }
        Ok(all)
    }
}

impl Printed {
    fn add(&mut self, entry: Entry, is_at_end: bool) {
        if is_at_end {
            return self.at_end.push(entry);
        }
        let falls = self.by_script.last().and_then(|one| one.last()).is_some_and(|last| {
            matches!((last.value, entry.value), (Value::Number(last), Value::Number(next)) if next < last)
        });
        if falls || self.by_script.is_empty() {
            self.by_script.push(Vec::new());
        }
        self.by_script.last_mut().into_iter().for_each(|one| one.push(entry.clone()));
    }

    /// Corrects the assumption that the end was reached: the empty lines were the program's own.
    fn end_was_not_yet(&mut self) {
        for entry in std::mem::take(&mut self.at_end) {
            self.add(entry, false);
        }
    }

    fn counting(self, name: &str) -> (Vec<Entry>, Option<String>) {
        let Printed { by_script, at_end } = self;
        let printings = by_script.len() + usize::from(!at_end.is_empty());
        let mut counting = Vec::new();
        let mut repeats = 0;
        if at_end.is_empty() {
            for one in by_script {
                let is_repeat = shares_a_key(&one, &counting) && contains(&one, &counting);
                repeats += usize::from(is_repeat);
                counting = if is_repeat { one } else { [counting, one].concat() };
            }
        } else if by_script.iter().all(|one| contains(&at_end, one)) {
            (counting, repeats) = (at_end, by_script.len());
        } else {
            counting = [by_script.concat(), at_end].concat();
        }
        let warning = match (printings, repeats) {
            (..2, _) => None,
            (_, 0) if !is_printed_again(&counting) => None,
            (_, 0) => Some(format!(
                "@{name} is printed {printings} times with other numbers, as if it was cleared in between: all count"
            )),
            _ => Some(format!(
                "@{name} is printed {} times, each time whole: the last one counts",
                repeats + 1
            )),
        };
        (counting, warning)
    }
}

type Key<'e> = (&'e [String], &'e [String]);

fn key(entry: &Entry) -> Key<'_> {
    (&entry.keys, &entry.frames)
}

fn number(entry: &Entry) -> u64 {
    match entry.value {
        Value::Number(number) | Value::Stats { count: number, .. } => number,
        Value::Other => 0,
    }
}

/// Adds up entries with equal keys, which are those of several processes.
fn sums(entries: &[Entry]) -> FxHashMap<Key<'_>, u64> {
    let mut sums = FxHashMap::default();
    for entry in entries {
        let sum: &mut u64 = sums.entry(key(entry)).or_default();
        *sum = sum.saturating_add(number(entry));
    }
    sums
}

fn shares_a_key(one: &[Entry], other: &[Entry]) -> bool {
    let sums = sums(other);
    one.iter().any(|entry| sums.contains_key(&key(entry)))
}

/// Returns whether a key occurs twice, further apart than within one output.
fn is_printed_again(entries: &[Entry]) -> bool {
    sums(entries).len() < entries.len()
}

/// Returns whether an output has all keys of an earlier one, and each number is at least as high. Names of a program
/// that has exited are addresses, so if no key is the same, the highest numbers are compared with the highest.
fn contains(later: &[Entry], earlier: &[Entry]) -> bool {
    if shares_a_key(later, earlier) {
        let later = sums(later);
        return sums(earlier).iter().all(|(key, sum)| later.get(key).is_some_and(|more| more >= sum));
    }
    let falling = |entries: &[Entry]| {
        let mut numbers: Vec<u64> = entries.iter().map(number).collect();
        numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
        numbers
    };
    let (later, earlier) = (falling(later), falling(earlier));
    later.len() >= earlier.len() && later.iter().zip(&earlier).all(|(later, earlier)| later >= earlier)
}
