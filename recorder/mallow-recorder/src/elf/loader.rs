//! The loader's list of objects.

use super::object::LoadedObject;
use super::symbols::Tables;
use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

type Iterate = unsafe extern "C" fn(
    visit: extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int;

unsafe extern "C" {
    fn dl_iterate_phdr(
        visit: extern "C" fn(*const LoadedObject, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

global_asm!(".weak _r_debug");

/// The public head of `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
    dynamic: *const [u64; 2],
    next: *const LinkMap,
}

/// `dl_iterate_phdr` of a library. An executable with the runtime of a sanitizer in it has one of its own, which cannot be called before the
/// runtime has begun, and we are there earlier.
pub(super) fn iterate() -> Iterate {
    static ITERATE: AtomicUsize = AtomicUsize::new(0);
    let known = match ITERATE.load(Ordering::Relaxed) {
        0 => find_iterate().inspect(|found| ITERATE.store(*found, Ordering::Relaxed)),
        known => Some(known),
    };
    // SAFETY: the symbol has this type in every libc that has it.
    known.map_or(dl_iterate_phdr as Iterate, |address| unsafe {
        core::mem::transmute::<usize, Iterate>(address)
    })
}

/// The dynamic section of the object that a handle of `dlopen` stands for; 0 when it is none of the loader's. To be called from within
/// [`each_object`](super::each_object), where nobody changes the list.
pub fn dynamic_of_handle(handle: usize) -> usize {
    let mut map = first_map();
    // SAFETY: the loader's list. Null ends it.
    while let Some(object) = unsafe { map.as_ref() } {
        if map as usize == handle {
            return object.dynamic as usize;
        }
        map = object.next;
    }
    0
}

/// The first object of the loader's list, which is the executable; null where there is none.
fn first_map() -> *const LinkMap {
    let rendezvous: *const [usize; 2];
    // SAFETY: reads the global offset table; the entry is 0 when nobody defines the symbol.
    unsafe {
        asm!("mov {}, qword ptr [rip + _r_debug@GOTPCREL]", out(reg) rendezvous, options(nostack, preserves_flags, pure, readonly));
    }
    // SAFETY: null, or the loader's `struct r_debug`: a version, and the first object.
    unsafe { rendezvous.as_ref() }.map_or(core::ptr::null(), |words| words[1] as *const LinkMap)
}

#[cold]
#[inline(never)]
fn find_iterate() -> Option<usize> {
    let mut map = first_map();
    loop {
        // SAFETY: the loader's list, whose objects stay while the process begins. Null ends it.
        let object = unsafe {
            map = map.as_ref()?.next;
            map.as_ref()?
        };
        let found = Tables::read(object.bias, object.dynamic)
            .and_then(|tables| tables.find(b"dl_iterate_phdr").map(|symbol| symbol.value as usize));
        if let Some(value) = found {
            return Some(object.bias.wrapping_add(value));
        }
    }
}
