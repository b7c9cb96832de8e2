//! Reads loaded ELF objects in memory: which object defines a symbol behind ours, and a module's build id.
//!
//! `dlsym(RTLD_NEXT)` would do the former too, but it takes the loader's lock, allocates when it
//! fails and leaves an error for the host's next `dlerror`. A search of the loaded objects does none of that.

mod build_id;
mod loader;
mod object;
mod symbols;

use crate::process;
pub use build_id::{Bytes, build_id};
use core::ffi::{CStr, c_int, c_void};
pub use loader::dynamic_of_handle;
pub use object::LoadedObject;
pub use symbols::{Definition, definition_in};

/// Calls `visit` for each loaded object in load order until it returns true. Takes the loader's lock, which the
/// calling thread may already hold.
pub fn each_object<F: FnMut(&LoadedObject) -> bool>(mut visit: F) {
    // The loader holds its lock meanwhile: a handler that left by a jump would leave it locked.
    let _undisturbed = process::undisturbed();
    extern "C" fn trampoline<F: FnMut(&LoadedObject) -> bool>(
        object: *const LoadedObject,
        _bytes: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid object, and `data` is the closure below, borrowed for the whole
        // walk.
        unsafe { (*data.cast::<F>())(&*object) as c_int }
    }
    // SAFETY: the closure outlives the call.
    unsafe { loader::iterate()(trampoline::<F>, core::ptr::from_mut(&mut visit).cast()) };
}

/// Returns the address of the first definition of `name` in an object that was loaded after the one that contains
/// `own`.
///
/// Objects loaded later, even privately, count: `operator new` may come with a plug-in. `None` if no object defines
/// it.
pub fn next_definition(name: &CStr, own: usize) -> Option<usize> {
    let mut behind_us = false;
    let mut found = None;
    each_object(|object| {
        if !behind_us {
            behind_us = object.contains(own);
            return false;
        }
        found = object.definition(name.to_bytes());
        found.is_some()
    });
    found
}

/// Returns whether an object in front of the one that holds `own`, such as the executable, defines `name`: then calls go there.
pub fn defined_before(name: &CStr, own: usize) -> bool {
    let mut before = false;
    each_object(|object| {
        before = !object.contains(own) && object.defines(name.to_bytes());
        before || object.contains(own)
    });
    before
}

/// Returns whether the object after `own` that contains `address` defines `name` too.
pub fn defined_beside(address: usize, name: &CStr, own: usize) -> bool {
    let mut beside = false;
    each_object(|object| {
        beside =
            object.contains(address) && !object.contains(own) && object.definition(name.to_bytes()).is_some();
        beside
    });
    beside
}

/// Hands on how many objects were ever loaded and unloaded, under the loader's lock: neither changes meanwhile.
pub fn with_counts(mut with: impl FnMut(u64, u64)) {
    each_object(|object| {
        with(object.load_count, object.unload_count);
        true
    });
}
