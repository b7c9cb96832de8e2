//! What stands between a call and the allocator below it while somebody watches.
//!
//! A call jumps to the function that records it, with its own stack pointer, so that no frame of ours is walked; and the frame of what it jumps to
//! stands until the allocator below has answered: by it the recorder knows a call that the allocator makes itself. Of two who watch, the one from
//! outside comes first.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::naked_asm;
use mallow_recorder::calls::Kind;
use mallow_recorder::shadow::Heap;
use mallow_recorder::watchers::{OWN, watchers};
use mallow_recorder::{Caller, calls, outside};

/// Whether each call below goes by functions that the recorder outside stands in front of itself.
#[cfg(feature = "inside")]
fn is_libc<A: 'static>() -> bool {
    core::any::TypeId::of::<A>() == core::any::TypeId::of::<std::alloc::System>()
}

/// Without std it is not known; then the recorder finds it out, call by call.
#[cfg(not(feature = "inside"))]
#[expect(clippy::extra_unused_type_parameters, reason = "as above")]
fn is_libc<A: 'static>() -> bool {
    false
}

/// Jumps to `work`, with the caller's stack pointer and frame pointer as the last two of six arguments: no frame of ours stands between the program's
/// own frames and the one that is walked from.
macro_rules! with_caller {
    ($work:path) => {
        naked_asm!(
            ".cfi_startproc", "mov r8, rsp", "mov r9, rbp", "jmp {work}", ".cfi_endproc",
            work = sym $work
        )
    };
}

/// The arguments stand as they come to an allocator, so that the way past these functions moves none.
///
/// # Safety
/// As `GlobalAlloc::alloc`.
#[cold]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn alloc<A: GlobalAlloc + 'static>(
    _size: usize,
    _align: usize,
    _below: &A,
    _zeroed: bool,
) -> *mut u8 {
    with_caller!(work_alloc::<A>)
}

/// # Safety
/// As `GlobalAlloc::dealloc`.
#[cold]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dealloc<A: GlobalAlloc + 'static>(
    _block: *mut u8,
    _size: usize,
    _align: usize,
    _below: &A,
) {
    with_caller!(work_dealloc::<A>)
}

unsafe extern "C" fn work_alloc<A: GlobalAlloc + 'static>(
    size: usize,
    align: usize,
    allocator: &A,
    zeroed: bool,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (at, watchers) = (Caller { sp, bp }, watchers());
    let kind = if zeroed { Kind::Zeroed } else { Kind::Alloc };
    // SAFETY: the program's own arguments, of which the first two are a layout's.
    let below = || unsafe {
        let layout = Layout::from_size_align_unchecked(size, align);
        if zeroed { allocator.alloc_zeroed(layout) } else { allocator.alloc(layout) }
    };
    // SAFETY: the registers are those of the call.
    let own = || unsafe { own(watchers, below, |down| allocating(kind, at, size, down)) };
    match outside::calls() {
        // SAFETY: as above.
        Some(calls) if !is_libc::<A>() => unsafe { calls.allocating(size, own) },
        _ => own(),
    }
}

unsafe extern "C" fn work_dealloc<A: GlobalAlloc + 'static>(
    block: *mut u8,
    size: usize,
    align: usize,
    allocator: &A,
    sp: usize,
    bp: usize,
) {
    let (at, watchers) = (Caller { sp, bp }, watchers());
    let below = || {
        // SAFETY: the program's own arguments, of which two are a layout's.
        unsafe { allocator.dealloc(block, Layout::from_size_align_unchecked(size, align)) };
        core::ptr::null_mut()
    };
    // SAFETY: the registers are those of the call.
    let own = || unsafe { own(watchers, below, |down| freeing(at, block, down)) };
    match outside::calls() {
        // SAFETY: as above.
        Some(calls) if !is_libc::<A>() => _ = unsafe { calls.freeing(block, own) },
        _ => _ = own(),
    }
}

/// What a reallocation is given: with the caller's registers it is more than six words.
struct Reallocation<'a, A> {
    block: *mut u8,
    layout: Layout,
    new_size: usize,
    below: &'a A,
}

/// Jumps to the function that the second argument is, with the caller's stack pointer and frame pointer as the third and fourth.
///
/// # Safety
/// The function takes the first argument.
#[unsafe(naked)]
unsafe extern "C" fn through(_call: *const (), _work: usize) -> *mut u8 {
    naked_asm!(".cfi_startproc", "mov rdx, rsp", "mov rcx, rbp", "jmp rsi", ".cfi_endproc")
}

/// # Safety
/// As `GlobalAlloc::realloc`.
#[cold]
#[inline(never)]
pub(crate) unsafe fn realloc<A: GlobalAlloc + 'static>(
    block: *mut u8,
    size: usize,
    align: usize,
    new_size: usize,
    below: &A,
) -> *mut u8 {
    // SAFETY: by contract, a layout's.
    let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
    let call = Reallocation { block, layout, new_size, below };
    // SAFETY: `work_realloc` takes such a call, which lives until it has returned.
    unsafe { through(core::ptr::from_ref(&call).cast(), work_realloc::<A> as *const () as usize) }
}

unsafe extern "C" fn work_realloc<A: GlobalAlloc + 'static>(
    call: &Reallocation<'_, A>,
    _: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (at, size, watchers) = (Caller { sp, bp }, call.new_size, watchers());
    // SAFETY: the program's own arguments.
    let below = || unsafe { call.below.realloc(call.block, call.layout, call.new_size) };
    // SAFETY: the registers are those of the call.
    let own = || unsafe { own(watchers, below, |down| reallocating(at, call.block, size, down)) };
    match outside::calls() {
        // SAFETY: as above.
        Some(calls) if !is_libc::<A>() => unsafe { calls.reallocating(call.block, size, own) },
        _ => own(),
    }
}

/// Goes down by `record` when the recorder that is linked in is at work.
#[inline(always)]
unsafe fn own<D: FnOnce() -> *mut u8>(watchers: u32, down: D, record: impl FnOnce(D) -> *mut u8) -> *mut u8 {
    if watchers & OWN != 0 { record(down) } else { down() }
}

#[inline(always)]
fn allocating(kind: Kind, at: Caller, size: usize, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    // SAFETY: the registers at the entry of a function that has not returned.
    unsafe { calls::allocating(Heap::Operators, kind, at, size, down) }
}

#[inline(always)]
fn freeing(at: Caller, block: *mut u8, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    // SAFETY: as in `allocating`.
    unsafe { calls::freeing(Heap::Operators, at, block, || _ = down()) };
    core::ptr::null_mut()
}

#[inline(always)]
fn reallocating(at: Caller, block: *mut u8, size: usize, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    // SAFETY: as in `allocating`.
    unsafe { calls::reallocating(Heap::Operators, at, block, size, down) }
}
