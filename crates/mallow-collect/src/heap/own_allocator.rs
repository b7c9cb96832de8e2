//! An allocator in the executable that is not seen, or not whole: why, and what helps.

use super::Linked;
use mallow_patches::{SANITIZERS, Unseen};
use mallow_wire::patches::{PATCHES_DIFFER, PATCHES_MADE, PATCHES_NO_ROOM, PATCHES_REFUSED, PATCHES_THREADS};
use mallow_wire::shared::{Header, MALLOC_OF_LIBRARY, MALLOC_OF_VALGRIND};

/// An allocator whose calls do not all lead to the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAllocator {
    /// Such as `mimalloc`; `malloc` for one that goes by that name.
    pub name: String,
    /// The library that it is in; none for the executable.
    pub library: Option<String>,
    /// Why they do not.
    pub why: NotSeen,
}

/// Why calls of an allocator are not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSeen {
    /// The executable could not be read before it started.
    NotLookedAt,
    /// Some of its functions cannot be patched.
    Functions(Vec<Unseen>),
    /// Its code in memory differs from its file.
    Differs,
    /// No room near the executable.
    NoRoom,
    /// The system does not let code be changed.
    Refused,
    /// Other threads might have been inside.
    Threads,
    /// It is a sanitizer's.
    Sanitizer,
    /// It is that of a library which is preloaded in front of the recorder's.
    InFront,
    /// It is that of valgrind.
    Valgrind,
}

impl OwnAllocator {
    /// The allocator of that name, unless all of its functions lead to the recorder.
    pub(crate) fn unless_seen(name: &str, header: &Header, linked: &Linked) -> Option<OwnAllocator> {
        let why = match header.patches_state {
            _ if header.malloc_in_front == MALLOC_OF_VALGRIND => NotSeen::Valgrind,
            _ if header.malloc_in_front == MALLOC_OF_LIBRARY => NotSeen::InFront,
            _ if name == SANITIZERS => NotSeen::Sanitizer,
            PATCHES_MADE if header.patches_unseen == 0 => return None,
            PATCHES_DIFFER => NotSeen::Differs,
            PATCHES_NO_ROOM => NotSeen::NoRoom,
            PATCHES_REFUSED => NotSeen::Refused,
            PATCHES_THREADS => NotSeen::Threads,
            _ if !linked.unseen.is_empty() => NotSeen::Functions(linked.unseen.clone()),
            _ => NotSeen::NotLookedAt,
        };
        Some(OwnAllocator { name: name.to_owned(), library: None, why })
    }

    /// Returns the sentence about its process, `who`.
    pub(crate) fn sentence(&self, who: &str) -> String {
        let brings = if self.name == "malloc" { "brings its own" } else { "is linked with" };
        let (why, cure) = self.why.cause_and_cure();
        let whose = match (&self.library, &self.why) {
            (_, NotSeen::InFront) => "a library that is preloaded in front of mallow's".to_owned(),
            (_, NotSeen::Valgrind) => "valgrind".to_owned(),
            (Some(name), _) => format!("its library {name}"),
            (None, _) => "its executable".to_owned(),
        };
        format!(
            "{who}: {whose} {brings} {}, {why}, so its metrics are not those of its heap; {cure}",
            self.name
        )
    }
}

impl NotSeen {
    /// Why, and what to do.
    fn cause_and_cure(&self) -> (String, &'static str) {
        const SHARED: &str = "link it against the allocator's shared library, or without it, to record it";
        match self {
            NotSeen::NotLookedAt => (
                "which could not be looked at before it ran, because the command does not name it and it cannot ask mallow".to_owned(),
                "name the executable in the command, or link it against the allocator's shared library",
            ),
            NotSeen::Functions(unseen) => (format!("not all of which can be seen ({})", list(unseen)), SHARED),
            NotSeen::Differs => (
                "which is not in memory as it is in the file".to_owned(),
                "start it from the file that the linker made, without what changes its code",
            ),
            NotSeen::NoRoom => ("near which there is no room for calls to be led away".to_owned(), SHARED),
            NotSeen::Refused => (
                "which the system does not let be changed (a sandbox, a policy against changing code, or no /proc)".to_owned(),
                SHARED,
            ),
            NotSeen::Sanitizer => (
                "which watches every block itself".to_owned(),
                "record a build without -fsanitize",
            ),
            NotSeen::InFront => (
                "which is called in the place of mallow's".to_owned(),
                "have mallow's be the first in LD_PRELOAD, or leave that library out",
            ),
            NotSeen::Valgrind => ("to which it leads all calls".to_owned(), "record without valgrind"),
            NotSeen::Threads => (
                "which other threads may have been using before it could be watched".to_owned(),
                SHARED,
            ),
        }
    }
}

/// The functions that cannot be patched, the first three of them by name.
fn list(unseen: &[Unseen]) -> String {
    const NAMED_MAX: usize = 3;
    let named = unseen.iter().take(NAMED_MAX).map(|it| format!("{}: {}", it.function, it.reason));
    let mut text = named.collect::<Vec<_>>().join("; ");
    if unseen.len() > NAMED_MAX {
        text += &format!("; and {} more", unseen.len() - NAMED_MAX);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_and_many_are_counted() {
        let unseen = |name: &str| Unseen { function: name.to_owned(), reason: "it is too short" };
        let own = |unseen| OwnAllocator {
            name: "malloc".to_owned(),
            library: None,
            why: NotSeen::Functions(unseen),
        };
        assert_eq!(
            own(vec![unseen("free")]).sentence("process 7"),
            "process 7: its executable brings its own malloc, not all of which can be seen (free: it is too short), so its metrics \
             are not those of its heap; link it against the allocator's shared library, or without it, to record it"
        );
        let many = own(["a", "b", "c", "d", "e"].map(unseen).to_vec()).sentence("process 7");
        assert!(many.contains("c: it is too short; and 2 more)"), "{many}");
    }
}
