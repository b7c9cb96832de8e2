//! Functions by their addresses, and the perf maps that tell them.

use crate::live_code::line_of;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Functions by address.
#[derive(Clone, Debug, Default)]
pub struct CodeNames {
    /// Start, end (none if unknown), name; by start.
    functions: Vec<(u64, Option<u64>, String)>,
}

/// How large a list of names may be.
const LIST_BYTES_MAX: u64 = 256 << 20;

impl CodeNames {
    /// What a runtime wrote to `/tmp/perf-PID.map`, if that can be trusted.
    pub fn of_process(pid: u32) -> CodeNames {
        let path = map_path(pid);
        if !is_trusted(&path) {
            return CodeNames::default();
        }
        CodeNames::of_map(&fs::read(&path).unwrap_or_default())
    }

    /// Lines of `START SIZE NAME`, the numbers in hexadecimal.
    pub fn of_map(bytes: &[u8]) -> CodeNames {
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(line_of);
        CodeNames::sorted(lines.map(|(place, name)| (place.start, Some(place.end), name)).collect())
    }

    /// Functions that were told one by one: of those at one address the last one counts.
    pub fn sorted(mut functions: Vec<(u64, Option<u64>, String)>) -> CodeNames {
        functions.reverse();
        functions.sort_by_key(|(start, ..)| *start);
        functions.dedup_by_key(|(start, ..)| *start);
        CodeNames { functions }
    }

    /// Returns whether nothing was told.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Where a function begins.
    pub fn address(&self, function: &str) -> Option<u64> {
        self.functions.iter().find(|(.., name)| name == function).map(|(start, ..)| *start)
    }

    /// The function at an address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.functions.get(behind.checked_sub(1)?)?;
        end.is_none_or(|end| address < end).then_some(name.as_str())
    }
}

/// Where a process's runtime writes what it makes, by the number that the process has for itself.
pub fn map_path(pid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

/// Returns whether a list is a file of ours or of root's: whoever else writes to `/tmp` could tell us anything.
pub fn is_trusted(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| is_trusted_file(&found))
}

/// The same of a file that was found or opened.
pub(crate) fn is_trusted_file(found: &fs::Metadata) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    found.is_file() && found.len() <= LIST_BYTES_MAX && (ours == 0 || [0, ours].contains(&found.uid()))
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
}
