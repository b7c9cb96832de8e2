//! Allocators that are linked into an executable, by families of names in its tables of symbols.
//!
//! A preloaded `malloc` is found before every library's, and never before the executable's own; and who calls `mi_malloc` never
//! asks for `malloc`. A linker keeps of an allocator what is called, so no single name can be asked for: an allocating function and
//! a freeing one of the same family are enough. An executable is looked at once, aside, however many processes it becomes.

use mallow_files::ForeignFile;
use mallow_patches::{Image, Unseen, inner_allocator};
use mallow_wire::executable::{Core, core_in};
use object::elf::Sym64;
use object::read::elf::{ElfFile64, Sym};
use object::read::{ReadCache, ReadRef, StringTable};
use object::{LittleEndian, Object, ObjectSection, pod};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What an executable's symbols say of the memory of its processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// The allocator that is linked into it; `malloc` for one that goes by that name.
    pub allocator: Option<&'static str>,
    /// The recorder is linked into it, and its allocator reports its calls.
    pub core: Option<Core>,
    /// It was made by Go.
    pub is_go: bool,
    /// Bytes of its static data that can be written.
    pub static_bytes: u64,
    /// Functions of the allocator that cannot be patched.
    pub unseen: Vec<Unseen>,
}

/// Prefixes of the functions of a family. Without a prefix it is the C library's own.
const FAMILIES: [(&str, &str); 12] = [
    ("mi_", "mimalloc"),
    ("_rjem_", "jemalloc"),
    ("__je_", "jemalloc"),
    ("je_", "jemalloc"),
    ("jemalloc_", "jemalloc"),
    ("tc_", "tcmalloc"),
    ("rp", "rpmalloc"),
    ("sn_rust_", "snmalloc"),
    ("sn_", "snmalloc"),
    ("scalable_", "TBB's allocator"),
    ("xx", "Hoard"),
    ("", "malloc"),
];

/// Suffixes of functions that allocate.
const GIVING: [&str; 10] = [
    "malloc",
    "zalloc",
    "calloc",
    "realloc",
    "rezalloc",
    "alloc",
    "alloc_zeroed",
    "aligned_alloc",
    "memalign",
    "mallocx",
];
/// Suffixes of functions that free.
const TAKING: [&str; 5] = ["free", "dealloc", "sdallocx", "dallocx", "delete"];

/// The executables that were seen.
#[derive(Debug, Default)]
pub(crate) struct Executables {
    /// By device, number and time of change.
    known: FxHashMap<(u64, u64, i64), Arc<OnceLock<Linked>>>,
}

impl Executables {
    /// Returns the executable of a process, which is at `path` if it can be seen from here. Its symbols are read a
    /// little later.
    pub(crate) fn of(&mut self, pid: u32, path: Option<&Path>) -> Arc<OnceLock<Linked>> {
        // The process may have ended, belong to another user, or have executed another program since.
        let own = format!("/proc/{pid}/exe");
        let is_another = path.is_some() && std::fs::read_link(&own).ok().as_deref() != path;
        let by_path = || path.and_then(|path| File::open(path).ok());
        let by_process = || File::open(&own).ok();
        let file = if is_another { by_path().or_else(by_process) } else { by_process().or_else(by_path) };
        let Some((about, file)) = file.and_then(|file| Some((file.metadata().ok()?, file))) else {
            return Arc::default();
        };
        let known = self.known.entry((about.dev(), about.ino(), about.mtime_nsec() ^ about.mtime() << 30));
        Arc::clone(known.or_insert_with(|| {
            let linked: Arc<OnceLock<Linked>> = Arc::default();
            let place = Arc::clone(&linked);
            let path = path.map(Path::to_owned);
            // Half a million symbols take some milliseconds, in which a ring fills.
            std::thread::spawn(move || {
                let looked_at = std::panic::catch_unwind(|| with_unseen(linked_into(file), path.as_deref()));
                let _ = place.set(looked_at.unwrap_or_default());
            });
            linked
        }))
    }
}

/// Adds which functions of the allocator cannot be patched.
fn with_unseen(linked: Linked, path: Option<&Path>) -> Linked {
    let image = path.filter(|_| linked.allocator.is_some());
    let image = image.and_then(Image::examine);
    Linked { unseen: image.map(|image| image.unseen).unwrap_or_default(), ..linked }
}

/// Reads the file's symbols; returns nothing if it is no executable.
pub fn linked_into(file: File) -> Linked {
    let core = core_in(|offset, into| file.read_at(into, offset).unwrap_or(0));
    // An interpreter may be 90 MB; only its headers and its tables of symbols are read.
    let Ok(file) = ForeignFile::of(file) else { return Linked::default() };
    let content = ReadCache::new(file);
    let Ok(file) = ElfFile64::<LittleEndian, _>::parse(&content) else { return Linked::default() };
    let (mut seen, mut inner) = ([(false, false); FAMILIES.len()], None);
    for (symbols, names) in [(".dynsym", ".dynstr"), (".symtab", ".strtab")] {
        let _ = each_defined(&file, symbols, names, |name| {
            inner = inner.or_else(|| inner_allocator(name));
            note(name, &mut seen);
        });
    }
    let found = seen.iter().position(|(gives, takes)| *gives && *takes);
    let is_go = [".gopclntab", ".go.buildinfo"].iter().any(|name| file.section_by_name(name).is_some());
    Linked {
        allocator: found.map(|at| FAMILIES[at].1).or(inner),
        core,
        is_go,
        static_bytes: static_bytes(&file),
        unseen: Vec::new(),
    }
}

/// Stores which functions of which families a symbol is one of.
fn note(name: &[u8], seen: &mut [(bool, bool); FAMILIES.len()]) {
    // Functions of C++ and of Rust, mostly all there are.
    if name.starts_with(b"_Z") || name.starts_with(b"_R") {
        return;
    }
    for (at, (prefix, _)) in FAMILIES.iter().enumerate() {
        let Some(rest) = name.strip_prefix(prefix.as_bytes()) else { continue };
        let is_one = |stems: &[&str]| {
            stems.iter().any(|stem| match rest.strip_prefix(stem.as_bytes()) {
                Some([]) => true,
                // `mi_malloc_aligned`; but `malloc_usable_size` and `free_list` are no allocator's proof.
                Some([b'_', ..]) => !prefix.is_empty(),
                _ => false,
            })
        };
        seen[at].0 |= is_one(&GIVING);
        seen[at].1 |= is_one(&TAKING);
    }
    // jemalloc can be built with any prefix, and has two functions that no other allocator has.
    if name.ends_with(b"sdallocx") {
        seen[1] = (true, true);
    }
}

/// Calls `visit` with the name of each function that a table of symbols defines.
fn each_defined<'a, R: ReadRef<'a>>(
    file: &ElfFile64<'a, LittleEndian, R>,
    symbols: &str,
    names: &str,
    mut visit: impl FnMut(&[u8]),
) -> Option<()> {
    let data = |name: &str| file.section_by_name(name)?.data().ok();
    let (symbols, names) = (data(symbols)?, data(names)?);
    let symbols: &[Sym64<LittleEndian>] = pod::slice_from_all_bytes(symbols).ok()?;
    let names = StringTable::new(names, 0, names.len() as u64);
    let functions = symbols.iter().filter(|symbol| {
        matches!(symbol.st_type(), object::elf::STT_FUNC | object::elf::STT_GNU_IFUNC)
            && symbol.is_definition(LittleEndian, names)
    });
    functions.filter_map(|symbol| symbol.name(LittleEndian, names).ok()).for_each(&mut visit);
    Some(())
}

fn static_bytes<'a, R: ReadRef<'a>>(file: &ElfFile64<'a, LittleEndian, R>) -> u64 {
    use object::read::elf::ProgramHeader;
    let headers = file.elf_program_headers().iter();
    headers
        .filter(|header| header.p_type(LittleEndian) == object::elf::PT_LOAD)
        .filter(|header| header.p_flags(LittleEndian).contains(object::elf::PF_W))
        .fold(0, |sum, header| sum.saturating_add(header.p_memsz(LittleEndian)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn allocator_of(names: &[&str]) -> Option<&'static str> {
        let mut seen = [(false, false); FAMILIES.len()];
        names.iter().for_each(|name| note(name.as_bytes(), &mut seen));
        seen.iter().position(|(gives, takes)| *gives && *takes).map(|at| FAMILIES[at].1)
    }

    #[test]
    fn allocators_are_recognised_by_the_symbols_that_linkers_keep() {
        for (names, allocator) in [
            (&["mi_malloc_aligned", "mi_zalloc_aligned", "mi_free"][..], "mimalloc"),
            (&["_rjem_malloc", "_rjem_sdallocx"], "jemalloc"),
            (&["custom_mallocx", "custom_sdallocx"], "jemalloc"),
            (&["tc_malloc", "tc_free"], "tcmalloc"),
            (&["rpaligned_alloc", "rpfree"], "rpmalloc"),
            (&["sn_rust_alloc_zeroed", "sn_rust_dealloc"], "snmalloc"),
            (&["malloc", "free"], "malloc"),
        ] {
            assert_eq!(allocator_of(names), Some(allocator));
        }
    }

    #[test]
    fn other_symbols_are_no_allocator() {
        for names in [
            &["mi_create", "mi_open", "mi_free"][..],
            &["tc_calc_xmittime", "tc_core_init"],
            &["tcmalloc", "tcfree"],
            &["dlmalloc", "dlfree"],
            &["xmalloc", "xfree", "xrealloc"],
            &["malloc_hook", "free_list"],
            &["_ZN5folly8sdallocx"],
        ] {
            assert_eq!(allocator_of(names), None, "{names:?}");
        }
    }

    fn built(source: &str) -> Linked {
        let folder = tempfile::tempdir().unwrap();
        let (c, program) = (folder.path().join("own.c"), folder.path().join("own"));
        std::fs::write(&c, source).unwrap();
        let status = Command::new("cc").arg("-w").arg("-o").arg(&program).arg(&c).status().unwrap();
        assert!(status.success());
        linked_into(File::open(&program).unwrap())
    }

    #[test]
    fn defining_allocator_functions_differs_from_calling_them() {
        assert_eq!(
            built("#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }").allocator,
            None
        );
        let own = "void *mi_malloc(unsigned long n) { return 0; }\nvoid mi_free(void *p) {}\nchar room[1 << 20];\n\
                   int main(void) { mi_free(mi_malloc(1)); return 0; }";
        let linked = built(own);
        assert_eq!(linked.allocator, Some("mimalloc"));
        assert!((1 << 20..1 << 21).contains(&linked.static_bytes), "{linked:?}");
        assert!(!linked.is_go);
    }
}
