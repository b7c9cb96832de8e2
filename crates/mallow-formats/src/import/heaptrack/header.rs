//! The first line: the version of heaptrack that wrote the file, and the version of the format.

use super::fields::Fields;
use crate::lines::Lines;
use crate::{Format, ImportError};

/// The newest supported version: heaptrack 1.3 to 1.6.
const FILE_VERSION_MAX: u64 = 3;
/// Wrote version 1 of the format without saying so.
const SILENT_VERSION_1: u64 = 0x01_02_00;
/// The first release that stores the address of the call instead of the return address.
const STORES_CALLS: u64 = 0x01_03_00;
/// The first release that writes resident memory in hexadecimal.
const WRITES_RESIDENT: u64 = 0x01_02_00;

/// The two versions in the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// heaptrack's version, one byte each for major, minor and patch.
    heaptrack_version: u64,
    pub(super) file_version: u64,
}

impl Header {
    /// Parses the file up to the version.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Header, ImportError> {
        while let Some(line) = lines.next()? {
            match line.split_first() {
                None | Some((b'#', _)) => continue,
                Some((b'v', rest)) => {
                    let mut fields = Fields::new(rest);
                    let versions =
                        fields.number("").and_then(|heaptrack| Ok((heaptrack, fields.next_number("")?)));
                    if let Ok((heaptrack_version, file_version)) = versions {
                        return Header::of(heaptrack_version, file_version);
                    }
                }
                Some(_) => {}
            }
            break;
        }
        Err(lines.expected("heaptrack's version, such as `v 10400 3`,"))
    }

    fn of(heaptrack_version: u64, file_version: Option<u64>) -> Result<Header, ImportError> {
        let unsaid = u64::from(heaptrack_version == SILENT_VERSION_1);
        let file_version = file_version.unwrap_or(unsaid);
        if file_version > FILE_VERSION_MAX {
            let reason = format!(
                "its format has version {file_version}, and this mallow reads versions up to {FILE_VERSION_MAX}; a newer mallow may \
                 read it"
            );
            return Err(ImportError::Unsupported { format: Format::Heaptrack, reason });
        }
        Ok(Header { heaptrack_version, file_version })
    }

    /// Returns whether strings are preceded by their length, which paths with blanks need: since version 3.
    pub(super) fn has_sized_strings(self) -> bool {
        self.file_version >= 3
    }

    /// Returns the return address of a stored address.
    pub(super) fn return_address(self, stored: u64) -> u64 {
        stored.saturating_add(u64::from(self.heaptrack_version >= STORES_CALLS))
    }

    /// Returns whether `R` lines are from the time when decimal digits were written where hexadecimal ones are read.
    pub(super) fn resident_is_doubtful(self) -> bool {
        self.heaptrack_version < WRITES_RESIDENT || self.file_version < 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn header(text: &'static str) -> Result<Header, ImportError> {
        Header::read(&mut Lines::new(Box::new(Cursor::new(text)), Format::Heaptrack))
    }

    #[test]
    fn versions_that_are_not_said_are_known() {
        let of = |text| header(text).unwrap().file_version;
        assert_eq!(
            (of("v 10000\n"), of("v 10200\n"), of("v 10200 2\n"), of("# a\n\nv 10650 3")),
            (0, 1, 2, 3)
        );
    }

    #[test]
    fn what_is_not_read_says_why() {
        assert_eq!(
            header("v 20000 1f\n").unwrap_err().to_string(),
            "this heaptrack file cannot be read: its format has version 31, and this mallow reads versions up to 3; a newer mallow may \
             read it"
        );
        let expected = "heaptrack's version, such as `v 10400 3`, was expected";
        assert_eq!(
            header("\nX ls\n").unwrap_err().to_string(),
            format!("this heaptrack file makes no sense at line 2: {expected}")
        );
        assert!(header("").unwrap_err().to_string().ends_with(expected));
    }
}
