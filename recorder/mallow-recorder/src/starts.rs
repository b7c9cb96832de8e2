//! Programs that this process starts: what stands against their being recorded, and a note of each for the collector.
//!
//! A program that cannot load the library says nothing of itself, so it is noted before it begins. Everything here may run in a
//! `vfork` child, on its parent's memory and stack: what is mapped is unmapped before the program takes over, nothing else is kept,
//! and `errno` is not touched.

use crate::filters;
use crate::objects;
use crate::own_limits;
use crate::process;
use crate::session;
use crate::session::Strings;
use crate::sys;
use crate::thread_status::ThreadStatus;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use mallow_wire::executable::{Obstacle, core_in, is_sanitizer, obstacle};
use mallow_wire::handshake::SESSION_VARIABLE;
use mallow_wire::shared::*;
use mallow_wire::starts::*;

/// The first bytes of the library's file name.
const LIBRARY: &[u8] = b"libmallow_preload";
const PRELOADS: &[u8] = b"LD_PRELOAD=";

/// Strings of an environment that can be given in another form. With more of them it is given as it is.
pub const STRINGS_MAX: usize = 1024;
/// Bytes of the variable that names what is preloaded.
pub const TEXT_BYTES: usize = 4096;

/// The path of our library, as the loader has it.
static OWN_PATH: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// What was preloaded when this program began, a string on its first stack; null for nothing. What it does to its environment does not change that.
static PRELOADS_AT_START: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Finds out what is preloaded: our library, in which `own` is an address, and all others. May take the loader's lock.
pub fn note_preloads(own: usize) {
    // SAFETY: the environment as it is at the start.
    if let Some(list) = unsafe { value_in(session::environ().unwrap_or(core::ptr::null()), PRELOADS) } {
        PRELOADS_AT_START.store(list.as_ptr().cast_mut().cast(), Ordering::Relaxed);
    }
    if let Some(object) = objects::find(own) {
        OWN_PATH.store(object.name.cast_mut(), Ordering::Relaxed);
    }
}

/// What a program's environment says of preloaded libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preloads {
    /// What the caller's does.
    AsTheyAre,
    /// The same without our library.
    WithoutOurs,
    /// The same with our library as the first. A start script that preloads an allocator puts it in front, or sets it in our place.
    OursFirst,
}

/// Where a program is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// At its path.
    Path,
    /// In the folders of `PATH`, when its name has no slash.
    Folders,
    /// From an open file: a folder, or, with an empty name, the program itself.
    File(i32),
}

/// As a file: the working directory.
const AT_FDCWD: i32 = -100;

/// A program that is about to start.
#[derive(Debug)]
pub struct Start<'a> {
    found: u32,
    /// What becomes of the libraries that are preloaded.
    pub preloads: Preloads,
    time_ns: u64,
    network: u64,
    /// Until it is noted.
    path: Option<Path<'a>>,
    path_bytes: usize,
}

#[derive(Debug)]
enum Path<'a> {
    Found(sys::Scratch),
    AsGiven(&'a CStr),
}

impl Path<'_> {
    fn bytes(&mut self) -> &[u8] {
        match self {
            Path::Found(page) => page.bytes(),
            Path::AsGiven(name) => name.to_bytes(),
        }
    }
}

impl Start<'_> {
    /// Looks at the program. None when this process is not recorded.
    ///
    /// # Safety
    /// `name` is a string that stays until the start is noted, or null; `environment` is a list of strings or null.
    pub unsafe fn of<'a>(name: *const c_char, search: Search, environment: Strings) -> Option<Start<'a>> {
        if name.is_null() {
            return None;
        }
        // SAFETY: by contract.
        let name: &'a CStr = unsafe { CStr::from_ptr(name) };
        if filters::stop_ours() {
            return Some(Start::unseen(name));
        }
        if process::shared().is_null() || is_locked_in() {
            return None;
        }
        let mut path = sys::Scratch::map()?;
        let mut path_bytes = match search {
            Search::Path | Search::File(AT_FDCWD) => join(&[name.to_bytes()], &mut path),
            Search::Folders => find(name.to_bytes(), session::variable("PATH"), &mut path),
            Search::File(file) => from_file(file, name.to_bytes(), &mut path),
        };
        let file = CStr::from_bytes_until_nul(path.bytes()).unwrap_or(c"");
        // SAFETY: by contract.
        let (found, preloads) = unsafe { found(file, environment) };
        if let Search::File(_) = search {
            path_bytes = name_of_open(&mut path).unwrap_or(path_bytes);
        }
        let path = Some(Path::Found(path));
        Some(Start { found, preloads, time_ns: sys::monotonic_ns(), network: network(), path, path_bytes })
    }

    /// The shell that libc starts itself, with the environment of this process, unless it will be recorded.
    pub fn of_shell() -> Option<Start<'static>> {
        const SHELL: &CStr = c"/bin/sh";
        if filters::stop_ours() {
            return Some(Start::unseen(SHELL));
        }
        // SAFETY: a string that stays, and the environment.
        let mut shell = unsafe { Start::of(SHELL.as_ptr(), Search::Path, session::environ_of_libc())? };
        if shell.preloads == Preloads::OursFirst {
            shell.found = FOUND_CLEARED;
        }
        (shell.found != FOUND_NOTHING).then_some(shell)
    }

    /// A program of which nothing can be found out, as no call of ours may be made. It has a time of its own, and not that of a clock: notes are told apart by
    /// it, and it will not register.
    fn unseen(name: &CStr) -> Start<'_> {
        static UNSEEN: AtomicU64 = AtomicU64::new(0);
        let name = if name.is_empty() { c"an open file" } else { name };
        let time_ns = UNSEEN.fetch_add(1, Ordering::Relaxed);
        let path_bytes = name.to_bytes().len();
        let (found, preloads, path) = (FOUND_FILTERED, Preloads::WithoutOurs, Some(Path::AsGiven(name)));
        Start { found, preloads, time_ns, network: 0, path, path_bytes }
    }

    /// The process that it takes the place of, as far as that can be asked.
    pub fn own_pid(&self) -> u32 {
        match self.found {
            FOUND_FILTERED if process::shared().is_null() => 0,
            FOUND_FILTERED => process::header().pid,
            _ => sys::getpid(),
        }
    }

    /// Writes a note for the collector: the program replaces the image of process `pid`, or of one whose number nobody is told, for 0.
    pub fn note(&mut self, pid: u32) -> Option<&'static StartNote> {
        // The memory is released at the end of this call: a program that a `vfork` child executes leaves it to the
        // parent.
        let mut path = self.path.take();
        let name = path.as_mut().and_then(|path| path.bytes().get(..self.path_bytes)).unwrap_or(&[]);
        if process::shared().is_null() {
            return None;
        }
        write(pid, self.time_ns, self.network, self.found, name)
    }

    /// Withdraws a note, because the start has failed.
    pub fn failed(&mut self, pid: u32, note: Option<&'static StartNote>) {
        let Some(note) = note else { return };
        // A reader that comes a moment later finds another program's note, or none. Nobody has read this one, unless
        // it is gone.
        let is_ours = note.time_ns.load(Ordering::Relaxed) == self.time_ns
            && note.pid.load(Ordering::Relaxed) == pid
            && note
                .state
                .compare_exchange(START_NOTED, START_FREE, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if !is_ours {
            write(pid, self.time_ns, 0, FOUND_FAILED, &[]);
        }
    }
}

/// Returns whether the calling thread may be unable to make calls of ours, which the program that takes its place can.
fn is_locked_in() -> bool {
    let is_off = ThreadStatus::current().is_some_and(ThreadStatus::is_off);
    is_off && process::header().threads_locked_in.load(Ordering::Relaxed) > 0
}

fn write(pid: u32, time_ns: u64, network: u64, found: u32, path: &[u8]) -> Option<&'static StartNote> {
    let header = process::header();
    // SAFETY: the notes lie in the shared memory.
    let notes = unsafe {
        core::slice::from_raw_parts(process::shared().add(STARTS_OFFSET).cast::<StartNote>(), START_NOTES)
    };
    let take = |note: &StartNote| {
        note.state.compare_exchange(START_FREE, START_WRITING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let Some((index, note)) = notes.iter().enumerate().find(|(_, note)| take(note)) else {
        header.starts_lost.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    note.pid.store(pid, Ordering::Relaxed);
    note.time_ns.store(time_ns, Ordering::Relaxed);
    note.network.store(network, Ordering::Relaxed);
    note.found.store(found, Ordering::Relaxed);
    let end = path.get(path.len().saturating_sub(note.path.len())..).unwrap_or(&[]);
    note.path.iter().zip(end).for_each(|(place, byte)| place.store(*byte, Ordering::Relaxed));
    note.path_bytes.store(end.len() as u32, Ordering::Relaxed);
    note.state.store(START_NOTED, Ordering::Release);
    header.starts_high.fetch_max(index as u32 + 1, Ordering::Relaxed);
    header.starts_noted.fetch_add(1, Ordering::Release);
    Some(note)
}

/// Writes the program's path and a zero byte; returns its length. A name that is in no folder is unchanged.
fn find(name: &[u8], folders: Option<&[u8]>, path: &mut sys::Scratch) -> usize {
    let folders = folders.filter(|_| !name.is_empty() && !name.contains(&b'/'));
    for folder in folders.unwrap_or(b"").split(|byte| *byte == b':').filter(|folder| !folder.is_empty()) {
        let bytes = join(&[folder, b"/", name], path);
        let is_there = CStr::from_bytes_until_nul(path.bytes()).is_ok_and(sys::is_executable);
        if bytes > 0 && is_there {
            return bytes;
        }
    }
    join(&[name], path)
}

/// The path of a program that is an open file, or that is in an open folder.
fn from_file(file: i32, name: &[u8], path: &mut sys::Scratch) -> usize {
    if name.starts_with(b"/") {
        return join(&[name], path);
    }
    let mut digits = [0; 10];
    let number = decimal(file.unsigned_abs(), &mut digits);
    let slash: &[u8] = if name.is_empty() { b"" } else { b"/" };
    join(&[b"/proc/self/fd/", number, slash, name], path)
}

/// The digits of a number.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        first = at;
        if number == 0 {
            break;
        }
    }
    digits.get(first..).unwrap_or(&[])
}

/// Writes where a link of `/proc` leads over its path. Returns the new path's length.
fn name_of_open(path: &mut sys::Scratch) -> Option<usize> {
    let (link, target) = path.bytes().split_at_mut(sys::Scratch::BYTES / 2);
    let link_path = CStr::from_bytes_until_nul(link).ok()?;
    // SAFETY: the second half of the page is no part of the link's path, which ends in the first half.
    let bytes = unsafe { sys::readlink(link_path, target.as_mut_ptr(), target.len()) };
    let target = target.get(..usize::try_from(bytes).ok()?)?;
    link.iter_mut().zip(target).for_each(|(place, byte)| *place = *byte);
    Some(target.len().min(link.len()))
}

/// Joins the parts; returns 0 if they do not fit.
fn join(parts: &[&[u8]], path: &mut sys::Scratch) -> usize {
    let mut at = 0;
    for part in parts.iter().chain(&[&b"\0"[..]]) {
        let Some(place) = path.bytes().get_mut(at..at + part.len()) else {
            path.bytes()[0] = 0;
            return 0;
        };
        place.iter_mut().zip(*part).for_each(|(place, byte)| *place = *byte);
        at += part.len();
    }
    at - 1
}

/// Returns why the program cannot be recorded, and what it is to preload.
unsafe fn found(path: &CStr, environment: Strings) -> (u32, Preloads) {
    match in_file(path) {
        // It would fail or complain because of the library.
        Some(reason @ (FOUND_OTHER_MACHINE | FOUND_SANITIZER)) => return (reason, Preloads::WithoutOurs),
        Some(reason) => return (reason, Preloads::AsTheyAre),
        None => {}
    }
    // SAFETY: by contract of `Start::of`.
    let (list, session) =
        unsafe { (value_in(environment, PRELOADS), value_in(environment, SESSION_VARIABLE.as_bytes())) };
    let library = list.filter(|_| session.is_some()).and_then(library_for);
    let fits = |(library, preloads)| {
        // SAFETY: as above; there is one, as it holds a list.
        preloads == Preloads::AsTheyAre || unsafe { has_room(environment, list.unwrap_or_default(), library) }
    };
    let Some((library, preloads)) = library.filter(|found| fits(*found)) else {
        return (FOUND_CLEARED, Preloads::AsTheyAre);
    };
    let mut name = [0u8; 256];
    let Some(place) = name.get_mut(..library.len()).filter(|place| place.len() < 256) else {
        return (FOUND_NOTHING, preloads);
    };
    place.iter_mut().zip(library).for_each(|(place, byte)| *place = *byte);
    let is_there = CStr::from_bytes_until_nul(&name).is_ok_and(sys::is_readable_file);
    match () {
        () if !is_there => (FOUND_ELSEWHERE, Preloads::WithoutOurs),
        () if leaves_no_room() => (FOUND_LIMITED, preloads),
        () => (FOUND_NOTHING, preloads),
    }
}

/// Returns what the program's file says.
fn in_file(path: &CStr) -> Option<u32> {
    let file = sys::open_read(path);
    if file < 0 {
        return None;
    }
    let file = file as i32;
    let mut read_at = |offset, into: &mut [u8]| sys::read_at(file, offset, into).max(0) as usize;
    let in_way = obstacle(&mut read_at);
    // Such a static program records by itself.
    let has_core =
        in_way == Some(Obstacle::Static) && core_in(&mut read_at).is_some_and(|core| core.records());
    let is_privileged = sys::gives_rights(file);
    sys::close(file);
    match in_way.filter(|_| !has_core) {
        Some(Obstacle::Static) => Some(FOUND_STATIC),
        Some(Obstacle::OtherMachine) => Some(FOUND_OTHER_MACHINE),
        Some(Obstacle::Sanitizer) => Some(FOUND_SANITIZER),
        None => is_privileged.then_some(FOUND_PRIVILEGED),
    }
}

fn leaves_no_room() -> bool {
    /// Its standard streams, and two for us.
    const FILES_MIN: usize = 5;
    let bytes = file_bytes(1);
    sys::file_limit_bytes() < bytes
        || own_limits::soft_bytes(own_limits::ADDRESSES) / ADDRESS_PARTS < bytes
        || sys::open_files_max() < FILES_MIN
}

/// The network namespace: the collector's socket is in one of them.
fn network() -> u64 {
    sys::file_number(c"/proc/self/ns/net").unwrap_or(0)
}

/// Returns the library's path for a list of what is preloaded, and whether it has to be put there. None where nothing is preloaded, which may be meant so,
/// where the runtime of a sanitizer is, which ends the program unless it is the first, and where all of it is preloaded here.
fn library_for(list: &[u8]) -> Option<(&[u8], Preloads)> {
    let mut all = listed(list);
    let first = all.next()?;
    if is_library(first) {
        return Some((first, Preloads::AsTheyAre));
    }
    // A program may start itself anew until the list is the one that it wants. It gets that when it asks for nothing that it does not have.
    let at_start = text_of(&PRELOADS_AT_START).unwrap_or_default();
    let has_it = |path: &[u8]| is_library(path) || listed(at_start).any(|known| known == path);
    if listed(list).any(is_sanitizer) || listed(list).all(has_it) {
        return None;
    }
    let library = all
        .find(|path| is_library(path))
        .or_else(|| text_of(&OWN_PATH))
        .filter(|path| path.starts_with(b"/"))?;
    Some((library, Preloads::OursFirst))
}

/// What was noted at the start.
fn text_of(noted: &AtomicPtr<c_char>) -> Option<&'static [u8]> {
    let text = noted.load(Ordering::Relaxed);
    // SAFETY: a string that stays where it is: the loader's, or one on the program's first stack, where another may be written over it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The paths of a list of what is preloaded.
fn listed(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b':' | b' ')).filter(|path| !path.is_empty())
}

/// Returns whether an environment can be given with the library in front of its list.
unsafe fn has_room(environment: Strings, list: &[u8], library: &[u8]) -> bool {
    let mut count = 0;
    // SAFETY: by contract a list of strings that ends with a null pointer.
    while count < STRINGS_MAX && unsafe { !(*environment.add(count)).is_null() } {
        count += 1;
    }
    count < STRINGS_MAX && PRELOADS.len() + library.len() + 1 + list.len() < TEXT_BYTES
}

fn is_library(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(LIBRARY))
}

/// From here on whatever is started with this process's environment is started without the library.
pub fn take_library_out() {
    session::take_library_out(is_library);
}

/// The value of a variable, whose name may end with the `=`.
unsafe fn value_in<'a>(environment: Strings, name: &[u8]) -> Option<&'a [u8]> {
    let mut entry = environment;
    // SAFETY: by contract a list of strings that ends with a null pointer.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            if let Some(rest) = CStr::from_ptr(*entry).to_bytes().strip_prefix(name) {
                return Some(rest.strip_prefix(b"=").unwrap_or(rest));
            }
            entry = entry.add(1);
        }
    }
    None
}

/// An environment with other preloaded libraries than the caller's, in `room`; false when it does not fit. The list of them is in `text`, and left out if it
/// does not fit there.
///
/// # Safety
/// `environment` is a list of strings.
pub unsafe fn with_preloads(
    preloads: Preloads,
    environment: Strings,
    room: &mut [*const c_char],
    text: &mut [u8],
) -> bool {
    let mut entry = environment;
    let mut places = room.iter_mut();
    // SAFETY: by contract.
    unsafe {
        while !entry.is_null() && !(*entry).is_null() {
            let mut variable = *entry;
            entry = entry.add(1);
            if let Some(list) = CStr::from_ptr(variable).to_bytes().strip_prefix(PRELOADS) {
                let ours = library_for(list).map(|(library, _)| library);
                if !put_list(ours.filter(|_| preloads == Preloads::OursFirst), list, text) {
                    continue;
                }
                variable = text.as_ptr().cast();
            }
            let Some(place) = places.next() else { return false };
            *place = variable;
        }
    }
    let Some(place) = places.next() else { return false };
    *place = core::ptr::null();
    true
}

/// Writes the variable that names the preloaded libraries of a list but for ours, behind `first`; false if there are none, or they do not fit.
fn put_list(first: Option<&[u8]>, list: &[u8], text: &mut [u8]) -> bool {
    let mut all = first.into_iter().chain(listed(list).filter(|path| !is_library(path)));
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        let place = text.get_mut(at..at + bytes.len())?;
        place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        at += bytes.len();
        Some(())
    };
    let Some(first) = all.next() else { return false };
    let put_all = || {
        put(PRELOADS)?;
        put(first)?;
        for path in all {
            put(b":")?;
            put(path)?;
        }
        put(b"\0")
    };
    put_all().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "/tmp/m/libmallow_preload-1.so";

    #[test]
    fn our_library_is_put_in_front_of_others_but_of_no_sanitizers() {
        let own = c"/own/libmallow_preload-2.so";
        OWN_PATH.store(own.as_ptr().cast_mut(), Ordering::Relaxed);
        let own = "/own/libmallow_preload-2.so";
        let found = |list: &str| {
            let found = library_for(list.as_bytes())
                .map(|(path, preloads)| (String::from_utf8_lossy(path).into_owned(), preloads));
            let mut text = [0; 128];
            let leading = found.as_ref().filter(|(_, preloads)| *preloads == Preloads::OursFirst);
            let is_put = put_list(leading.map(|(path, _)| path.as_bytes()), list.as_bytes(), &mut text);
            let text = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap().to_owned();
            (found, if is_put { text } else { "none".to_owned() })
        };
        let first = |path: &str| Some((path.to_owned(), Preloads::OursFirst));
        assert_eq!(found(OURS), (Some((OURS.to_owned(), Preloads::AsTheyAre)), "none".to_owned()));
        assert_eq!(
            found(&format!("/a.so:{OURS} b.so")),
            (first(OURS), format!("LD_PRELOAD={OURS}:/a.so:b.so"))
        );
        assert_eq!(found(":/a.so"), (first(own), format!("LD_PRELOAD={own}:/a.so")));
        assert_eq!(found(""), (None, "none".to_owned()));
        // What this program has itself it gets as it asks.
        let at_start = std::format!("{OURS}:/had.so\0");
        PRELOADS_AT_START.store(at_start.as_ptr().cast_mut().cast(), Ordering::Relaxed);
        for list in ["/had.so", &format!("/had.so:{OURS}:/had.so")] {
            assert_eq!(found(list).0, None, "{list}");
        }
        assert_eq!(found("/had.so:/new.so"), (first(own), format!("LD_PRELOAD={own}:/had.so:/new.so")));
        PRELOADS_AT_START.store(core::ptr::null_mut(), Ordering::Relaxed);
        assert_eq!(
            found(&format!("/x/libasan.so.8:{OURS}")),
            (None, "LD_PRELOAD=/x/libasan.so.8".to_owned())
        );
        // What does not fit is left out.
        assert_eq!(found(&format!("/{}", "a".repeat(128))).1, "none");
    }

    #[test]
    fn an_environment_is_given_in_another_form_only_where_there_is_room() {
        let list = |count: usize| {
            let mut strings = std::vec![c"A=1".as_ptr(); count];
            strings.push(core::ptr::null());
            strings
        };
        // SAFETY: lists of strings.
        let has_room = |count, list_bytes| unsafe {
            super::has_room(list(count).as_ptr(), &std::vec![b'a'; list_bytes], OURS.as_bytes())
        };
        let longest = TEXT_BYTES - PRELOADS.len() - OURS.len() - 2;
        assert!(has_room(STRINGS_MAX - 1, longest));
        assert!(!has_room(STRINGS_MAX, longest) && !has_room(3, longest + 1));
    }
}
