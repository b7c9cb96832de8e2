//! What is at an address while a program makes code and throws it away.
//!
//! A runtime's map says what it made, one function after the other, and not what it threw away: of those that were told for one address
//! the last one is there. So an address means a function only together with the time, and a *version* stands for that: the
//! number of the function that was there. What is made once more at the same place is the same version.

use crate::frame_of;
use mallow_base::Frame;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Functions by address, as far as they were told.
#[derive(Clone, Debug, Default)]
pub struct LiveCode {
    /// By start. They do not overlap.
    functions: BTreeMap<u64, Function>,
    /// How many were told.
    told: u64,
}

#[derive(Clone, Debug)]
struct Function {
    end: u64,
    version: u64,
    frame: Arc<Frame>,
}

impl LiveCode {
    /// A line of a perf map. Returns whether its place was that of another function before.
    pub fn tell(&mut self, line: &[u8]) -> bool {
        let Some((place, name)) = line_of(line).filter(|(place, _)| !place.is_empty()) else { return false };
        self.told += 1;
        let frame = Arc::new(frame_of(&name));
        let before = self.vacate(&place);
        let is_other = before.iter().any(|function| function.frame != frame);
        let last = before.iter().map(|function| function.version).max();
        let version = last.filter(|_| !is_other).unwrap_or(self.told);
        self.functions.insert(place.start, Function { end: place.end, version, frame });
        is_other
    }

    /// The function at an address, and which version of what is there it is: above 0.
    pub fn at(&self, address: u64) -> Option<(&Arc<Frame>, u64)> {
        let (_, function) = self.functions.range(..=address).next_back()?;
        (address < function.end).then_some((&function.frame, function.version))
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Returns whether none was told.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Takes out what lies in a place. Of functions that lie in it in part, the rest stays.
    fn vacate(&mut self, place: &Range<u64>) -> Vec<Function> {
        let first = self.functions.range(..place.start).next_back().filter(|(_, it)| it.end > place.start);
        let starts: Vec<u64> =
            first.into_iter().chain(self.functions.range(place.clone())).map(|(start, _)| *start).collect();
        let mut out = Vec::new();
        for start in starts {
            let Some(function) = self.functions.remove(&start) else { continue };
            if start < place.start {
                self.functions.insert(start, Function { end: place.start, ..function.clone() });
            }
            if function.end > place.end {
                self.functions.insert(place.end, function.clone());
            }
            out.push(function);
        }
        out
    }
}

/// `START SIZE NAME`, the numbers in hexadecimal.
pub(crate) fn line_of(line: &[u8]) -> Option<(Range<u64>, String)> {
    let line = String::from_utf8_lossy(line);
    let (start, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let start = number(start)?;
    Some((start..start.checked_add(number(size)?)?, name.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(lines: &[&str]) -> (LiveCode, Vec<bool>) {
        let mut code = LiveCode::default();
        let others = lines.iter().map(|line| code.tell(line.as_bytes())).collect();
        (code, others)
    }

    fn at(code: &LiveCode, address: u64) -> Option<(&str, u64)> {
        code.at(address).map(|(frame, version)| (frame.function.as_str(), version))
    }

    #[test]
    fn another_function_at_an_address_is_another_version() {
        let (code, others) = told(&["1000 20 JS:~f /a.js:3:1", "2000 10 g", "1010 8 h"]);
        assert_eq!(others, [false, false, true]);
        assert_eq!(
            [0x1000, 0x1010, 0x1018].map(|it| at(&code, it)),
            [Some(("f", 1)), Some(("h", 3)), Some(("f", 1))]
        );
        assert_eq!([0xfff, 0x1020, 0x2010].map(|it| at(&code, it)), [None; 3]);
    }

    /// Compiled again by another tier, at the same place.
    #[test]
    fn the_same_function_is_the_same_version() {
        let (code, others) =
            told(&["1000 20 JS:~f /a.js:3:1", "1000 30 JS:*f /a.js:3:1", "nonsense", "1000 zz g"]);
        assert_eq!((others, at(&code, 0x1028)), (vec![false; 4], Some(("f", 1))));
    }

    proptest! {
        #[test]
        fn the_last_function_that_was_told_is_there(
            lines in prop::collection::vec((0_u64..60, 0_u64..20, 0_u8..4), 0..40),
        ) {
            let mut code = LiveCode::default();
            // By address: the function there.
            let mut naive = [None; 100];
            for (start, size, name) in lines {
                let is_other = code.tell(format!("{start:x} {size:x} f{name}").as_bytes());
                let place = &mut naive[start as usize..(start + size) as usize];
                prop_assert_eq!(is_other, place.iter().flatten().any(|before| *before != name));
                place.fill(Some(name));
                for (address, there) in naive.iter().enumerate() {
                    let found = code.at(address as u64).map(|(frame, _)| frame.function.clone());
                    prop_assert_eq!(found, there.map(|name: u8| format!("f{name}")));
                }
            }
        }
    }
}
