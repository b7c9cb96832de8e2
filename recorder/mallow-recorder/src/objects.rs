//! Finds the loaded object that contains a code address.
//!
//! glibc 2.35 and later have `_dl_find_object`, which takes no lock. Elsewhere the list of loaded objects is
//! searched, under the loader's lock.

use crate::elf;
use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int};

global_asm!(".weak _dl_find_object");

/// A loaded object around some address.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The first mapped byte.
    pub start: usize,
    /// Behind the last mapped byte.
    pub end: usize,
    /// Load bias: the mapped address minus the address in the file.
    pub bias: usize,
    /// The address of `.eh_frame_hdr`; 0 without one.
    pub eh_frame_header: usize,
    /// The path, empty for the executable. Valid while the object is loaded.
    pub name: *const c_char,
}

/// `struct dl_find_object` on x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    link_map: *const LinkMap,
    eh_frame_header: usize,
    reserved: [u64; 7],
}

/// The public head of `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
    dynamic: usize,
}

/// The object that holds `address`; none for code made at run time. Out of line, as what reads
/// the tables is: the room that both take on the program's stack is not wanted at once.
#[inline(never)]
pub fn find(address: usize) -> Option<Object> {
    match finder() {
        0 => find_by_walk(address),
        finder => find_by_loader(finder, address),
    }
}

/// Returns the loader's look-up function; 0 if it has none.
#[inline(always)]
fn finder() -> usize {
    let finder: usize;
    // SAFETY: reads the global offset table; the entry is 0 when nobody defines the symbol.
    unsafe {
        asm!("mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]", out(reg) finder, options(nostack, preserves_flags, pure, readonly));
    }
    finder
}

fn find_by_loader(finder: usize, address: usize) -> Option<Object> {
    let found = ask(finder, address)?;
    // SAFETY: the loader's own description of an object that is loaded.
    let map = unsafe { &*found.link_map };
    // For an object with a gap between its segments, as lld makes them, the loader returns only the segment. No
    // segment contains both: one is written by the loader, the other is not.
    let is_whole = |place: usize| place == 0 || (found.start..found.end).contains(&place);
    if !is_whole(found.eh_frame_header) || !is_whole(map.dynamic) {
        return find_by_walk(address);
    }
    Some(Object {
        start: found.start,
        end: found.end,
        bias: map.bias,
        eh_frame_header: found.eh_frame_header,
        name: map.name,
    })
}

/// Calls the loader's look-up.
#[inline(always)]
fn ask(finder: usize, address: usize) -> Option<Found> {
    let mut found = Found {
        flags: 0,
        start: 0,
        end: 0,
        link_map: core::ptr::null(),
        eh_frame_header: 0,
        reserved: [0; 7],
    };
    // SAFETY: the symbol has this type in every libc that has it.
    unsafe {
        let finder: extern "C" fn(usize, *mut Found) -> c_int = core::mem::transmute(finder);
        if finder(address, &mut found) != 0 || found.link_map.is_null() {
            return None;
        }
    }
    Some(found)
}

/// Returns the address of the dynamic section of the object that contains `address`; 0 without one. A look-up of its
/// own, and no part of [`Object`], because that needs stack space in the program.
#[inline(never)]
pub fn dynamic_around(address: usize) -> usize {
    let mut dynamic = 0;
    match finder() {
        0 => elf::each_object(|object| {
            let is_it = object.contains(address);
            if is_it {
                dynamic = object.dynamic();
            }
            is_it
        }),
        // SAFETY: the loader's own description of an object that is loaded.
        finder => dynamic = ask(finder, address).map_or(0, |found| unsafe { (*found.link_map).dynamic }),
    }
    dynamic
}

#[cold]
#[inline(never)]
fn find_by_walk(address: usize) -> Option<Object> {
    let mut found = None;
    elf::each_object(|object| {
        if !object.contains(address) {
            return false;
        }
        let (start, end) = object.range();
        found = Some(Object {
            start,
            end,
            bias: object.bias,
            eh_frame_header: object.eh_frame_header(),
            name: object.name(),
        });
        true
    });
    found
}
