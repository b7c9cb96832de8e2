//! Runtimes that make code while they run are asked to write down what it is.
//!
//! Stacks go through such code by its frame pointers, but no file says whose it is. Where the session wants it, a runtime is asked just
//! before its `main` is called, in its own process alone, so that no other program sees it and nothing is printed: Node by the function of V8 that sets
//! its options, the `java` of a HotSpot whose frames are not read by words in front of its own. One whose frames are read where processors are sampled is asked in the same
//! way for the lines of all instructions, as its compiler else notes those of calls alone. Only versions are asked that know these options, because a
//! runtime ends with an error at those that it does not know.
//!
//! The doubt: what a JVM shows of its own command line has these words in it.

use crate::elf;
use crate::modules;
use crate::process;
use crate::script::hotspot;
use crate::session::{self, Strings};
use crate::sys;
use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering;
use mallow_wire::shared::{FEATURE_HELPER_THREAD, FEATURE_RUNTIMES, RUNTIMES_VARIABLE};

/// The arguments of `main`.
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

/// `v8::V8::SetFlagsFromString(const char*)`, which Node exports for its extensions.
const SET_FLAGS: &[u8] = b"_ZN2v82V818SetFlagsFromStringEPKc";
/// A map of all code, and a piece of code of its own for each interpreted function.
const NODE_FLAGS: [&CStr; 2] = [c"--perf-basic-prof", c"--interpreted-frames-native-stack"];
/// V8 begins a log of its own beside the map, in the folder where the program works: this makes it a file without a name.
const NODE_LOG_FLAGS: [&CStr; 2] = [c"--no-logfile-per-isolate", c"--logfile=+"];
/// With any of these another tool has requested such a map. Underscores stand for dashes.
const NODE_MAPS: [&[u8]; 2] = [b"--perf-basic-prof", b"--perf-prof"];
/// With any of these another tool has requested such a log.
const NODE_LOGS: [&[u8]; 2] = [b"--prof", b"--log"];
/// Since this is there (12.22, 14.17), Node is known to have all of these.
const NODE_SINCE: &[u8] = b"napi_object_freeze";

/// Frame pointers in compiled code, and a map of it when the program ends.
const JAVA_WORDS: [&CStr; 3] =
    [c"-XX:+PreserveFramePointer", c"-XX:+UnlockDiagnosticVMOptions", c"-XX:+DumpPerfMapAtExit"];
/// Frames of earlier versions are read from their own tables, so they need no map (and those before 17 cannot write
/// one).
const JAVA_SINCE: u32 = hotspot::VERSIONS[1] + 1;
/// Writes which method and line an instruction belongs to, for all instructions and not only at call sites.
const JAVA_LINES_WORDS: [&CStr; 2] = [c"-XX:+UnlockDiagnosticVMOptions", c"-XX:+DebugNonSafepoints"];

/// A runtime that can write symbols.
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

/// Returns whether this program is Node.
pub fn is_node() -> bool {
    process::is_ready() && matches!(runtime(), Some(Runtime::Node))
}

/// Returns whether this program is such a runtime, and the session requests it.
pub fn is_concerned() -> bool {
    process::is_ready() && process::header().features & FEATURE_RUNTIMES != 0 && runtime().is_some()
}

/// The same where processors are sampled, and nothing is recorded.
pub fn is_concerned_in_samples() -> bool {
    runtime().is_some() && session::variable(RUNTIMES_VARIABLE).is_none()
}

/// Returns whether growth of single stacks is judged. A JVM compiles a method again and again, so that its stacks with that code in them come and go, and none of
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
            Some(Runtime::Node) => ask_node(main).is_some(),
            Some(Runtime::Java) => {
                !is_soaked()
                    && java_version_of(modules::executable()) >= JAVA_SINCE
                    && ask_java(main, &JAVA_WORDS).is_some()
            }
            None => false,
        }
    };
    if is_asked {
        process::header().runtime_asked.store(1, Ordering::Relaxed);
    }
}

/// Asks where processors are sampled. Whether a map will be written.
///
/// # Safety
/// As [`ask`].
pub unsafe fn ask_in_samples(main: &mut MainArguments) -> bool {
    // SAFETY: by contract.
    unsafe {
        match runtime() {
            Some(Runtime::Node) => ask_node(main).is_some(),
            Some(Runtime::Java) => match java_version_of(modules::executable()) {
                JAVA_SINCE.. => ask_java(main, &JAVA_WORDS).is_some(),
                version => {
                    if version >= hotspot::VERSIONS[0] {
                        ask_java(main, &JAVA_LINES_WORDS);
                    }
                    false
                }
            },
            None => false,
        }
    }
}

/// Returns `None` if it was not asked, or if another tool has.
unsafe fn ask_node(main: &MainArguments) -> Option<()> {
    let mut function = None;
    elf::each_object(|object| {
        function = object.definition(SET_FLAGS).filter(|_| object.defines(NODE_SINCE));
        function.is_some()
    });
    let environment = session::variable("NODE_OPTIONS").unwrap_or(b"").split(|byte| *byte == b' ');
    // SAFETY: by contract of `ask`, a list of strings.
    let words = unsafe { listed(main.words) }.iter().map(|word| unsafe { CStr::from_ptr(*word) }.to_bytes());
    let (mut has_map, mut has_log) = (false, false);
    for word in words.chain(environment) {
        has_map |= NODE_MAPS.iter().any(|flag| begins_with_flag(word, flag));
        has_log |= NODE_LOGS.iter().any(|flag| begins_with_flag(word, flag));
    }
    if has_map {
        return None;
    }
    // SAFETY: the symbol's type, which its name has in it.
    let set: unsafe extern "C" fn(*const c_char) = unsafe { core::mem::transmute(function?) };
    let log_flags = if has_log { &[][..] } else { &NODE_LOG_FLAGS };
    for flag in NODE_FLAGS.iter().chain(log_flags) {
        // SAFETY: options may be set until V8 begins, and the string is copied.
        unsafe { set(flag.as_ptr()) };
    }
    Some(())
}

/// Returns whether a word begins with an option, written with dashes or with underscores.
fn begins_with_flag(word: &[u8], flag: &[u8]) -> bool {
    let as_dash = |byte: &u8| if *byte == b'_' { b'-' } else { *byte };
    word.len() >= flag.len() && word.iter().map(as_dash).zip(flag).all(|(byte, own)| byte == *own)
}

unsafe fn ask_java(main: &mut MainArguments, ours: &[&CStr]) -> Option<()> {
    // SAFETY: by contract of `ask`.
    let list = unsafe { listed(main.words) };
    let is = |entry: &*const c_char, word: &CStr| {
        // SAFETY: the list's entries are strings.
        unsafe { CStr::from_ptr(*entry) == word }
    };
    // A launcher that restarts itself passes our option on.
    if list.len() > ours.len() && list.iter().skip(1).zip(ours).all(|(entry, word)| is(entry, word)) {
        return Some(());
    }
    let last = ours.last()?;
    if list.is_empty() || list.iter().any(|entry| is(entry, last)) {
        return None;
    }
    let room = Room::map(list.len() + ours.len() + 1)?;
    let (first, rest) = list.split_first()?;
    let words = ours.iter().map(|word| word.as_ptr());
    let all = core::iter::once(*first).chain(words).chain(rest.iter().copied());
    all.enumerate().for_each(|(index, entry)| room.set(index, entry));
    main.words = room.list();
    main.count += ours.len();
    Some(())
}

/// The main version of a JVM, as its own notes two folders above its program say it; 0 when they are not there.
fn java_version_of(path: &[u8]) -> u32 {
    let Some(mut scratch) = sys::Scratch::map() else { return 0 };
    let mut folders = path.rsplitn(3, |byte| *byte == b'/');
    let Some(home) = folders.nth(2) else { return 0 };
    let mut at = 0;
    for part in [home, &b"/release\0"[..]] {
        let Some(place) = scratch.bytes().get_mut(at..at + part.len()) else { return 0 };
        place.iter_mut().zip(part).for_each(|(place, byte)| *place = *byte);
        at += part.len();
    }
    let Ok(name) = CStr::from_bytes_until_nul(scratch.bytes()) else { return 0 };
    let file = sys::open_read(name);
    if file < 0 {
        return 0;
    }
    let read = sys::read(file as i32, scratch.bytes()).max(0) as usize;
    sys::close(file as i32);
    java_version(scratch.bytes().get(..read).unwrap_or(&[]))
}

/// The main version in a `release` file; 0 when it is not there.
fn java_version(release: &[u8]) -> u32 {
    let lines = release.split(|byte| *byte == b'\n');
    let version = lines.filter_map(|line| line.strip_prefix(b"JAVA_VERSION=\"")).next().unwrap_or(b"");
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit()).take(4);
    digits.fold(0, |number, digit| number * 10 + u32::from(*digit - b'0'))
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

/// Memory for a list of strings, zeroed. It is never unmapped: the program may keep pointers into it.
#[derive(Clone, Copy)]
struct Room {
    at: *mut u8,
    words: usize,
}

impl Room {
    fn map(words: usize) -> Option<Room> {
        let at = sys::map_private(words * size_of::<usize>());
        (!at.is_null()).then_some(Room { at, words })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_a_jdk_release_file() {
        let notes = |version: &str| {
            format!("IMPLEMENTOR=\"x\"\nJAVA_RUNTIME_VERSION=\"99\"\nJAVA_VERSION=\"{version}\"\n")
        };
        let version = |text: &str| java_version(notes(text).as_bytes());
        assert_eq!([version("17.0.15"), version("1.8.0_402"), version("25"), version("")], [17, 1, 25, 0]);
        assert_eq!((java_version(b""), java_version(b"JAVA_VERSION=\"17")), (0, 17));
    }

    #[test]
    fn an_option_is_known_however_it_is_written() {
        let is = |word: &str| NODE_MAPS.iter().any(|flag| begins_with_flag(word.as_bytes(), flag));
        assert!(is("--perf-basic-prof") && is("--perf_basic_prof") && is("--perf-prof-unwinding-info"));
        assert!(!is("--perf") && !is("") && !is("app.js") && !is("--prof"));
    }

    #[test]
    fn added_options_follow_the_programs_name() {
        let given = [c"/bin/java".as_ptr(), c"-cp".as_ptr(), c".".as_ptr(), core::ptr::null()];
        let mut main = MainArguments { environment: core::ptr::null(), words: given.as_ptr(), count: 3 };
        let words = |main: &MainArguments| {
            // SAFETY: a list of strings, as below.
            let text = |word: &*const c_char| unsafe { CStr::from_ptr(*word) }.to_str().unwrap();
            // SAFETY: as above.
            unsafe { listed(main.words) }.iter().map(text).collect::<Vec<_>>()
        };
        // SAFETY: a list as `main` has it.
        assert!(unsafe { ask_java(&mut main, &JAVA_WORDS) }.is_some());
        let ours = JAVA_WORDS.map(|word| word.to_str().unwrap());
        assert_eq!(words(&main), [&["/bin/java"], &ours[..], &["-cp", "."]].concat());
        assert_eq!(main.count, 6);
        // A second time, as when the launcher starts itself anew.
        // SAFETY: as above.
        assert!(unsafe { ask_java(&mut main, &JAVA_WORDS) }.is_some());
        assert_eq!(main.count, 6);
        let theirs = [c"java".as_ptr(), JAVA_WORDS[2].as_ptr(), core::ptr::null()];
        let mut main = MainArguments { words: theirs.as_ptr(), count: 2, ..main };
        // SAFETY: as above.
        assert!(unsafe { ask_java(&mut main, &JAVA_WORDS) }.is_none());
        assert_eq!(main.count, 2);
    }
}
