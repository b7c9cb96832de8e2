//! Which libraries a program names as those that it needs, read from its file.
//!
//! The format: System V ABI, "Dynamic Section"; 64 bits, little-endian, as everything that can be recorded is.

use std::fs::File;
use std::os::unix::fs::FileExt;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// A program header: its kind, and where its bytes lie in the file and in memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// The names in the order of the file; none when it cannot be read or is no such program.
pub(crate) fn libraries(file: &File) -> Vec<Vec<u8>> {
    read(file).unwrap_or_default()
}

fn read(file: &File) -> Option<Vec<Vec<u8>>> {
    /// What no linker exceeds, so that a damaged file costs no time.
    const TAGS_MAX: u64 = 4096;
    let segments = segments(file)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let (mut names, mut strings) = (Vec::new(), None);
    for index in 0..(dynamic.bytes / 16).min(TAGS_MAX) {
        let entry: [u8; 16] = at(file, dynamic.offset.checked_add(index * 16)?)?;
        match (long(&entry, 0), long(&entry, 8)) {
            (DT_NULL, _) => break,
            (DT_NEEDED, name) => names.push(name),
            (DT_STRTAB, address) => strings = Some(address),
            _ => {}
        }
    }
    let strings = offset_of(&segments, strings?)?;
    Some(names.into_iter().filter_map(|name| text(file, strings.checked_add(name)?)).collect())
}

fn segments(file: &File) -> Option<Vec<Segment>> {
    let header: [u8; 64] = at(file, 0)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, count) = (long(&header, 32), u64::from(u16::from_le_bytes([header[56], header[57]])));
    let mut segments = Vec::new();
    for index in 0..count {
        let entry: [u8; 56] = at(file, first.checked_add(index * 56)?)?;
        segments.push(Segment {
            kind: u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]),
            offset: long(&entry, 8),
            address: long(&entry, 16),
            bytes: long(&entry, 32),
        });
    }
    Some(segments)
}

/// Where in the file the byte lies that is loaded at this address.
fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    let holds = |it: &&Segment| it.kind == PT_LOAD && address.wrapping_sub(it.address) < it.bytes;
    let segment = segments.iter().find(holds)?;
    segment.offset.checked_add(address - segment.address)
}

/// The bytes up to the first zero.
fn text(file: &File, offset: u64) -> Option<Vec<u8>> {
    let mut bytes = [0; 256];
    let read = file.read_at(&mut bytes, offset).ok()?;
    bytes[..read].split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
}

fn at<const N: usize>(file: &File, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_itself_needs_the_c_library() {
        let own = File::open(std::env::current_exe().unwrap()).unwrap();
        assert!(libraries(&own).iter().any(|name| name == b"libc.so.6"), "{:?}", libraries(&own));
    }

    #[test]
    fn damaged_files_have_some_names_or_none() {
        let whole = std::fs::read("/bin/sh").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sh");
        for at in (0..1024).step_by(3).chain([whole.len() / 2]) {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            damaged.truncate(whole.len().saturating_sub(at % 1024 * 7));
            std::fs::write(&path, damaged).unwrap();
            let _ = libraries(&File::open(&path).unwrap());
        }
    }
}
