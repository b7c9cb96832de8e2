//! Allocators that are linked into an executable. It is looked at once, aside, however many processes it becomes, and not again where that was done for
//! patches of it.

use crate::looked_at::{Found, Object, Role, found_in, known};
use mallow_files::ForeignFile;
use mallow_patches::Unseen;
use mallow_wire::executable::{Core, core_in};
use object::LittleEndian;
use object::read::elf::ElfFile64;
use object::read::{Object as _, ReadCache, ReadRef};
use rustc_hash::FxHashMap;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

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

/// The executables that were seen.
#[derive(Debug, Default)]
pub(crate) struct Executables {
    /// By device, number and time of change.
    seen: FxHashMap<(u64, u64, i64), Arc<OnceLock<Linked>>>,
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
        let seen = self.seen.entry((about.dev(), about.ino(), about.mtime_nsec() ^ about.mtime() << 30));
        Arc::clone(seen.or_insert_with(|| {
            let linked: Arc<OnceLock<Linked>> = Arc::default();
            let place = Arc::clone(&linked);
            let look = Arc::new(move || {
                let looked_at = std::panic::catch_unwind(|| file.try_clone().map(linked_into));
                let _ = place.set(looked_at.ok().and_then(Result::ok).unwrap_or_default());
            });
            let aside = Arc::clone(&look);
            // Half a million symbols take some milliseconds, in which a ring fills.
            if known(&about, Role::Executable).is_some() || Builder::new().spawn(move || aside()).is_err() {
                look();
            }
            linked
        }))
    }
}

/// Returns what an open file is linked with; nothing if it is no executable.
pub fn linked_into(file: File) -> Linked {
    let core = core_in(|offset, into| file.read_at(into, offset).unwrap_or(0));
    let Found { named, image } = found_in(&Object { path: path_of(&file), role: Role::Executable });
    let (is_go, static_bytes) = by_headers(file).unwrap_or_default();
    let unseen = image.map(|image| image.unseen.clone()).unwrap_or_default();
    Linked { allocator: named, core, is_go, static_bytes, unseen }
}

/// Returns a path by which an open file can be opened: its own, beside which its debug file may lie. That may be another file's by now, or one below
/// another root.
fn path_of(file: &File) -> PathBuf {
    let by_number = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let number = |about: Metadata| (about.dev(), about.ino());
    let own = std::fs::read_link(&by_number).ok();
    let is_same =
        |path: &PathBuf| std::fs::metadata(path).ok().map(number) == file.metadata().ok().map(number);
    own.filter(is_same).unwrap_or(by_number)
}

/// Returns whether an executable was made by Go, and how many bytes of static data it can write to.
fn by_headers(file: File) -> Option<(bool, u64)> {
    // An interpreter may be 90 MB; only its headers are read.
    let content = ReadCache::new(ForeignFile::of(file).ok()?);
    let file = ElfFile64::<LittleEndian, _>::parse(&content).ok()?;
    let is_go = [".gopclntab", ".go.buildinfo"].iter().any(|name| file.section_by_name(name).is_some());
    Some((is_go, static_bytes(&file)))
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

    const OWN: &str = "void *mi_malloc(unsigned long n) { return 0; }\nvoid mi_free(void *p) {}\nchar room[1 << 20];\n\
                       int main(void) { mi_free(mi_malloc(1)); return 0; }";

    fn built(folder: &Path, source: &str) -> PathBuf {
        let (c, program) = (folder.join("own.c"), folder.join("own"));
        std::fs::write(&c, source).unwrap();
        let status = Command::new("cc").arg("-w").arg("-o").arg(&program).arg(&c).status().unwrap();
        assert!(status.success());
        program
    }

    #[test]
    fn defining_allocator_functions_differs_from_calling_them() {
        let folder = tempfile::tempdir().unwrap();
        let linked = |source| linked_into(File::open(built(folder.path(), source)).unwrap());
        let calling = "#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }";
        assert_eq!(linked(calling).allocator, None);
        let linked = linked(OWN);
        assert_eq!(linked.allocator, Some("mimalloc"));
        assert!((1 << 20..1 << 21).contains(&linked.static_bytes), "{linked:?}");
        assert!(!linked.is_go);
    }

    /// A program may be installed anew while it runs.
    #[test]
    fn an_executable_is_the_open_one_whatever_is_at_its_path_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let program = built(folder.path(), OWN);
        for replaced in [false, true] {
            let file = File::open(&program).unwrap();
            std::fs::remove_file(&program).unwrap();
            if replaced {
                std::fs::copy("/bin/true", &program).unwrap();
            }
            assert_eq!(path_of(&file).parent(), Some(Path::new("/proc/self/fd")));
            assert_eq!(linked_into(file).allocator, Some("mimalloc"), "{replaced}");
            built(folder.path(), OWN);
        }
        assert_eq!(path_of(&File::open(&program).unwrap()), program.canonicalize().unwrap());
    }
}
