//! The build id of a loaded object.

use super::object::ProgramHeader;

const PT_NOTE: u32 = 4;

/// A byte range in memory.
pub type Bytes = (*const u8, usize);

/// The build id of the object whose first segment is mapped, ELF header and all, at `start`.
///
/// # Safety
/// `start` is the first mapped byte of a loaded object.
pub unsafe fn build_id(start: usize, bias: usize) -> Option<Bytes> {
    // SAFETY: the first page of an object is readable; everything is read where the headers say it lies.
    unsafe {
        if *(start as *const [u8; 4]) != *b"\x7fELF" {
            return None;
        }
        let headers_offset = *((start + 32) as *const u64) as usize;
        let header_count = *((start + 56) as *const u16) as usize;
        if headers_offset + header_count * size_of::<ProgramHeader>() > mallow_wire::shared::PAGE_BYTES {
            return None;
        }
        let headers =
            core::slice::from_raw_parts((start + headers_offset) as *const ProgramHeader, header_count);
        headers.iter().filter(|header| header.kind == PT_NOTE).find_map(|header| {
            build_id_note(
                bias.wrapping_add(header.address as usize),
                header.memory_bytes as usize,
                header.align as usize,
            )
        })
    }
}

/// Looks for the build id among the notes of a segment: name length, description length, type, name,
/// description.
///
/// # Safety
/// `at..at + bytes` is a mapped note segment.
unsafe fn build_id_note(at: usize, bytes: usize, align: usize) -> Option<Bytes> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    let padded = |length: usize| (length + align - 1) & !(align - 1);
    let mut offset = 0;
    while offset + 12 <= bytes {
        // SAFETY: within the segment by the condition above.
        let [name_bytes, description_bytes, kind] = unsafe { *((at + offset) as *const [u32; 3]) };
        let name = offset + 12;
        let description = name + padded(name_bytes as usize);
        let end = description.checked_add(description_bytes as usize)?;
        if end > bytes {
            return None;
        }
        // SAFETY: the name lies in front of the description, which ends within the segment.
        let is_gnu = name_bytes == 4 && unsafe { *((at + name) as *const [u8; 4]) } == *b"GNU\0";
        if kind == NT_GNU_BUILD_ID && is_gnu {
            return Some(((at + description) as *const u8, description_bytes as usize));
        }
        offset = padded(end);
    }
    None
}
