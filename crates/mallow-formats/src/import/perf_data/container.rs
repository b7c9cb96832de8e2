//! The container: its header, its attributes, what it says of the machine and of files, and its records.
//!
//! Every length is checked against the file before it is used. Records are found here, and interpreted elsewhere.

use byteorder::LittleEndian;
use linux_perf_event_reader::PerfEventAttr;
use std::io::Read;

/// The first kind of record that perf adds to those of the kernel, which are below 64.
const FIRST_OF_PERF: u32 = 64;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED_2: u32 = 83;
/// The size of a record's header: kind, flags, size.
const HEAD_BYTES: usize = 8;
/// Numbers of the file's feature sections.
const BUILD_ID: u32 = 2;
const HOST: u32 = 3;
const RELEASE: u32 = 4;
const ARCH: u32 = 6;
const COMMAND: u32 = 11;
const EVENTS: u32 = 12;
/// The size of the build id follows it; otherwise it is 20.
const HAS_SIZE: u16 = 1 << 15;
/// The maximum number of decompressed bytes per compressed one.
const UNPACKED_PER_BYTE_MAX: u64 = 1100;

/// An event that was recorded.
pub(super) struct Event {
    pub(super) attr: PerfEventAttr,
    pub(super) name: String,
    pub(super) ids: Vec<u64>,
}

/// A record of the kernel.
pub(super) struct Record {
    pub(super) kind: u32,
    pub(super) flags: u16,
    /// The bytes after its header, in the file or in the decompressed part.
    pub(super) body: std::ops::Range<usize>,
    pub(super) is_unpacked: bool,
}

/// A file.
pub(super) struct Container<'a> {
    bytes: &'a [u8],
    features: Vec<(u32, &'a [u8])>,
    pub(super) events: Vec<Event>,
    pub(super) records: Vec<Record>,
    unpacked: Vec<u8>,
    /// Whether the file is complete.
    pub(super) is_whole: bool,
}

impl<'a> Container<'a> {
    /// Parses a file.
    ///
    /// # Errors
    /// A sentence without its end.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Container<'a>, String> {
        let section = |at: usize| Some((u64_at(bytes, at)?, u64_at(bytes, at + 8)?));
        let attributes = section(24).ok_or("its head is cut off")?;
        let data = section(40).filter(|(start, size)| *start > 0 && *size > 0);
        let (start, size) = data.ok_or("it has no records: `perf record` did not end in order")?;
        let (start, end) = (place(start), place(start.saturating_add(size)));
        let features = features(bytes, end);
        let mut file = Container {
            bytes,
            features,
            events: Vec::new(),
            records: Vec::new(),
            unpacked: Vec::new(),
            is_whole: end <= bytes.len(),
        };
        file.events = file.events(attributes, u64_at(bytes, 16).unwrap_or(0));
        if file.events.is_empty() {
            return Err("it names no event".to_owned());
        }
        file.find_records(start, end.min(bytes.len()));
        Ok(file)
    }

    /// Returns a record's bytes after its header.
    pub(super) fn body(&self, record: &Record) -> &[u8] {
        let bytes = if record.is_unpacked { &self.unpacked } else { self.bytes };
        bytes.get(record.body.clone()).unwrap_or_default()
    }

    fn feature(&self, number: u32) -> Option<&'a [u8]> {
        self.features.iter().find(|(known, _)| *known == number).map(|(_, bytes)| *bytes)
    }

    /// Returns the machine's name.
    pub(super) fn host(&self) -> Option<String> {
        string(&mut self.feature(HOST)?)
    }

    /// Returns the kernel's release.
    pub(super) fn release(&self) -> Option<String> {
        string(&mut self.feature(RELEASE)?)
    }

    /// Returns the machine's architecture, by `uname`.
    pub(super) fn arch(&self) -> Option<String> {
        string(&mut self.feature(ARCH)?)
    }

    /// Returns the arguments of perf's own command line.
    pub(super) fn command(&self) -> Vec<String> {
        let Some(mut rest) = self.feature(COMMAND) else { return Vec::new() };
        let count = take_u32(&mut rest).unwrap_or(0);
        (0..count).map_while(|_| string(&mut rest)).collect()
    }

    /// Returns paths of files with their build ids.
    pub(super) fn build_ids(&self) -> Vec<(String, Vec<u8>)> {
        let mut rest = self.feature(BUILD_ID).unwrap_or_default();
        let mut known = Vec::new();
        while let Some((_, flags, body, behind)) = record(rest) {
            let size =
                if flags & HAS_SIZE == 0 { 20 } else { body.get(24).map_or(0, |size| usize::from(*size)) };
            if let (Some(id), Some(path)) = (body.get(4..4 + size.min(20)), body.get(28..)) {
                known.push((text(path), id.to_vec()));
            }
            rest = behind;
        }
        known
    }

    fn events(&self, (start, size): (u64, u64), entry_bytes: u64) -> Vec<Event> {
        let entries = self.bytes.get(place(start)..place(start.saturating_add(size))).unwrap_or_default();
        let mut names = self.feature(EVENTS).map(names_of).unwrap_or_default().into_iter();
        let entry_bytes = place(entry_bytes);
        if entry_bytes < 32 {
            return Vec::new();
        }
        let event = |entry: &[u8]| {
            let (attr, ids) = entry.split_at_checked(entry_bytes - 16)?;
            let (attr, _) = PerfEventAttr::parse::<_, LittleEndian>(attr).ok()?;
            let (start, size) = (u64_at(ids, 0)?, u64_at(ids, 8)?);
            let ids = self.bytes.get(place(start)..place(start.saturating_add(size))).unwrap_or_default();
            let ids = ids.chunks_exact(8).filter_map(|id| u64_at(id, 0)).collect();
            Some(Event { attr, name: names.next().unwrap_or_default(), ids })
        };
        entries.chunks_exact(entry_bytes).map_while(event).collect()
    }

    fn find_records(&mut self, start: usize, end: usize) {
        let mut packed = Vec::new();
        let (mut at, mut is_whole) = (start, true);
        while at < end {
            let Some((kind, flags, body, _)) = self.bytes.get(at..end).and_then(record) else {
                is_whole = false;
                break;
            };
            let body_at = at + HEAD_BYTES..at + HEAD_BYTES + body.len();
            at = body_at.end;
            match kind {
                COMPRESSED => packed.extend_from_slice(body),
                COMPRESSED_2 => {
                    let size = u64_at(body, 0).map_or(0, place);
                    packed.extend_from_slice(body.get(8..8_usize.saturating_add(size)).unwrap_or_default());
                }
                // The data of a hardware trace follows the record.
                AUXTRACE => at = at.saturating_add(u64_at(body, 0).map_or(0, place)),
                FIRST_OF_PERF.. => {}
                _ => self.records.push(Record { kind, flags, body: body_at, is_unpacked: false }),
            }
        }
        self.is_whole &= is_whole && at == end;
        if !packed.is_empty() {
            self.unpack(&packed);
        }
    }

    fn unpack(&mut self, packed: &[u8]) {
        let bytes_max = (packed.len() as u64).saturating_mul(UNPACKED_PER_BYTE_MAX);
        // perf never ends its zstd frame, and a truncated one returns what precedes the end: whether all is there follows from the records.
        let _ = zstd::stream::read::Decoder::with_buffer(packed)
            .and_then(|decoder| decoder.take(bytes_max).read_to_end(&mut self.unpacked));
        let mut at = 0;
        while let Some((kind, flags, body, _)) = self.unpacked.get(at..).and_then(record) {
            let body = at + HEAD_BYTES..at + HEAD_BYTES + body.len();
            at = body.end;
            if kind < FIRST_OF_PERF {
                self.records.push(Record { kind, flags, body, is_unpacked: true });
            }
        }
        self.is_whole &= at == self.unpacked.len();
    }
}

/// Returns the sections that are announced by bits of the header, in their order, after the records.
fn features(bytes: &[u8], table: usize) -> Vec<(u32, &[u8])> {
    let is_set = |number: &u32| {
        let word = u64_at(bytes, 72 + (*number as usize / 64) * 8).unwrap_or(0);
        word & 1 << (number % 64) != 0
    };
    let section = |(at, number): (usize, u32)| {
        let at = table.checked_add(at * 16)?;
        let (start, size) = (u64_at(bytes, at)?, u64_at(bytes, at + 8)?);
        Some((number, bytes.get(place(start)..place(start.saturating_add(size)))?))
    };
    (0..256).filter(is_set).enumerate().filter_map(section).collect()
}

/// Returns the names of events: their count, an attribute's size, then attribute, count of ids, name and ids of each.
fn names_of(mut rest: &[u8]) -> Vec<String> {
    let (Some(count), Some(attr_bytes)) = (take_u32(&mut rest), take_u32(&mut rest)) else {
        return Vec::new();
    };
    let name = |_| {
        rest = rest.get(attr_bytes as usize..)?;
        let ids = take_u32(&mut rest)? as usize;
        let name = string(&mut rest)?;
        rest = rest.get(ids.checked_mul(8)?..)?;
        Some(name)
    };
    (0..count).map_while(name).collect()
}

/// Returns a record's kind, flags and body, and the rest.
fn record(bytes: &[u8]) -> Option<(u32, u16, &[u8], &[u8])> {
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
    let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let flags = u16::from_le_bytes([head[4], head[5]]);
    let size = usize::from(u16::from_le_bytes([head[6], head[7]]));
    Some((kind, flags, bytes.get(HEAD_BYTES..size)?, bytes.get(size..)?))
}

/// Parses a length and that many bytes, of which the text ends before the first zero.
fn string(rest: &mut &[u8]) -> Option<String> {
    let length = take_u32(rest)? as usize;
    let (found, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(text(found))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_le_bytes(*number))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
