//! Programs that take the place of this one, or are started beside it: each is noted before it begins, because one that cannot
//! load the library will not speak for itself.
//!
//! A program that the library would break or make complain is started without it: one for another machine, one with the runtime
//! of a sanitizer, and any where the library's file is not to be found. One for which other libraries are preloaded in front of ours, or in its
//! place, is started with ours as the first. What is called is always the next function of the same
//! kind, and its answer and `errno` are the caller's.

use crate::own_limits;
use core::ffi::{c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use mallow_recorder::real::Real;
use mallow_recorder::session::{self, Strings};
use mallow_recorder::starts::{self, Preloads, STRINGS_MAX, Search, Start, TEXT_BYTES};
use mallow_recorder::{export_before, filters, process, sys};

static EXECVE: Real = Real::named(c"execve");
static EXECV: Real = Real::named(c"execv");
static EXECVP: Real = Real::named(c"execvp");
static EXECVPE: Real = Real::named(c"execvpe");
static FEXECVE: Real = Real::named(c"fexecve");
static EXECVEAT: Real = Real::named(c"execveat");
static SPAWN: Real = Real::named(c"posix_spawn");
static SPAWNP: Real = Real::named(c"posix_spawnp");
static SYSTEM: Real = Real::named(c"system");

/// Finds the real functions. Early, because that takes the loader's lock, which in a forked child may be held by a thread that the
/// child does not have.
pub(crate) fn find_real() {
    for real in [&EXECVE, &EXECV, &EXECVP, &EXECVPE, &FEXECVE, &EXECVEAT, &SPAWN, &SPAWNP, &SYSTEM] {
        let _ = real.address();
    }
}

type Exec = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type ExecHere = unsafe extern "C" fn(*const c_char, Strings) -> c_int;
type ExecAt = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;
type Spawn =
    unsafe extern "C" fn(*mut c_int, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;

/// `execve`.
///
/// # Safety
/// As `execve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, words: Strings, environment: Strings) -> c_int {
    // SAFETY: by contract.
    unsafe { with_environment(&EXECVE, path, Search::Path, words, environment) }
}

/// `execvpe`.
///
/// # Safety
/// As `execvpe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(name: *const c_char, words: Strings, environment: Strings) -> c_int {
    // SAFETY: by contract.
    unsafe { with_environment(&EXECVPE, name, Search::Folders, words, environment) }
}

/// `execv`.
///
/// # Safety
/// As `execv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, words: Strings) -> c_int {
    // SAFETY: by contract.
    unsafe { here(&EXECV, &EXECVE, path, Search::Path, words) }
}

/// `execvp`.
///
/// # Safety
/// As `execvp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(name: *const c_char, words: Strings) -> c_int {
    // SAFETY: by contract.
    unsafe { here(&EXECVP, &EXECVPE, name, Search::Folders, words) }
}

/// `fexecve`.
///
/// # Safety
/// As `fexecve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: c_int, words: Strings, environment: Strings) -> c_int {
    let address = FEXECVE.address();
    if address == 0 {
        return -1;
    }
    // SAFETY: the function has this type by POSIX.
    let exec = unsafe { transmute::<usize, unsafe extern "C" fn(c_int, Strings, Strings) -> c_int>(address) };
    // SAFETY: the arguments are the caller's.
    let go = |environment| unsafe { exec(file, words, environment) };
    // SAFETY: by contract.
    unsafe { in_place(c"".as_ptr(), Search::File(file), environment, || go(environment), go) }
}

/// `execveat`.
///
/// # Safety
/// As `execveat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    words: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    let address = EXECVEAT.address();
    if address == 0 {
        return -1;
    }
    // SAFETY: the function has this type.
    let exec = unsafe { transmute::<usize, ExecAt>(address) };
    // SAFETY: the arguments are the caller's.
    let go = |environment| unsafe { exec(folder, path, words, environment, flags) };
    // SAFETY: by contract.
    unsafe { in_place(path, Search::File(folder), environment, || go(environment), go) }
}

/// Who goes on with a call of `syscall` that starts a program: one of the functions above, by its own kind of call.
pub(crate) fn by_syscall(number: u64) -> Option<usize> {
    const SYS_EXECVE: u64 = 59;
    const SYS_EXECVEAT: u64 = 322;
    unsafe extern "C" fn in_folder(
        _number: u64,
        folder: c_int,
        path: *const c_char,
        words: Strings,
        environment: Strings,
        flags: c_int,
    ) -> isize {
        // SAFETY: the arguments are the caller's.
        unsafe { execveat(folder, path, words, environment, flags) as isize }
    }
    unsafe extern "C" fn at_path(
        _number: u64,
        path: *const c_char,
        words: Strings,
        environment: Strings,
    ) -> isize {
        // SAFETY: the arguments are the caller's.
        unsafe { execve(path, words, environment) as isize }
    }
    match number {
        SYS_EXECVE if EXECVE.address() != 0 => Some(at_path as *const () as usize),
        SYS_EXECVEAT if EXECVEAT.address() != 0 => Some(in_folder as *const () as usize),
        _ => None,
    }
}

/// `posix_spawn`.
///
/// # Safety
/// As `posix_spawn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: Strings,
    environment: Strings,
) -> c_int {
    let start = |pid, environment| {
        // SAFETY: the function has this type by POSIX; the arguments are the caller's.
        unsafe { real_spawn(&SPAWN)(pid, path, actions, attributes, words, environment) }
    };
    // SAFETY: by contract.
    unsafe { beside(pid, path, Search::Path, environment, start) }
}

/// `posix_spawnp`.
///
/// # Safety
/// As `posix_spawnp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut c_int,
    name: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    words: Strings,
    environment: Strings,
) -> c_int {
    let start = |pid, environment| {
        // SAFETY: as in `posix_spawn`.
        unsafe { real_spawn(&SPAWNP)(pid, name, actions, attributes, words, environment) }
    };
    // SAFETY: by contract.
    unsafe { beside(pid, name, Search::Folders, environment, start) }
}

export_before!(system => before_system);

extern "C" fn before_system(command: *const c_char) -> usize {
    if !command.is_null() {
        before_shell();
    }
    SYSTEM.address()
}

/// Libc starts its shell itself, with the environment of this process.
pub(crate) fn before_shell() {
    if filters::stop_ours() {
        // Our calls are stopped there, too, and in all that follows.
        starts::take_library_out();
    }
    if let Some(mut shell) = Start::of_shell() {
        let _ = shell.note(0);
    }
}

/// `ENOSYS`, as the answer of a function that no library defines.
const NO_SUCH_FUNCTION: c_int = 38;

unsafe fn real_spawn(real: &Real) -> Spawn {
    unsafe extern "C" fn none(
        _: *mut c_int,
        _: *const c_char,
        _: *const c_void,
        _: *const c_void,
        _: Strings,
        _: Strings,
    ) -> c_int {
        NO_SUCH_FUNCTION
    }
    match real.address() {
        0 => none,
        // SAFETY: the symbol has this type by POSIX.
        address => unsafe { transmute::<usize, Spawn>(address) },
    }
}

unsafe fn with_environment(
    real: &Real,
    name: *const c_char,
    search: Search,
    words: Strings,
    environment: Strings,
) -> c_int {
    let address = real.address();
    if address == 0 {
        return -1;
    }
    // SAFETY: the function has this type by POSIX.
    let exec = unsafe { transmute::<usize, Exec>(address) };
    // SAFETY: the arguments are the caller's.
    let go = |environment| unsafe { exec(name, words, environment) };
    // SAFETY: by contract.
    unsafe { in_place(name, search, environment, || go(environment), go) }
}

/// With this process's own environment.
unsafe fn here(
    real: &Real,
    with_environment: &Real,
    name: *const c_char,
    search: Search,
    words: Strings,
) -> c_int {
    let (address, other) = (real.address(), with_environment.address());
    if address == 0 {
        return -1;
    }
    let environment = session::environ_of_libc();
    // SAFETY: the functions have these types by POSIX; the arguments are the caller's.
    let go = || unsafe { transmute::<usize, ExecHere>(address)(name, words) };
    let go_with = |environment| match other {
        0 => go(),
        // SAFETY: as above.
        other => unsafe { transmute::<usize, Exec>(other)(name, words, environment) },
    };
    // SAFETY: by contract.
    unsafe { in_place(name, search, environment, go, go_with) }
}

/// A program takes this process's place, unless that fails.
unsafe fn in_place(
    name: *const c_char,
    search: Search,
    environment: Strings,
    as_it_is: impl FnOnce() -> c_int,
    with: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // SAFETY: by contract.
    let Some(mut start) = (unsafe { Start::of(name, search, environment) }) else {
        return own_limits::in_place(as_it_is);
    };
    let pid = start.own_pid();
    let note = start.note(pid);
    let answer = own_limits::in_place(|| match start.preloads {
        Preloads::AsTheyAre => as_it_is(),
        // SAFETY: by contract.
        preloads => unsafe { with_preloads(preloads, environment, with) },
    });
    start.failed(pid, note);
    answer
}

/// A program is started in a process of its own.
unsafe fn beside(
    pid: *mut c_int,
    name: *const c_char,
    search: Search,
    environment: Strings,
    start: impl FnOnce(*mut c_int, Strings) -> c_int,
) -> c_int {
    let mut own = 0;
    let place = if pid.is_null() { &raw mut own } else { pid };
    // SAFETY: by contract.
    let Some(mut program) = (unsafe { Start::of(name, search, environment) }) else {
        return start(pid, environment);
    };
    let answer = match program.preloads {
        Preloads::AsTheyAre => start(place, environment),
        // SAFETY: by contract.
        preloads => unsafe { with_preloads(preloads, environment, |environment| start(place, environment)) },
    };
    if answer == 0 {
        // SAFETY: the function has written the process's number there.
        let _ = program.note(unsafe { *place } as u32);
    }
    answer
}

/// What an environment in another form takes: too much for the stack of some threads.
struct Room {
    strings: [*const c_char; STRINGS_MAX],
    text: [u8; TEXT_BYTES],
}

/// Calls `with` with an environment that has other preloaded libraries.
unsafe fn with_preloads(
    preloads: Preloads,
    environment: Strings,
    with: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // A program that takes the place of a `vfork` child would leave the memory to the child's parent, and a filter may stop calls of ours.
    let mapped = match filters::stop_ours() || process::is_borrowed() {
        true => core::ptr::null_mut(),
        false => sys::map_private(size_of::<Room>()),
    };
    if mapped.is_null() {
        // SAFETY: by contract.
        return unsafe { on_stack(preloads, environment, with) };
    }
    // SAFETY: our own mapping, of which any bytes are a room; nobody uses it when `with` has come back.
    unsafe {
        let answer = in_room(&mut *mapped.cast(), preloads, environment, with);
        sys::unmap(mapped, size_of::<Room>());
        answer
    }
}

/// The same on the stack.
#[inline(never)]
unsafe fn on_stack(preloads: Preloads, environment: Strings, with: impl FnOnce(Strings) -> c_int) -> c_int {
    let mut room = MaybeUninit::<Room>::uninit();
    // SAFETY: pointers and bytes may hold anything until they are written, and only those that were are read.
    unsafe { in_room(&mut *room.as_mut_ptr(), preloads, environment, with) }
}

unsafe fn in_room(
    room: &mut Room,
    preloads: Preloads,
    environment: Strings,
    with: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // SAFETY: by contract.
    match unsafe { starts::with_preloads(preloads, environment, &mut room.strings, &mut room.text) } {
        true => with(room.strings.as_ptr()),
        false => with(environment),
    }
}
