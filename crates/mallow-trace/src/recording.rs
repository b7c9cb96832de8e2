//! The recording's own chunks: how it began, and that it ended.

use crate::varint::{DecodeError, Reader, put, put_str};
use crate::{ChunkKind, Payload};
use mallow_profile::{Availability, EarlyEnds, Nameless, Recording, TimeUnit};

/// What was recorded, where and when. Its duration is in [`End`], and the unit of times in [`Origin`].
///
/// Layout: list of strings (command) · started_unix_us · counting_version · string (recorder_version) · list of pairs
/// of strings (environment).
impl Payload for Recording {
    const KIND: ChunkKind = ChunkKind::RECORDING;

    fn encode(&self, out: &mut Vec<u8>) {
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

    fn decode(payload: &[u8]) -> Result<Recording, DecodeError> {
        let mut reader = Reader::new(payload);
        Ok(Recording {
            command: reader.list(1, "the command's arguments", |reader| reader.string("an argument"))?,
            started_unix_us: reader.varint("the start")?,
            counting_version: reader.varint32("the counting version")?,
            recorder_version: reader.string("the recorder's version")?,
            environment: reader.list(2, "the environment", |reader| {
                Ok((reader.string("a name")?, reader.string("a value")?))
            })?,
            ..Recording::default()
        })
    }
}

/// The profile was imported from another tool's file. Layout: string (format) · known · time_unit.
///
/// Known is a bit for each field, in the order of [`Availability::fields`]: bit 0 allocations, 1 calls, 2 temporary,
/// 3 peak, 4 leaked, 5 own maximum, 6 lifetimes, 7 times, 8 bytes, 9 blocks at the peak, 10 blocks at the end, 11
/// blocks at the own maximum. The unit is 0 for microseconds, 1 for instructions, 2 for bytes; an unknown unit is
/// read as microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The format's name, such as `heaptrack`.
    pub format: String,
    /// Which metrics it contains.
    pub known: Availability,
    /// The unit of times.
    pub time_unit: TimeUnit,
}

const TIME_UNITS: [TimeUnit; 3] = [TimeUnit::Microseconds, TimeUnit::Instructions, TimeUnit::Bytes];

impl Payload for Origin {
    const KIND: ChunkKind = ChunkKind::ORIGIN;

    fn encode(&self, out: &mut Vec<u8>) {
        put_str(out, &self.format);
        let mut known = self.known;
        put(out, (0..).zip(known.fields()).map(|(bit, field)| u64::from(*field) << bit).sum());
        put(out, TIME_UNITS.iter().position(|unit| *unit == self.time_unit).unwrap_or(0) as u64);
    }

    fn decode(payload: &[u8]) -> Result<Origin, DecodeError> {
        let mut reader = Reader::new(payload);
        let format = reader.string("the format")?;
        let bits = reader.varint("the known metrics")?;
        let mut known = Availability::NOTHING;
        for (bit, field) in (0..).zip(known.fields()) {
            *field = bits >> bit & 1 == 1;
        }
        let unit = reader.varint32("the unit of time")? as usize;
        Ok(Origin { format, known, time_unit: TIME_UNITS.get(unit).copied().unwrap_or_default() })
    }
}

/// What happened and is missing in the trace. Layout: count · that many strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// A sentence each, for people, without a full stop.
    pub sentences: Vec<String>,
}

impl Payload for Unseen {
    const KIND: ChunkKind = ChunkKind::UNSEEN;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.sentences.len() as u64);
        self.sentences.iter().for_each(|sentence| put_str(out, sentence));
    }

    fn decode(payload: &[u8]) -> Result<Unseen, DecodeError> {
        let mut reader = Reader::new(payload);
        let count = reader.varint("the number of sentences")?;
        let sentences = (0..count).map(|_| reader.string("a sentence")).collect::<Result<_, _>>()?;
        Ok(Unseen { sentences })
    }
}

/// Modules whose frames are addresses because looking their names up failed. Layout: list of pairs of strings (module and reason).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unnamed {
    /// Each of them.
    pub modules: Vec<Nameless>,
}

impl Payload for Unnamed {
    const KIND: ChunkKind = ChunkKind::UNNAMED;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.modules.len() as u64);
        for Nameless { module, reason } in &self.modules {
            put_str(out, module);
            put_str(out, reason);
        }
    }

    fn decode(payload: &[u8]) -> Result<Unnamed, DecodeError> {
        let module = |reader: &mut Reader<'_>| {
            Ok(Nameless { module: reader.string("a module")?, reason: reader.string("a reason")? })
        };
        Ok(Unnamed { modules: Reader::new(payload).list(2, "the modules without names", module)? })
    }
}

/// Modules in which stacks end too early. Layout: list of module (string), allocations, and 1 if they may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruncatedStacks {
    /// Each of them.
    pub early_ends: Vec<EarlyEnds>,
}

impl Payload for TruncatedStacks {
    const KIND: ChunkKind = ChunkKind::TRUNCATED_STACKS;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.early_ends.len() as u64);
        for EarlyEnds { module, allocations, or_more } in &self.early_ends {
            put_str(out, module);
            put(out, *allocations);
            put(out, u64::from(*or_more));
        }
    }

    fn decode(payload: &[u8]) -> Result<TruncatedStacks, DecodeError> {
        let ends = |reader: &mut Reader<'_>| {
            Ok(EarlyEnds {
                module: reader.string("a module")?,
                allocations: reader.varint("a number of allocations")?,
                or_more: reader.varint("whether they may be more")? != 0,
            })
        };
        Ok(TruncatedStacks {
            early_ends: Reader::new(payload).list(3, "the modules in which stacks end", ends)?,
        })
    }
}

/// The recording was closed in order. Layout: duration_us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// How long the recording took, in microseconds.
    pub duration_us: u64,
}

impl Payload for End {
    const KIND: ChunkKind = ChunkKind::END;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.duration_us);
    }

    fn decode(payload: &[u8]) -> Result<End, DecodeError> {
        Ok(End { duration_us: Reader::new(payload).varint("the duration")? })
    }
}
