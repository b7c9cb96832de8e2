//! A process's chunks: how it began and ended, its threads, its resident memory.

use crate::varint::{DecodeError, Reader, put, put_str, unzigzag, zigzag};
use crate::{ChunkKind, Payload};
use mallow_profile::{EventsLost, Exit, LiveSample, Sample};

/// A process registered. Layout: pid · parent_pid · string (command) · started_us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStart {
    /// The process id.
    pub pid: u32,
    /// The parent's process id.
    pub parent_pid: u32,
    /// The command line, blanks between arguments.
    pub command: String,
    /// In microseconds since the recording's start.
    pub started_us: u64,
}

impl Payload for ProcessStart {
    const KIND: ChunkKind = ChunkKind::PROCESS_START;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, u64::from(self.pid));
        put(out, u64::from(self.parent_pid));
        put_str(out, &self.command);
        put(out, self.started_us);
    }

    fn decode(payload: &[u8]) -> Result<ProcessStart, DecodeError> {
        let mut reader = Reader::new(payload);
        Ok(ProcessStart {
            pid: reader.varint32("the process id")?,
            parent_pid: reader.varint32("the parent's process id")?,
            command: reader.string("the command")?,
            started_us: reader.varint("the start")?,
        })
    }
}

/// A thread as the system knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadName {
    /// Its index in the process, dense, in the order of first calls.
    pub index: u32,
    /// The kernel's thread id.
    pub tid: u32,
    /// Its name, when it was seen alive; else empty.
    pub name: String,
}

/// Threads that are new, or whose name is now known. Layout: list of index · tid · string (name).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The threads.
    pub threads: Vec<ThreadName>,
}

impl Payload for Threads {
    const KIND: ChunkKind = ChunkKind::THREADS;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.threads.len() as u64);
        for thread in &self.threads {
            put(out, u64::from(thread.index));
            put(out, u64::from(thread.tid));
            put_str(out, &thread.name);
        }
    }

    fn decode(payload: &[u8]) -> Result<Threads, DecodeError> {
        let threads = Reader::new(payload).list(3, "the threads", |reader| {
            Ok(ThreadName {
                index: reader.varint32("a thread's index")?,
                tid: reader.varint32("a thread id")?,
                name: reader.string("a thread's name")?,
            })
        })?;
        Ok(Threads { threads })
    }
}

/// Resident memory over time. Layout: list of signed pairs, each less the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// In order of time.
    pub samples: Vec<Sample>,
}

impl Payload for Samples {
    const KIND: ChunkKind = ChunkKind::SAMPLES;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.samples.len() as u64);
        let mut last = Sample::default();
        for sample in &self.samples {
            put(out, zigzag(sample.time_us.wrapping_sub(last.time_us)));
            put(out, zigzag(sample.rss_bytes.wrapping_sub(last.rss_bytes)));
            last = *sample;
        }
    }

    fn decode(payload: &[u8]) -> Result<Samples, DecodeError> {
        let mut last = Sample::default();
        let samples = Reader::new(payload).list(2, "the samples", |reader| {
            last.time_us = last.time_us.wrapping_add(reader.signed("a sample's time")?);
            last.rss_bytes = last.rss_bytes.wrapping_add(reader.signed("a sample's resident bytes")?);
            Ok(last)
        })?;
        Ok(Samples { samples })
    }
}

/// More events than anybody can lose.
const LOST_UNKNOWN: u64 = u64::MAX;

/// A process ended. Layout: ended_us · exit kind (0 not seen, 1 status, 2 signal, 3 exec) · signed (status or signal,
/// else 0) · events_lost, which is the largest u64 if it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessEnd {
    /// In microseconds since the recording's start.
    pub ended_us: u64,
    /// Its exit; `None` if it was not seen.
    pub exit: Option<Exit>,
    /// Events that were not recorded.
    pub events_lost: EventsLost,
}

impl Payload for ProcessEnd {
    const KIND: ChunkKind = ChunkKind::PROCESS_END;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.ended_us);
        let (kind, number) = match self.exit {
            None => (0, 0),
            Some(Exit::Status(status)) => (1, status),
            Some(Exit::Signal(signal)) => (2, signal),
            Some(Exit::Exec) => (3, 0),
            Some(Exit::GoesOn) => (4, 0),
        };
        put(out, kind);
        put(out, zigzag(i64::from(number) as u64));
        put(
            out,
            match self.events_lost {
                EventsLost::Exactly(events) => events,
                EventsLost::Unknown => LOST_UNKNOWN,
            },
        );
    }

    fn decode(payload: &[u8]) -> Result<ProcessEnd, DecodeError> {
        let mut reader = Reader::new(payload);
        let ended_us = reader.varint("the end")?;
        let at_kind = reader;
        let kind = reader.varint("the kind of exit")?;
        let number = unzigzag(reader.varint("the exit's number")?) as i64;
        let number = i32::try_from(number).map_err(|_| at_kind.expected("an exit's number of 32 bits"))?;
        let exit = match kind {
            0 => None,
            1 => Some(Exit::Status(number)),
            2 => Some(Exit::Signal(number)),
            3 => Some(Exit::Exec),
            4 => Some(Exit::GoesOn),
            _ => return Err(at_kind.expected("a kind of exit from 0 to 4")),
        };
        let events_lost = match reader.varint("the number of lost events")? {
            LOST_UNKNOWN => EventsLost::Unknown,
            events => EventsLost::Exactly(events),
        };
        Ok(ProcessEnd { ended_us, exit, events_lost })
    }
}

/// Live memory over time, if the trace has no events from which it could be computed. Layout: list of time as a
/// signed difference to the one before · the three metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveSamples {
    /// In order of time.
    pub samples: Vec<LiveSample>,
}

impl Payload for LiveSamples {
    const KIND: ChunkKind = ChunkKind::LIVE_SAMPLES;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.samples.len() as u64);
        let mut last_us = 0;
        for sample in &self.samples {
            put(out, zigzag(sample.time_us.wrapping_sub(last_us)));
            put(out, sample.live_bytes);
            put(out, sample.overhead_bytes);
            put(out, sample.stack_bytes);
            last_us = sample.time_us;
        }
    }

    fn decode(payload: &[u8]) -> Result<LiveSamples, DecodeError> {
        let mut time_us = 0u64;
        let samples = Reader::new(payload).list(4, "the samples", |reader| {
            time_us = time_us.wrapping_add(reader.signed("a sample's time")?);
            Ok(LiveSample {
                time_us,
                live_bytes: reader.varint("a sample's live bytes")?,
                overhead_bytes: reader.varint("a sample's overhead")?,
                stack_bytes: reader.varint("a sample's stack bytes")?,
            })
        })?;
        Ok(LiveSamples { samples })
    }
}
