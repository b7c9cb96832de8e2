//! How often the blocks of a process's sites were read and written, where a profile's source counts that.
//!
//! Layout: list of sites: the stack id as a signed difference to the one before (0; `u32::MAX` when no stack was taken) · bytes read · bytes written ·
//! 0, or 1 + the number of runs of bytes with equal counts · of each run its bytes and their count.

use crate::varint::{DecodeError, Reader, put, zigzag};
use crate::{ChunkKind, Payload};
use mallow_profile::{ByteAccesses, StackId};

/// The reads and writes of a process's sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Those of each site.
    pub sites: Vec<SiteAccess>,
}

/// The reads and writes of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteAccess {
    /// Its stack, as in [`mallow_profile::SiteSummary`].
    pub stack: StackId,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// How often each byte of a block was accessed, if all blocks have the same size.
    pub bytes: Option<ByteAccesses>,
}

impl Payload for Accesses {
    const KIND: ChunkKind = ChunkKind::ACCESSES;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.sites.len() as u64);
        let mut stack = 0;
        for site in &self.sites {
            put(out, zigzag(u64::from(site.stack.0).wrapping_sub(stack)));
            put(out, site.read_bytes);
            put(out, site.written_bytes);
            put(out, site.bytes.as_ref().map_or(0, |bytes| bytes.runs().len() as u64 + 1));
            for (bytes, count) in site.bytes.iter().flat_map(ByteAccesses::runs) {
                put(out, u64::from(*bytes));
                put(out, u64::from(*count));
            }
            stack = u64::from(site.stack.0);
        }
    }

    fn decode(payload: &[u8]) -> Result<Accesses, DecodeError> {
        let mut stack = 0u64;
        let sites = Reader::new(payload).list(4, "the sites", |reader| {
            let start = *reader;
            stack = stack.wrapping_add(reader.signed("a site's stack")?);
            let id = u32::try_from(stack).map_err(|_| start.expected("a stack id of 32 bits"))?;
            let read_bytes = reader.varint("the bytes read")?;
            let written_bytes = reader.varint("the bytes written")?;
            let bytes = match reader.varint("the number of runs")? {
                0 => None,
                runs => Some(runs_of(reader, runs - 1)?),
            };
            Ok(SiteAccess { stack: StackId(id), read_bytes, written_bytes, bytes })
        })?;
        Ok(Accesses { sites })
    }
}

/// Reads this many runs. A damaged number ends with the payload.
fn runs_of(reader: &mut Reader<'_>, number: u64) -> Result<ByteAccesses, DecodeError> {
    let start = *reader;
    let mut runs = Vec::new();
    for _ in 0..number {
        runs.push((reader.varint("the bytes of a run")?, reader.varint32("the count of a run")?));
    }
    ByteAccesses::of_runs(runs).ok_or_else(|| start.expected("runs no longer than a block"))
}
