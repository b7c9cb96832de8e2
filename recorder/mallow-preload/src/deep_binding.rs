//! Libraries that are loaded with `RTLD_DEEPBIND`, as PHP loads its extensions: their calls of `malloc` are bound to libc's, past what is preloaded.
//!
//! When such a library is loaded, the slots by which it calls the malloc family are led to our hooks: those that hold the function which is
//! behind the hook, and those that the loader has not bound yet, unless a library that came with it, or the executable, has a `malloc` of its own. That is
//! done when the program looks up its first function in it, before which it can hardly call one; what its constructors allocate
//! has been missed then, and the collector says so.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_family::hook_of;
use mallow_recorder::elf::{LoadedObject, defined_before, dynamic_of_handle, each_object};
use mallow_recorder::real::Real;
use mallow_recorder::{export_before, process, sys};
use mallow_wire::shared::PAGE_BYTES;

static DLOPEN: Real = Real::named(c"dlopen");
/// The dynamic section of the object that was the last one before the first library that was loaded like this; 0 while there was none.
static LAST_BEFORE: AtomicUsize = AtomicUsize::new(0);
/// Handles whose libraries were looked at since another one was loaded like this, as a program looks many functions up in one.
static LOOKED_AT: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

export_before!(dlopen => before_dlopen);

unsafe extern "C" fn before_dlopen(_path: *const c_char, flags: c_int) -> usize {
    const RTLD_DEEPBIND: c_int = 8;
    if flags & RTLD_DEEPBIND != 0 {
        LOOKED_AT.iter().for_each(|handle| handle.store(0, Ordering::Relaxed));
        let mut last = 0;
        each_object(|object| {
            last = object.dynamic();
            false
        });
        let _ = LAST_BEFORE.compare_exchange(0, last, Ordering::Relaxed, Ordering::Relaxed);
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

/// Leads the calls of the library that a handle stands for to our hooks, and those of libraries that came with it.
#[inline]
pub(crate) fn lead_to_hooks(handle: usize) {
    let last_before = LAST_BEFORE.load(Ordering::Relaxed);
    if last_before != 0 && !LOOKED_AT.iter().any(|known| known.load(Ordering::Relaxed) == handle) {
        lead(handle, last_before);
    }
}

/// Libraries that come with another one; of more of them the others stay as they are.
const TOGETHER_MAX: usize = 32;

/// Libraries that were loaded together, by their dynamic sections. The first one has been returned to the program, so the loader is done with all: it may
/// be busy with others, whose slots nobody else may touch.
struct Together {
    dynamics: [usize; TOGETHER_MAX],
    count: usize,
}

impl Together {
    fn has(&self, object: &LoadedObject) -> bool {
        self.dynamics.iter().take(self.count).any(|dynamic| *dynamic == object.dynamic())
    }

    fn add(&mut self, dynamic: usize) {
        if let Some(place) = self.dynamics.get_mut(self.count) {
            *place = dynamic;
            self.count += 1;
        }
    }
}

#[cold]
#[inline(never)]
fn lead(handle: usize, last_before: usize) {
    // A filter of system calls may not allow what makes a slot writable; a `vfork` child is not the one that loaded it.
    if process::is_filtered() || process::is_borrowed() {
        return;
    }
    let place = LOOKED_AT.iter().find(|known| known.load(Ordering::Relaxed) == 0);
    place.or(LOOKED_AT.first()).into_iter().for_each(|place| place.store(handle, Ordering::Relaxed));
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
    let mut together = Together { dynamics: [0; TOGETHER_MAX], count: 0 };
    let mut opened = 0;
    each_object(|_| {
        opened = dynamic_of_handle(handle);
        true
    });
    each_new(&mut |object| {
        if opened != 0 && object.dynamic() == opened {
            together.add(opened);
        }
    });
    // In the order in which they were loaded: what a library needs comes behind it.
    each_new(&mut |object| {
        // SAFETY: the loader's string, which lives as long as the object.
        let path = unsafe { CStr::from_ptr(object.name()) }.to_bytes();
        let mut is_needed = false;
        each_new(&mut |other| is_needed |= together.has(other) && other.needs(path));
        if is_needed && !together.has(object) {
            together.add(object.dynamic());
        }
    });
    // Where the executable has a malloc of its own, a library that was loaded without the flag is bound to that.
    let mut has_other = defined_before(c"malloc", lead as *const () as usize);
    each_new(&mut |object| has_other |= together.has(object) && object.defines(b"malloc"));
    each_new(&mut |object| {
        if together.has(object) && !object.defines(b"malloc") {
            lead_slots(object, !has_other);
        }
    });
}

fn lead_slots(object: &LoadedObject, leads_unbound: bool) {
    let read_only = object.read_only_after_start();
    object.each_import(|name, slot| {
        let Some((hook, real)) = hook_of(name) else { return };
        if !slot.is_aligned() {
            return;
        }
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
        // SAFETY: the page holds the slot; nobody writes to it but the loader, which is done with this object.
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
