//! What is said of libraries whose allocators are not seen.

use crate::heap::{NotSeen, OwnAllocator};
use crate::looked_at::{Object, Role};
use mallow_patches::Image;
use mallow_wire::patches::{PATCHES_DIFFER, PATCHES_MADE, PATCHES_NO_ROOM, PATCHES_REFUSED, PATCHES_THREADS};

/// A library whose allocator is not seen, or not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnseenLibrary {
    pub(crate) pid: u32,
    allocator: OwnAllocator,
}

impl UnseenLibrary {
    /// Returns what is not recorded of an image in a process; `None` if all of it is, and for executables, which
    /// their processes report themselves.
    pub(crate) fn of(pid: u32, object: &Object, image: &Image, outcome: u32) -> Option<UnseenLibrary> {
        let why = match outcome {
            PATCHES_MADE if image.unseen.is_empty() => return None,
            PATCHES_DIFFER => NotSeen::Differs,
            PATCHES_NO_ROOM => NotSeen::NoRoom,
            PATCHES_REFUSED => NotSeen::Refused,
            PATCHES_THREADS => NotSeen::Threads,
            // It has another file there.
            _ if image.unseen.is_empty() => NotSeen::Differs,
            _ => NotSeen::Functions(image.unseen.clone()),
        };
        let library = object.path.file_name()?.to_string_lossy().into_owned();
        let name = image.allocator.to_owned();
        let allocator = OwnAllocator { name, library: Some(library), why };
        (object.role == Role::Library).then_some(UnseenLibrary { pid, allocator })
    }

    pub(crate) fn sentence(&self) -> String {
        self.allocator.sentence(&format!("process {}", self.pid))
    }
}
