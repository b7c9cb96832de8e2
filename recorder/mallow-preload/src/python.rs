//! Python's own allocator: what it hands out for objects and for other memory of the interpreter, recorded where the session wants that.
//!
//! The interpreter has a table of four functions for each of its domains, which may be exchanged. The functions here pass every call on to those that
//! were there, with their context, so the program's allocator is its own; what that takes from `malloc` meanwhile is part of the call, and its arenas
//! are mappings, so nothing is counted twice. The third domain, of raw memory, is `malloc`.
//!
//! Each of these functions has a frame: it is innermost on the stack of its blocks, and its name says their domain.

use core::ffi::{CStr, c_int};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_recorder::calls::{Kind, allocating, freeing, reallocating};
use mallow_recorder::shadow::Heap;
use mallow_recorder::{Caller, bootstrap, elf, process, session};
use mallow_wire::shared::{FEATURE_PYTHON_OBJECTS, PYTHON_OBJECTS_COUNTED, PYTHON_OBJECTS_ELSEWHERE};

/// `PyMemAllocatorEx`.
#[repr(C)]
struct Table {
    context: usize,
    functions: [usize; 4],
}

/// What was in a domain's table. The functions here have it as their context.
struct Before {
    context: AtomicUsize,
    functions: [AtomicUsize; 4],
}

impl Before {
    const fn nothing() -> Before {
        Before { context: AtomicUsize::new(0), functions: [const { AtomicUsize::new(0) }; 4] }
    }
}

type GetTable = unsafe extern "C" fn(c_int, *mut Table);
type SetTable = unsafe extern "C" fn(c_int, *const Table);
type Malloc = unsafe extern "C" fn(usize, usize) -> *mut u8;
type Calloc = unsafe extern "C" fn(usize, usize, usize) -> *mut u8;
type Free = unsafe extern "C" fn(usize, *mut u8);

const MALLOC: usize = 0;
const CALLOC: usize = 1;
const REALLOC: usize = 2;
const FREE: usize = 3;

/// What 3.8 and later have.
const SINCE: &CStr = c"PyPreConfig_InitPythonConfig";

static MEMORY: Before = Before::nothing();
static OBJECT: Before = Before::nothing();

/// Puts our functions into the tables of an interpreter that was there when the program started. Before its `main`.
pub(crate) fn install() {
    if bootstrap::watches(FEATURE_PYTHON_OBJECTS) != Some(true) {
        return;
    }
    let (get, set) = (definition(c"PyMem_GetAllocator"), definition(c"PyMem_SetAllocator"));
    let (Some(get), Some(set)) = (get, set) else { return };
    // Older ones put their own functions there when they begin.
    if definition(SINCE).is_none() {
        return;
    }
    // The interpreter will put another allocator there.
    if session::variable("PYTHONMALLOC").is_some_and(|name| !name.is_empty()) {
        process::header().python_objects.store(PYTHON_OBJECTS_ELSEWHERE, Ordering::Relaxed);
        return;
    }
    // SAFETY: the symbols have these types since Python 3.5.
    let (get, set) = unsafe { (transmute::<usize, GetTable>(get), transmute::<usize, SetTable>(set)) };
    for (domain, before, functions) in [
        (
            1,
            &MEMORY,
            [
                memory::malloc as *const () as usize,
                memory::calloc as *const () as usize,
                memory::realloc as *const () as usize,
            ],
        ),
        (
            2,
            &OBJECT,
            [
                object::malloc as *const () as usize,
                object::calloc as *const () as usize,
                object::realloc as *const () as usize,
            ],
        ),
    ] {
        let mut table = Table { context: 0, functions: [0; 4] };
        // SAFETY: the table is valid; the interpreter has not begun, and no other thread is there.
        unsafe { get(domain, &raw mut table) };
        if table.functions.contains(&0) {
            return;
        }
        before.context.store(table.context, Ordering::Relaxed);
        before
            .functions
            .iter()
            .zip(table.functions)
            .for_each(|(place, function)| place.store(function, Ordering::Relaxed));
        let [malloc, calloc, realloc] = functions;
        let ours = Table {
            context: core::ptr::from_ref(before) as usize,
            functions: [malloc, calloc, realloc, free as *const () as usize],
        };
        // SAFETY: as above; the functions are of these types and do what those before them do.
        unsafe { set(domain, &raw const ours) };
    }
    process::header().python_objects.store(PYTHON_OBJECTS_COUNTED, Ordering::Relaxed);
}

fn definition(name: &CStr) -> Option<usize> {
    let mut found = None;
    elf::each_object(|object| {
        found = object.definition(name.to_bytes());
        found.is_some()
    });
    found
}

/// A function with a frame of its own, which hands on where that lies, in the registers of the next two arguments.
macro_rules! framed {
    ($name:ident => $work:path, $sp:literal, $bp:literal) => {
        /// # Safety
        /// As a function of the interpreter's table.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "and rsp, -16",
                // Where the call will put its return address.
                concat!("lea ", $sp, ", [rsp - 8]"),
                concat!("mov ", $bp, ", rbp"),
                "call {work}",
                "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                work = sym $work
            )
        }
    };
}

/// The domain of objects.
mod object {
    framed!(malloc => super::work_malloc, "rdx", "rcx");
    framed!(calloc => super::work_calloc, "rcx", "r8");
    framed!(realloc => super::work_realloc, "rcx", "r8");
}

/// The domain of the interpreter's other memory.
mod memory {
    framed!(malloc => super::work_malloc, "rdx", "rcx");
    framed!(calloc => super::work_calloc, "rcx", "r8");
    framed!(realloc => super::work_realloc, "rcx", "r8");
}

framed!(free => work_free, "rdx", "rcx");

impl Before {
    /// The context that was there, and one of the functions.
    #[inline(always)]
    fn of(&self, function: usize) -> (usize, usize) {
        let address = self.functions.get(function).map_or(0, |place| place.load(Ordering::Relaxed));
        (self.context.load(Ordering::Relaxed), address)
    }
}

unsafe extern "C" fn work_malloc(before: &Before, size: usize, sp: usize, bp: usize) -> *mut u8 {
    let (context, malloc) = before.of(MALLOC);
    // SAFETY: what was in the table has this type.
    let call = move || unsafe { transmute::<usize, Malloc>(malloc)(context, size) };
    // SAFETY: the registers are those of a live frame.
    unsafe { allocating(Heap::Malloc, Kind::Alloc, Caller { sp, bp }, size, call) }
}

unsafe extern "C" fn work_calloc(
    before: &Before,
    count: usize,
    size: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (context, calloc) = before.of(CALLOC);
    // SAFETY: as in `work_malloc`.
    let call = move || unsafe { transmute::<usize, Calloc>(calloc)(context, count, size) };
    // SAFETY: as above.
    unsafe { allocating(Heap::Malloc, Kind::Zeroed, Caller { sp, bp }, count.saturating_mul(size), call) }
}

unsafe extern "C" fn work_realloc(
    before: &Before,
    block: *mut u8,
    size: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (context, realloc) = before.of(REALLOC);
    // SAFETY: as in `work_malloc`.
    let call = move || unsafe { transmute::<usize, Calloc>(realloc)(context, block as usize, size) };
    // SAFETY: as above.
    unsafe {
        if block.is_null() {
            allocating(Heap::Malloc, Kind::Alloc, Caller { sp, bp }, size, call)
        } else {
            reallocating(Heap::Malloc, Caller { sp, bp }, block, size, call)
        }
    }
}

unsafe extern "C" fn work_free(before: &Before, block: *mut u8, sp: usize, bp: usize) {
    if block.is_null() {
        return;
    }
    let (context, free) = before.of(FREE);
    // SAFETY: as in `work_malloc`.
    unsafe {
        freeing(Heap::Malloc, Caller { sp, bp }, block, move || {
            transmute::<usize, Free>(free)(context, block)
        })
    };
}
