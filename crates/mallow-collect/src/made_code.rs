//! Code that a process made while it ran: what its addresses are, as its runtime wrote down.
//!
//! A map that we asked for is [followed](FollowedCode) while it is written. Other lists are read when names are asked for: at the process's
//! end, or while a live session looks. Their addresses have no time, so code that was thrown away and whose place another function
//! took has the later one's name there.

use crate::followed_code::FollowedCode;
use crate::module_map::ModuleMap;
use mallow_base::Frame;
use mallow_jit::{CodeNames, FollowedMap, frame_of, is_trusted, jitdump, map_path};
use mallow_trace::SymbolKey;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where a process's perf map and jitdump would be.
#[derive(Clone, Debug)]
pub(crate) struct CodeLists {
    /// The process's number as it has it for itself, which is in the files' names.
    pid: u32,
    /// Older files are those of another process that had its pid.
    since: SystemTime,
    /// Its working folder at the start, into which some runtimes write.
    folder: Option<PathBuf>,
}

/// How much earlier than our clock the time stamp of a file may be: the kernel's clock for files is coarser.
const SLACK: Duration = Duration::from_millis(50);

impl CodeLists {
    /// Those of a process that has just begun. `pid` is its number as we see it, `own_pid` as it has it for itself.
    pub(crate) fn of(pid: u32, own_pid: u32) -> CodeLists {
        CodeLists {
            pid: own_pid,
            since: SystemTime::now() - SLACK,
            folder: std::fs::read_link(format!("/proc/{pid}/cwd")).ok(),
        }
    }

    /// Returns the symbols of these addresses, except those of modules. `followed` knows what was there when.
    pub(crate) fn made(
        &self,
        addresses: impl Iterator<Item = SymbolKey>,
        modules: &ModuleMap,
        followed: Option<&FollowedCode>,
    ) -> MadeCode {
        let mut made = MadeCode::default();
        let mut rest = Vec::new();
        for key in addresses.filter(|key| modules.at(key).is_none()) {
            match followed.and_then(|code| code.frame(&key)) {
                Some(frame) => drop(made.frames.insert(place(&key), frame.clone())),
                None => rest.push(key),
            }
        }
        if rest.is_empty() {
            return made;
        }
        let lists = self.read();
        let named = |key: SymbolKey| {
            let name = lists.iter().find_map(|list| list.name(pc(key)))?;
            Some((place(&key), frame_of(name)))
        };
        made.frames.extend(rest.into_iter().filter_map(named));
        made
    }

    /// The map, to be followed; none while its runtime has not begun it.
    pub(crate) fn followed(&self) -> Option<FollowedCode> {
        let map = self.has_map().then(|| FollowedMap::of_process(self.pid)).flatten();
        map.map(FollowedCode::of)
    }

    /// Returns whether its runtime has written its map.
    pub(crate) fn has_map(&self) -> bool {
        self.is_its_own(&map_path(self.pid))
    }

    fn read(&self) -> Vec<CodeNames> {
        let map = Some(map_path(self.pid)).filter(|path| self.is_its_own(path));
        let map = map.map(|_| CodeNames::of_process(self.pid));
        let dump = format!("jit-{}.dump", self.pid);
        let folders = self.folder.iter().map(PathBuf::as_path).chain([Path::new("/tmp")]);
        let dumps = folders.map(|folder| folder.join(&dump)).filter(|path| self.is_its_own(path));
        map.into_iter().chain(dumps.map(|path| jitdump::of_file(&path))).collect()
    }

    /// Removes the perf map, which only we have requested.
    pub(crate) fn remove_map(&self) {
        let path = map_path(self.pid);
        if is_trusted(&path) && self.is_its_own(&path) {
            // Someone else has removed it already.
            let _ = std::fs::remove_file(path);
        }
    }

    fn is_its_own(&self, path: &Path) -> bool {
        std::fs::symlink_metadata(path)
            .and_then(|found| found.modified())
            .is_ok_and(|written| written >= self.since)
    }
}

/// An address within the code that was run.
fn pc(key: SymbolKey) -> u64 {
    key.avma.wrapping_sub(u64::from(!key.exact))
}

/// An address, and when it was that.
type Place = (u64, u64);

fn place(key: &SymbolKey) -> Place {
    (pc(*key), key.generation)
}

/// The frames of such addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeCode {
    frames: FxHashMap<Place, Frame>,
}

impl MadeCode {
    /// The frame at an address; none where no list has it.
    pub(crate) fn frame(&self, key: &SymbolKey) -> Option<&Frame> {
        self.frames.get(&place(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_trace::MappedModule;

    /// A pid that no process can have.
    fn lists(pid: u32, folder: &Path) -> CodeLists {
        let since = SystemTime::now() - SLACK;
        CodeLists { pid, since, folder: Some(folder.to_owned()) }
    }

    fn key(avma: u64, exact: bool) -> SymbolKey {
        SymbolKey { avma, exact, generation: 0, location: 0 }
    }

    fn at(made: &MadeCode, avma: u64, exact: bool) -> Option<&str> {
        made.frame(&key(avma, exact)).map(|frame| frame.function.as_str())
    }

    #[test]
    fn addresses_outside_of_modules_have_the_names_that_the_runtime_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let pid = 4_194_304 + std::process::id();
        let lists = lists(pid, folder.path());
        std::fs::write(map_path(pid), "1000 10 JS:*f /a.js:3:1\n5000 10 JS:*g /a.js:4:1\n").unwrap();
        let module = MappedModule {
            path: "/lib".into(),
            build_id: Vec::new(),
            start_avma: 0x5000,
            end_avma: 0x6000,
            bias: 0,
            generation: 0,
        };
        let modules = ModuleMap::of(&[module]);
        // A return address behind the last call of a function is no longer in it.
        let keys = [key(0x1010, false), key(0x1010, true), key(0x1000, true), key(0x5004, false)];
        let made = lists.made(keys.into_iter(), &modules, None);
        assert_eq!(at(&made, 0x1010, false), Some("f"));
        assert_eq!((at(&made, 0x1010, true), at(&made, 0x1000, true)), (None, Some("f")));
        assert_eq!(at(&made, 0x5004, false), None, "a module's code is the module's");
        assert!(lists.has_map());
        lists.remove_map();
        assert!(!map_path(pid).exists());
    }

    #[test]
    fn a_list_of_another_process_with_the_same_number_is_not_read_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let pid = 2 * 4_194_304 + std::process::id();
        std::fs::write(map_path(pid), "1000 10 old\n").unwrap();
        let lists =
            CodeLists { since: SystemTime::now() + Duration::from_secs(60), ..lists(pid, folder.path()) };
        let made = lists.made([key(0x1008, false)].into_iter(), &ModuleMap::of(&[]), None);
        assert_eq!(at(&made, 0x1008, false), None);
        lists.remove_map();
        assert!(map_path(pid).exists());
        std::fs::remove_file(map_path(pid)).unwrap();
    }
}
