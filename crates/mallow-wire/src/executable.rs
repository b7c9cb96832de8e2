//! Whether a library can be preloaded into a program, read from the program's file.
//!
//! Both sides ask: the collector about the command that it is to start, the recorder about a program that is about to
//! replace its own. So it needs no memory but a little of the caller's stack, and takes the file as a function.
//!
//! The format: System V ABI, "Object Files" and "Dynamic Section"; only files of 64 bits, little-endian, are read further.

/// Why a preloaded library does not get into a program, or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Nobody loads libraries into it.
    Static,
    /// Code of another kind than the library's.
    OtherMachine,
    /// The runtime of a sanitizer, a shared library that replaces the allocator, must be loaded first.
    Sanitizer,
}

/// The runtimes of sanitizers that replace the allocator.
const RUNTIMES: [&[u8]; 6] = [
    b"libasan.so",
    b"libtsan.so",
    b"libhwasan.so",
    b"libclang_rt.asan",
    b"libclang_rt.tsan",
    b"libclang_rt.hwasan",
];

/// What keeps a library out of the program whose file `read_at` reads: it fills as much of the slice as there is from an
/// offset on, and gives how many bytes that is. None too for what is no program, such as a script.
pub fn obstacle(mut read_at: impl FnMut(u64, &mut [u8]) -> usize) -> Option<Obstacle> {
    const CLASS_64: u8 = 2;
    const MACHINE_X86_64: u16 = 62;
    const PT_INTERP: u32 = 3;
    let file = &mut read_at;
    let header: [u8; 64] = at(file, 0)?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    if header[4] != CLASS_64 || half(&header, 18)? != MACHINE_X86_64 {
        return Some(Obstacle::OtherMachine);
    }
    let headers = Headers { offset: long(&header, 32)?, count: u64::from(half(&header, 56)?) };
    if headers.find(file, |segment| segment.kind == PT_INTERP).is_none() {
        return Some(Obstacle::Static);
    }
    needs_sanitizer(file, &headers).unwrap_or(false).then_some(Obstacle::Sanitizer)
}

/// A program header: its kind, and where its bytes lie in the file and in memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// Where the program headers are.
struct Headers {
    offset: u64,
    count: u64,
}

type File<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;

impl Headers {
    fn find(&self, file: File<'_>, is_it: impl Fn(&Segment) -> bool) -> Option<Segment> {
        const BYTES: u64 = 56;
        (0..self.count).find_map(|index| {
            let entry: [u8; BYTES as usize] = at(file, self.offset.checked_add(index * BYTES)?)?;
            let kind = long(&entry, 0)? as u32;
            let (offset, address, bytes) = (long(&entry, 8)?, long(&entry, 16)?, long(&entry, 32)?);
            Some(Segment { kind, offset, address, bytes }).filter(&is_it)
        })
    }
}

/// Whether one of the libraries that the program names as needed is a sanitizer's runtime.
fn needs_sanitizer(file: File<'_>, headers: &Headers) -> Option<bool> {
    const PT_LOAD: u32 = 1;
    const PT_DYNAMIC: u32 = 2;
    const DT_STRTAB: u64 = 5;
    let dynamic = headers.find(file, |segment| segment.kind == PT_DYNAMIC)?;
    let mut strings = None;
    each_tag(file, &dynamic, |_, tag, value| {
        strings = (tag == DT_STRTAB).then_some(value);
        strings.is_some()
    });
    let address = strings?;
    let holds = |it: &Segment| it.kind == PT_LOAD && address.wrapping_sub(it.address) < it.bytes;
    let segment = headers.find(file, holds)?;
    let strings = segment.offset.checked_add(address.wrapping_sub(segment.address))?;
    Some(each_tag(file, &dynamic, |file, tag, value| {
        const DT_NEEDED: u64 = 1;
        tag == DT_NEEDED && strings.checked_add(value).is_some_and(|offset| is_runtime(file, offset))
    }))
}

/// Whether the name at an offset is that of a sanitizer's runtime.
fn is_runtime(file: File<'_>, offset: u64) -> bool {
    let mut name = [0; 24];
    let read = file(offset, &mut name);
    name.get(..read).is_some_and(|name| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)))
}

/// Goes through the dynamic section until `visit` gives true; gives whether it did.
fn each_tag(file: File<'_>, dynamic: &Segment, mut visit: impl FnMut(File<'_>, u64, u64) -> bool) -> bool {
    /// What no linker exceeds, so that a damaged file costs no time.
    const TAGS_MAX: u64 = 4096;
    const DT_NULL: u64 = 0;
    const AT_ONCE: u64 = 16;
    let count = (dynamic.bytes / 16).min(TAGS_MAX);
    for first in (0..count).step_by(AT_ONCE as usize) {
        let mut entries = [0u8; 16 * AT_ONCE as usize];
        let Some(offset) = dynamic.offset.checked_add(first * 16) else { return false };
        let read = file(offset, &mut entries);
        for entry in entries.chunks_exact(16).take(read / 16) {
            match (long(entry, 0), long(entry, 8)) {
                (Some(DT_NULL), _) => return false,
                (Some(tag), Some(value)) if visit(file, tag, value) => return true,
                _ => {}
            }
        }
    }
    false
}

fn at<const N: usize>(file: File<'_>, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (file(offset, &mut bytes) == N).then_some(bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn of(bytes: &[u8]) -> Option<Obstacle> {
        obstacle(|offset, into| {
            let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or(&[]);
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            count
        })
    }

    /// A header, and program headers of these kinds behind it.
    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = std::vec![0u8; 64];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        (bytes[18], bytes[32], bytes[56]) = (62, 64, kinds.len() as u8);
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_without_a_loader_is_static_and_one_of_32_bits_is_another_machines() {
        assert_eq!(of(&program(&[1, 3, 2])), None);
        assert_eq!(of(&program(&[1, 2])), Some(Obstacle::Static));
        let mut small = program(&[1, 3]);
        small[4] = 1;
        assert_eq!(of(&small), Some(Obstacle::OtherMachine));
        assert_eq!(of(b"#!/bin/sh\n"), None);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn headers_that_lie_nowhere_hold_no_loader() {
        let mut odd = program(&[3]);
        odd[32..40].fill(0xff);
        assert_eq!(of(&odd), Some(Obstacle::Static));
    }

    #[test]
    fn damaged_files_are_read_to_their_end() {
        let whole = std::fs::read("/bin/sh").unwrap();
        assert_eq!(of(&whole), None);
        for at in (0..1024).step_by(3).chain([whole.len() / 2]) {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            damaged.truncate(whole.len().saturating_sub(at % 1024 * 7));
            let _ = of(&damaged);
        }
    }
}
