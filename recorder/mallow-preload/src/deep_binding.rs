//! Libraries that are loaded with `RTLD_DEEPBIND`, as PHP loads its extensions: their calls of `malloc` are bound to libc's, past what is preloaded.
//!
//! When such a library is loaded, the slots by which it calls the malloc family are led to our hooks: those that hold the function which is
//! behind the hook, and those that the loader has not bound yet, unless a library that came with it has a `malloc` of its own. That is
//! done when the program looks up its first function in it, before which it can hardly call one; what its constructors allocate
//! has been missed then, and the collector says so.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use mallow_family::hook_of;
use mallow_recorder::elf::{LoadedObject, each_object};
use mallow_recorder::real::Real;
use mallow_recorder::{export_before, process, sys};
use mallow_wire::shared::PAGE_BYTES;

static DLOPEN: Real = Real::named(c"dlopen");
/// A library was loaded like this since its kind was last looked for.
static IS_PENDING: AtomicBool = AtomicBool::new(false);
/// The dynamic section of the object that was the last one before it.
static LAST_BEFORE: AtomicUsize = AtomicUsize::new(0);

export_before!(dlopen => before_dlopen);

unsafe extern "C" fn before_dlopen(_path: *const c_char, flags: c_int) -> usize {
    const RTLD_DEEPBIND: c_int = 8;
    lead_to_hooks();
    if flags & RTLD_DEEPBIND != 0 {
        let mut last = 0;
        each_object(|object| {
            last = object.dynamic();
            false
        });
        LAST_BEFORE.store(last, Ordering::Relaxed);
        IS_PENDING.store(true, Ordering::Release);
    }
    or_nothing(DLOPEN.address())
}

/// A function that finds nothing, where there is no real one: a program of an old glibc that is not linked with libdl.
pub(crate) fn or_nothing(real: usize) -> usize {
    extern "C" fn nothing() -> *mut c_void {
        core::ptr::null_mut()
    }
    if real == 0 { nothing as *const () as usize } else { real }
}

/// Finds the real function. Early, because that takes the loader's lock.
pub(crate) fn find_real() {
    let _ = DLOPEN.address();
}

/// Leads the calls of libraries that were loaded since to our hooks.
#[inline]
pub(crate) fn lead_to_hooks() {
    if IS_PENDING.load(Ordering::Relaxed) {
        lead();
    }
}

#[cold]
#[inline(never)]
fn lead() {
    // A filter of system calls may not allow what makes a slot writable; a `vfork` child is not the one that loaded it.
    if process::is_filtered() || process::is_borrowed() || !IS_PENDING.swap(false, Ordering::Acquire) {
        return;
    }
    let last_before = LAST_BEFORE.load(Ordering::Relaxed);
    let each_new = |visit: &mut dyn FnMut(&LoadedObject)| {
        let mut is_new = false;
        each_object(|object| {
            if is_new {
                visit(object);
            }
            is_new |= object.dynamic() == last_before;
            false
        });
    };
    let mut has_other = false;
    each_new(&mut |object| has_other |= object.defines(b"malloc"));
    each_new(&mut |object| {
        if !object.defines(b"malloc") {
            lead_slots(object, !has_other);
        }
    });
}

fn lead_slots(object: &LoadedObject, leads_unbound: bool) {
    let read_only = object.read_only_after_start();
    object.each_import(|name, slot| {
        let Some((hook, real)) = hook_of(name) else { return };
        // SAFETY: a slot of a loaded object, which threads may be reading.
        let slot = unsafe { AtomicUsize::from_ptr(slot) };
        let bound = slot.load(Ordering::Relaxed);
        // One that is not bound leads back into its object.
        if bound != real.address() && !(leads_unbound && object.contains(bound)) {
            return;
        }
        let address = slot.as_ptr() as usize;
        let page = address & !(PAGE_BYTES - 1);
        let is_read_only = read_only.contains(&address);
        // SAFETY: the page holds the slot; nobody writes to it but the loader, whose lock is held.
        unsafe {
            if is_read_only && sys::make_data_writable(page, PAGE_BYTES, true) < 0 {
                return;
            }
            slot.store(hook, Ordering::Relaxed);
            if is_read_only {
                sys::make_data_writable(page, PAGE_BYTES, false);
            }
        }
    });
}
