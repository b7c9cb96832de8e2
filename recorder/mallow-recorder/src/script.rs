//! Script frames: the stack of a thread's script, beside its native stack.
//!
//! A runtime that runs scripts keeps its own frames. When its module is first seen on a native stack ([`meet`]), a reader is
//! chosen that knows this version's layout of frames; from then on every event of a thread that runs a script has both stacks
//! ([`with_script`]). The reader calls nothing of the program except functions that read a word, takes no lock, allocates
//! nothing and configures nothing. For an unknown version only native stacks are recorded, and the log says why.
//!
//! - [`code_log`]: numbers for code objects, and what they are;
//! - [`memo`]: the script's stack, reusing what is unchanged of the last one;
//! - [`interpreter`]: which native code is the interpreter;
//! - [`cpython`], [`ruby`]: the readers. A reader for another runtime implements [`frames::Frames`];
//! - [`hotspot`]: frames of Java, which are not a list of their own but part of the native stack: a stack walk asks for them. It
//!   uses the JVM's exported tables ([`vm_tables`]), the contents of its code heaps ([`hotspot_code`]), and a cache of both
//!   ([`remembered`]);
//! - [`sampled`]: reads script frames at any instruction, for a signal handler: it has no memo, and reads only memory that the
//!   kernel has checked ([`checked`]).
//!
//! A call that interrupts another one of ours, such as a signal handler's, has its native stack only.

/// Dispatches to the code for the version whose frames are read, with its offsets as constants: one of CPython's or
/// one of Ruby's.
macro_rules! by_reader {
    ($v:ident => $python:expr, $ruby:expr) => {
        match READER.load(Ordering::Relaxed) {
            0 => by_reader!(@ $v = 0, $python),
            1 => by_reader!(@ $v = 1, $python),
            2 => by_reader!(@ $v = 2, $python),
            3 => by_reader!(@ $v = 3, $python),
            4 => by_reader!(@ $v = 4, $python),
            5 => by_reader!(@ $v = 5, $python),
            6 => by_reader!(@ $v = 6, $python),
            7 => by_reader!(@ $v = 7, $python),
            RUBY => by_reader!(@ $v = 0, $ruby),
            RUBY_NEW => by_reader!(@ $v = 1, $ruby),
            _ => by_reader!(@ $v = 2, $ruby),
        }
    };
    (@ $v:ident = $version:literal, $work:expr) => {{
        const $v: usize = $version;
        $work
    }};
}

pub mod checked;
pub mod code_log;
pub mod cpython;
mod cpython_layout;
pub mod frames;
pub mod hotspot;
pub mod hotspot_code;
pub mod interpreter;
pub mod memo;
pub mod remembered;
pub mod ruby;
mod ruby_code;
mod ruby_context;
mod ruby_layout;
pub mod sampled;
mod sampled_python;
mod sampled_ruby;
mod structures;
mod trusted;
pub mod vm_tables;

use crate::elf;
use crate::objects::{self, Object};
use crate::process;
use code_log::Met;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use cpython::Python;
use frames::Frames;
use interpreter::Stage;
use mallow_wire::script::{READ, RUNTIME_CPYTHON, UNREAD_LAYOUT};
use mallow_wire::shared::MODE_RECORD;
use memo::ScriptMemo;
use ruby::Ruby;

/// No module of a runtime was seen.
const NONE: u32 = 0;
/// One was seen, and its reader is being prepared.
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
/// Where that module was mapped; 0 if there was none.
static STARTED_WITH: AtomicUsize = AtomicUsize::new(0);
/// Unloads in progress that may remove it: its functions are not called then.
static UNLOADS: AtomicU32 = AtomicU32::new(0);

/// The runtime that was seen, for the logs of forked children.
struct MetRuntime(UnsafeCell<Met>);

// SAFETY: written once, by the thread that brought the state to `MEETING`, and read when it has gone on.
unsafe impl Sync for MetRuntime {}

static MET: MetRuntime =
    MetRuntime(UnsafeCell::new(Met { runtime: 0, version: 0, unread: READ, interpreter: [[0; 2]; 2] }));

/// The reader's index: that of its layout among those of Python, followed by those of Ruby.
static READER: AtomicUsize = AtomicUsize::new(0);
const RUBY: usize = cpython_layout::LAYOUTS.len();
const RUBY_NEW: usize = RUBY + 1;
const _: () = assert!(RUBY == 8 && ruby_layout::LAYOUTS.len() == 3, "`by_reader` has an arm for each");

/// Before the program's own code: what is loaded now is never unloaded.
pub fn note_loaded() {
    elf::each_object(|object| {
        if cpython::is_module(object.bias, object.dynamic()) {
            STARTED_WITH.store(object.range().0, Ordering::Relaxed);
        }
        ruby::note_loaded(object);
        false
    });
}

/// Called before a block is freed: it may be an object of the runtime that has a number.
#[inline(always)]
pub fn freed(block: usize) {
    code_log::freed(block);
}

/// Called before something is unloaded. If it is the runtime, its functions must not be called any more. Known limit:
/// a thread that is in one of them at this moment, as another unloads the interpreter that it runs on.
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
        // Another one may be loaded later.
        MAY_GO.store(false, Ordering::Release);
        STATE.store(NONE, Ordering::Release);
        code_log::forget_all();
        UNLOADS.store(0, Ordering::SeqCst);
    } else {
        UNLOADS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Called when a module is first seen on a stack. The first one of a known runtime is the one whose frames are read.
pub fn meet(object: &Object) {
    if process::header().mode != MODE_RECORD {
        return;
    }
    hotspot::meet(object);
    if STATE.load(Ordering::Relaxed) != NONE {
        return;
    }
    let dynamic = objects::dynamic_around(object.start);
    if cpython::is_module(object.bias, dynamic) {
        meet_runtime(object, cpython::meet);
    } else if ruby::is_module(object.bias, dynamic) {
        meet_runtime(object, ruby::meet);
    }
}

/// Out of line: its room on the program's stack is not wanted for other modules.
#[inline(never)]
fn meet_runtime(object: &Object, meet: fn(&Object) -> Option<Met>) {
    let Some(met) = meet(object) else { return };
    if STATE.compare_exchange(NONE, MEETING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: the exchange has made it ours.
    unsafe { *MET.0.get() = met };
    if met.unread != READ {
        // SAFETY: the memory of this process, which is ready when events are recorded.
        unsafe { code_log::log_runtime(process::shared(), &met) };
    } else if met.runtime == RUNTIME_CPYTHON {
        READER.store(cpython::layout(), Ordering::Relaxed);
        cpython::watch_deaths();
        MAY_GO.store(object.start != STARTED_WITH.load(Ordering::Relaxed), Ordering::Release);
    } else {
        READER.store(RUBY + ruby::layout(), Ordering::Relaxed);
    }
    STATE.store(if met.unread == READ { UNTRIED } else { UNREAD }, Ordering::Release);
}

/// Meets the runtime among the objects that are loaded now, as nothing else will: where nothing is recorded no stack is walked. Whether there is one.
pub fn meet_loaded() -> bool {
    note_loaded();
    let mut code = 0;
    elf::each_object(|object| {
        let is_one = cpython::is_module(object.bias, object.dynamic())
            || ruby::is_module(object.bias, object.dynamic());
        if is_one {
            code = object.range().0;
        }
        is_one
    });
    let Some(object) = objects::find(code).filter(|_| code != 0) else { return false };
    let meet = if cpython::is_module(object.bias, objects::dynamic_around(object.start)) {
        cpython::meet
    } else {
        ruby::meet
    };
    meet_runtime(&object, meet);
    STATE.load(Ordering::Acquire) != NONE
}

/// A forked child has a log of its own, in fresh shared memory.
///
/// # Safety
/// `shared` is a mapping of shared memory.
pub unsafe fn inherit(shared: *mut u8) {
    // SAFETY: by contract.
    unsafe { hotspot::inherit(shared) };
    let state = STATE.load(Ordering::Acquire);
    if state > MEETING {
        code_log::forget_all();
    }
    if state > UNTRIED {
        // SAFETY: nobody writes what was met any more; by contract.
        unsafe { code_log::log_runtime(shared, &*MET.0.get()) };
    }
}

/// Returns the node of a native stack paired with that of the script that the calling thread runs, if it runs one.
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
    if UNLOADS.load(Ordering::SeqCst) != 0
        || STATE.load(Ordering::Acquire) != READING && !is_tried(native, memo)
    {
        return native;
    }
    // SAFETY: the state says that the frames are read; by contract the memo is ours alone.
    unsafe { by_reader!(V => python::<V>(native, memo), ruby::<V>(native, memo)) }
}

/// For one version, so that its offsets are part of the code.
#[inline(never)]
unsafe fn python<const V: usize>(native: u32, memo: *mut ScriptMemo) -> u32 {
    // SAFETY: by contract of the caller.
    unsafe { paired(native, memo, &Python::<V>::of_this_thread()) }
}

/// As [`python`].
#[inline(never)]
unsafe fn ruby<const V: usize>(native: u32, memo: *mut ScriptMemo) -> u32 {
    // SAFETY: by contract of the caller.
    unsafe { paired(native, memo, &Ruby::<V>::of_this_thread(&mut (*memo).trusted)) }
}

#[inline(always)]
unsafe fn paired(native: u32, memo: *mut ScriptMemo, frames: &impl Frames) -> u32 {
    // SAFETY: by contract of the callers.
    unsafe {
        let node = (*memo).pair(native, frames, process::nodes());
        #[cfg(feature = "verify")]
        memo::compare(node, frames);
        node
    }
}

/// Returns whether frames are read from now on: when the first stack of the process is what it should be.
#[cold]
fn is_tried(native: u32, memo: *mut ScriptMemo) -> bool {
    if STATE.load(Ordering::Acquire) != UNTRIED || process::is_filtered() {
        return false;
    }
    settle(try_reader(native, memo, met().interpreter))
}

fn met() -> Met {
    // SAFETY: written before the state was, and only by whoever settles it.
    unsafe { *MET.0.get() }
}

/// Returns whether frames are read from now on.
#[cold]
fn settle(stage: Stage) -> bool {
    let (unread, interpreter) = match stage {
        Stage::Unknown => return false,
        Stage::Elsewhere => (UNREAD_LAYOUT, [[0; 2]; 2]),
        Stage::Found(interpreter) => (READ, interpreter),
    };
    let met = met();
    if STATE.compare_exchange(UNTRIED, MEETING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    let met = Met { unread, interpreter, ..met };
    // SAFETY: the exchange has made it ours; the memory of this process.
    unsafe {
        *MET.0.get() = met;
        code_log::log_runtime(process::shared(), &met);
    }
    STATE.store(if unread == READ { READING } else { UNREAD }, Ordering::Release);
    unread == READ
}

#[inline(never)]
fn try_reader(native: u32, memo: *mut ScriptMemo, known: [[u64; 2]; 2]) -> Stage {
    // SAFETY: the module was met; the memo is the calling thread's.
    unsafe {
        let trusted = &mut (*memo).trusted;
        by_reader!(
            V => Python::<V>::of_this_thread().look_at_first(known, &mut (*memo).unframed),
            Ruby::<V>::look_at_first(trusted, native, known)
        )
    }
}
