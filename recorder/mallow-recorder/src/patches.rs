//! Functions of an allocator that is linked into the program or a library are given a jump to our hooks, by a plan of mallow's.
//!
//! Everything is looked at before anything is written: the plan must be for this object, its functions must be what they were in the file,
//! and no other thread may be there, which might be inside of one. Our library is set up before all others
//! (`mallow-preload/build.rs`), so that this holds in programs whose libraries start threads; and a library that comes later is patched before anybody
//! but the loader knows of it.
//!
//! Code is written through the kernel's file of this process's memory, which leaves its protection as it is. Where that is refused, it is
//! made writable for a moment, and never less than executable: a policy that let us take that away need not let us give it
//! back. If that is refused as well, nothing is changed.

use crate::bounds::first;
use crate::elf::{self, LoadedObject};
use crate::named::{self, Named};
use crate::near;
use crate::plan::{Image, Mapped};
use crate::sys;
use crate::trampolines::{self, MOVED_OFFSET, Patched, SLOT_BYTES};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use mallow_wire::patches::*;
use mallow_wire::shared::PAGE_BYTES;

/// A jump with a distance of 32 bits.
const JUMP: u8 = 0xe9;

static STATE: AtomicU32 = AtomicU32::new(PATCHES_NONE);
static MADE: AtomicU32 = AtomicU32::new(0);
static UNSEEN: AtomicU32 = AtomicU32::new(0);

/// Returns the result of the plan: one of the `PATCHES_` numbers, how many functions were patched, and how many
/// cannot be.
pub fn outcome() -> (u32, u32, u32) {
    (STATE.load(Ordering::Relaxed), MADE.load(Ordering::Relaxed), UNSEEN.load(Ordering::Relaxed))
}

/// The hooks of patched functions.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// The address of the hook for a function of an allocator.
    pub of_call: fn(Call, Arguments) -> usize,
    /// The address of our function of a name that ends with a zero, or 0.
    pub of_name: fn(&[u8; NAME_BYTES]) -> usize,
}

/// Patches the executable according to its plan. Before the program's own code runs.
pub(crate) fn patch_executable(image: &Image, object: Mapped, hooks: Hooks) -> u32 {
    UNSEEN.store(image.unseen_count, Ordering::Relaxed);
    let outcome = match sys::thread_count() {
        Some(1) => make(image, object, hooks),
        Some(_) => PATCHES_THREADS,
        None => PATCHES_REFUSED,
    };
    if outcome == PATCHES_MADE {
        MADE.store(image.patches.len() as u32, Ordering::Relaxed);
    }
    STATE.store(outcome, Ordering::Relaxed);
    outcome
}

/// Patches a library that is being loaded, so that no thread can be inside.
pub(crate) fn patch_library(image: &Image, object: Mapped, hooks: Hooks) -> u32 {
    make(image, object, hooks)
}

/// Returns whether the functions of an image lead to our hooks already.
pub(crate) fn is_patched(image: &Image<'_>, object: Mapped) -> bool {
    let Some(patch) = image.patches.first() else { return false };
    let entry = object.bias.wrapping_add(patch.entry_svma as usize);
    // SAFETY: the image is that of a loaded object, whose code is mapped there: that its other bytes are as planned is looked at before any is
    // written, and these are only read.
    let code = unsafe { (entry as *const [u8; JUMP_BYTES]).read_unaligned() };
    let distance = code.split_first_chunk::<1>().and_then(|(_, rest)| rest.first_chunk::<4>());
    let distance = distance.map_or(0, |bytes| i32::from_le_bytes(*bytes));
    code.first() == Some(&JUMP)
        && trampolines::is_one((entry + JUMP_BYTES).wrapping_add_signed(distance as isize))
}

/// Writes a jump to a hook over a function that does nothing, and over the padding after it.
pub(crate) fn patch_empty(entry: usize, object: Mapped, hook: usize) -> bool {
    const RETURN: u8 = 0xc3;
    static HOOK: AtomicUsize = AtomicUsize::new(0);
    HOOK.store(hook, Ordering::Relaxed);
    // SAFETY: code of a loaded object, by its caller's look at it.
    let code = unsafe { &*(entry as *const [u8; JUMP_BYTES]) };
    let mut patch = Patch {
        entry_svma: entry.wrapping_sub(object.bias) as u64,
        call: Call::Inner as u32,
        arguments: Arguments { block: NO_ARGUMENT, size: NO_ARGUMENT, count: NO_ARGUMENT, record: 0 },
        displaced_bytes: JUMP_BYTES as u8,
        moved_bytes: 1,
        fixup_count: 0,
        step_count: 1,
        spare: [0; 2],
        steps: [Step::default(); STEPS_MAX],
        displaced: [0; DISPLACED_BYTES_MAX],
        moved: [RETURN; MOVED_BYTES_MAX],
        fixups: [Fixup::default(); FIXUPS_MAX],
    };
    patch.displaced.iter_mut().zip(code).for_each(|(place, byte)| *place = *byte);
    let image = Image {
        object: 0,
        elf_header: &[0; ELF_HEADER_BYTES],
        patches: core::slice::from_ref(&patch),
        names: &[],
        unseen_count: 0,
    };
    let hooks = Hooks { of_call: |_, _| HOOK.load(Ordering::Relaxed), of_name: |_| 0 };
    make(&image, object, hooks) == PATCHES_MADE
}

impl Image<'_> {
    /// The address of the hook for a function.
    fn hook(&self, patch: &Patch, hooks: Hooks) -> Option<usize> {
        let call = Call::from_number(patch.call)?;
        let hook = match call {
            Call::Interposed => {
                let names = self.names.iter().filter(|named| named.svma == patch.entry_svma);
                names.map(|named| (hooks.of_name)(&named.name)).find(|hook| *hook != 0)?
            }
            _ => (hooks.of_call)(call, patch.arguments),
        };
        Some(hook)
    }

    /// Makes its names known: those of patched functions lead to where their first instructions are now.
    fn note_names(&self, bias: usize, slots: usize, named: *mut Named) {
        for (index, function) in self.names.iter().enumerate() {
            let patch = self.patches.iter().position(|patch| patch.entry_svma == function.svma);
            let address = match patch {
                Some(patch) => slots + patch * SLOT_BYTES + MOVED_OFFSET,
                None => bias.wrapping_add(function.svma as usize),
            };
            // SAFETY: there is room for as many.
            unsafe { named.add(index).write(Named::new(function, address)) };
        }
        // SAFETY: written above, in a mapping that stays.
        unsafe { named::note(named, self.names.len()) };
    }
}

/// Makes all patches or none.
fn make(image: &Image<'_>, object: Mapped, hooks: Hooks) -> u32 {
    let (patches, bias) = (image.patches, object.bias);
    if !are_as_planned(patches, object) {
        return PATCHES_DIFFER;
    }
    // A function that returns to where no call is kept apart does not return there.
    let is_call = |fixup: &Fixup| fixup.kind == FIXUP_ADDRESS;
    if patches.iter().any(|patch| patch.fixups.iter().any(is_call)) && sys::has_shadow_stack() {
        return PATCHES_REFUSED;
    }
    if let Some(slots) = left_behind(image, object, hooks) {
        return if write_jumps(patches, bias, slots) { PATCHES_MADE } else { PATCHES_REFUSED };
    }
    let bytes = (patches.len() * SLOT_BYTES).next_multiple_of(PAGE_BYTES);
    let named_offset = bytes + patches.len() * size_of::<Patched>();
    let room = sys::map_private(named_offset + image.names.len() * size_of::<Named>());
    if room.is_null() {
        return PATCHES_NO_ROOM;
    }
    // SAFETY: `room` is ours, and behind the slots there is room for the descriptions and behind those for the names.
    let (slots, described, named) = unsafe {
        let slots = core::slice::from_raw_parts_mut(room, bytes);
        (slots, room.add(bytes).cast::<Patched>(), room.add(named_offset).cast::<Named>())
    };
    let fd = sys::memfd_create(c"allocator-patches");
    if fd < 0 || sys::ftruncate(fd as i32, bytes) != 0 {
        return PATCHES_REFUSED;
    }
    let outcome = place(fd as i32, object, bytes, |at| {
        for (index, patch) in patches.iter().enumerate() {
            let slot_avma = at + index * SLOT_BYTES;
            let slot = slots.get_mut(index * SLOT_BYTES..)?.first_chunk_mut::<SLOT_BYTES>()?;
            let patched = described_as(patch, bias, slot_avma)?;
            // SAFETY: within the mapping; nobody has seen it.
            let patched_at = unsafe {
                let place = described.add(index);
                place.write(patched);
                place as usize
            };
            fill(slot, patch, bias, slot_avma, [patched_at, image.hook(patch, hooks)?])?;
        }
        // SAFETY: the file is ours.
        (unsafe { sys::write_at(fd as i32, 0, slots) } == bytes as isize).then_some(())
    });
    sys::close(fd as i32);
    match outcome {
        Ok(at) => {
            // SAFETY: the descriptions stay where they are.
            unsafe { trampolines::note(at, described, patches.len()) };
            if !image.names.is_empty() {
                image.note_names(bias, at, named);
            }
            if write_jumps(patches, bias, at) { PATCHES_MADE } else { PATCHES_REFUSED }
        }
        Err(why) => why,
    }
}

/// Returns the trampolines of an earlier load of the same object to the same place.
fn left_behind(image: &Image<'_>, object: Mapped, hooks: Hooks) -> Option<usize> {
    let entry = object.bias.wrapping_add(image.patches.first()?.entry_svma as usize);
    let (slots, described) = trampolines::of(entry, image.patches.len())?;
    let is_same = |(index, patch): (usize, &Patch)| -> Option<bool> {
        let (at, patched) = (slots + index * SLOT_BYTES, described + index * size_of::<Patched>());
        let mut slot = [0; SLOT_BYTES];
        fill(&mut slot, patch, object.bias, at, [patched, image.hook(patch, hooks)?])?;
        // SAFETY: a slot, which stays mapped; and its description, too.
        let (was, description) = unsafe { (*(at as *const [u8; SLOT_BYTES]), *(patched as *const Patched)) };
        Some(slot == was && described_as(patch, object.bias, at)? == description)
    };
    image.patches.iter().enumerate().all(|it| is_same(it) == Some(true)).then_some(slots)
}

/// Returns whether functions lie in an object's code, and begin as they did in its file.
fn are_as_planned(patches: &[Patch], object: Mapped) -> bool {
    let is_one = |loaded: &LoadedObject, patch: &Patch| {
        let entry = object.bias.wrapping_add(patch.entry_svma as usize);
        let displaced = first(&patch.displaced, usize::from(patch.displaced_bytes));
        // SAFETY: code of a loaded object.
        loaded.has_code(entry, displaced.len())
            && unsafe { core::slice::from_raw_parts(entry as *const u8, displaced.len()) } == displaced
    };
    let mut are = false;
    elf::each_object(|loaded| {
        let is_it = loaded.start_of_file(ELF_HEADER_BYTES) == Some(object.start);
        are |= is_it && patches.iter().all(|patch| is_one(loaded, patch));
        is_it
    });
    are
}

/// Maps the file of trampolines near the object; `write` fills it in for an address, or finds that to be too far.
fn place(
    fd: i32,
    object: Mapped,
    bytes: usize,
    mut write: impl FnMut(usize) -> Option<()>,
) -> Result<usize, u32> {
    /// Another thread may map something there in between.
    const TRIES: usize = 8;
    const IS_TAKEN: isize = -17;
    if let Some(at) = near::take_reserved(object.start, bytes) {
        // SAFETY: kept for us, and given once.
        if !unsafe { sys::map_code_over(fd, at, bytes) } {
            return Err(PATCHES_REFUSED);
        }
        if write(at).is_some() {
            return Ok(at);
        }
    }
    for _ in 0..TRIES {
        let Some(at) = near::nearest(object.start, bytes, object.is_executable) else { break };
        match sys::map_code(fd, at, bytes) {
            Ok(mapped) if write(at).is_none() => {
                // SAFETY: ours, and used by nobody.
                unsafe { sys::unmap(mapped, bytes) };
                break;
            }
            Ok(_) => return Ok(at),
            Err(IS_TAKEN) => {}
            Err(_) => return Err(PATCHES_REFUSED),
        }
    }
    Err(PATCHES_NO_ROOM)
}

fn described_as(patch: &Patch, bias: usize, slot_avma: usize) -> Option<Patched> {
    Some(Patched {
        real: slot_avma + MOVED_OFFSET,
        call: Call::from_number(patch.call)?,
        arguments: patch.arguments,
        entry: bias.wrapping_add(patch.entry_svma as usize),
        step_count: usize::from(patch.step_count),
        steps: patch.steps,
    })
}

/// Writes a trampoline for an address; none when something is too far from there.
fn fill(
    slot: &mut [u8; SLOT_BYTES],
    patch: &Patch,
    bias: usize,
    slot_avma: usize,
    [patched, hook]: [usize; 2],
) -> Option<()> {
    let (head, moved) = slot.split_at_mut_checked(MOVED_OFFSET)?;
    head.get_mut(..2)?.copy_from_slice(&[0x49, 0xbb]);
    head.get_mut(2..10)?.copy_from_slice(&patched.to_le_bytes());
    head.get_mut(10..16)?.copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    head.get_mut(16..24)?.copy_from_slice(&hook.to_le_bytes());
    let code = first(&patch.moved, usize::from(patch.moved_bytes));
    moved.get_mut(..code.len())?.copy_from_slice(code);
    for fixup in first(&patch.fixups, usize::from(patch.fixup_count)) {
        let (at, end) = (usize::from(fixup.at), slot_avma + MOVED_OFFSET + usize::from(fixup.end));
        let target = bias.wrapping_add(fixup.target_svma as usize);
        if fixup.kind == FIXUP_ADDRESS {
            moved.get_mut(at..at + 8)?.copy_from_slice(&target.to_le_bytes());
        } else {
            moved.get_mut(at..at + 4)?.copy_from_slice(&distance(end, target)?);
        }
    }
    // A stray jump behind it traps.
    moved.get_mut(code.len()..)?.fill(0xcc);
    Some(())
}

/// From the end of an instruction to what it leads to.
fn distance(end: usize, target: usize) -> Option<[u8; 4]> {
    i32::try_from(target.wrapping_sub(end) as isize).ok().map(i32::to_le_bytes)
}

/// Writes a jump over the beginning of each function; false when that cannot be done, and then all are as they were.
fn write_jumps(patches: &[Patch], bias: usize, slots: usize) -> bool {
    let fd = sys::open_own_memory();
    let write = |entry: usize, bytes: &[u8]| {
        // SAFETY: no other thread is there, and ours is not inside of a function whose beginning this is; what is written there is
        // the same function by another way.
        unsafe {
            let by_file = fd >= 0 && sys::write_at(fd as i32, entry as u64, bytes) == bytes.len() as isize;
            by_file || write_in_place(entry, bytes)
        }
    };
    let mut done = 0;
    for (index, patch) in patches.iter().enumerate() {
        let entry = bias.wrapping_add(patch.entry_svma as usize);
        let Some([a, b, c, d]) = distance(entry + JUMP_BYTES, slots + index * SLOT_BYTES) else { break };
        if !write(entry, &[JUMP, a, b, c, d]) {
            break;
        }
        done += 1;
    }
    if done < patches.len() {
        for patch in first(patches, done) {
            write(bias.wrapping_add(patch.entry_svma as usize), first(&patch.displaced, JUMP_BYTES));
        }
    }
    if fd >= 0 {
        sys::close(fd as i32);
    }
    done == patches.len()
}

/// Writes to mapped code, if it may be made writable for a moment.
///
/// # Safety
/// `entry..entry + bytes.len()` is code that no thread executes.
unsafe fn write_in_place(entry: usize, bytes: &[u8]) -> bool {
    let start = entry & !(PAGE_BYTES - 1);
    let length = (entry + bytes.len()).next_multiple_of(PAGE_BYTES) - start;
    // SAFETY: whole pages of the executable's code, which can be written in between.
    unsafe {
        if sys::make_code_writable(start, length, true) != 0 {
            return false;
        }
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), entry as *mut u8, bytes.len());
        sys::make_code_writable(start, length, false);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::patch;

    #[test]
    fn a_trampoline_names_its_function_goes_to_its_hook_and_leads_back() {
        let mut slot = [0; SLOT_BYTES];
        fill(&mut slot, &patch(), 0x10_0000, 0x10_1000, [0x1234, 0x5678]).unwrap();
        assert_eq!(slot[..10], [0x49, 0xbb, 0x34, 0x12, 0, 0, 0, 0, 0, 0]);
        assert_eq!(slot[10..24], [0xff, 0x25, 0, 0, 0, 0, 0x78, 0x56, 0, 0, 0, 0, 0, 0]);
        let back = i32::from_le_bytes(slot[30..34].try_into().unwrap());
        assert_eq!(0x10_1000 + 34 + i64::from(back), 0x10_2005);
        assert!(slot[34..].iter().all(|byte| *byte == 0xcc));
        assert_eq!(fill(&mut slot, &patch(), 0x10_0000, 0x2_0000_0000, [0; 2]), None);
    }
}
