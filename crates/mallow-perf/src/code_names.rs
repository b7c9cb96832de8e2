//! Names of code that has no file: the kernel's, and what programs make at run time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Functions by address.
#[derive(Debug, Default)]
pub struct CodeNames {
    /// Start, end (none if unknown), name; by start.
    functions: Vec<(u64, Option<u64>, String)>,
}

/// How large a list of names may be.
const LIST_BYTES_MAX: u64 = 256 << 20;

impl CodeNames {
    /// The kernel's, as far as we may see them.
    pub(crate) fn of_kernel() -> CodeNames {
        CodeNames::sorted(
            fs::read_to_string("/proc/kallsyms")
                .unwrap_or_default()
                .lines()
                .filter_map(kernel_line)
                .collect(),
        )
    }

    /// Whether the kernel that runs now has this symbol at this address.
    pub(crate) fn is_our_kernel(symbol: &str, address: u64) -> bool {
        let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let is_it = |(start, _, name): (u64, Option<u64>, String)| start == address && name == symbol;
        list.lines().filter_map(kernel_line).any(is_it)
    }

    /// What a runtime wrote to `/tmp/perf-PID.map`, if that can be trusted.
    pub(crate) fn of_process(pid: u32) -> CodeNames {
        let path = format!("/tmp/perf-{pid}.map");
        if !is_trusted(Path::new(&path)) {
            return CodeNames::default();
        }
        CodeNames::of_map(&fs::read(&path).unwrap_or_default())
    }

    /// Lines of `START SIZE NAME`, the numbers in hexadecimal.
    pub fn of_map(bytes: &[u8]) -> CodeNames {
        let line = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let (start, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            let start = number(start)?;
            Some((start, Some(start.checked_add(number(size)?)?), name.trim().to_owned()))
        };
        CodeNames::sorted(bytes.split(|byte| *byte == b'\n').filter_map(line).collect())
    }

    /// Functions that were told one by one: of those at one address the last one counts.
    pub(crate) fn sorted(mut functions: Vec<(u64, Option<u64>, String)>) -> CodeNames {
        functions.reverse();
        functions.sort_by_key(|(start, ..)| *start);
        functions.dedup_by_key(|(start, ..)| *start);
        CodeNames { functions }
    }

    /// The function at an address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.functions.get(behind.checked_sub(1)?)?;
        end.is_none_or(|end| address < end).then_some(name.as_str())
    }
}

/// Whether a list is a file of ours or of root's: whoever else writes to `/tmp` could tell us anything.
pub(crate) fn is_trusted(path: &Path) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_file() && found.len() <= LIST_BYTES_MAX && (ours == 0 || [0, ours].contains(&found.uid()))
    })
}

/// `ffffffff81000000 T _text`, with the module behind a tab. Addresses are 0 for whom they are hidden from.
fn kernel_line(line: &str) -> Option<(u64, Option<u64>, String)> {
    let mut words = line.split_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok().filter(|start| *start > 0)?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    is_code.then_some(())?;
    Some((start, None, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_runtimes_are_read_and_the_last_of_one_address_counts() {
        let names =
            CodeNames::of_map(b"1000 20 old\n2000 10 LazyCompile:*f /a b.js:3\nnonsense\n1000 10 new\n");
        assert_eq!(names.name(0x1005), Some("new"));
        assert_eq!((names.name(0x1010), names.name(0xfff), names.name(0x2010)), (None, None, None));
        assert_eq!(names.name(0x2000), Some("LazyCompile:*f /a b.js:3"));
    }

    #[test]
    fn the_kernels_names_are_those_of_code() {
        assert_eq!(
            kernel_line("ffffffff81000000 T _text"),
            Some((0xffff_ffff_8100_0000, None, "_text".into()))
        );
        assert_eq!(kernel_line("ffffffff81000000 d data"), None);
        assert_eq!(kernel_line("0000000000000000 T hidden"), None);
    }
}
