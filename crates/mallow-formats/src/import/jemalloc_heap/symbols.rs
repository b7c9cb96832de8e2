//! The names that `jeprof --raw` writes before a heap profile.
//!
//! ```text
//! --- symbol
//! binary=/usr/bin/app
//! 0x00000000004011f7 main--inlined_in_main
//! ---
//! --- heap
//! heap_v2/524288
//! ```
//!
//! Within a line the caller comes first. Addresses are return addresses less one, except for those of innermost frames.

use super::NO_STACK;
use crate::ImportError;
use crate::lines::Lines;
use crate::rust_name;
use mallow_base::Frame;
use rustc_hash::FxHashMap;

/// Names by address; empty for a file without them.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    names: FxHashMap<u64, String>,
    /// Frames by the address of the call.
    frames: FxHashMap<u64, Frame>,
    pub(super) binary: Option<String>,
}

impl Symbols {
    /// Parses the names if the file begins with them, and the profile's own header after them.
    pub(crate) fn read(lines: &mut Lines<'_>) -> Result<(Symbols, Option<String>), ImportError> {
        let mut symbols = Symbols::default();
        let mut line = lines.next_text()?;
        if line.as_deref().is_some_and(|line| line.starts_with("--- symbol")) {
            while !symbols.add(lines)? {}
            line = lines.next_text()?;
            if line.as_deref().is_some_and(|line| line.starts_with("--- heap")) {
                line = lines.next_text()?;
            }
        }
        Ok((symbols, line))
    }

    /// Parses one line; returns whether it was the last.
    fn add(&mut self, lines: &mut Lines<'_>) -> Result<bool, ImportError> {
        let line = lines.next_text()?.ok_or_else(|| lines.expected("--- behind the names"))?;
        if line.starts_with("---") {
            return Ok(true);
        }
        match line.split_once([' ', '=']) {
            Some(("binary", path)) => self.binary = Some(path.trim().to_owned()),
            Some((address, names)) if address.starts_with("0x") => {
                let address = u64::from_str_radix(&address[2..], 16);
                let address = address.map_err(|_| lines.expected("an address and its names"))?;
                self.names.insert(address, names.trim().to_owned());
            }
            // Variables of other tools.
            _ => {}
        }
        Ok(false)
    }

    /// Returns whether an address means no stack: see [`NO_STACK`].
    pub(super) fn is_no_stack(&self, address: u64) -> bool {
        self.names.get(&address).is_some_and(|names| names == NO_STACK)
    }

    /// Adds the frame of a call, if a file has it beside the stack. The first one of an address is kept.
    pub(crate) fn add_frame(&mut self, call: u64, frame: Frame) {
        self.frames.entry(call).or_insert(frame);
    }

    /// Returns the frames at a return address, innermost first; empty if there is no name.
    pub(super) fn frames(&self, address: u64, is_innermost: bool) -> Vec<Frame> {
        let call = address.wrapping_sub(1);
        if let Some(frame) = self.frames.get(&call) {
            return vec![frame.clone()];
        }
        let (first, second) = if is_innermost { (address, call) } else { (call, address) };
        let names = self.names.get(&first).or_else(|| self.names.get(&second));
        let Some(names) = names.filter(|names| !is_bare_address(names)) else { return Vec::new() };
        let functions: Vec<&str> = names.split("--").map(str::trim).filter(|name| !name.is_empty()).collect();
        let frame = |(index, function): (usize, &&str)| Frame {
            function: rust_name::made_readable(without_address(function)),
            inlined: index > 0,
            ..Frame::default()
        };
        functions.iter().enumerate().rev().map(|(index, function)| frame((index, function))).collect()
    }
}

/// Returns whether jeprof found no name.
fn is_bare_address(names: &str) -> bool {
    names.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Removes the address in `leak<00000000000011d8>`, by which jeprof distinguishes functions with the same name.
fn without_address(function: &str) -> &str {
    let is_address =
        |digits: &str| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match function.strip_suffix('>').and_then(|name| name.rsplit_once('<')) {
        Some((name, digits)) if is_address(digits) && !name.is_empty() => name,
        _ => function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_from_their_addresses() {
        assert_eq!(without_address("leak<00000000000011d8>"), "leak");
        assert_eq!(without_address("Vec<int>"), "Vec<int>");
        assert_eq!(without_address("<00000000000011d8>"), "<00000000000011d8>");
    }

    #[test]
    fn rust_names_are_readable() {
        let names =
            "main--_RNvNtCs1234_7mycrate3foo3bar--csv::Reader::new::hbad6cbe59351a0a9<00000000000011d8>";
        let symbols =
            Symbols { names: FxHashMap::from_iter([(0x10, names.to_owned())]), ..Symbols::default() };
        let functions: Vec<String> =
            symbols.frames(0x10, true).into_iter().map(|frame| frame.function).collect();
        assert_eq!(functions, ["csv::Reader::new", "mycrate::foo::bar", "main"]);
    }

    #[test]
    fn a_caller_stands_before_what_is_inlined_in_it() {
        let names = FxHashMap::from_iter([(0x10, "main--work--new".to_owned()), (0x20, "0x20".to_owned())]);
        let symbols = Symbols { names, ..Symbols::default() };
        let named = |address, innermost| -> Vec<(String, bool)> {
            let frames = symbols.frames(address, innermost);
            frames.into_iter().map(|frame| (frame.function, frame.inlined)).collect()
        };
        let expected = [("new", true), ("work", true), ("main", false)]
            .map(|(name, inlined)| (name.to_owned(), inlined));
        assert_eq!(named(0x11, false), expected);
        assert_eq!(named(0x10, true), expected);
        assert_eq!(named(0x10, false), expected, "tools that store return addresses as they are");
        assert_eq!(named(0x20, true), []);
    }
}
