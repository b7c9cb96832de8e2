//! Programs that the hooks cannot see, although they run.
//!
//! A preloaded `malloc` is found before every library's, and never before the executable's own. A program that was
//! linked with an allocator calls that one directly, so its counts would be 0 or nearly so, which looks like a great win.

use object::elf::Sym64;
use object::read::elf::{ElfFile64, Sym};
use object::read::{ReadCache, ReadRef, StringTable};
use object::{LittleEndian, Object, ObjectSection, pod};
use std::fs::File;
use std::path::Path;

/// Functions that only an allocator defines, with its name.
const OWN: [(&str, &str); 8] = [
    ("malloc", "an allocator"),
    ("mi_malloc", "mimalloc"),
    ("je_malloc", "jemalloc"),
    ("_rjem_malloc", "jemalloc"),
    ("tc_malloc", "tcmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("sn_malloc", "snmalloc"),
    ("scalable_malloc", "TBB's allocator"),
];

/// The sentence about an executable that brings its own allocator; none when it does not, or is no executable.
pub(crate) fn by_own_allocator(program: &Path) -> Option<String> {
    // An interpreter may be 90 MB; only its headers and its tables of symbols are read.
    let content = ReadCache::new(File::open(program).ok()?);
    let file = ElfFile64::<LittleEndian, _>::parse(&content).ok()?;
    let tables = [(".dynsym", ".dynstr"), (".symtab", ".strtab")];
    let defined =
        tables.into_iter().filter_map(|(symbols, names)| first_defined(&file, symbols, names)).min()?;
    let (_, allocator) = OWN[defined];
    Some(format!(
        "The program is linked with {allocator} and calls it directly, where mallow's hooks do not see it: these counts are \
         not its own. Link the allocator as a library, or build the test without it."
    ))
}

/// Which of [`OWN`] a table of symbols defines, the first of them.
fn first_defined<'a, R: ReadRef<'a>>(
    file: &ElfFile64<'a, LittleEndian, R>,
    symbols: &str,
    names: &str,
) -> Option<usize> {
    let data = |name: &str| file.section_by_name(name)?.data().ok();
    let (symbols, names) = (data(symbols)?, data(names)?);
    let symbols: &[Sym64<LittleEndian>] = pod::slice_from_all_bytes(symbols).ok()?;
    let names = StringTable::new(names, 0, names.len() as u64);
    let defined = symbols.iter().filter(|symbol| symbol.is_definition(LittleEndian, names));
    let place = |name: &[u8]| OWN.iter().position(|(function, _)| function.as_bytes() == name);
    defined.filter_map(|symbol| place(symbol.name(LittleEndian, names).ok()?)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn built(source: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (c, program) = (folder.path().join("own.c"), folder.path().join("own"));
        std::fs::write(&c, source).unwrap();
        let status = Command::new("cc").arg("-o").arg(&program).arg(&c).status().unwrap();
        assert!(status.success());
        by_own_allocator(&program)
    }

    #[test]
    fn a_program_that_defines_malloc_is_told_from_one_that_calls_it() {
        assert_eq!(built("#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }"), None);
        let own = "#include <stddef.h>\nvoid *mi_malloc(size_t n) { (void)n; return 0; }\nint main(void) { return !!mi_malloc(1); }";
        assert!(built(own).unwrap().starts_with("The program is linked with mimalloc and calls it directly"));
    }
}
