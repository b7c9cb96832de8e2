//! The small symbol table of `.gnu_debugdata`: an ELF file, packed by xz, with the functions that `.dynsym` does not name. Fedora and its kin put one into
//! every stripped executable and library.
//!
//! The format is that of "MiniDebugInfo" in the manual of GDB.

use crate::sections::{Failure, caught};
use lzma_rust2::XzReader;
use object::{Object, ObjectSection};
use std::io::Read;

/// What such a table may unpack to for each byte of it: names pack to a third or a fifth.
const UNPACKED_PER_PACKED_MAX: u64 = 64;
/// What any may unpack to, and the most that is unpacked.
const UNPACKED_BYTES_ALLOWED: u64 = 1 << 20;
const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// The unpacked file. Tells what became of it, where there is one.
pub(crate) fn unpacked(file: &object::File<'_>, tell: impl Fn(&str)) -> Option<Vec<u8>> {
    let packed = file.section_by_name(".gnu_debugdata")?.data().ok()?;
    let unpacked = caught(|| unpack(packed)).map_err(Failure::into_message);
    match &unpacked {
        Ok(_) => tell("its .gnu_debugdata has names of functions: taken"),
        Err(error) => tell(&format!("its .gnu_debugdata cannot be unpacked: {error}")),
    }
    unpacked.ok()
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    let allowed = (packed.len() as u64).saturating_mul(UNPACKED_PER_PACKED_MAX);
    let allowed = allowed.clamp(UNPACKED_BYTES_ALLOWED, UNPACKED_BYTES_MAX);
    let mut unpacked = Vec::new();
    let reader = XzReader::new(packed, true);
    reader.take(allowed + 1).read_to_end(&mut unpacked).map_err(|error| error.to_string())?;
    if unpacked.len() as u64 > allowed {
        return Err("it unpacks to far more than its size allows".to_owned());
    }
    Ok(unpacked)
}
