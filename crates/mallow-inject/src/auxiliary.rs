//! What the kernel told a program of itself, on its stack: where its program headers are, and where it begins.
//!
//! System V ABI, "Process Initialization": the number of words, their addresses, a null; the environment, a null; pairs of a tag and a
//! value.

use crate::InjectError;
use crate::tracee::Tracee;

const AT_NULL: u64 = 0;
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;

/// Bytes of a program header.
pub(crate) const HEADER_BYTES: u64 = 56;

/// Where a program is in memory, by what the kernel told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Auxiliary {
    /// Of its program headers.
    pub(crate) headers: u64,
    pub(crate) header_count: u64,
    /// Its first instruction.
    pub(crate) entry: u64,
    /// Where the two values that may be changed stand.
    headers_at: u64,
    header_count_at: u64,
}

impl Auxiliary {
    /// Reads it from the stack.
    pub(crate) fn read(tracee: &Tracee, stack: u64) -> Result<Auxiliary, InjectError> {
        let mut at = stack;
        let mut next = || -> Result<(u64, u64), InjectError> {
            let mut word = [0; 8];
            tracee.read(at, &mut word)?;
            at += 8;
            Ok((at - 8, u64::from_le_bytes(word)))
        };
        let (_, words) = next()?;
        for _ in 0..=words {
            next()?;
        }
        while next()?.1 != 0 {}
        let mut found = Auxiliary::default();
        loop {
            let ((_, tag), (place, value)) = (next()?, next()?);
            match tag {
                AT_NULL => break,
                AT_PHDR => (found.headers, found.headers_at) = (value, place),
                AT_PHNUM => (found.header_count, found.header_count_at) = (value, place),
                AT_ENTRY => found.entry = value,
                AT_PHENT if value != HEADER_BYTES => return Err(InjectError::Damaged),
                // There is a loader after all.
                AT_BASE if value != 0 => return Err(InjectError::Damaged),
                _ => {}
            }
        }
        let is_whole = found.headers_at != 0 && found.header_count_at != 0 && found.entry != 0;
        let is_whole = is_whole && found.header_count < 4096;
        is_whole.then_some(found).ok_or(InjectError::Damaged)
    }

    /// Has the program find other program headers.
    pub(crate) fn replace_headers(
        &self,
        tracee: &Tracee,
        headers: u64,
        count: u64,
    ) -> Result<(), InjectError> {
        tracee.write(self.headers_at, &headers.to_le_bytes())?;
        tracee.write(self.header_count_at, &count.to_le_bytes())
    }
}
