//! The script that a thread runs: its frames, as a stack of their own beside the native one.
//!
//! A runtime that runs scripts keeps its own frames. When its module is first met on a native stack ([`meet`]) a reader is chosen that knows
//! where this version keeps them; from then on every event of a thread that runs a script has both stacks ([`with_script`]). Nothing of
//! the program is called but what reads a word, nothing is locked or allocated, nothing is configured. Of a version that nobody knows the
//! native stacks are recorded as ever, and the log says why.
//!
//! - [`code_log`]: pieces of code as numbers, and what they are;
//! - [`memo`]: the script's stack, by comparing it with the last one;
//! - [`cpython`]: the reader for Python. Another runtime is another reader, behind [`memo::Frames`].
//!
//! A call that interrupts another one of ours, such as a signal handler's, has its native stack alone.

pub mod code_log;
pub mod cpython;
pub mod memo;

use crate::elf;
use crate::objects::{self, Object};
use crate::process;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use cpython::{Met, Python};
use mallow_wire::script::{READ, RUNTIME_CPYTHON, UNREAD_LAYOUT};
use mallow_wire::shared::MODE_RECORD;
use memo::ScriptMemo;

/// No module of a runtime was met.
const NONE: u32 = 0;
/// One was met, and its reader is being made ready.
const MEETING: u32 = 1;
/// It is to be seen whether the frames lie where they should.
const UNTRIED: u32 = 2;
/// Frames are read.
const READING: u32 = 3;
/// They are not, for the reason that was logged.
const UNREAD: u32 = 4;

static STATE: AtomicU32 = AtomicU32::new(NONE);

/// The module may be unloaded: it was not there when the program started.
static MAY_GO: AtomicBool = AtomicBool::new(false);
/// Where the module that was there lies; 0 when there was none.
static STARTED_WITH: AtomicUsize = AtomicUsize::new(0);
/// Unloads under way while it may go: its functions are not called then.
static UNLOADS: AtomicU32 = AtomicU32::new(0);

/// What was met, for the logs of forked children.
struct MetRuntime(UnsafeCell<Met>);

// SAFETY: written once, by the thread that brought the state to `MEETING`, and read when it has gone on.
unsafe impl Sync for MetRuntime {}

static MET: MetRuntime =
    MetRuntime(UnsafeCell::new(Met { version: 0, unread: READ, interpreter: [[0; 2]; 2] }));

/// Before the program's own code: what is loaded now is never unloaded.
pub fn note_loaded() {
    elf::each_object(|object| {
        let is_runtime = cpython::is_module(object.bias, object.dynamic());
        if is_runtime {
            STARTED_WITH.store(object.range().0, Ordering::Relaxed);
        }
        is_runtime
    });
}

/// Something is about to be unloaded. If it is the runtime, its functions must not be called any more. A thread that is in one of them
/// at this moment, as another unloads the interpreter that it runs on, is the doubt that remains.
pub fn before_unload() {
    if MAY_GO.load(Ordering::Acquire) {
        UNLOADS.fetch_add(1, Ordering::SeqCst);
    }
}

/// Behind [`before_unload`], when everything else knows of it.
pub fn after_unload() {
    if !MAY_GO.load(Ordering::Acquire) || UNLOADS.load(Ordering::SeqCst) == 0 {
        return;
    }
    if !cpython::is_loaded() {
        // Another one may come.
        MAY_GO.store(false, Ordering::Release);
        STATE.store(NONE, Ordering::Release);
        code_log::forget_all();
        UNLOADS.store(0, Ordering::SeqCst);
    } else {
        UNLOADS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A module was met on a stack. The first that is a runtime's is the one whose frames are read.
pub fn meet(object: &Object) {
    if STATE.load(Ordering::Relaxed) != NONE || process::header().mode != MODE_RECORD {
        return;
    }
    if !cpython::is_module(object.bias, objects::dynamic_around(object.start)) {
        return;
    }
    meet_runtime(object);
}

/// Out of line: its room on the program's stack is not wanted for other modules.
#[inline(never)]
fn meet_runtime(object: &Object) {
    let Some(met) = cpython::meet(object) else { return };
    if STATE.compare_exchange(NONE, MEETING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: the exchange has made it ours.
    unsafe { *MET.0.get() = met };
    // SAFETY: the memory of this process, which is ready when events are recorded.
    unsafe {
        code_log::log_runtime(process::shared(), RUNTIME_CPYTHON, met.version, met.unread, met.interpreter)
    };
    if met.unread == READ {
        cpython::watch_deaths();
        MAY_GO.store(object.start != STARTED_WITH.load(Ordering::Relaxed), Ordering::Release);
    }
    STATE.store(if met.unread == READ { UNTRIED } else { UNREAD }, Ordering::Release);
}

/// A forked child has a log of its own, in fresh shared memory.
///
/// # Safety
/// `shared` is a mapping of shared memory.
pub unsafe fn inherit(shared: *mut u8) {
    if STATE.load(Ordering::Acquire) > MEETING {
        code_log::forget_all();
        // SAFETY: nobody writes what was met any more; by contract.
        unsafe {
            let met = *MET.0.get();
            code_log::log_runtime(shared, RUNTIME_CPYTHON, met.version, met.unread, met.interpreter);
        }
    }
}

/// The node of a native stack with that of the script that the calling thread runs, if it runs one.
///
/// # Safety
/// The memo is the calling thread's, and no other call on it is under way.
#[inline(always)]
pub unsafe fn with_script(native: u32, memo: *mut ScriptMemo) -> u32 {
    if STATE.load(Ordering::Relaxed) == NONE {
        return native;
    }
    // SAFETY: by contract.
    unsafe { with_runtime(native, memo) }
}

#[inline(never)]
unsafe fn with_runtime(native: u32, memo: *mut ScriptMemo) -> u32 {
    if UNLOADS.load(Ordering::SeqCst) != 0 || STATE.load(Ordering::Acquire) != READING && !is_tried() {
        return native;
    }
    // SAFETY: the state says that the frames are read; by contract the memo is ours alone.
    unsafe {
        match cpython::layout() {
            0 => paired::<0>(native, memo),
            1 => paired::<1>(native, memo),
            2 => paired::<2>(native, memo),
            3 => paired::<3>(native, memo),
            4 => paired::<4>(native, memo),
            _ => paired::<5>(native, memo),
        }
    }
}

/// For one version, so that its offsets are part of the code.
#[inline(never)]
unsafe fn paired<const V: usize>(native: u32, memo: *mut ScriptMemo) -> u32 {
    // SAFETY: by contract of the caller.
    unsafe {
        let frames = Python::<V>::of_this_thread();
        let node = (*memo).pair(native, &frames);
        #[cfg(feature = "verify")]
        memo::compare(node, &frames);
        node
    }
}

/// Whether frames are read from now on: when the first stack of the process is what it should be.
#[cold]
fn is_tried() -> bool {
    if STATE.load(Ordering::Acquire) != UNTRIED || process::is_filtered() {
        return false;
    }
    // SAFETY: the module was met.
    let is_as_expected = unsafe {
        match cpython::layout() {
            0 => Python::<0>::of_this_thread().is_as_expected(),
            1 => Python::<1>::of_this_thread().is_as_expected(),
            2 => Python::<2>::of_this_thread().is_as_expected(),
            3 => Python::<3>::of_this_thread().is_as_expected(),
            4 => Python::<4>::of_this_thread().is_as_expected(),
            _ => Python::<5>::of_this_thread().is_as_expected(),
        }
    };
    match is_as_expected {
        None => false,
        Some(true) => {
            STATE.store(READING, Ordering::Release);
            true
        }
        Some(false) => {
            // SAFETY: written before the state was.
            let met = unsafe { *MET.0.get() };
            let shared = process::shared();
            // SAFETY: the memory of this process.
            unsafe {
                code_log::log_runtime(shared, RUNTIME_CPYTHON, met.version, UNREAD_LAYOUT, [[0; 2]; 2])
            };
            STATE.store(UNREAD, Ordering::Release);
            false
        }
    }
}
