//! The recording's own chunks: how it began, and that it ended.

use super::varint::{DecodeError, Reader, put, put_str};
use alloc::string::String;
use alloc::vec::Vec;

/// What was recorded, where and when.
///
/// Layout: list of strings (command) · started_unix_us · counting_version · string (recorder_version) · list of pairs of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Wall-clock start, in microseconds since 1970.
    pub started_unix_us: u64,
    /// The version of the counting rules.
    pub counting_version: u32,
    /// The mallow that recorded, such as `0.1.0`.
    pub recorder_version: String,
    /// Pairs of name and value: kernel, machine, processors.
    pub environment: Vec<(String, String)>,
}

impl Recording {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.command.len() as u64);
        self.command.iter().for_each(|argument| put_str(out, argument));
        put(out, self.started_unix_us);
        put(out, u64::from(self.counting_version));
        put_str(out, &self.recorder_version);
        put(out, self.environment.len() as u64);
        for (name, value) in &self.environment {
            put_str(out, name);
            put_str(out, value);
        }
    }

    /// Reads a payload.
    pub fn decode(payload: &[u8]) -> Result<Recording, DecodeError> {
        let mut reader = Reader::new(payload);
        Ok(Recording {
            command: reader.list(1, "the command's arguments", |reader| reader.string("an argument"))?,
            started_unix_us: reader.varint("the start")?,
            counting_version: reader.varint32("the counting version")?,
            recorder_version: reader.string("the recorder's version")?,
            environment: reader.list(2, "the environment", |reader| {
                Ok((reader.string("a name")?, reader.string("a value")?))
            })?,
        })
    }
}

/// The profile came from another tool's file. Layout: string (format) · known · time_unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The format's name, such as `heaptrack`.
    pub format: String,
    /// Which figures it could tell: bit 0 allocations, 1 calls, 2 temporary, 3 peak, 4 leaked, 5 own maximum, 6 lifetimes, 7 times,
    /// 8 bytes, 9 blocks at the peak, 10 blocks at the end, 11 blocks at the own maximum.
    pub known: u64,
    /// What times are counted in: 0 microseconds, 1 instructions, 2 bytes.
    pub time_unit: u32,
}

impl Origin {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_str(out, &self.format);
        put(out, self.known);
        put(out, u64::from(self.time_unit));
    }

    /// Reads a payload.
    pub fn decode(payload: &[u8]) -> Result<Origin, DecodeError> {
        let mut reader = Reader::new(payload);
        Ok(Origin {
            format: reader.string("the format")?,
            known: reader.varint("the known figures")?,
            time_unit: reader.varint32("the unit of time")?,
        })
    }
}

/// What happened and is not in the trace. Layout: count · that many strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// A sentence each, for people, without a full stop.
    pub sentences: Vec<String>,
}

impl Unseen {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.sentences.len() as u64);
        self.sentences.iter().for_each(|sentence| put_str(out, sentence));
    }

    /// Reads a payload.
    pub fn decode(payload: &[u8]) -> Result<Unseen, DecodeError> {
        let mut reader = Reader::new(payload);
        let count = reader.varint("the number of sentences")?;
        let sentences = (0..count).map(|_| reader.string("a sentence")).collect::<Result<_, _>>()?;
        Ok(Unseen { sentences })
    }
}

/// The recording was closed in order. Layout: duration_us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// How long the recording took, in microseconds.
    pub duration_us: u64,
}

impl End {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.duration_us);
    }

    /// Reads a payload.
    pub fn decode(payload: &[u8]) -> Result<End, DecodeError> {
        Ok(End { duration_us: Reader::new(payload).varint("the duration")? })
    }
}
