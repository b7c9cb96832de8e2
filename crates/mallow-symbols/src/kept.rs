//! Answers kept from one run to the next: parsing the debug information of a C library takes longer than most programs run.
//!
//! A file in the folder holds what was found out about one module. It is good as long as every file that was tried then is the same (its
//! path, size, times and inode) or is still not there, and for exactly this build of ours, so that a debug package installed later, or another
//! demangler, gives other answers. So no file of the module is opened to know whether its names are here. Anything that does not fit is as if it
//! were not there: the worst that a damaged folder costs is time. Several runs may use it at once, because a file is written beside its place and
//! renamed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mallow_base::{Frame, hex};
use rustc_hash::FxHashMap;

use crate::identity::identity;
use crate::packed::{Answers, decode, encode};
use crate::{ModuleKey, SearchPaths};

/// The maximal size of a file, and of all of them together.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FOLDER_BYTES_MAX: u64 = 512 << 20;

/// See [`Folder::make_room_sometimes`].
const LOOKS: u128 = 16;

/// A folder of answers.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The build of mallow that wrote them.
    own: String,
}

/// What is asked: of which build of a module, and where was looked for its files.
pub(crate) struct AddressQuery<'a> {
    pub(crate) module: &'a ModuleKey,
    pub(crate) search: &'a SearchPaths,
}

impl AddressQuery<'_> {
    fn identity(&self, own: &str) -> String {
        let ModuleKey { path, build_id } = self.module;
        format!("{own}\n{path}\n{}\n{}", hex(build_id), places(self.search))
    }
}

/// Where was looked.
fn places(search: &SearchPaths) -> String {
    format!("{:?} {:?} {}", search.debug_roots, search.sysroot, search.server.is_some())
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Folder {
        let own = std::env::current_exe().ok().and_then(|exe| identity(&exe));
        Folder { path, own: own.unwrap_or_default() }
    }

    /// The file of a module, whichever build of it.
    fn file(&self, path: &str, search: &SearchPaths) -> PathBuf {
        use std::hash::{Hash, Hasher};
        let name = format!("{}\n{path}\n{}", self.own, places(search));
        let mut hasher = rustc_hash::FxHasher::default();
        name.hash(&mut hasher);
        self.path.join(format!("{:016x}{:08x}.names", hasher.finish(), crc32fast::hash(name.as_bytes())))
    }

    /// Returns whether there are answers about some build of the module at this path.
    pub(crate) fn has(&self, path: &str, search: &SearchPaths) -> bool {
        self.file(path, search).exists()
    }

    /// The answers for those of `svmas` that are known and are what the files would say now.
    pub(crate) fn read(&self, question: &AddressQuery<'_>, svmas: &[u64]) -> Answers {
        self.current(question, Some(svmas)).unwrap_or_default()
    }

    fn current(&self, question: &AddressQuery<'_>, svmas: Option<&[u64]>) -> Option<Answers> {
        let bytes = self.open(&self.file(&question.module.path, question.search))?;
        decode(&bytes, &question.identity(&self.own), svmas).filter(Answers::are_current)
    }

    fn open(&self, place: &Path) -> Option<Vec<u8>> {
        let mut file = File::open(place).ok()?;
        let found = file.metadata().ok()?;
        // Names are shown to people: those that another user wrote are not.
        if !found.is_file() || found.len() > FILE_BYTES_MAX || Some(found.uid()) != own_user() {
            return None;
        }
        let mut bytes = Vec::with_capacity(found.len() as usize);
        file.read_to_end(&mut bytes).ok()?;
        // For the eviction of old files: used ones stay.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Adds those of the answers that are about `new` addresses to those that are kept. What cannot be written is found out again
    /// another time.
    pub(crate) fn add(&self, question: &AddressQuery<'_>, answers: &Answers, new: &[u64]) {
        let kept = self.current(question, None).unwrap_or_default();
        let of_kept = kept.frames.iter().map(|(svma, frames)| (*svma, &frames[..]));
        let of_new = new.iter().filter_map(|svma| Some((*svma, &answers.frames.get(svma)?[..])));
        let all: FxHashMap<u64, &[Frame]> = of_kept.chain(of_new).collect();
        let problem = answers.problem.as_ref().or(kept.problem.as_ref());
        let identity = question.identity(&self.own);
        let bytes = encode(&all, problem, &answers.tried, &identity);
        let place = self.file(&question.module.path, question.search);
        let is_first = !place.exists();
        if bytes.len() as u64 <= FILE_BYTES_MAX && self.write(&place, &bytes).is_ok() {
            self.make_room_sometimes(is_first);
        }
    }

    fn write(&self, place: &Path, bytes: &[u8]) -> std::io::Result<()> {
        mallow_files::private_folder(&self.path)?;
        let fresh = place.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        let made = mallow_files::create_new(&fresh);
        let written =
            made.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&fresh, place));
        written.inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }

    /// Looks through the folder for a file that is a new one, and otherwise for one of [`LOOKS`] that were written: to ask for the sizes of a thousand files takes
    /// longer than to write one.
    fn make_room_sometimes(&self, is_new: bool) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if is_new || (now.as_nanos() / 1000).is_multiple_of(LOOKS) {
            self.make_room();
        }
    }

    /// Removes what was not used for longest, until half of the room is free.
    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let (entry, found) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))).ok()?;
                Some((found.modified().ok()?, found.len(), entry))
            })
            .collect();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if bytes <= FOLDER_BYTES_MAX {
            return;
        }
        files.sort_unstable();
        for (_, file_bytes, path) in files {
            if bytes <= FOLDER_BYTES_MAX / 2 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                bytes -= file_bytes;
            }
        }
    }
}

fn own_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|found| found.uid())
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
