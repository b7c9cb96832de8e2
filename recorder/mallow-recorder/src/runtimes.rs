//! Runtimes that make code while they run are asked to write down what it is.
//!
//! Stacks go through such code by its frame pointers, but no file says whose it is. Where the session wants it, a runtime is asked just
//! before its `main` is called, in its own process alone, so that no other program sees it and nothing is printed: Node by words at the
//! end of `NODE_OPTIONS`, the `java` of a HotSpot whose frames are not read by words in front of its own. Only versions are asked that know these words, because a runtime
//! ends with an error at those that it does not know. Programs that are started from here get the environment as it was.
//!
//! The doubt: what a program of ours shows of its own environment and options has these words in it.

use crate::elf;
use crate::modules;
use crate::process;
use crate::script::hotspot;
use crate::session::{self, Strings};
use crate::sys;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, Ordering};
use mallow_wire::shared::{FEATURE_HELPER_THREAD, FEATURE_RUNTIMES};

/// What `main` is called with.
#[repr(C)]
#[derive(Debug)]
pub struct MainArguments {
    /// The environment.
    pub environment: Strings,
    /// The words of the command line.
    pub words: Strings,
    /// How many these are.
    pub count: usize,
}

const NODE_OPTIONS: &[u8] = b"NODE_OPTIONS=";
/// A map of all code, and a piece of code of its own for each interpreted function.
const NODE_WORDS: &[u8] = b" --perf-basic-prof --interpreted-frames-native-stack";
/// With any of these somebody else wants such a file.
const NODE_OTHERS: [&[u8]; 3] = [b"--perf-basic-prof", b"--perf_basic_prof", b"--perf-prof"];
/// Since this is there (12.22, 14.17), Node takes our words from its environment.
const NODE_SINCE: &[u8] = b"napi_object_freeze";

/// Frame pointers in compiled code, and a map of it when the program ends.
const JAVA_WORDS: [&CStr; 3] =
    [c"-XX:+PreserveFramePointer", c"-XX:+UnlockDiagnosticVMOptions", c"-XX:+DumpPerfMapAtExit"];
/// Frames of earlier versions are read from their own tables, so that they need not be asked (and those before 17 know no map).
const JAVA_SINCE: u32 = hotspot::VERSIONS[1] + 1;

/// `NODE_OPTIONS` with our words, while it is in the environment.
static NODE_ASKED: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
/// What was in its place; null when there was nothing.
static NODE_BEFORE: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// A runtime that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    Node,
    Java,
}

fn runtime() -> Option<Runtime> {
    match modules::executable().rsplit(|byte| *byte == b'/').next()? {
        b"node" | b"nodejs" => Some(Runtime::Node),
        b"java" => Some(Runtime::Java),
        _ => None,
    }
}

/// Whether this program is a runtime that can be asked, and the session wants it.
pub fn is_concerned() -> bool {
    process::is_ready() && process::header().features & FEATURE_RUNTIMES != 0 && runtime().is_some()
}

/// Whether growth of single stacks is judged. A JVM compiles a method again and again, so that its stacks with that code in them come and go, and none of
/// them grows steadily.
fn is_soaked() -> bool {
    process::header().features & FEATURE_HELPER_THREAD != 0
}

/// Asks. Only just before `main`, when the process has one thread.
///
/// # Safety
/// The arguments are those of `main`: lists of strings that end with a null pointer.
pub unsafe fn ask(main: &mut MainArguments) {
    if !is_concerned() {
        return;
    }
    // SAFETY: by contract.
    let is_asked = unsafe {
        match runtime() {
            Some(Runtime::Node) => is_new_node() && ask_node(main).is_some(),
            Some(Runtime::Java) => {
                !is_soaked() && is_new_java(modules::executable()) && ask_java(main).is_some()
            }
            None => false,
        }
    };
    if is_asked {
        process::header().runtime_asked.store(1, Ordering::Relaxed);
    }
}

fn is_new_node() -> bool {
    let mut is_new = false;
    elf::each_object(|object| {
        is_new = object.defines(NODE_SINCE);
        is_new
    });
    is_new
}

/// None when it was not asked, or when somebody else has.
unsafe fn ask_node(main: &mut MainArguments) -> Option<()> {
    let environment = session::environ()?;
    // SAFETY: by contract of `ask`, as for every list below.
    let list = unsafe { listed(environment) };
    let at = list.iter().position(|entry| {
        // SAFETY: the list's entries are strings.
        unsafe { CStr::from_ptr(*entry) }.to_bytes().starts_with(NODE_OPTIONS)
    });
    let before = at.and_then(|at| list.get(at)).copied();
    // SAFETY: as above.
    let text = before.map_or(NODE_OPTIONS, |before| unsafe { CStr::from_ptr(before) }.to_bytes());
    if contains(text, NODE_WORDS) {
        return Some(());
    }
    if NODE_OTHERS.iter().any(|other| contains(text, other)) {
        return None;
    }
    // What is behind an environment is taken for the kernel's list of facts by some: two zeros end that one.
    let words = list.len() + 1 + 1 + 2;
    let room = Room::map(words, text.len() + NODE_WORDS.len() + 1)?;
    let asked = room.text(&[text, NODE_WORDS]);
    for (index, entry) in list.iter().enumerate() {
        room.set(index, if Some(index) == at { asked } else { *entry });
    }
    if at.is_none() {
        room.set(list.len(), asked);
    }
    NODE_BEFORE.store(before.unwrap_or(core::ptr::null()).cast_mut(), Ordering::Relaxed);
    NODE_ASKED.store(asked.cast_mut(), Ordering::Relaxed);
    // SAFETY: the new list lives as long as the process, and no other thread is there to read the old one.
    unsafe { session::set_environ(room.list()) };
    main.environment = room.list();
    Some(())
}

unsafe fn ask_java(main: &mut MainArguments) -> Option<()> {
    // SAFETY: by contract of `ask`.
    let list = unsafe { listed(main.words) };
    let is = |entry: &*const c_char, word: &CStr| {
        // SAFETY: the list's entries are strings.
        unsafe { CStr::from_ptr(*entry) == word }
    };
    // A launcher that starts itself anew hands ours on.
    if list.len() > 3 && list.iter().skip(1).zip(JAVA_WORDS).all(|(entry, word)| is(entry, word)) {
        return Some(());
    }
    let last = JAVA_WORDS.last()?;
    if list.is_empty() || list.iter().any(|entry| is(entry, last)) {
        return None;
    }
    let room = Room::map(list.len() + JAVA_WORDS.len() + 1, 0)?;
    let (first, rest) = list.split_first()?;
    let words = JAVA_WORDS.iter().map(|word| word.as_ptr());
    let all = core::iter::once(*first).chain(words).chain(rest.iter().copied());
    all.enumerate().for_each(|(index, entry)| room.set(index, entry));
    main.words = room.list();
    main.count += JAVA_WORDS.len();
    Some(())
}

/// Whether the runtime's own notes, two folders above its program, say that it knows our words.
fn is_new_java(path: &[u8]) -> bool {
    let Some(mut scratch) = sys::Scratch::map() else { return false };
    let mut folders = path.rsplitn(3, |byte| *byte == b'/');
    let Some(home) = folders.nth(2) else { return false };
    let mut at = 0;
    for part in [home, &b"/release\0"[..]] {
        let Some(place) = scratch.bytes().get_mut(at..at + part.len()) else { return false };
        place.iter_mut().zip(part).for_each(|(place, byte)| *place = *byte);
        at += part.len();
    }
    let Ok(name) = CStr::from_bytes_until_nul(scratch.bytes()) else { return false };
    let file = sys::open_read(name);
    if file < 0 {
        return false;
    }
    let read = sys::read(file as i32, scratch.bytes()).max(0) as usize;
    sys::close(file as i32);
    java_version(scratch.bytes().get(..read).unwrap_or(&[])) >= JAVA_SINCE
}

/// The main version in a `release` file; 0 when it is not there.
fn java_version(release: &[u8]) -> u32 {
    let lines = release.split(|byte| *byte == b'\n');
    let version = lines.filter_map(|line| line.strip_prefix(b"JAVA_VERSION=\"")).next().unwrap_or(b"");
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit()).take(4);
    digits.fold(0, |number, digit| number * 10 + u32::from(*digit - b'0'))
}

/// What an entry of an environment was before a runtime was asked; none when it was not there. Others are as they are.
///
/// # Safety
/// `entry` is a string.
pub unsafe fn entry_before(entry: *const c_char) -> Option<*const c_char> {
    let asked = NODE_ASKED.load(Ordering::Relaxed);
    // SAFETY: by contract; ours is never taken away.
    if asked.is_null() || unsafe { CStr::from_ptr(entry) != CStr::from_ptr(asked) } {
        return Some(entry);
    }
    let before = NODE_BEFORE.load(Ordering::Relaxed).cast_const();
    (!before.is_null()).then_some(before)
}

/// Whether this process's environment is another one than it would be without us.
pub fn has_changed_environment() -> bool {
    !NODE_ASKED.load(Ordering::Relaxed).is_null()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The strings of a list.
///
/// # Safety
/// The list ends with a null pointer.
unsafe fn listed<'a>(list: Strings) -> &'a [*const c_char] {
    let mut count = 0;
    // SAFETY: by contract.
    unsafe {
        while !(*list.add(count)).is_null() {
            count += 1;
        }
        core::slice::from_raw_parts(list, count)
    }
}

/// Memory for a list of strings, zeroed, and for a text behind it. It is never given back: the program may keep pointers into it.
#[derive(Clone, Copy)]
struct Room {
    at: *mut u8,
    words: usize,
    bytes: usize,
}

impl Room {
    fn map(words: usize, bytes: usize) -> Option<Room> {
        let at = sys::map_private(words * size_of::<usize>() + bytes);
        (!at.is_null()).then_some(Room { at, words, bytes })
    }

    fn list(self) -> Strings {
        self.at.cast()
    }

    fn set(self, index: usize, entry: *const c_char) {
        // The last one stays null.
        if index + 1 < self.words {
            // SAFETY: within the mapping by the check above.
            unsafe { self.at.cast::<*const c_char>().add(index).write(entry) };
        }
    }

    /// Writes the text, a zero behind it.
    fn text(self, parts: &[&[u8]]) -> *const c_char {
        // SAFETY: the text's part of the mapping, which nobody else has.
        let room = unsafe {
            let start = self.at.add(self.words * size_of::<usize>());
            core::slice::from_raw_parts_mut(start, self.bytes)
        };
        let bytes = parts.iter().flat_map(|part| part.iter());
        room.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        room.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_releases_notes_tell_its_version() {
        let notes = |version: &str| {
            format!("IMPLEMENTOR=\"x\"\nJAVA_RUNTIME_VERSION=\"99\"\nJAVA_VERSION=\"{version}\"\n")
        };
        let version = |text: &str| java_version(notes(text).as_bytes());
        assert_eq!([version("17.0.15"), version("1.8.0_402"), version("25"), version("")], [17, 1, 25, 0]);
        assert_eq!((java_version(b""), java_version(b"JAVA_VERSION=\"17")), (0, 17));
    }

    #[test]
    fn our_words_stand_behind_the_programs_name() {
        let given = [c"/bin/java".as_ptr(), c"-cp".as_ptr(), c".".as_ptr(), core::ptr::null()];
        let mut main = MainArguments { environment: core::ptr::null(), words: given.as_ptr(), count: 3 };
        let words = |main: &MainArguments| {
            // SAFETY: a list of strings, as below.
            let text = |word: &*const c_char| unsafe { CStr::from_ptr(*word) }.to_str().unwrap();
            // SAFETY: as above.
            unsafe { listed(main.words) }.iter().map(text).collect::<Vec<_>>()
        };
        // SAFETY: a list as `main` has it.
        assert!(unsafe { ask_java(&mut main) }.is_some());
        let ours = JAVA_WORDS.map(|word| word.to_str().unwrap());
        assert_eq!(words(&main), [&["/bin/java"], &ours[..], &["-cp", "."]].concat());
        assert_eq!(main.count, 6);
        // A second time, as when the launcher starts itself anew.
        // SAFETY: as above.
        assert!(unsafe { ask_java(&mut main) }.is_some());
        assert_eq!(main.count, 6);
        let theirs = [c"java".as_ptr(), JAVA_WORDS[2].as_ptr(), core::ptr::null()];
        let mut main = MainArguments { words: theirs.as_ptr(), count: 2, ..main };
        // SAFETY: as above.
        assert!(unsafe { ask_java(&mut main) }.is_none());
        assert_eq!(main.count, 2);
    }
}
