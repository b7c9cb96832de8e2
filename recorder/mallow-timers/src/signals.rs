//! What the program does with signals: it does not notice that one of them is ours.
//!
//! A handler that it sets for our signal is called for those that our timers did not send. Our signal stays out of the sets that it blocks and
//! waits for, unless it handles it.

use crate::kernel;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mallow_recorder::real::Real;
use mallow_recorder::sys;
use mallow_wire::timers::{BY_EVENTS, EVENT_SIGNAL, SIGNAL};

/// The part of `struct ucontext` that is looked at: words.
pub(crate) type Context = [u64; 38];

/// Where in it the blocked signals are: behind the registers.
const SIGNALS_BLOCKED: usize = 37;

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_ERR: usize = usize::MAX;
const SA_NODEFER: u32 = 0x4000_0000;
const SA_RESETHAND: u32 = 0x8000_0000;
const SA_RESTART: u32 = 0x1000_0000;

/// `sigset_t`.
type Set = [u64; 16];

/// `struct sigaction`.
#[derive(Debug)]
#[repr(C)]
pub struct Action {
    handler: usize,
    mask: Set,
    flags: u32,
    restorer: usize,
}

/// What the program wants to happen at our signal. It is not changed as a whole, so who changes it while it is sent may find half of both.
struct ProgramHandler {
    handler: AtomicUsize,
    flags: AtomicU32,
    mask: AtomicU64,
}

static PROGRAM_HANDLER: ProgramHandler =
    ProgramHandler { handler: AtomicUsize::new(SIG_DFL), flags: AtomicU32::new(0), mask: AtomicU64::new(0) };

static SIGACTION: Real = Real::named(c"sigaction");
static SIGNAL_SIMPLE: Real = Real::named(c"signal");
static SIGPROCMASK: Real = Real::named(c"sigprocmask");
static PTHREAD_SIGMASK: Real = Real::named(c"pthread_sigmask");
static SIGWAIT: Real = Real::named(c"sigwait");
static SIGWAITINFO: Real = Real::named(c"sigwaitinfo");
static SIGTIMEDWAIT: Real = Real::named(c"sigtimedwait");

static CHOSEN: AtomicU32 = AtomicU32::new(SIGNAL);

/// Decides which signal is ours: there is one for timers and one for events.
pub(crate) fn choose(way: u32) -> u32 {
    CHOSEN.store(if way == BY_EVENTS { EVENT_SIGNAL } else { SIGNAL }, Ordering::Relaxed);
    ours()
}

/// Our signal.
pub(crate) fn ours() -> u32 {
    CHOSEN.load(Ordering::Relaxed)
}

fn our_bit() -> u64 {
    1 << (ours() - 1)
}

/// What was set before us, as a program that was replaced has left it.
pub(crate) fn found(handler: usize, flags: u64, mask: u64) {
    PROGRAM_HANDLER.handler.store(handler, Ordering::Relaxed);
    PROGRAM_HANDLER.flags.store(flags as u32, Ordering::Relaxed);
    PROGRAM_HANDLER.mask.store(mask, Ordering::Relaxed);
}

fn is_handled() -> bool {
    ![SIG_DFL, SIG_IGN].contains(&PROGRAM_HANDLER.handler.load(Ordering::Relaxed))
}

/// A signal that none of our timers sent: the program's own handler is called as the kernel would.
///
/// # Safety
/// The arguments are those of a handler.
pub(crate) unsafe fn pass_on(signal: c_int, info: *mut c_void, context: *mut Context) {
    let (handler, flags) =
        (PROGRAM_HANDLER.handler.load(Ordering::Relaxed), PROGRAM_HANDLER.flags.load(Ordering::Relaxed));
    if handler == SIG_DFL && signal as u32 == EVENT_SIGNAL {
        // A trap ends a program. It comes again when this handler has returned.
        kernel::handle_as_usual(EVENT_SIGNAL);
        return kernel::raise(EVENT_SIGNAL);
    }
    if handler == SIG_DFL || handler == SIG_IGN {
        return;
    }
    if flags & SA_RESETHAND != 0 {
        PROGRAM_HANDLER.handler.store(SIG_DFL, Ordering::Relaxed);
    }
    let own = if flags & SA_NODEFER == 0 { our_bit() } else { 0 };
    // SAFETY: by contract.
    let before = unsafe { (*context)[SIGNALS_BLOCKED] };
    // Who leaves the handler by a jump finds what it would without us. Who returns has the kernel put back what was.
    sys::set_blocked_signals(before | PROGRAM_HANDLER.mask.load(Ordering::Relaxed) | own);
    type Handler = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void);
    // SAFETY: the program gave it for this signal; one that wants fewer arguments does not look at the others.
    unsafe { transmute::<usize, Handler>(handler)(signal, info, context.cast()) };
}

/// `sigaction`: what is wanted for our signal is kept here.
///
/// # Safety
/// As `sigaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    type SigAction = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
    if signal as u32 != ours() || crate::memory::memory().is_none() {
        // SAFETY: by contract.
        return unsafe { transmute::<usize, SigAction>(SIGACTION.address())(signal, new, old) };
    }
    let mut mask = [0; 16];
    mask[0] = PROGRAM_HANDLER.mask.load(Ordering::Relaxed);
    let before = Action {
        handler: PROGRAM_HANDLER.handler.load(Ordering::Relaxed),
        mask,
        flags: PROGRAM_HANDLER.flags.load(Ordering::Relaxed),
        restorer: 0,
    };
    // SAFETY: by contract both are actions or null.
    unsafe {
        if !new.is_null() {
            found((*new).handler, u64::from((*new).flags), (*new).mask[0]);
        }
        if !old.is_null() {
            old.write(before);
        }
    }
    0
}

/// `signal`, in the same way.
///
/// # Safety
/// As `signal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    type Simple = unsafe extern "C" fn(c_int, usize) -> usize;
    if signal as u32 != ours() || crate::memory::memory().is_none() || handler == SIG_ERR {
        // SAFETY: by contract.
        return unsafe { transmute::<usize, Simple>(SIGNAL_SIMPLE.address())(signal, handler) };
    }
    let before = PROGRAM_HANDLER.handler.load(Ordering::Relaxed);
    found(handler, u64::from(SA_RESTART), 0);
    before
}

/// Calls `with` with the set, without our signal in it.
unsafe fn without_ours<T>(set: *const Set, with: impl FnOnce(*const Set) -> T) -> T {
    // SAFETY: by contract a set, or null.
    let first = if set.is_null() { 0 } else { unsafe { (*set)[0] } };
    if first & our_bit() == 0 || is_handled() || crate::memory::memory().is_none() {
        return with(set);
    }
    let mut changed: Set = [0; 16];
    changed[0] = first & !our_bit();
    with(&raw const changed)
}

const SIG_UNBLOCK: c_int = 1;
type Change = unsafe extern "C" fn(c_int, *const Set, *mut Set) -> c_int;

unsafe fn change(real: &Real, how: c_int, set: *const Set, old: *mut Set) -> c_int {
    // SAFETY: by contract.
    let call = |set| unsafe { transmute::<usize, Change>(real.address())(how, set, old) };
    // SAFETY: as above.
    if how == SIG_UNBLOCK { call(set) } else { unsafe { without_ours(set, call) } }
}

/// `sigprocmask`: our signal is not blocked.
///
/// # Safety
/// As `sigprocmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, set: *const Set, old: *mut Set) -> c_int {
    // SAFETY: by contract.
    unsafe { change(&SIGPROCMASK, how, set, old) }
}

/// `pthread_sigmask`: our signal is not blocked.
///
/// # Safety
/// As `pthread_sigmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const Set, old: *mut Set) -> c_int {
    // SAFETY: by contract.
    unsafe { change(&PTHREAD_SIGMASK, how, set, old) }
}

/// `sigwait`: our signal is not waited for.
///
/// # Safety
/// As `sigwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigwait(set: *const Set, signal: *mut c_int) -> c_int {
    type Wait = unsafe extern "C" fn(*const Set, *mut c_int) -> c_int;
    // SAFETY: by contract.
    unsafe { without_ours(set, |set| transmute::<usize, Wait>(SIGWAIT.address())(set, signal)) }
}

/// `sigwaitinfo`: our signal is not waited for.
///
/// # Safety
/// As `sigwaitinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigwaitinfo(set: *const Set, info: *mut c_void) -> c_int {
    type Wait = unsafe extern "C" fn(*const Set, *mut c_void) -> c_int;
    // SAFETY: by contract.
    unsafe { without_ours(set, |set| transmute::<usize, Wait>(SIGWAITINFO.address())(set, info)) }
}

/// `sigtimedwait`: our signal is not waited for.
///
/// # Safety
/// As `sigtimedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigtimedwait(set: *const Set, info: *mut c_void, timeout: *const c_void) -> c_int {
    type Wait = unsafe extern "C" fn(*const Set, *mut c_void, *const c_void) -> c_int;
    // SAFETY: by contract.
    unsafe { without_ours(set, |set| transmute::<usize, Wait>(SIGTIMEDWAIT.address())(set, info, timeout)) }
}
