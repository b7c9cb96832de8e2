//! What a static executable's file says that its memory does not say before it runs.

use crate::InjectError;
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian as Little, UnwindSection};
use object::elf::{self, Rela64};
use object::read::elf::{ElfFile64, ProgramHeader, Rela, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{LittleEndian, Object, ObjectSection};
use std::fs::File;

/// An executable, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Its first instruction.
    pub(crate) entry_svma: u64,
    /// Words that libc will make addresses of, when it puts the executable right: where they are, and what the bias is added to. Those of
    /// thread-local storage's initial values alone.
    pub(crate) pointers: Vec<(u64, u64)>,
    /// For each function with unwind information, by its address: where both begin, counted from the executable's first byte. Empty where a
    /// linker has made such a table.
    pub(crate) frames: Vec<[u32; 2]>,
}

impl Executable {
    /// Reads a file.
    pub(crate) fn read(file: File) -> Result<Executable, InjectError> {
        let content = ReadCache::new(file);
        let elf = ElfFile64::<LittleEndian, _>::parse(&content).map_err(|_| InjectError::Damaged)?;
        let headers = elf.elf_program_headers();
        let of_kind = |kind| headers.iter().find(move |header| header.p_type(LittleEndian) == kind);
        let values = of_kind(elf::PT_TLS).map_or(0..0, |header| {
            let start = header.p_vaddr(LittleEndian);
            start..start.saturating_add(header.p_filesz(LittleEndian))
        });
        Ok(Executable {
            entry_svma: elf.entry(),
            pointers: pointers(&elf, &content, &values).ok_or(InjectError::Damaged)?,
            frames: match of_kind(elf::PT_GNU_EH_FRAME) {
                Some(_) => Vec::new(),
                None => frames(&elf).unwrap_or_default(),
            },
        })
    }
}

/// The words of a range that relocations make addresses of. None when there are others than those.
fn pointers<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, LittleEndian, R>,
    content: R,
    range: &std::ops::Range<u64>,
) -> Option<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for section in elf.elf_section_table().iter() {
        let table = section.rela(LittleEndian, content).ok()?.map_or(&[][..], |(table, _)| table);
        let within = |relocation: &&Rela64<LittleEndian>| range.contains(&relocation.r_offset(LittleEndian));
        for relocation in table.iter().filter(within) {
            if relocation.r_type(LittleEndian, false) != elf::R_X86_64_RELATIVE {
                return None;
            }
            found.push((relocation.r_offset(LittleEndian), relocation.r_addend(LittleEndian) as u64));
        }
        for svma in section.relr(LittleEndian, content).ok()?.into_iter().flatten() {
            if range.contains(&svma) {
                found.push((svma, word_at(elf, svma)?));
            }
        }
    }
    Some(found)
}

/// A word of the file, by its address.
fn word_at<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, LittleEndian, R>, svma: u64) -> Option<u64> {
    let mut sections = elf.sections();
    sections.find_map(|section| {
        let bytes = section.data_range(svma, 8).ok()??;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    })
}

/// The table of unwind information that linkers leave out of static executables.
fn frames<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, LittleEndian, R>) -> Option<Vec<[u32; 2]>> {
    let headers = elf.elf_program_headers().iter();
    let loads = headers.filter(|header| header.p_type(LittleEndian) == elf::PT_LOAD);
    let first = loads.map(|header| header.p_vaddr(LittleEndian)).min()?;
    let section = elf.section_by_name(".eh_frame")?;
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let table = EhFrame::new(section.data().ok()?, Little);
    let mut entries = table.entries(&bases);
    let mut rows = Vec::new();
    let from_first = |svma: u64| u32::try_from(svma.checked_sub(first)?).ok();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else { continue };
        let at = from_first(section.address() + entry.offset() as u64);
        rows.extend(from_first(entry.initial_address()).zip(at).map(|(start, at)| [start, at]));
    }
    rows.sort_unstable();
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn built(compiler: &str, flags: &[&str]) -> Executable {
        let source = "#include <stdlib.h>\n#include <stdio.h>\nstatic int seven = 7;\n__thread int *kept = &seven;\n\
                      int main(int n, char **v) { kept += n; printf(\"%d\", *kept); return 0; }\n";
        let folder = tempfile::tempdir().unwrap();
        let (c, program) = (folder.path().join("a.c"), folder.path().join("a"));
        std::fs::write(&c, source).unwrap();
        let status = Command::new(compiler).args(flags).arg("-o").arg(&program).arg(&c).status().unwrap();
        assert!(status.success());
        Executable::read(File::open(program).unwrap()).unwrap()
    }

    #[test]
    fn pointers_among_the_initial_values_are_found_where_something_is_added_to_them() {
        assert_eq!(built("gcc", &["-static"]).pointers, []);
        // glibc's own, of the locale, and the program's.
        let movable = built("gcc", &["-static-pie", "-fPIE"]);
        assert!(movable.pointers.len() >= 2, "{:?}", movable.pointers);
    }

    #[test]
    fn functions_are_found_where_no_linker_made_a_table() {
        let program = built("gcc", &["-static"]);
        assert!(program.frames.len() > 500, "{}", program.frames.len());
        assert!(program.frames.is_sorted());
        assert_eq!(built("gcc", &["-static-pie", "-fPIE"]).frames, [[0; 2]; 0]);
        assert!(!built("musl-gcc", &["-static"]).frames.is_empty());
    }
}
