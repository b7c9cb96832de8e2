//! Whether a library can be preloaded into a program, read from the program's file.
//!
//! Both sides ask: the collector about the command that it is to start, the recorder about a program that is about to
//! replace its own. So it needs no memory but a little of the caller's stack, and takes the file as a function.
//!
//! The format: System V ABI, "Object Files", "Note Section" and "Dynamic Section"; only files of 64 bits, little-endian, are read further.

use crate::shared::SHARED_VERSION;

/// Why a preloaded library does not get into a program, or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It has no dynamic loader.
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

/// Returns whether a library's path, or its name, is that of the runtime of a sanitizer, which must be loaded first.
pub fn is_sanitizer(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}

/// The name of the note in a program that has the recorder linked in, as in the file; `mallow-alloc` adds it. It is
/// followed by the version of the shared memory's layout.
pub const CORE_NOTE_NAME: [u8; 8] = *b"mallow\0\0";
/// Bytes of the name that count, with the zero at its end.
pub const CORE_NOTE_NAME_BYTES: u32 = 7;
/// The note's type.
pub const CORE_NOTE_TYPE: u32 = 1;

/// Returns what prevents a library from being preloaded into the program whose file `read_at` reads: it fills as much
/// of the slice as there is from an offset on, and returns the number of bytes. `None` also for a file that is no
/// program, such as a script.
pub fn obstacle(mut read_at: impl FnMut(u64, &mut [u8]) -> usize) -> Option<Obstacle> {
    const CLASS_64: u8 = 2;
    const MACHINE_X86_64: u16 = 62;
    let file = &mut read_at;
    let header: [u8; 64] = at(file, 0)?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    if header[4] != CLASS_64 || half(&header, 18)? != MACHINE_X86_64 {
        return Some(Obstacle::OtherMachine);
    }
    let headers = Headers::in_header(&header)?;
    if headers.are_static(file) {
        return Some(Obstacle::Static);
    }
    needs_sanitizer(file, &headers).unwrap_or(false).then_some(Obstacle::Sanitizer)
}

const PT_DYNAMIC: u32 = 2;

/// A program header: its kind, and where its bytes lie in the file and in memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// The position of the program headers.
struct Headers {
    offset: u64,
    count: u64,
}

type File<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;

impl Headers {
    fn in_header(header: &[u8; 64]) -> Option<Headers> {
        Some(Headers { offset: long(header, 32)?, count: u64::from(half(header, 56)?) })
    }

    fn at(&self, file: File<'_>, index: u64) -> Option<Segment> {
        const BYTES: u64 = 56;
        let entry: [u8; BYTES as usize] = at(file, self.offset.checked_add(index * BYTES)?)?;
        let (offset, address, bytes) = (long(&entry, 8)?, long(&entry, 16)?, long(&entry, 32)?);
        Some(Segment { kind: long(&entry, 0)? as u32, offset, address, bytes })
    }

    fn find(&self, file: File<'_>, is_it: impl Fn(&Segment) -> bool) -> Option<Segment> {
        (0..self.count).find_map(|index| self.at(file, index).filter(&is_it))
    }

    /// No loader is named, and it is none itself: of the libraries without one only loaders are programs. glibc's has a library's name, and musl's is
    /// linked as a library, not as a program.
    fn are_static(&self, file: File<'_>) -> bool {
        const PT_INTERP: u32 = 3;
        const DT_SONAME: u64 = 14;
        const DT_FLAGS_1: u64 = 0x6fff_fffb;
        const DF_1_PIE: u64 = 0x0800_0000;
        let is_library = |file: File<'_>| {
            let dynamic = self.find(file, |segment| segment.kind == PT_DYNAMIC)?;
            Some(each_tag(file, &dynamic, |_, tag, value| {
                tag == DT_SONAME || tag == DT_FLAGS_1 && value & DF_1_PIE == 0
            }))
        };
        self.find(file, |segment| segment.kind == PT_INTERP).is_none() && !is_library(file).unwrap_or(false)
    }
}

/// The version in the note of the recorder that is linked into the program.
fn version_of_core(file: File<'_>, headers: &Headers) -> Option<u32> {
    const PT_NOTE: u32 = 4;
    /// No linker exceeds this, so a damaged file costs no time.
    const NOTES_MAX: usize = 64;
    (0..headers.count).find_map(|index| {
        let segment = headers.at(file, index).filter(|segment| segment.kind == PT_NOTE)?;
        let (mut offset, end) = (segment.offset, segment.offset.checked_add(segment.bytes)?);
        for _ in 0..NOTES_MAX {
            if offset >= end {
                break;
            }
            // Name and description are each padded to four bytes.
            let note: [u8; 24] = at(file, offset)?;
            let (name_bytes, bytes, kind) = (word(&note, 0)?, word(&note, 4)?, word(&note, 8)?);
            if (name_bytes, bytes, kind) == (CORE_NOTE_NAME_BYTES, 4, CORE_NOTE_TYPE)
                && note[12..20] == CORE_NOTE_NAME
            {
                return word(&note, 20);
            }
            let padded = |bytes: u32| u64::from(bytes).next_multiple_of(4);
            offset = offset.checked_add(12 + padded(name_bytes) + padded(bytes))?;
        }
        None
    })
}

/// A recorder that is linked into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// The version of the shared memory's layout that it writes: with [`SHARED_VERSION`] it needs no library to be preloaded.
    pub version: u32,
    /// No library can be preloaded into the program.
    pub is_static: bool,
}

impl Core {
    /// Returns whether this version's collector reads what it writes, and it records by itself.
    pub fn records(&self) -> bool {
        self.is_static && self.version == SHARED_VERSION
    }
}

/// The recorder that is linked into the program whose file `read_at` reads, of whatever version.
pub fn core_in(mut read_at: impl FnMut(u64, &mut [u8]) -> usize) -> Option<Core> {
    let file = &mut read_at;
    let headers = Headers::in_header(&at(file, 0)?)?;
    let version = version_of_core(file, &headers)?;
    Some(Core { version, is_static: headers.are_static(file) })
}

/// Returns whether one of the libraries that the program names as needed is a sanitizer's runtime.
fn needs_sanitizer(file: File<'_>, headers: &Headers) -> Option<bool> {
    const PT_LOAD: u32 = 1;
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

/// Returns whether the name at an offset is that of a sanitizer's runtime.
fn is_runtime(file: File<'_>, offset: u64) -> bool {
    let mut name = [0; 24];
    let read = file(offset, &mut name);
    name.get(..read).is_some_and(is_sanitizer)
}

/// Visits the dynamic section until `visit` returns true; returns whether it did.
fn each_tag(file: File<'_>, dynamic: &Segment, mut visit: impl FnMut(File<'_>, u64, u64) -> bool) -> bool {
    /// No linker exceeds this, so a damaged file costs no time.
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

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
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
        obstacle(|offset, into| read(bytes, offset, into))
    }

    fn read(bytes: &[u8], offset: u64, into: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or(&[]);
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        count
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

    /// A static program with two notes, the second one of a recorder of this version.
    fn with_core(version: u32) -> Vec<u8> {
        let mut bytes = program(&[1, 4]);
        let mut notes = Vec::new();
        for (name, kind, word) in [(*b"GNU\0\0\0\0\0", 1u32, 9), (CORE_NOTE_NAME, CORE_NOTE_TYPE, version)] {
            let name_bytes = if name == CORE_NOTE_NAME { CORE_NOTE_NAME_BYTES } else { 4 };
            notes.extend([name_bytes, 4, kind].map(u32::to_le_bytes).concat());
            notes.extend(&name[..name_bytes.next_multiple_of(4) as usize]);
            notes.extend(word.to_le_bytes());
        }
        let entry = 64 + 56;
        let offset = bytes.len() as u64;
        bytes[entry + 8..entry + 16].copy_from_slice(&offset.to_le_bytes());
        bytes[entry + 32..entry + 40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        bytes.extend(notes);
        bytes
    }

    #[test]
    fn a_recorder_that_is_linked_in_is_found_by_its_note() {
        let core = |bytes: &[u8]| core_in(|offset, into| read(bytes, offset, into));
        let found = core(&with_core(7));
        assert_eq!(found, Some(Core { version: 7, is_static: true }));
        assert_eq!(of(&with_core(7)), Some(Obstacle::Static));
        let mut cut = with_core(7);
        cut.pop();
        assert_eq!(core(&cut), None);
        assert_eq!(core(&program(&[1, 4])), None);
        assert_eq!(core(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn a_loader_is_a_program_and_not_static() {
        let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"];
        assert_eq!(loader.map(|path| of(&std::fs::read(path).unwrap())), [None; 2]);
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
            let _ = core_in(|offset, into| read(&damaged, offset, into));
        }
    }
}
