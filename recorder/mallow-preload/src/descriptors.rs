//! The functions that open file descriptors.
//!
//! Only a session that watches descriptors (`mallow check`) has them hooked, and in Node, which can call no C, those whose path may be a
//! mark; otherwise each passes on by a jump after its first call. What is recorded is the number and the caller's stack. How many descriptors a region leaves open is
//! counted elsewhere, from the process's own table: here is only found out who opened them, so a function that is
//! missing here costs a stack and no count.
//!
//! The real function runs *before* the thread enters the recorder: `fopen` allocates, and those allocations are the
//! program's.

use crate::{marks, starts};
use core::arch::naked_asm;
use core::ffi::{CStr, c_char};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_family::export_by_target;
use mallow_recorder::bounds::at;
use mallow_recorder::named::is_called;
use mallow_recorder::real::Real;
use mallow_recorder::thread::{Entry, Recording, enter};
use mallow_recorder::{Caller, bootstrap, runtimes, sys};
use mallow_wire::event::{Kind, Mark, word0, word1};
use mallow_wire::patches::NAME_BYTES;
use mallow_wire::shared::{COUNTED_VALUES, FEATURE_DESCRIPTORS};

/// What a function gives back, and so where the new descriptor is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// The descriptor.
    Number,
    /// The descriptor; the first argument is a path that may be a mark.
    Path,
    /// The same with the path as second argument.
    PathAt,
    /// The descriptor, unless it is the one that was given.
    Copy,
    /// The descriptor, if the second argument asks for a copy.
    Control,
    /// Two descriptors, where the first argument points.
    Pair,
    /// Two descriptors, where the fourth argument points.
    SocketPair,
    /// A `FILE`.
    Stream,
    /// A `DIR`.
    Directory,
}

/// Exports functions that open descriptors.
macro_rules! openers {
    ($($index:literal $name:ident $text:literal $hook:ident = $gives:ident;)*) => {
        const COUNT: usize = [$($index),*].len();
        /// Where calls of each function go; 0 before that is known.
        static TARGETS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
        /// The real functions, for the hooks; set before a hook can be reached.
        static REAL_ADDRESSES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
        static REALS: [Real; COUNT] = [$(Real::named($text)),*];
        static HOOKS: [unsafe extern "C" fn(); COUNT] = [$($hook),*];
        static EXPORTED: [unsafe extern "C" fn(); COUNT] = [$($name),*];
        const NAMES: [&CStr; COUNT] = [$($text),*];
        const GIVES: [Gives; COUNT] = [$(Gives::$gives),*];

        $(
            export_by_target!($name, $index of TARGETS, resolve);

            #[unsafe(naked)]
            unsafe extern "C" fn $hook() {
                naked_asm!(
                    ".cfi_startproc",
                    "push rdi", ".cfi_adjust_cfa_offset 8",
                    "push rsi", ".cfi_adjust_cfa_offset 8",
                    "push rdx", ".cfi_adjust_cfa_offset 8",
                    "push rcx", ".cfi_adjust_cfa_offset 8",
                    "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
                    "call qword ptr [rip + {reals} + 8 * {index}]",
                    "mov qword ptr [rsp], rax",
                    "mov rdi, rsp", "mov esi, {index}", "lea rdx, [rsp + 40]", "mov rcx, rbp",
                    "call {after}",
                    "mov rax, qword ptr [rsp]",
                    "add rsp, 40", ".cfi_adjust_cfa_offset -40",
                    "ret",
                    ".cfi_endproc",
                    reals = sym REAL_ADDRESSES, after = sym after, index = const $index
                )
            }
        )*
    };
}

openers! {
    0 open c"open" hook_open = Path;
    1 open64 c"open64" hook_open64 = Path;
    2 openat c"openat" hook_openat = PathAt;
    3 openat64 c"openat64" hook_openat64 = PathAt;
    4 __open_2 c"__open_2" hook_open_2 = Path;
    5 __open64_2 c"__open64_2" hook_open64_2 = Path;
    6 __openat_2 c"__openat_2" hook_openat_2 = PathAt;
    7 __openat64_2 c"__openat64_2" hook_openat64_2 = PathAt;
    8 creat c"creat" hook_creat = Number;
    9 creat64 c"creat64" hook_creat64 = Number;
    10 socket c"socket" hook_socket = Number;
    11 accept c"accept" hook_accept = Number;
    12 accept4 c"accept4" hook_accept4 = Number;
    13 socketpair c"socketpair" hook_socketpair = SocketPair;
    14 pipe c"pipe" hook_pipe = Pair;
    15 pipe2 c"pipe2" hook_pipe2 = Pair;
    16 dup c"dup" hook_dup = Number;
    17 dup2 c"dup2" hook_dup2 = Copy;
    18 dup3 c"dup3" hook_dup3 = Copy;
    19 fcntl c"fcntl" hook_fcntl = Control;
    20 fcntl64 c"fcntl64" hook_fcntl64 = Control;
    21 epoll_create c"epoll_create" hook_epoll_create = Number;
    22 epoll_create1 c"epoll_create1" hook_epoll_create1 = Number;
    23 eventfd c"eventfd" hook_eventfd = Number;
    24 timerfd_create c"timerfd_create" hook_timerfd_create = Number;
    25 signalfd c"signalfd" hook_signalfd = Copy;
    26 inotify_init c"inotify_init" hook_inotify_init = Number;
    27 inotify_init1 c"inotify_init1" hook_inotify_init1 = Number;
    28 fanotify_init c"fanotify_init" hook_fanotify_init = Number;
    29 memfd_create c"memfd_create" hook_memfd_create = Number;
    30 shm_open c"shm_open" hook_shm_open = Number;
    31 mq_open c"mq_open" hook_mq_open = Number;
    32 posix_openpt c"posix_openpt" hook_posix_openpt = Number;
    33 mkstemp c"mkstemp" hook_mkstemp = Number;
    34 mkstemp64 c"mkstemp64" hook_mkstemp64 = Number;
    35 mkostemp c"mkostemp" hook_mkostemp = Number;
    36 mkostemp64 c"mkostemp64" hook_mkostemp64 = Number;
    37 pidfd_open c"pidfd_open" hook_pidfd_open = Number;
    38 fopen c"fopen" hook_fopen = Stream;
    39 fopen64 c"fopen64" hook_fopen64 = Stream;
    40 freopen c"freopen" hook_freopen = Stream;
    41 freopen64 c"freopen64" hook_freopen64 = Stream;
    42 tmpfile c"tmpfile" hook_tmpfile = Stream;
    43 tmpfile64 c"tmpfile64" hook_tmpfile64 = Stream;
    44 popen c"popen" hook_popen = Stream;
    45 opendir c"opendir" hook_opendir = Directory;
}

/// Ours of a name; 0 when there is none.
pub(crate) fn by_name(name: &[u8; NAME_BYTES]) -> usize {
    let found = NAMES.iter().position(|known| is_called(name, known.to_bytes()));
    found.map_or(0, |index| *at(&EXPORTED, index) as usize)
}

static FILENO: Real = Real::named(c"fileno");
static DIRFD: Real = Real::named(c"dirfd");

/// Finds out where a function's calls go.
unsafe extern "C" fn resolve(index: usize) -> usize {
    let real = at(&REALS, index).address();
    match bootstrap::watches(FEATURE_DESCRIPTORS) {
        // A program that refers to it weakly believes by us that it is there.
        _ if real == 0 => missing as *const () as usize,
        // Too early to tell: this call passes, the next one asks again.
        None => real,
        Some(watched) => {
            at(&REAL_ADDRESSES, index).store(real, Ordering::Release);
            let target = if watched || (takes_path(index) && runtimes::is_node()) {
                *at(&HOOKS, index) as usize
            } else {
                real
            };
            if starts_shell(index) {
                // Every call asks where it goes.
                starts::before_shell();
            } else {
                at(&TARGETS, index).store(target, Ordering::Release);
            }
            target
        }
    }
}

fn starts_shell(index: usize) -> bool {
    at(&NAMES, index).to_bytes() == b"popen"
}

/// Returns whether calls of a function may be marks: of a program that can call no C, in a session of whichever kind.
fn takes_path(index: usize) -> bool {
    matches!(*at(&GIVES, index), Gives::Path | Gives::PathAt)
}

/// In place of a function that this libc does not have.
unsafe extern "C" fn missing() -> isize {
    -1
}

/// What a hook keeps on its stack across the call of the real function.
#[repr(C)]
struct Called {
    result: usize,
    fourth: usize,
    third: usize,
    second: usize,
    first: usize,
}

/// Behind the real function. The hook itself is not of Rust, because unwinding may pass through it: these are points at
/// which a thread can be cancelled.
unsafe extern "C" fn after(called: *mut Called, index: usize, sp: usize, bp: usize) {
    // SAFETY: the hook passed its own stack frame.
    let Called { result, fourth, second, first, .. } = unsafe { called.read() };
    let answer = |number: Option<i32>| {
        if let Some(number) = number {
            // SAFETY: the hook returns what stands there.
            unsafe { (*called).result = number as usize };
        }
    };
    let (caller, number) = (Caller { sp, bp }, result as i32);
    // SAFETY: the hook passed its caller's registers; pointers are those that the real function has used.
    unsafe {
        match *at(&GIVES, index) {
            Gives::Path if number < 0 => answer(marked(caller, first)),
            Gives::PathAt if number < 0 => answer(marked(caller, second)),
            Gives::Number | Gives::Path | Gives::PathAt => opened(caller, number),
            Gives::Copy if number != first as i32 => opened(caller, number),
            Gives::Copy => {}
            Gives::Control if is_copy(second as i32) => opened(caller, number),
            Gives::Control => {}
            Gives::Pair if number == 0 => opened_pair(caller, first),
            Gives::SocketPair if number == 0 => opened_pair(caller, fourth),
            Gives::Pair | Gives::SocketPair => {}
            Gives::Stream => opened(caller, number_of(&FILENO, result)),
            Gives::Directory => opened(caller, number_of(&DIRFD, result)),
        }
    }
}

/// Returns whether a command of `fcntl` copies a descriptor.
fn is_copy(command: i32) -> bool {
    const F_DUPFD: i32 = 0;
    const F_DUPFD_CLOEXEC: i32 = 1030;
    command == F_DUPFD || command == F_DUPFD_CLOEXEC
}

/// The descriptor of a `FILE` or a `DIR`, or -1.
unsafe fn number_of(real: &Real, object: usize) -> i32 {
    match real.address() {
        0 => -1,
        _ if object == 0 => -1,
        // SAFETY: the functions have this type by POSIX, and the object was just made.
        address => unsafe { transmute::<usize, unsafe extern "C" fn(usize) -> i32>(address)(object) },
    }
}

unsafe fn opened_pair(caller: Caller, numbers: usize) {
    // SAFETY: the real function wrote both numbers there.
    unsafe {
        let numbers = numbers as *const i32;
        opened(caller, *numbers);
        opened(caller, *numbers.add(1));
    }
}

/// Records a descriptor; a negative number is none.
unsafe fn opened(caller: Caller, number: i32) {
    if number < 0 || bootstrap::watches(FEATURE_DESCRIPTORS) != Some(true) {
        return;
    }
    // SAFETY: by contract; the guard proves that the thread's state is ours to use.
    unsafe {
        if let Entry::Record(guard) = enter(caller) {
            guard.in_hook();
            let node = guard.node(caller);
            guard.push([word0(Kind::Opened, number as u64, 0), word1(0, node)]);
        }
    }
}

/// A path that could not be opened may be a mark of a program that can call no C: `/proc/mallow/begin/NAME`. A count is answered by a file, whose
/// descriptor is returned.
unsafe fn marked(caller: Caller, path: usize) -> Option<i32> {
    const PREFIX: &[u8] = b"/proc/mallow/";
    const PATH_BYTES_MAX: usize = 160;
    let first = usize::from_le_bytes(*b"/proc/ma");
    // The program may have passed any address; the kernel looks whether something is there.
    if sys::read_word_checked(sys::getpid(), path) != Some(first) {
        return None;
    }
    // SAFETY: a path begins here, so it goes on to its zero.
    let path = unsafe { CStr::from_ptr(path as *const c_char) }.to_bytes();
    let rest = path.strip_prefix(PREFIX).filter(|_| path.len() <= PATH_BYTES_MAX)?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let (word, name) = (&rest[..slash], &rest[slash + 1..]);
    // SAFETY: by contract.
    unsafe {
        match word {
            b"begin" => marks::mark(caller, Mark::Begin, name, 0),
            b"end" => marks::mark(caller, Mark::End, name, 0),
            b"ops" => marks::mark(caller, Mark::Operations, b"", decimal(name)),
            b"quiesce" => marks::mark(caller, Mark::Settle, b"", 0),
            b"tell" => {
                let what = name.split(|byte| *byte == b'/').next().unwrap_or_default();
                let value = name.get(what.len() + 1..).unwrap_or_default();
                marks::mark(caller, Mark::Reported, what, decimal(value));
            }
            // Answered by a file too, for an error that the runtime throws would be counted.
            b"count" if name == b"begin" => {
                return marks::begin_count(caller).then(|| file_of(b"")).flatten();
            }
            b"count" if name == b"end" => return counted(caller),
            _ => {}
        }
    }
    None
}

/// Ends a count, and returns a file with what it has: numbers with a blank behind each. `None` if it has nothing.
unsafe fn counted(caller: Caller) -> Option<i32> {
    let mut values = [0; COUNTED_VALUES];
    // SAFETY: by contract.
    let count = unsafe { marks::end_count(caller, &mut values) };
    let mut text = [b' '; COUNTED_VALUES * NUMBER_BYTES];
    for (room, value) in text.chunks_mut(NUMBER_BYTES).zip(values) {
        write_decimal(room, value);
    }
    let text = text.get(..count * NUMBER_BYTES).filter(|text| !text.is_empty());
    text.and_then(file_of)
}

/// A file with a text, to be read from its beginning. `None` if none can be made.
fn file_of(text: &[u8]) -> Option<i32> {
    let fd = sys::memfd_create(c"mallow-count") as i32;
    // SAFETY: a file of ours, in memory. Its position stays where it is.
    let is_written = fd >= 0 && unsafe { sys::write_at(fd, 0, text) } == text.len() as isize;
    if fd >= 0 && !is_written {
        sys::close(fd);
    }
    is_written.then_some(fd)
}

/// Room for the longest number and a blank.
const NUMBER_BYTES: usize = 21;

/// Writes a number to the left end of its room.
fn write_decimal(room: &mut [u8], value: u64) {
    let digits = (1..).take_while(|digits| *digits <= 1 || value >= 10u64.saturating_pow(digits - 1)).count();
    let mut rest = value;
    for place in room.iter_mut().take(digits).rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn decimal(digits: &[u8]) -> u64 {
    digits
        .iter()
        .take_while(|digit| digit.is_ascii_digit())
        .fold(0, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(*digit - b'0')))
}
