//! The file's and the chunks' headers.

use std::fmt;

/// The first eight bytes: not text, and damaged by any transfer that rewrites line ends or drops the eighth bit.
pub const TRACE_MAGIC: [u8; 8] = *b"\x89MALLOW\n";
/// The version that this crate writes.
pub const TRACE_VERSION: u32 = 1;
/// The oldest version that this crate reads.
pub const TRACE_VERSION_OLDEST: u32 = 1;
/// Bytes of the file's header.
pub const FILE_HEADER_BYTES: usize = 16;
/// Bytes of a chunk's header.
pub const CHUNK_HEADER_BYTES: usize = 24;
/// In [`ChunkHeader::flags`]: the payload is a zstd frame.
pub const FLAG_ZSTD: u16 = 1;
/// In [`ChunkHeader::process`]: the chunk belongs to the whole recording.
pub const NO_PROCESS: u32 = u32::MAX;

/// The kind of a chunk's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkKind(pub u16);

impl ChunkKind {
    /// [`mallow_profile::Recording`].
    pub const RECORDING: ChunkKind = ChunkKind(1);
    /// [`crate::ProcessStart`].
    pub const PROCESS_START: ChunkKind = ChunkKind(2);
    /// [`crate::Modules`].
    pub const MODULES: ChunkKind = ChunkKind(3);
    /// [`crate::Stacks`].
    pub const STACKS: ChunkKind = ChunkKind(4);
    /// [`crate::Threads`].
    pub const THREADS: ChunkKind = ChunkKind(5);
    /// The output of an [`crate::EventEncoder`].
    pub const EVENTS: ChunkKind = ChunkKind(6);
    /// [`crate::Samples`].
    pub const SAMPLES: ChunkKind = ChunkKind(7);
    /// [`crate::ProcessEnd`].
    pub const PROCESS_END: ChunkKind = ChunkKind(8);
    /// [`crate::Symbols`].
    pub const SYMBOLS: ChunkKind = ChunkKind(9);
    /// [`mallow_profile::Summary`].
    pub const FOLDED: ChunkKind = ChunkKind(10);
    /// [`crate::End`].
    pub const END: ChunkKind = ChunkKind(11);
    /// [`crate::Origin`].
    pub const ORIGIN: ChunkKind = ChunkKind(12);
    /// [`crate::LiveSamples`].
    pub const LIVE_SAMPLES: ChunkKind = ChunkKind(13);
    /// [`crate::Unseen`].
    pub const UNSEEN: ChunkKind = ChunkKind(14);
    /// [`crate::Unnamed`].
    pub const UNNAMED: ChunkKind = ChunkKind(15);
    /// [`crate::Accesses`].
    pub const ACCESSES: ChunkKind = ChunkKind(16);
    /// [`crate::TruncatedStacks`].
    pub const TRUNCATED_STACKS: ChunkKind = ChunkKind(17);
}

/// The header of a file of this version.
pub fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&TRACE_MAGIC);
    bytes[8..12].copy_from_slice(&TRACE_VERSION.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Why a file's header was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileHeaderError {
    /// Another magic.
    NotATrace,
    /// Our magic, and a header that is cut short or does not match its checksum.
    Damaged,
    /// A version that this crate reads no more.
    TooOld {
        /// The file's version.
        found: u32,
    },
    /// A version that this crate does not know yet.
    TooNew {
        /// The file's version.
        found: u32,
    },
}

impl fmt::Display for FileHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileHeaderError::NotATrace => write!(f, "this is not a mallow trace"),
            FileHeaderError::Damaged => write!(f, "the trace's first {FILE_HEADER_BYTES} bytes are damaged"),
            FileHeaderError::TooOld { found } => {
                write!(f, "trace version {found} is older than {TRACE_VERSION_OLDEST}")
            }
            FileHeaderError::TooNew { found } => {
                write!(f, "trace version {found} is newer than {TRACE_VERSION}")
            }
        }
    }
}

impl std::error::Error for FileHeaderError {}

/// Checks the first bytes of a file and returns its version. The bytes may be fewer or more than a header.
pub fn check_file_header(bytes: &[u8]) -> Result<u32, FileHeaderError> {
    if bytes.get(..8) != Some(&TRACE_MAGIC[..]) {
        return Err(FileHeaderError::NotATrace);
    }
    let header = bytes.first_chunk::<FILE_HEADER_BYTES>().ok_or(FileHeaderError::Damaged)?;
    if crc32fast::hash(&header[..12]) != u32_at(header, 12) {
        return Err(FileHeaderError::Damaged);
    }
    match u32_at(header, 8) {
        found if found < TRACE_VERSION_OLDEST => Err(FileHeaderError::TooOld { found }),
        found if found > TRACE_VERSION => Err(FileHeaderError::TooNew { found }),
        version => Ok(version),
    }
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Its kind.
    pub kind: ChunkKind,
    /// [`FLAG_ZSTD`] or 0.
    pub flags: u16,
    /// The process's index, or [`NO_PROCESS`].
    pub process: u32,
    /// Bytes that follow the header.
    pub payload_bytes: u32,
    /// Bytes of the payload after decompression.
    pub raw_bytes: u32,
    /// 0 in this version.
    pub reserved: u32,
    /// The checksum.
    pub crc32: u32,
}

impl ChunkHeader {
    /// Returns the header for a payload as it is going to be stored. `raw_bytes` is set if the payload was compressed
    /// by zstd. `None` if a length does not fit 32 bits: write smaller chunks.
    pub fn new(
        kind: ChunkKind,
        process: u32,
        payload: &[u8],
        raw_bytes: Option<usize>,
    ) -> Option<ChunkHeader> {
        let mut header = ChunkHeader {
            kind,
            flags: if raw_bytes.is_some() { FLAG_ZSTD } else { 0 },
            process,
            payload_bytes: u32::try_from(payload.len()).ok()?,
            raw_bytes: u32::try_from(raw_bytes.unwrap_or(payload.len())).ok()?,
            reserved: 0,
            crc32: 0,
        };
        header.crc32 = header.checksum(payload);
        Some(header)
    }

    /// The header as stored.
    pub fn to_bytes(self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[0..2].copy_from_slice(&self.kind.0.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.flags.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.process.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.reserved.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.crc32.to_le_bytes());
        bytes
    }

    /// Reads a header. Nothing is checked; see [`ChunkHeader::is_intact`].
    pub fn from_bytes(bytes: &[u8; CHUNK_HEADER_BYTES]) -> ChunkHeader {
        ChunkHeader {
            kind: ChunkKind(u16::from_le_bytes([bytes[0], bytes[1]])),
            flags: u16::from_le_bytes([bytes[2], bytes[3]]),
            process: u32_at(bytes, 4),
            payload_bytes: u32_at(bytes, 8),
            raw_bytes: u32_at(bytes, 12),
            reserved: u32_at(bytes, 16),
            crc32: u32_at(bytes, 20),
        }
    }

    /// Returns whether the checksum is that of this header and this payload.
    pub fn is_intact(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize && self.checksum(payload) == self.crc32
    }

    fn checksum(&self, payload: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.to_bytes()[..20]);
        hasher.update(payload);
        hasher.finalize()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_back_and_any_flipped_bit_is_seen() {
        let payload = b"payload";
        let header = ChunkHeader::new(ChunkKind::STACKS, 3, payload, None).unwrap();
        let bytes = header.to_bytes();
        assert_eq!(ChunkHeader::from_bytes(&bytes), header);
        assert!(header.is_intact(payload));
        for bit in 0..CHUNK_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!ChunkHeader::from_bytes(&flipped).is_intact(payload), "bit {bit}");
        }
        assert!(!header.is_intact(b"paYload"));
    }

    #[test]
    fn file_headers_are_refused_for_their_reason() {
        let header = file_header();
        assert_eq!(check_file_header(&header), Ok(TRACE_VERSION));
        assert_eq!(check_file_header(b""), Err(FileHeaderError::NotATrace));
        assert_eq!(check_file_header(b"\x7fELF............"), Err(FileHeaderError::NotATrace));
        assert_eq!(check_file_header(&header[..15]), Err(FileHeaderError::Damaged));
        let with_version = |version: u32| {
            let mut bytes: Vec<u8> = header[..12].to_vec();
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let crc = crc32fast::hash(&bytes);
            bytes.extend(crc.to_le_bytes());
            bytes
        };
        assert_eq!(check_file_header(&with_version(0)), Err(FileHeaderError::TooOld { found: 0 }));
        assert_eq!(check_file_header(&with_version(2)), Err(FileHeaderError::TooNew { found: 2 }));
    }

    #[test]
    fn the_worked_example_is_true() {
        let mut payload = Vec::new();
        crate::Payload::encode(&crate::End { duration_us: 300 }, &mut payload);
        assert_eq!(payload, [0xac, 0x02]);
        let header = ChunkHeader::new(ChunkKind::END, NO_PROCESS, &payload, None).unwrap().to_bytes();
        let stated = [0x0b, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(header[..20], stated);
        assert_eq!(file_header()[..12], *b"\x89MALLOW\n\x01\0\0\0");
    }
}
