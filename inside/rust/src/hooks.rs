//! What stands between a call and the allocator below it while somebody watches.
//!
//! A call goes through a function of three instructions that hands the stack pointer on, and the frame of what it jumps to stands until the allocator
//! below has answered: by it the recorder knows a call that the allocator makes itself. Two may watch at once: `mallow record`
//! from outside, and a recording inside. The one from outside comes first.

use crate::outside;
use core::alloc::{GlobalAlloc, Layout};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(feature = "inside")]
use mallow_recorder::{calls, stat::Heap};

/// A recording from inside is under way.
#[cfg(feature = "inside")]
pub(crate) const INSIDE: u32 = 1;
/// The program runs under mallow.
const OUTSIDE: u32 = 2;
/// It is not known yet whether it does.
const UNKNOWN: u32 = 4;

/// Who watches.
pub(crate) static WATCHED: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether anybody does.
#[inline(always)]
pub(crate) fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed) != 0
}

/// Who does, when that was found out.
#[inline(always)]
fn watchers() -> u32 {
    let watched = WATCHED.load(Ordering::Relaxed);
    if watched & UNKNOWN == 0 { watched } else { find_out() }
}

#[cold]
fn find_out() -> u32 {
    if outside::calls().is_some() {
        WATCHED.fetch_or(OUTSIDE, Ordering::Relaxed);
    }
    WATCHED.fetch_and(!UNKNOWN, Ordering::Relaxed) & !UNKNOWN
}

/// Whether the program runs under mallow.
#[cfg(feature = "inside")]
pub(crate) fn is_outside() -> bool {
    watchers() & OUTSIDE != 0
}

/// Whether any call has come by while somebody watched, or while it was not known whether anybody does.
#[cfg(feature = "inside")]
pub(crate) fn has_seen_a_call() -> bool {
    WATCHED.load(Ordering::Relaxed) & UNKNOWN == 0
}

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

/// The frame pointer and the stack pointer at a call.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "inside"), expect(dead_code, reason = "the recorder outside takes its own"))]
pub(crate) struct Registers {
    pub(crate) sp: usize,
    pub(crate) bp: usize,
}

/// A call on its way down.
struct Call<'a, A> {
    below: &'a A,
    block: *mut u8,
    layout: Layout,
    new_size: usize,
    zeroed: bool,
}

type Work<'a, A> = unsafe extern "C" fn(&Call<'a, A>, usize, usize, usize) -> *mut u8;

/// Jumps to the function that the second argument is, with the caller's stack pointer and frame pointer as the third and fourth.
///
/// # Safety
/// The function takes the first argument.
#[unsafe(naked)]
unsafe extern "C" fn through(_call: *const (), _work: usize) -> *mut u8 {
    naked_asm!(".cfi_startproc", "mov rdx, rsp", "mov rcx, rbp", "jmp rsi", ".cfi_endproc")
}

#[inline(always)]
unsafe fn go<'a, A>(call: &Call<'a, A>, work: Work<'a, A>) -> *mut u8 {
    // SAFETY: `work` takes such a call, which lives until it has returned.
    unsafe { through(core::ptr::from_ref(call).cast(), work as usize) }
}

/// # Safety
/// As `GlobalAlloc::alloc`.
#[cold]
#[inline(never)]
pub(crate) unsafe fn alloc<A: GlobalAlloc + 'static>(below: &A, layout: Layout, zeroed: bool) -> *mut u8 {
    let call = Call { below, block: core::ptr::null_mut(), layout, new_size: 0, zeroed };
    // SAFETY: by contract.
    unsafe { go(&call, work_alloc::<A>) }
}

/// # Safety
/// As `GlobalAlloc::dealloc`.
#[cold]
#[inline(never)]
pub(crate) unsafe fn dealloc<A: GlobalAlloc + 'static>(below: &A, block: *mut u8, layout: Layout) {
    let call = Call { below, block, layout, new_size: 0, zeroed: false };
    // SAFETY: by contract.
    unsafe { go(&call, work_dealloc::<A>) };
}

/// # Safety
/// As `GlobalAlloc::realloc`.
#[cold]
#[inline(never)]
pub(crate) unsafe fn realloc<A: GlobalAlloc + 'static>(
    below: &A,
    block: *mut u8,
    layout: Layout,
    new_size: usize,
) -> *mut u8 {
    let call = Call { below, block, layout, new_size, zeroed: false };
    // SAFETY: by contract.
    unsafe { go(&call, work_realloc::<A>) }
}

unsafe extern "C" fn work_alloc<A: GlobalAlloc + 'static>(
    call: &Call<'_, A>,
    _: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (at, size, watchers) = (Registers { sp, bp }, call.layout.size(), watchers());
    // SAFETY: the program's own arguments.
    let below = || unsafe {
        match call.zeroed {
            true => call.below.alloc_zeroed(call.layout),
            false => call.below.alloc(call.layout),
        }
    };
    // SAFETY: the registers are those of the call.
    let inside = || unsafe { inside(watchers, below, |call| allocating(at, size, call)) };
    match outside::calls() {
        // SAFETY: as above.
        Some(calls) if !is_libc::<A>() => unsafe { calls.allocating(size, inside) },
        _ => inside(),
    }
}

unsafe extern "C" fn work_dealloc<A: GlobalAlloc + 'static>(
    call: &Call<'_, A>,
    _: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (at, watchers) = (Registers { sp, bp }, watchers());
    let below = || {
        // SAFETY: the program's own arguments.
        unsafe { call.below.dealloc(call.block, call.layout) };
        core::ptr::null_mut()
    };
    // SAFETY: the registers are those of the call.
    let inside = || unsafe { inside(watchers, below, |down| freeing(at, call.block, down)) };
    match outside::calls() {
        // SAFETY: as above.
        Some(calls) if !is_libc::<A>() => unsafe { calls.freeing(call.block, inside) },
        _ => inside(),
    }
}

unsafe extern "C" fn work_realloc<A: GlobalAlloc + 'static>(
    call: &Call<'_, A>,
    _: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let (at, size, watchers) = (Registers { sp, bp }, call.new_size, watchers());
    // SAFETY: the program's own arguments.
    let below = || unsafe { call.below.realloc(call.block, call.layout, call.new_size) };
    // SAFETY: the registers are those of the call.
    let inside = || unsafe { inside(watchers, below, |down| reallocating(at, call.block, size, down)) };
    match outside::calls() {
        // SAFETY: as above.
        Some(calls) if !is_libc::<A>() => unsafe { calls.reallocating(call.block, size, inside) },
        _ => inside(),
    }
}

/// Goes down by `record` when there is a recording inside.
#[cfg(feature = "inside")]
#[inline(always)]
unsafe fn inside<D: FnOnce() -> *mut u8>(
    watchers: u32,
    down: D,
    record: impl FnOnce(D) -> *mut u8,
) -> *mut u8 {
    if watchers & INSIDE != 0 { record(down) } else { down() }
}

#[cfg(not(feature = "inside"))]
#[inline(always)]
unsafe fn inside<D: FnOnce() -> *mut u8>(_: u32, down: D, _: impl FnOnce(D) -> *mut u8) -> *mut u8 {
    down()
}

#[cfg(feature = "inside")]
impl From<Registers> for mallow_recorder::Caller {
    fn from(at: Registers) -> mallow_recorder::Caller {
        mallow_recorder::Caller { sp: at.sp, bp: at.bp }
    }
}

#[cfg(feature = "inside")]
#[inline(always)]
fn allocating(at: Registers, size: usize, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    // SAFETY: the registers at the entry of a function that has not returned.
    unsafe { calls::allocating(Heap::Operators, at.into(), size, down) }
}

#[cfg(feature = "inside")]
#[inline(always)]
fn freeing(at: Registers, block: *mut u8, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    // SAFETY: as in `allocating`.
    unsafe { calls::freeing(Heap::Operators, at.into(), block, || _ = down()) };
    core::ptr::null_mut()
}

#[cfg(feature = "inside")]
#[inline(always)]
fn reallocating(at: Registers, block: *mut u8, size: usize, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    // SAFETY: as in `allocating`.
    unsafe { calls::reallocating(Heap::Operators, at.into(), block, size, down) }
}

#[cfg(not(feature = "inside"))]
fn allocating(_: Registers, _: usize, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    down()
}

#[cfg(not(feature = "inside"))]
fn freeing(_: Registers, _: *mut u8, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    down()
}

#[cfg(not(feature = "inside"))]
fn reallocating(_: Registers, _: *mut u8, _: usize, down: impl FnOnce() -> *mut u8) -> *mut u8 {
    down()
}
