//! The helper_thread: a thread of ours in the program, which asks its allocator for things when the collector wants them.
//!
//! Only a thread of the process can ask its allocator to give memory back, and a program at rest has none that passes
//! by. So a session that wants this (a soak) has one made when `main` is called, and in every forked child; it sleeps
//! until it is asked, and its own calls are not recorded. Other sessions have no such thread: some programs care how
//! many they have.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use mallow_recorder::real::Real;
use mallow_recorder::thread::{become_ours, unrecorded};
use mallow_recorder::{bootstrap, process, sys};
use mallow_wire::shared::*;

static CREATE: Real = Real::named(c"pthread_create");
static JOIN: Real = Real::named(c"pthread_join");
static AT_FORK: Real = Real::named(c"__register_atfork");

/// libc's handle of the thread; 0 while there is none.
static HANDLE: AtomicUsize = AtomicUsize::new(0);
/// It is to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Starts the helper_thread, when the session wants one, and has forked children start theirs.
///
/// Only when the process's libraries are set up.
pub(crate) fn begin() {
    if bootstrap::watches(FEATURE_HELPER_THREAD) != Some(true) {
        return;
    }
    type AtFork = unsafe extern "C" fn(usize, usize, extern "C" fn(), usize) -> c_int;
    let at_fork = AT_FORK.address();
    unrecorded(|| {
        if at_fork != 0 {
            // SAFETY: glibc's type for the symbol; this library is never unloaded.
            unsafe { transmute::<usize, AtFork>(at_fork)(0, 0, forked, 0) };
        }
        create();
    });
}

/// Runs in every forked child, when libc has put itself in order.
extern "C" fn forked() {
    // The parent's thread is not here: nobody may wait for it.
    HANDLE.store(0, Ordering::Relaxed);
    bootstrap::start();
    if bootstrap::watches(FEATURE_HELPER_THREAD) == Some(true) {
        unrecorded(create);
    }
}

fn create() {
    /// All but the two with which libc changes the user of all threads: it waits for each of them.
    const BLOCKED: u64 = !(1 << 31 | 1 << 32);
    type Create =
        unsafe extern "C" fn(*mut usize, usize, extern "C" fn(*mut c_void) -> *mut c_void, usize) -> c_int;
    let create = CREATE.address();
    if create == 0 || JOIN.address() == 0 {
        return;
    }
    IS_ENDING.store(false, Ordering::Relaxed);
    let before = sys::set_blocked_signals(BLOCKED);
    let mut thread = 0usize;
    // SAFETY: the types are those of POSIX; the handle of a thread is a word in glibc and musl.
    unsafe {
        if transmute::<usize, Create>(create)(&raw mut thread, 0, serve, 0) == 0 {
            HANDLE.store(thread, Ordering::Release);
        }
    }
    sys::set_blocked_signals(before);
}

/// Ends the thread, and waits until libc knows of it no more: what it is asked from then on is not answered.
pub(crate) fn end() {
    type Join = unsafe extern "C" fn(usize, usize) -> c_int;
    let thread = HANDLE.swap(0, Ordering::AcqRel);
    if thread == 0 || !process::is_ready() {
        return;
    }
    let helper_thread = &process::header().helper_thread;
    IS_ENDING.store(true, Ordering::Release);
    // It does not sleep on another number, whether it does already or is about to.
    helper_thread.asked.fetch_add(1, Ordering::Release);
    sys::futex_wake(&helper_thread.asked);
    // SAFETY: POSIX's type; the thread was made here, and nobody else has its handle.
    unrecorded(|| _ = unsafe { transmute::<usize, Join>(JOIN.address())(thread, 0) });
    helper_thread.tid.store(0, Ordering::Release);
}

/// The thread: waits for orders and carries them out, until recording ends.
extern "C" fn serve(_: *mut c_void) -> *mut c_void {
    /// How often it looks whether somebody still listens.
    const WAIT_MS: u64 = 10_000;
    become_ours();
    if !process::is_ready() {
        return null_mut();
    }
    let helper_thread = &process::header().helper_thread;
    helper_thread.tid.store(sys::gettid(), Ordering::Release);
    loop {
        let asked = helper_thread.asked.load(Ordering::Acquire);
        if IS_ENDING.load(Ordering::Acquire) {
            return null_mut();
        }
        if asked == helper_thread.answered.load(Ordering::Relaxed) {
            if process::header().heartbeat.load(Ordering::Relaxed) == HEARTBEAT_LEFT {
                return null_mut();
            }
            sys::futex_wait(&helper_thread.asked, asked, WAIT_MS);
            continue;
        }
        carry_out(helper_thread);
        helper_thread.answered.store(asked, Ordering::Release);
    }
}

fn carry_out(helper_thread: &HelperThread) {
    let order = helper_thread.order.load(Ordering::Relaxed);
    let allocator = Allocator::find();
    if order & REQUEST_TRIM != 0 {
        allocator.trim();
    }
    if order & REQUEST_ACCOUNT != 0
        && let Some(account) = allocator.account()
    {
        helper_thread.held_bytes.store(account.held_bytes as u64, Ordering::Relaxed);
        helper_thread.used_bytes.store(account.used_bytes as u64, Ordering::Relaxed);
    }
    helper_thread.allocator.store(allocator.number(), Ordering::Relaxed);
}

static MALLOC_TRIM: Real = Real::named(c"malloc_trim");
static MALLINFO: Real = Real::named(c"mallinfo2");
static MALLCTL: Real = Real::named(c"mallctl");
static MI_COLLECT: Real = Real::named(c"mi_collect");
static TC_RELEASE: Real = Real::named(c"MallocExtension_ReleaseFreeMemory");
static TC_PROPERTY: Real = Real::named(c"MallocExtension_GetNumericProperty");

type Mallctl =
    unsafe extern "C" fn(*const core::ffi::c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

/// Who serves the program's `malloc`. libc's own functions are there beside another's, so they are asked last.
enum Allocator {
    Jemalloc(Mallctl),
    Tcmalloc,
    Mimalloc,
    Glibc,
    Unknown,
}

struct Account {
    held_bytes: usize,
    used_bytes: usize,
}

impl Allocator {
    fn find() -> Allocator {
        let mallctl = MALLCTL.address();
        if mallctl != 0 {
            // SAFETY: jemalloc's type for the symbol.
            return Allocator::Jemalloc(unsafe { transmute::<usize, Mallctl>(mallctl) });
        }
        match (TC_RELEASE.address(), MI_COLLECT.address(), MALLOC_TRIM.address()) {
            (0, 0, 0) => Allocator::Unknown,
            (0, 0, _) => Allocator::Glibc,
            (0, _, _) => Allocator::Mimalloc,
            _ => Allocator::Tcmalloc,
        }
    }

    fn number(&self) -> u32 {
        match self {
            Allocator::Jemalloc(_) => ALLOCATOR_JEMALLOC,
            Allocator::Tcmalloc => ALLOCATOR_TCMALLOC,
            Allocator::Mimalloc => ALLOCATOR_MIMALLOC,
            Allocator::Glibc => ALLOCATOR_GLIBC,
            Allocator::Unknown => ALLOCATOR_UNKNOWN,
        }
    }

    fn trim(&self) {
        // SAFETY: the types are those of each allocator's header; all of these may be called on any thread.
        unsafe {
            match self {
                // 4096 stands for all arenas.
                Allocator::Jemalloc(mallctl) => {
                    mallctl(c"arena.4096.purge".as_ptr(), null_mut(), null_mut(), null_mut(), 0);
                }
                Allocator::Tcmalloc => transmute::<usize, unsafe extern "C" fn()>(TC_RELEASE.address())(),
                Allocator::Mimalloc => {
                    transmute::<usize, unsafe extern "C" fn(bool)>(MI_COLLECT.address())(true)
                }
                Allocator::Glibc => {
                    transmute::<usize, unsafe extern "C" fn(usize) -> c_int>(MALLOC_TRIM.address())(0);
                }
                Allocator::Unknown => {}
            }
        }
    }

    fn account(&self) -> Option<Account> {
        match self {
            Allocator::Jemalloc(mallctl) => jemalloc_account(*mallctl),
            Allocator::Tcmalloc => tcmalloc_account(),
            Allocator::Glibc => glibc_account(),
            Allocator::Mimalloc | Allocator::Unknown => None,
        }
    }
}

/// jemalloc's figures stand still until its epoch is moved on.
fn jemalloc_account(mallctl: Mallctl) -> Option<Account> {
    let read = |name: &CStr| {
        let (mut value, mut bytes) = (0usize, size_of::<usize>());
        // SAFETY: both statistics are of type size_t.
        let failed =
            unsafe { mallctl(name.as_ptr(), (&raw mut value).cast(), &raw mut bytes, null_mut(), 0) };
        (failed == 0).then_some(value)
    };
    let mut epoch = 1u64;
    // SAFETY: the epoch is a uint64_t; any value moves it on.
    unsafe { mallctl(c"epoch".as_ptr(), null_mut(), null_mut(), (&raw mut epoch).cast(), size_of::<u64>()) };
    Some(Account { held_bytes: read(c"stats.mapped")?, used_bytes: read(c"stats.allocated")? })
}

fn tcmalloc_account() -> Option<Account> {
    type Property = unsafe extern "C" fn(*const core::ffi::c_char, *mut usize) -> c_int;
    let property = TC_PROPERTY.address();
    if property == 0 {
        return None;
    }
    let read = |name: &CStr| {
        let mut value = 0usize;
        // SAFETY: tcmalloc's type for the symbol.
        let known = unsafe { transmute::<usize, Property>(property)(name.as_ptr(), &raw mut value) };
        (known != 0).then_some(value)
    };
    Some(Account {
        held_bytes: read(c"generic.heap_size")?,
        used_bytes: read(c"generic.current_allocated_bytes")?,
    })
}

fn glibc_account() -> Option<Account> {
    /// struct mallinfo2, of glibc 2.33 and later: sums over all arenas, all of them size_t.
    #[repr(C)]
    struct Mallinfo {
        arena: usize,
        ordblks: usize,
        smblks: usize,
        hblks: usize,
        hblkhd: usize,
        usmblks: usize,
        fsmblks: usize,
        uordblks: usize,
        fordblks: usize,
        keepcost: usize,
    }
    let mallinfo = MALLINFO.address();
    if mallinfo == 0 {
        return None;
    }
    // SAFETY: glibc's type for the symbol.
    let info = unsafe { transmute::<usize, unsafe extern "C" fn() -> Mallinfo>(mallinfo)() };
    Some(Account {
        held_bytes: info.arena.wrapping_add(info.hblkhd),
        used_bytes: info.uordblks.wrapping_add(info.hblkhd),
    })
}
