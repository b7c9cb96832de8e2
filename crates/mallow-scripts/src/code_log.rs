//! The log of scripts' code, record by record.

use mallow_wire::script::{
    CODE_LOG_BYTES, ChainRecord, CodeRecord, RECORD_CHAIN, RECORD_CODE, RECORD_RUNTIME, RecordHead,
    RuntimeRecord, Scripts,
};
use mallow_wire::shared::UNFILLED;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// A runtime that was met.
    Runtime {
        /// As in [`RuntimeRecord`].
        runtime: u16,
        /// As in [`RuntimeRecord`].
        version: u32,
        /// As in [`RuntimeRecord`].
        unread: u32,
        /// As in [`RuntimeRecord`].
        interpreter: [[u64; 2]; 2],
    },
    /// A piece of code.
    Code {
        /// Its number.
        number: u32,
        /// What it is.
        code: Code,
    },
    /// Frames that stand within each other, innermost first: each its code's number and its place.
    Chain {
        /// Its number, of those that code has.
        number: u32,
        /// The frames.
        frames: Vec<[u32; 2]>,
    },
    /// Nothing that this version knows.
    Other,
}

/// A piece of a script's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    pub(crate) runtime: u16,
    pub(crate) version: u32,
    pub(crate) first_line: u32,
    pub(crate) file: String,
    pub(crate) name: String,
    /// In the version's own format.
    pub(crate) lines: Vec<u8>,
}

/// A log in memory that a process shares and may write at any time: what is read of it is copied once, and only the copy is looked at.
pub trait CodeLog {
    /// What the process counts beside the log.
    fn counted(&self) -> &Scripts;

    /// The length that a record begins with, at a multiple of 8 within the log.
    fn length(&self, offset: usize) -> &AtomicU32;

    /// A copy of bytes within the log.
    fn copied(&self, offset: usize, bytes: usize) -> Vec<u8>;

    /// How much of the log was taken.
    fn used(&self) -> usize {
        (self.counted().log_reserved.load(Ordering::Acquire) as usize).min(CODE_LOG_BYTES)
    }

    /// The record at an offset, and the offset behind it; none when no whole one is there yet.
    fn code(&self, offset: usize) -> Option<(Logged, usize)> {
        let used = self.used();
        if !offset.is_multiple_of(8) || offset + size_of::<RecordHead>() > used {
            return None;
        }
        let bytes = self.length(offset).load(Ordering::Acquire) as usize;
        if bytes < size_of::<RecordHead>() || !bytes.is_multiple_of(8) || offset + bytes > used {
            return None;
        }
        Some((logged(&self.copied(offset, bytes)), offset + bytes))
    }

    /// The offset behind a record that is not filled; none if it is, or none is there.
    fn behind_unfilled(&self, offset: usize) -> Option<usize> {
        let used = self.used();
        if !offset.is_multiple_of(8) || offset + size_of::<u64>() > used {
            return None;
        }
        let length = self.length(offset).load(Ordering::Acquire);
        let bytes = (length & !UNFILLED) as usize;
        let is_one = length & UNFILLED != 0 && bytes > 0 && bytes.is_multiple_of(8);
        Some(offset + bytes).filter(|behind| is_one && *behind <= used)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn address(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// A whole record as a value.
fn logged(record: &[u8]) -> Logged {
    let head = word(record, offset_of!(RecordHead, kind));
    let (kind, runtime) = (head as u16, (head >> 16) as u16);
    let fixed_bytes = match kind {
        RECORD_RUNTIME => size_of::<RuntimeRecord>(),
        RECORD_CODE => size_of::<CodeRecord>(),
        RECORD_CHAIN => size_of::<ChainRecord>(),
        _ => return Logged::Other,
    };
    let Some((fixed, rest)) = record.split_at_checked(fixed_bytes) else { return Logged::Other };
    match kind {
        RECORD_RUNTIME => {
            let part = |at: usize| address(fixed, offset_of!(RuntimeRecord, interpreter) + at * 8);
            Logged::Runtime {
                runtime,
                version: word(fixed, offset_of!(RuntimeRecord, version)),
                unread: word(fixed, offset_of!(RuntimeRecord, unread)),
                interpreter: [[part(0), part(1)], [part(2), part(3)]],
            }
        }
        RECORD_CODE => code_of(runtime, fixed, rest).unwrap_or(Logged::Other),
        _ => {
            let count = word(fixed, offset_of!(ChainRecord, count)) as usize;
            let frames = rest.chunks_exact(8).take(count).map(|frame| [word(frame, 0), word(frame, 4)]);
            Logged::Chain { number: word(fixed, offset_of!(ChainRecord, code)), frames: frames.collect() }
        }
    }
}

/// None when the lengths do not fit.
fn code_of(runtime: u16, fixed: &[u8], rest: &[u8]) -> Option<Logged> {
    let number = |at: usize| word(fixed, at);
    let width = |at: usize| fixed.get(at).copied().unwrap_or(0);
    let (file, rest) = rest.split_at_checked(number(offset_of!(CodeRecord, file_bytes)) as usize)?;
    let (name, rest) = rest.split_at_checked(number(offset_of!(CodeRecord, name_bytes)) as usize)?;
    let code = Code {
        runtime,
        version: number(offset_of!(CodeRecord, version)),
        first_line: number(offset_of!(CodeRecord, first_line)),
        file: text(file, width(offset_of!(CodeRecord, file_width))),
        name: text(name, width(offset_of!(CodeRecord, name_width))),
        lines: rest.get(..number(offset_of!(CodeRecord, lines_bytes)) as usize)?.to_vec(),
    };
    Some(Logged::Code { number: number(offset_of!(CodeRecord, code)), code })
}

/// Characters of one, two or four bytes; UTF-8 for 0.
fn text(bytes: &[u8], width: u8) -> String {
    if width == 0 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let number = |char: &[u8]| char.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let chars = bytes.chunks_exact(usize::from(width.min(4))).map(number);
    chars.map(|number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
