//! Objects that are there when the program begins, and those that come later: mallow is asked about each, and functions of their allocators are patched
//! before anybody can call them.
//!
//! A loader tells debuggers when objects come and go: it calls a function that does nothing (`r_brk` of `struct r_debug`), behind mapping new ones and
//! before any code of theirs runs. A jump to us is written over it. The loader's lock is held meanwhile, so one thread at a time is here.
//!
//! musl's function has no room for a jump: what is loaded later is not looked at there.

use crate::asking;
use crate::bounds::{at, at_mut, first};
use crate::elf;
use crate::near;
use crate::patches::{self, Hooks};
use crate::plan::{Image, Mapped, Plan};
use crate::process;
use crate::sys;
use crate::trampolines;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use mallow_wire::patches::{
    ELF_HEADER_BYTES, JUMP_BYTES, PATCHES_MADE, PATCHES_NO_ROOM, PATCHES_NONE, PATCHES_THREADS,
};
use mallow_wire::plan_request::ADDRESSES_MAX;
use mallow_wire::shared::PAGE_BYTES;

/// A function that the loader is to call, and which calls [`changed`].
pub type LoadHook = unsafe extern "C" fn();

/// Patches the objects that are loaded, by the session's plan and by mallow's replies, and subscribes to later loads.
/// Before the program's own code runs.
pub fn begin(hooks: Hooks, told: LoadHook) {
    let mut executable = None;
    elf::each_object(|object| {
        executable = mapped(object);
        true
    });
    let Some(executable) = executable else { return };
    near::reserve();
    EXECUTABLE.store(executable.start, Ordering::Relaxed);
    if patch_by_plan(executable, hooks) {
        is_new(executable.start, 0);
    }
    look(hooks, When::Start);
    watch(told);
}

/// Where the executable is mapped, which is the first object.
static EXECUTABLE: AtomicUsize = AtomicUsize::new(0);

fn mapped(object: &elf::LoadedObject) -> Option<Mapped> {
    let start = object.start_of_file(ELF_HEADER_BYTES)?;
    let executable = EXECUTABLE.load(Ordering::Relaxed);
    Some(Mapped { start, bias: object.bias, is_executable: [0, start].contains(&executable) })
}

/// By the plan that was made before the start; whether there was one for this executable.
fn patch_by_plan(executable: Mapped, hooks: Hooks) -> bool {
    let Some(plan) = Plan::of_session() else { return false };
    let mut is_patched = false;
    plan.each_image(|image| {
        is_patched = image.is_of(executable);
        if is_patched {
            patches::patch_executable(image, executable, hooks);
        }
        is_patched
    });
    is_patched
}

/// Called when the loader has mapped or unmapped objects. Under its lock.
pub fn changed(hooks: Hooks) {
    /// `RT_CONSISTENT`: nothing is being added or taken away.
    const IS_CONSISTENT: i32 = 0;
    // SAFETY: null, or the loader's own structure, which stays.
    let state = unsafe { RENDEZVOUS.load(Ordering::Relaxed).as_ref() }.map(Rendezvous::state);
    if process::is_ready() && has_namespaces() {
        process::header().namespaces.store(1, Ordering::Relaxed);
    }
    // A `vfork` child has its parent's memory, and after a filter was set no request may be sent.
    if state != Some(IS_CONSISTENT)
        || process::has_ended()
        || process::is_filtered()
        || process::is_borrowed()
    {
        return;
    }
    look(hooks, When::Load);
}

/// Whether there are objects in other namespaces than the program's (`dlmopen`, `LD_AUDIT`), whose `malloc` is not ours. Loaders before
/// glibc 2.35 do not say it.
pub fn has_namespaces() -> bool {
    const VERSION_WITH_NEXT: i32 = 2;
    let rendezvous = RENDEZVOUS.load(Ordering::Relaxed);
    // SAFETY: the loader's own structure, which stays. By its version it is followed by the address of another namespace's; the loader
    // raises that with its first namespace.
    !rendezvous.is_null()
        && unsafe {
            (&raw const (*rendezvous).version).read_volatile() >= VERSION_WITH_NEXT
                && rendezvous.add(1).cast::<usize>().read_volatile() != 0
        }
}

/// When objects are scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// With all that the program begins with. Where we are not the first to be set up, constructors may have started threads.
    Start,
    /// As they are loaded: only the loader knows of them.
    Load,
}

/// Asks about the objects that were not there before, and patches them.
fn look(hooks: Hooks, when: When) {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    // No handler may run in between: one that loads a library would wait for itself.
    let _undisturbed = process::undisturbed();
    let Some(mut room) = sys::Scratch::map() else { return };
    // All objects have to be scanned: one that was not seen for a round would count as new.
    let round = ROUND.fetch_add(1, Ordering::Relaxed) + 1;
    loop {
        // SAFETY: a page, which has room for so many.
        let fresh = unsafe { &mut *room.bytes().as_mut_ptr().cast::<[Mapped; ADDRESSES_MAX]>() };
        let mut count = 0;
        elf::each_object(|object| {
            let new = mapped(object).filter(|it| count < ADDRESSES_MAX && is_new(it.start, round));
            if let Some(new) = new {
                *at_mut(fresh, count) = new;
                count += 1;
            }
            false
        });
        let fresh = first(&fresh[..], count);
        asking::ask(fresh, |plan, outcomes| patch(plan, fresh, outcomes, (hooks, when)));
        if count < ADDRESSES_MAX {
            return;
        }
    }
}

/// Returns whether the object at this address was not there in the round before. If there is no room to remember one,
/// it counts as old: a thread may be inside its functions, which must not be patched then.
fn is_new(start: usize, round: u64) -> bool {
    const PLACES: usize = 4096;
    const PLACES_BITS: u32 = PLACES.ilog2();
    /// So many in a row are not taken while half of them are free.
    const STEPS: usize = 64;
    const ROUND_BITS: u32 = 24;
    static KNOWN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
    let page = (start / PAGE_BYTES) as u64;
    let round = round & ((1 << ROUND_BITS) - 1);
    let is_recent = |entry: u64| round.wrapping_sub(entry) & ((1 << ROUND_BITS) - 1) <= 1;
    let first = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES_BITS);
    let places = || (0..STEPS).map(|step| at(&KNOWN, (first as usize + step) % PLACES));
    let is_its = |place: &&AtomicU64| place.load(Ordering::Relaxed) >> ROUND_BITS == page;
    let known = places().find(is_its);
    let was_there = known.is_some_and(|place| is_recent(place.load(Ordering::Relaxed)));
    let is_free = |place: &&AtomicU64| {
        let entry = place.load(Ordering::Relaxed);
        entry == 0 || !is_recent(entry)
    };
    let Some(place) = known.or_else(|| places().find(is_free)) else { return false };
    place.store(page << ROUND_BITS | round, Ordering::Relaxed);
    !was_there
}

/// Patches the images of a reply; returns how many there were.
fn patch(plan: &Plan, objects: &[Mapped], outcomes: &mut [u32], how: (Hooks, When)) -> usize {
    let mut count = 0;
    plan.each_image(|image| {
        let object = objects.get(image.object as usize).filter(|object| image.is_of(**object));
        let outcome = object.map_or(PATCHES_NONE, |object| patch_object(image, *object, how));
        if let Some(place) = outcomes.get_mut(count) {
            *place = outcome;
        }
        count += 1;
        false
    });
    count
}

fn patch_object(image: &Image<'_>, object: Mapped, (hooks, when): (Hooks, When)) -> u32 {
    if patches::is_patched(image, object) {
        // It counted as new.
        PATCHES_MADE
    } else if object.is_executable {
        patches::patch_executable(image, object, hooks)
    } else if when == When::Start && sys::thread_count() != Some(1) {
        PATCHES_THREADS
    } else if trampolines::has_room() {
        patches::patch_library(image, object, hooks)
    } else {
        PATCHES_NO_ROOM
    }
}

const _: () = assert!(size_of::<[Mapped; ADDRESSES_MAX]>() <= PAGE_BYTES);

/// `struct r_debug`, by which a loader speaks to debuggers.
#[repr(C)]
struct Rendezvous {
    version: i32,
    objects: usize,
    /// The function to call when objects were loaded or unloaded.
    told: usize,
    /// Whether a change is in progress.
    state: i32,
    loader: usize,
}

impl Rendezvous {
    /// The current state.
    fn state(&self) -> i32 {
        // SAFETY: a field of ours; the loader writes it while it holds its lock, as it does when it calls us.
        unsafe { (&raw const self.state).read_volatile() }
    }
}

static RENDEZVOUS: AtomicPtr<Rendezvous> = AtomicPtr::new(core::ptr::null_mut());

/// Has the loader call a function of ours, if its own does nothing and has the room, and no other thread can be in it.
fn watch(told: LoadHook) {
    let Some(rendezvous) = rendezvous().filter(|_| sys::thread_count() == Some(1)) else { return };
    RENDEZVOUS.store(core::ptr::from_ref(rendezvous).cast_mut(), Ordering::Relaxed);
    let entry = rendezvous.told;
    let mut loader = None;
    elf::each_object(|object| {
        let is_its = object.contains(entry);
        if is_its && object.has_code(entry, JUMP_BYTES + EMPTY_BYTES) {
            loader = mapped(object);
        }
        is_its
    });
    // SAFETY: so many bytes of code are there.
    let is_empty = |entry: usize| is_empty(unsafe { &*(entry as *const [u8; JUMP_BYTES + EMPTY_BYTES]) });
    if let Some(loader) = loader.filter(|_| is_empty(entry)) {
        patches::patch_empty(entry, loader, told as usize);
    }
}

/// The structure that the loader maintains for debuggers (`r_debug`).
fn rendezvous() -> Option<&'static Rendezvous> {
    const DT_DEBUG: u64 = 21;
    let mut dynamic = 0;
    elf::each_object(|object| {
        dynamic = object.dynamic();
        true
    });
    let mut entry = dynamic as *const [u64; 2];
    if entry.is_null() {
        return None;
    }
    loop {
        // SAFETY: the dynamic section is mapped and ends with a zero tag.
        let [tag, value] = unsafe { *entry };
        match tag {
            0 => return None,
            // SAFETY: null, or the loader's own structure.
            DT_DEBUG => return unsafe { (value as *const Rendezvous).as_ref() },
            // SAFETY: as above.
            _ => entry = unsafe { entry.add(1) },
        }
    }
}

/// The longest function that does nothing: `endbr64` and `ret`.
const EMPTY_BYTES: usize = 5;

/// Returns whether code is a function that does nothing, with room for a jump: what follows the `ret` only fills space, as compilers do it.
fn is_empty(code: &[u8; JUMP_BYTES + EMPTY_BYTES]) -> bool {
    match code {
        [0xf3, 0x0f, 0x1e, 0xfa, 0xc3, ..] => true,
        // `nop`, `int3`, and nops of 2 to 11 bytes.
        [0xc3, 0x90, 0x90, 0x90, 0x90, ..] | [0xc3, 0xcc, 0xcc, 0xcc, 0xcc, ..] => true,
        [0xc3, 0x0f, 0x1f, 0x40 | 0x44 | 0x80 | 0x84, ..] => true,
        [0xc3, 0x66, 0x0f, 0x1f, 0x44 | 0x84, ..] | [0xc3, 0x66, 0x2e, 0x0f, 0x1f, ..] => true,
        [0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_new_once_and_again_when_it_was_away() {
        let start = 0x7f00_0000_0000;
        assert!(is_new(start, 7) && !is_new(start, 7));
        assert!(!is_new(start, 8) && !is_new(start, 9));
        assert!(is_new(start, 11), "it was not there in between");
        assert!(is_new(start + PAGE_BYTES, 11) && !is_new(start, 12));
        let executable = 0x5555_5555_4000;
        assert!(is_new(executable, 0) && !is_new(executable, 1), "patched by the plan");
    }

    #[test]
    fn a_function_that_does_something_or_has_no_room_is_not_taken() {
        let code = |bytes: &[u8]| {
            let mut code = [0x55; JUMP_BYTES + EMPTY_BYTES];
            code[..bytes.len()].copy_from_slice(bytes);
            is_empty(&code)
        };
        // glibc 2.36, and with marks for indirect branches.
        assert!(code(&[0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0]));
        assert!(code(&[0xf3, 0x0f, 0x1e, 0xfa, 0xc3]));
        // musl: the next function follows at once.
        assert!(!code(&[0xc3, 0x48, 0x83, 0xec, 0x08]));
        assert!(!code(&[0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3]));
    }

    #[test]
    fn the_loaders_notification_hook_is_found() {
        let rendezvous = rendezvous().unwrap();
        let mut is_code = false;
        elf::each_object(|object| {
            is_code |= object.has_code(rendezvous.told, 1);
            is_code
        });
        assert!(rendezvous.version >= 1 && is_code);
    }
}
