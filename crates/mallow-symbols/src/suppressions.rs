//! The leaks that a program itself asks not to be told of: `__lsan_default_suppressions`.
//!
//! LeakSanitizer calls that function of the program and reads the text that it returns. We do not run a program to
//! read its profile, so the function's few instructions are read instead: such a function loads the address of a string
//! literal and returns. Anything else is not guessed at. Encodings are those of the "Intel 64 and IA-32 Architectures
//! Software Developer's Manual", volume 2.

use crate::functions::TableBudget;
use crate::mapped::Mapped;
use mallow_base::gnu_build_id;
use object::elf::{EM_X86_64, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget};
use std::fmt;
use std::path::Path;

const NAME: &str = "__lsan_default_suppressions";
/// Longer than any function that only returns a literal.
const CODE_BYTES_MAX: u64 = 64;
/// Longer than any list that people write.
const TEXT_BYTES_MAX: usize = 1 << 20;

type Elf<'data> = ElfFile64<'data, Endianness, &'data [u8]>;

/// The program has suppressions, but not as a literal that can be read without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotALiteral;

impl fmt::Display for NotALiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its __lsan_default_suppressions does more than return a string literal")
    }
}

impl std::error::Error for NotALiteral {}

/// The suppressions embedded in the executable at `path`; none when it has none, or is no executable, or is not the
/// build that `build_id` names.
///
/// # Errors
/// [`NotALiteral`] when there are some that cannot be read.
pub fn embedded_suppressions(path: &Path, build_id: &[u8]) -> Result<Option<String>, NotALiteral> {
    let Ok(mapped) = Mapped::open(path) else { return Ok(None) };
    let build_id_of = |elf: Elf<'_>| match elf.section_by_name(".note.gnu.build-id") {
        Some(section) => section.data().ok().and_then(gnu_build_id).map(<[u8]>::to_vec),
        None => None,
    };
    let same = || Elf::parse(&*mapped).is_ok_and(|elf| build_id_of(elf).as_deref() == Some(build_id));
    if !build_id.is_empty() && !same() {
        return Ok(None);
    }
    suppressions_in(&mapped, mapped.stored_bytes())
}

/// The same for an ELF file's bytes.
///
/// # Errors
/// See [`embedded_suppressions`].
pub fn embedded_suppressions_in(bytes: &[u8]) -> Result<Option<String>, NotALiteral> {
    suppressions_in(bytes, bytes.len() as u64)
}

fn suppressions_in(bytes: &[u8], stored_bytes: u64) -> Result<Option<String>, NotALiteral> {
    let Ok(elf) = Elf::parse(bytes) else { return Ok(None) };
    let is_executable =
        elf.elf_program_headers().iter().any(|header| header.p_type(elf.endian()) == PT_INTERP);
    let Some(entry) = is_executable.then(|| entry_of(&elf, stored_bytes)).flatten() else { return Ok(None) };
    if elf.elf_header().e_machine(elf.endian()) != EM_X86_64 {
        return Err(NotALiteral);
    }
    let literal = || {
        let code = at(&elf, entry)?;
        let code = &code[..code.len().min(CODE_BYTES_MAX as usize)];
        let text = at(&elf, returned_address(&elf, code, entry)?)?;
        let end = text.iter().take(TEXT_BYTES_MAX).position(|&byte| byte == 0)?;
        std::str::from_utf8(&text[..end]).ok().map(str::to_owned)
    };
    literal().map(Some).ok_or(NotALiteral)
}

fn entry_of(elf: &Elf<'_>, stored_bytes: u64) -> Option<u64> {
    let mut budget = TableBudget::of(stored_bytes);
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let name = budget.name_of(&symbol)?;
        if symbol.is_definition() && name == Some(NAME.as_bytes()) {
            return Some(symbol.address());
        }
    }
    None
}

/// The bytes from an address to the end of its segment.
fn at<'data>(elf: &Elf<'data>, address: u64) -> Option<&'data [u8]> {
    elf.segments().find_map(|segment| {
        let offset = address.checked_sub(segment.address())?;
        segment.data().ok()?.get(usize::try_from(offset).ok()?..)
    })
}

/// The address that a function returns in `rax`, if all it does is load it.
fn returned_address(elf: &Elf<'_>, code: &[u8], entry: u64) -> Option<u64> {
    let mut rest = code;
    skip(&mut rest, &[&[0xf3, 0x0f, 0x1e, 0xfa]]); // endbr64
    if skip(&mut rest, &[&[0x55]]) {
        // push rbp, and the frame pointer in one of its two encodings
        skip(&mut rest, &[&[0x48, 0x89, 0xe5], &[0x48, 0x8b, 0xec]]);
    }
    let next = |rest: &[u8]| entry.wrapping_add((code.len() - rest.len()) as u64);
    let address = if skip(&mut rest, &[&[0x48, 0x8d, 0x05]]) {
        let distance = i32::from_le_bytes(take(&mut rest)?); // lea rax, [rip + distance]
        next(rest).wrapping_add_signed(i64::from(distance))
    } else if skip(&mut rest, &[&[0x48, 0x8b, 0x05]]) {
        let distance = i32::from_le_bytes(take(&mut rest)?); // mov rax, [rip + distance]
        pointer_at(elf, next(rest).wrapping_add_signed(i64::from(distance)))?
    } else if skip(&mut rest, &[&[0xb8]]) {
        u64::from(u32::from_le_bytes(take(&mut rest)?)) // mov eax, address
    } else if skip(&mut rest, &[&[0x48, 0xc7, 0xc0]]) {
        i64::from(i32::from_le_bytes(take(&mut rest)?)) as u64 // mov rax, address, its sign extended
    } else if skip(&mut rest, &[&[0x48, 0xb8]]) {
        u64::from_le_bytes(take(&mut rest)?) // movabs rax, address
    } else {
        return None;
    };
    skip(&mut rest, &[&[0x5d], &[0xc9]]); // pop rbp, leave
    skip(&mut rest, &[&[0xc3], &[0xf3, 0xc3]]).then_some(address) // ret
}

/// Skips one of the encodings if it is here.
fn skip(rest: &mut &[u8], encodings: &[&[u8]]) -> bool {
    let behind = encodings.iter().find_map(|encoding| rest.strip_prefix(*encoding));
    behind.inspect(|behind| *rest = behind).is_some()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}

/// A pointer variable's initial value: what the loader would write there, or what the file holds.
fn pointer_at(elf: &Elf<'_>, address: u64) -> Option<u64> {
    const RELOCATIONS_MAX: usize = 16 << 20;
    let mut relocations = elf.dynamic_relocations().into_iter().flatten().take(RELOCATIONS_MAX);
    match relocations.find(|(place, _)| *place == address) {
        // Relative to where the file is loaded, which is at 0 for the addresses stated in it.
        Some((_, relocation)) => match relocation.target() {
            RelocationTarget::Absolute => u64::try_from(relocation.addend()).ok(),
            _ => None,
        },
        None => at(elf, address)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
    }
}

#[cfg(test)]
#[path = "suppressions_tests.rs"]
mod tests;
