//! The lines of `/proc/PID/maps` after a heap profile: the file of an address, and the position in it.

use crate::ImportError;
use crate::lines::Lines;
use mallow_profile::MappedCode;

/// The name of a mapping without code: our own export puts locations without an address there.
pub(crate) const NO_ADDRESS: &str = "[no-address]";

/// No file has a longer path; the path of a damaged one would be copied into every frame.
const PATH_BYTES_MAX: usize = 4096;

/// Variables that a file may have.
const VARIABLES_MAX: usize = 16;

/// Programs that are linked to a fixed address are below this; addresses that the loader chooses are above, in 32-bit programs too.
const FIXED_BELOW: u64 = 0x1000_0000;

/// Returns the bias of a file that is mapped from `base` on: it has to be subtracted from addresses to get those in
/// the file. It is assumed that the first byte of a position-independent file has the address 0 in it, as linkers
/// arrange.
pub(crate) fn bias_of(base: u64) -> u64 {
    if base < FIXED_BELOW { 0 } else { base }
}

/// The mappings.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// By start.
    mappings: Vec<Mapping>,
}

#[derive(Debug)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
    is_code: bool,
    /// Subtracted from an address, results in the one in the file.
    bias: u64,
}

/// The place of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// In a file, at this address in it.
    File(&'a str, u64),
    /// In memory without a file, or not mapped.
    Elsewhere,
    /// There was no address: see [`NO_ADDRESS`].
    NoAddress,
}

impl Mappings {
    /// Parses up to the end. Lines that are not mappings, such as those that Go adds, are skipped.
    pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Mappings, ImportError> {
        let mut mappings = Vec::new();
        let mut variables: Vec<(String, String)> = Vec::new();
        while let Some(line) = lines.next_text()? {
            match variable(&line) {
                // A file may name a folder, and then begin paths with it.
                Some((name, value)) if variables.len() < VARIABLES_MAX => {
                    variables.push((format!("${name}"), value.to_owned()));
                }
                _ => {
                    let found = variables.iter().find(|(name, _)| line.contains(name.as_str()));
                    let line =
                        found.map_or(line.clone(), |(name, value)| line.replacen(name.as_str(), value, 1));
                    mappings.extend(Mapping::of_line(&line));
                }
            }
        }
        Ok(Mappings::of(mappings))
    }

    fn of(mut mappings: Vec<Mapping>) -> Mappings {
        mappings.sort_by_key(|mapping| mapping.start);
        let mut base = Vec::with_capacity(mappings.len());
        let mut images: rustc_hash::FxHashMap<&str, u64> = rustc_hash::FxHashMap::default();
        let mut before: Option<&Mapping> = None;
        for mapping in &mappings {
            let follows =
                before.is_some_and(|before| before.path == mapping.path && before.end == mapping.start);
            // A file's first byte begins a new image of it, unless it is only mapped again for another segment.
            let image = match images.get(mapping.path.as_str()) {
                Some(&image) if mapping.offset > 0 || follows => image,
                _ => mapping.start.saturating_sub(mapping.offset),
            };
            images.insert(&mapping.path, image);
            base.push(image);
            before = Some(mapping);
        }
        for (mapping, base) in mappings.iter_mut().zip(base) {
            mapping.bias = bias_of(base);
        }
        Mappings { mappings }
    }

    /// Returns the place of a return address. It may be after the last byte of its function's mapping.
    pub(super) fn place(&self, address: u64) -> Place<'_> {
        let call = address.wrapping_sub(1);
        let behind = self.mappings.partition_point(|mapping| mapping.start <= call);
        let found =
            behind.checked_sub(1).map(|index| &self.mappings[index]).filter(|mapping| call < mapping.end);
        match found {
            Some(mapping) if mapping.path == NO_ADDRESS => Place::NoAddress,
            Some(mapping) if mapping.is_file() => {
                Place::File(&mapping.path, address.wrapping_sub(mapping.bias))
            }
            _ => Place::Elsewhere,
        }
    }

    /// Returns where the code of each file was mapped. A file that was mapped at several places is left out: its addresses are not told apart.
    pub(super) fn code(&self) -> Vec<MappedCode> {
        let mut code: Vec<MappedCode> = Vec::new();
        let mut several: Vec<&str> = Vec::new();
        for mapping in self.mappings.iter().filter(|mapping| mapping.is_code && mapping.is_file()) {
            match code.iter_mut().find(|before| before.module == mapping.path) {
                Some(before) if before.end_avma == mapping.start => before.end_avma = mapping.end,
                Some(_) => several.push(&mapping.path),
                None => code.push(MappedCode {
                    module: mapping.path.clone(),
                    start_avma: mapping.start,
                    end_avma: mapping.end,
                    file_offset: mapping.offset,
                    bias: mapping.bias,
                }),
            }
        }
        code.retain(|mapped| !several.contains(&mapped.module.as_str()));
        code
    }

    /// Returns the program: the file that is mapped lowest.
    pub(super) fn program(&self) -> Option<&str> {
        self.mappings.iter().find(|mapping| mapping.is_file()).map(|mapping| mapping.path.as_str())
    }
}

impl Mapping {
    /// Returns whether it is a file. Names in brackets are the kernel's: the heap, stacks, its own code.
    fn is_file(&self) -> bool {
        !self.path.is_empty() && !self.path.starts_with('[')
    }

    /// Parses what is left of `00400000-00fcb000: /srv/demo/server`, as Google's servers write it: code, from the beginning of the file.
    fn of_google([start, end]: [u64; 2], line: &str) -> Option<Mapping> {
        let path = line.trim_start().split_once(' ')?.1.trim().to_owned();
        let is_short = path.len() <= PATH_BYTES_MAX;
        is_short.then_some(Mapping { start, end, offset: 0, path, is_code: true, bias: 0 })
    }

    /// Parses `564a055bf000-564a055c0000 r--p 00000000 fe:00 796919      /srv/demo/heaps`.
    fn of_line(line: &str) -> Option<Mapping> {
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let mut words = line.trim_start().splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        if let Some(end) = end.strip_suffix(':') {
            return Mapping::of_google([hexadecimal(start)?, hexadecimal(end)?], line);
        }
        let is_code = words.next()?.contains('x');
        let offset = hexadecimal(words.next()?)?;
        let path = words.nth(2).unwrap_or_default().trim();
        let path = path.strip_suffix(" (deleted)").unwrap_or(path).to_owned();
        if path.len() > PATH_BYTES_MAX {
            return None;
        }
        Some(Mapping { start: hexadecimal(start)?, end: hexadecimal(end)?, offset, path, is_code, bias: 0 })
    }
}

/// Returns the name and the value of `source=/srv/demo`, which paths begin with as `$source`.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && value.len() <= PATH_BYTES_MAX).then_some((name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mappings(text: &str) -> Mappings {
        Mappings::of(text.lines().filter_map(Mapping::of_line).collect())
    }

    #[test]
    fn an_address_is_told_as_its_file_states_it() {
        let mappings = mappings(
            "00400000-00401000 r--p 00000000 fe:00 12         /usr/bin/fixed\n\
             00401000-00402000 r-xp 00001000 fe:00 12         /usr/bin/fixed\n\
             7f0000000000-7f0000001000 r--p 00000000 fe:00 13                     /lib/a b.so\n\
             7f0000001000-7f0000003000 r-xp 00001000 fe:00 13                     /lib/a b.so (deleted)\n\
             7f0000004000-7f0000005000 rw-p 00000000 00:00 0 \n\
             7f0000005000-7f0000006000 r-xp 00000000 00:00 0                      [vdso]\n\
             7f0000006000-7f0000007000 r-xp 00000000 00:00 0                      [no-address]\n\
             7f0000008000-7f0000009000 r-xp 00003000 fe:00 14                     /lib/late.so\n",
        );
        for (address, expected) in [
            (0x401_234, Place::File("/usr/bin/fixed", 0x401_234)),
            (0x7f00_0000_2345, Place::File("/lib/a b.so", 0x2345)),
            // A call that was its function's last instruction.
            (0x7f00_0000_3000, Place::File("/lib/a b.so", 0x3000)),
            (0x7f00_0000_3001, Place::Elsewhere),
            (0x7f00_0000_4010, Place::Elsewhere),
            (0x7f00_0000_5010, Place::Elsewhere),
            (0x7f00_0000_6010, Place::NoAddress),
            (0x7f00_0000_8010, Place::File("/lib/late.so", 0x3010)),
            (0, Place::Elsewhere),
        ] {
            assert_eq!(mappings.place(address), expected, "{address:#x}");
        }
        assert_eq!(mappings.program(), Some("/usr/bin/fixed"));
        let code = |module: &str, start_avma, end_avma, file_offset, bias| MappedCode {
            module: module.to_owned(),
            start_avma,
            end_avma,
            file_offset,
            bias,
        };
        let expected = [
            code("/usr/bin/fixed", 0x401_000, 0x402_000, 0x1000, 0),
            code("/lib/a b.so", 0x7f00_0000_1000, 0x7f00_0000_3000, 0x1000, 0x7f00_0000_0000),
            code("/lib/late.so", 0x7f00_0000_8000, 0x7f00_0000_9000, 0x3000, 0x7f00_0000_5000),
        ];
        assert_eq!(mappings.code(), expected);
    }

    #[test]
    fn a_library_that_is_loaded_twice_has_two_places() {
        let mappings = mappings(
            "7f0000000000-7f0000001000 r--p 00000000 fe:00 13 /lib/a.so\n\
             7f0000001000-7f0000002000 r-xp 00000000 fe:00 13 /lib/a.so\n\
             7f0000010000-7f0000011000 r--p 00000000 fe:00 13 /lib/a.so\n\
             7f0000011000-7f0000012000 r-xp 00001000 fe:00 13 /lib/a.so\n",
        );
        assert_eq!(mappings.code(), []);
        assert_eq!(mappings.place(0x7f00_0000_1010), Place::File("/lib/a.so", 0x1010));
        assert_eq!(mappings.place(0x7f00_0001_1010), Place::File("/lib/a.so", 0x1010));
    }
}
