//! The recorder's library as its file has it: what is mapped, and which words depend on where.

use crate::InjectError;
use mallow_wire::static_start::{ENTRY, OWN};
use object::elf::{self, ProgramHeader64, Rela64};
use object::read::elf::{ElfFile64, ProgramHeader, Rela, SectionHeader, Sym};
use object::{LittleEndian, Object, ObjectSymbol, ObjectSymbolTable};

const PAGE_BYTES: u64 = 4096;

/// A part of the library's file, as it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) svma: u64,
    pub(crate) offset: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// As `mmap` wants it.
    pub(crate) protection: u64,
}

/// A word that depends on where the library is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Its bias, and this.
    Address(u64),
    /// Where its thread-local storage begins, seen from the thread's control block, and this.
    ThreadLocal(u64),
    /// What nobody defines.
    Null,
}

/// The library.
#[derive(Debug)]
pub struct Library {
    pub(crate) segments: Vec<Segment>,
    /// What is made read-only when all words are written.
    pub(crate) read_only: Option<(u64, u64)>,
    pub(crate) entry_svma: u64,
    /// Where its program headers are mapped, and how many.
    pub(crate) headers_svma: u64,
    pub(crate) header_count: u64,
    /// Bytes of its thread-local storage, and their alignment.
    pub(crate) thread_local: (u64, u64),
    words: Vec<(u64, Value)>,
}

impl Library {
    /// Reads a library's file.
    ///
    /// # Errors
    /// When there is something in it that this loader does not know.
    pub fn parse(file: &[u8]) -> Result<Library, InjectError> {
        let fault = InjectError::Library;
        let elf = ElfFile64::<LittleEndian>::parse(file).map_err(|_| fault("it is no library"))?;
        let headers = elf.elf_program_headers();
        let of_kind = |kind| headers.iter().filter(move |header| header.p_type(LittleEndian) == kind);
        let segments: Vec<Segment> = of_kind(elf::PT_LOAD).map(segment).collect();
        let thread_local = of_kind(elf::PT_TLS).next();
        if thread_local.is_some_and(|it| it.p_filesz(LittleEndian) > 0) {
            return Err(fault("its thread-local storage has initial values"));
        }
        let table_offset = elf.elf_header().e_phoff.get(LittleEndian);
        let first = segments.first().filter(|first| first.offset == 0 && table_offset < first.file_bytes);
        let relro = of_kind(elf::PT_GNU_RELRO).next();
        Ok(Library {
            headers_svma: first.ok_or(fault("its headers are not mapped"))?.svma + table_offset,
            header_count: headers.len() as u64,
            entry_svma: defined(&elf, ENTRY).ok_or(fault("it has no entry for static programs"))?,
            read_only: relro.map(|it| pages_within(it.p_vaddr(LittleEndian), it.p_memsz(LittleEndian))),
            thread_local: thread_local
                .map_or((0, 1), |it| (it.p_memsz(LittleEndian), it.p_align(LittleEndian).max(1))),
            words: words(&elf)?,
            segments,
        })
    }

    /// Bytes from its first mapped one to behind its last, as whole pages from a page's beginning.
    pub(crate) fn span(&self) -> u64 {
        let ends = self.segments.iter().map(|segment| segment.svma + segment.memory_bytes);
        ends.max().unwrap_or(0).next_multiple_of(PAGE_BYTES)
    }

    /// Its words, where they lie and what they hold, for a library whose addresses have this added and whose thread-local storage
    /// begins so many bytes below the thread's control block.
    pub(crate) fn words(&self, bias: u64, below: u64) -> impl Iterator<Item = (u64, u64)> {
        self.words.iter().map(move |(svma, value)| {
            let value = match value {
                Value::Address(svma) => bias.wrapping_add(*svma),
                Value::ThreadLocal(offset) => offset.wrapping_sub(below),
                Value::Null => 0,
            };
            (bias.wrapping_add(*svma), value)
        })
    }
}

fn segment(header: &ProgramHeader64<LittleEndian>) -> Segment {
    let flags = header.p_flags(LittleEndian);
    let allows = |flag, protection| if flags.contains(flag) { protection } else { 0 };
    Segment {
        svma: header.p_vaddr(LittleEndian),
        offset: header.p_offset(LittleEndian),
        file_bytes: header.p_filesz(LittleEndian),
        memory_bytes: header.p_memsz(LittleEndian),
        protection: allows(elf::PF_R, 1) | allows(elf::PF_W, 2) | allows(elf::PF_X, 4),
    }
}

/// The whole pages that a range begins, as a loader protects them: from the one in which it begins to the last that it fills.
fn pages_within(svma: u64, bytes: u64) -> (u64, u64) {
    let (start, end) = (svma & !(PAGE_BYTES - 1), (svma + bytes) & !(PAGE_BYTES - 1));
    (start, end.saturating_sub(start))
}

/// The address of what the library exports by a name.
fn defined(elf: &ElfFile64<'_, LittleEndian>, name: &str) -> Option<u64> {
    let symbols = elf.dynamic_symbol_table()?;
    symbols.symbols().find(|it| it.is_definition() && it.name() == Ok(name)).map(|it| it.address())
}

fn words(elf: &ElfFile64<'_, LittleEndian>) -> Result<Vec<(u64, Value)>, InjectError> {
    let fault = InjectError::Library;
    let symbols = elf.elf_dynamic_symbol_table();
    let by_number = |number: u32| -> Result<Value, InjectError> {
        if number == 0 {
            return Ok(Value::Address(0));
        }
        let symbol = symbols
            .symbol(object::SymbolIndex(number as usize))
            .map_err(|_| fault("a relocation names no symbol"))?;
        if symbol.st_shndx(LittleEndian) != elf::SHN_UNDEF {
            return Ok(Value::Address(symbol.st_value(LittleEndian)));
        }
        let name =
            symbol.name(LittleEndian, symbols.strings()).ok().and_then(|name| str::from_utf8(name).ok());
        let own = name.and_then(|name| defined(elf, &format!("{OWN}{name}")));
        match own {
            Some(svma) => Ok(Value::Address(svma)),
            None if symbol.st_bind() == elf::STB_WEAK => Ok(Value::Null),
            None => Err(fault("it needs a function that it does not bring")),
        }
    };
    let mut words = Vec::new();
    for relocation in tables(elf)? {
        let (kind, addend) =
            (relocation.r_type(LittleEndian, false), relocation.r_addend(LittleEndian) as u64);
        let number = relocation.r_sym(LittleEndian, false);
        let value = match kind {
            elf::R_X86_64_NONE => continue,
            elf::R_X86_64_RELATIVE => Value::Address(addend),
            elf::R_X86_64_64 | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => match by_number(number)? {
                Value::Address(svma) => Value::Address(svma.wrapping_add(addend)),
                other => other,
            },
            elf::R_X86_64_TPOFF64 if number == 0 => Value::ThreadLocal(addend),
            _ => return Err(fault("it has a relocation of an unknown kind")),
        };
        words.push((relocation.r_offset(LittleEndian), value));
    }
    Ok(words)
}

/// All relocations of the file.
fn tables<'a>(elf: &ElfFile64<'a, LittleEndian>) -> Result<Vec<&'a Rela64<LittleEndian>>, InjectError> {
    let fault = InjectError::Library;
    let mut all = Vec::new();
    for section in elf.elf_section_table().iter() {
        match section.sh_type(LittleEndian) {
            elf::SHT_RELR | elf::SHT_REL => return Err(fault("its relocations are packed")),
            _ => {}
        }
        let table =
            section.rela(LittleEndian, elf.data()).map_err(|_| fault("its relocations cannot be read"))?;
        all.extend(table.map(|(table, _)| table).unwrap_or_default());
    }
    Ok(all)
}
