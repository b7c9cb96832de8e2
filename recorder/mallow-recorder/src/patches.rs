//! Functions of an allocator that is linked into the program are given a jump to our hooks, by a plan that mallow made before the start.
//!
//! Everything is looked at before anything is written: the plan must be for this executable, its functions must be what they were in the file,
//! and no other thread may be there, which might be inside of one. Our library is set up before all others
//! (`mallow-preload/build.rs`), so that this holds in programs whose libraries start threads.
//!
//! Code is written through the kernel's file of this process's memory, which leaves its protection as it is. Where that is refused, it is
//! made writable for a moment, and never less than executable: a policy that let us take that away need not let us give it
//! back. If that is refused as well, nothing is changed.

use crate::bounds::first;
use crate::elf;
use crate::named::{self, Named};
use crate::session;
use crate::sys;
use crate::trampolines::{self, MOVED_OFFSET, Patched, SLOT_BYTES};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};
use mallow_wire::patches::*;
use mallow_wire::shared::PAGE_BYTES;

static STATE: AtomicU32 = AtomicU32::new(PATCHES_NONE);
static MADE: AtomicU32 = AtomicU32::new(0);
static UNSEEN: AtomicU32 = AtomicU32::new(0);

/// What came of the plan: one of the `PATCHES_` numbers, how many functions were patched, and how many cannot be.
pub fn outcome() -> (u32, u32, u32) {
    (STATE.load(Ordering::Relaxed), MADE.load(Ordering::Relaxed), UNSEEN.load(Ordering::Relaxed))
}

/// Who stands in front of functions.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// The address of the hook for a function of an allocator.
    pub of_call: fn(Call, Arguments) -> usize,
    /// The address of our function of a name that ends with a zero, or 0.
    pub of_name: fn(&[u8; NAME_BYTES]) -> usize,
}

/// Patches the executable, if the session has a plan for it. Before the program's own code runs.
pub fn install(hooks: Hooks) {
    let Some(plan) = Plan::read() else { return };
    let Some((image, bias, start)) = plan.image() else { return };
    UNSEEN.store(image.unseen_count, Ordering::Relaxed);
    let outcome = match sys::thread_count() {
        Some(1) => make(&image, bias, start, hooks),
        Some(_) => PATCHES_THREADS,
        None => PATCHES_REFUSED,
    };
    if outcome == PATCHES_MADE {
        MADE.store(image.patches.len() as u32, Ordering::Relaxed);
    }
    STATE.store(outcome, Ordering::Relaxed);
}

/// The file that mallow wrote, in memory of ours for as long as this lives.
struct Plan {
    bytes: &'static [u8],
}

/// What the plan says of this executable.
struct Image {
    patches: &'static [Patch],
    names: &'static [NamedFunction],
    unseen_count: u32,
}

impl Plan {
    fn read() -> Option<Plan> {
        let value = session::variable(PATCHES_VARIABLE)?;
        // SAFETY: the value of a variable ends with a zero, as a string.
        let path = unsafe { CStr::from_ptr(value.as_ptr().cast()) };
        let fd = sys::open_read(path);
        if fd < 0 {
            return None;
        }
        let room = sys::map_private(PLAN_BYTES_MAX);
        let read = if room.is_null() {
            0
        } else {
            // SAFETY: our own mapping, of this size.
            sys::read_at(fd as i32, 0, unsafe { core::slice::from_raw_parts_mut(room, PLAN_BYTES_MAX) })
        };
        sys::close(fd as i32);
        if read < size_of::<PlanHeader>() as isize {
            return None;
        }
        // SAFETY: so many bytes were read. The mapping stays: it is small.
        let plan = Plan { bytes: unsafe { core::slice::from_raw_parts(room, read as usize) } };
        let header = plan.at::<PlanHeader>(0, 1)?.first()?;
        (header.magic == PLAN_MAGIC && header.version == PLAN_VERSION).then_some(plan)
    }

    /// `count` values at an offset; none when they are not all there.
    fn at<T: Copy>(&self, offset: usize, count: usize) -> Option<&'static [T]> {
        let end = offset.checked_add(count.checked_mul(size_of::<T>())?)?;
        let place = self.bytes.get(offset..end)?;
        // SAFETY: within what was read; records of a plan have lengths that are multiples of 8, from the start of a page on, and any
        // bytes make one.
        Some(unsafe { core::slice::from_raw_parts(place.as_ptr().cast(), count) })
    }

    /// What it says of the executable of this process, what is added to its addresses, and where it begins.
    fn image(&self) -> Option<(Image, usize, usize)> {
        let mut executable = None;
        elf::each_object(|object| {
            executable = object.start_of_file(ELF_HEADER_BYTES).map(|start| (start, object.bias));
            true
        });
        let (start, bias) = executable?;
        // SAFETY: the first bytes of its file are mapped there.
        let elf_header = unsafe { &*(start as *const [u8; ELF_HEADER_BYTES]) };
        let mut offset = size_of::<PlanHeader>();
        for _ in 0..self.at::<PlanHeader>(0, 1)?.first()?.image_count {
            let image = self.at::<ImagePlan>(offset, 1)?.first()?;
            let (count, name_count) = (image.patch_count as usize, image.name_count as usize);
            offset += size_of::<ImagePlan>();
            let patches = self.at::<Patch>(offset, count)?;
            offset += size_of_val(patches);
            let names = self.at::<NamedFunction>(offset, name_count)?;
            offset += size_of_val(names);
            if image.elf_header == *elf_header {
                let is_whole = count <= PATCHES_MAX && patches.iter().all(is_possible);
                let image = Image { patches, names, unseen_count: image.unseen_count };
                return is_whole.then_some((image, bias, start));
            }
        }
        None
    }
}

/// Whether a patch is one that mallow could have planned.
fn is_possible(patch: &Patch) -> bool {
    let moved = usize::from(patch.moved_bytes);
    let is_within = |fixup: &Fixup| {
        usize::from(fixup.at) + 4 <= moved && fixup.end <= patch.moved_bytes && fixup.at < fixup.end
    };
    (JUMP_BYTES..=DISPLACED_BYTES_MAX).contains(&usize::from(patch.displaced_bytes))
        && moved <= MOVED_BYTES_MAX
        && usize::from(patch.fixup_count) <= FIXUPS_MAX
        && usize::from(patch.step_count) <= STEPS_MAX
        && first(&patch.fixups, usize::from(patch.fixup_count)).iter().all(is_within)
        && Call::from_number(patch.call).is_some()
}

impl Image {
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
fn make(image: &Image, bias: usize, image_start: usize, hooks: Hooks) -> u32 {
    let patches = image.patches;
    if !patches.iter().all(|patch| is_as_planned(patch, bias)) {
        return PATCHES_DIFFER;
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
    let outcome = place(fd as i32, image_start, bytes, |at| {
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
            image.note_names(bias, at, named);
            if write_jumps(patches, bias, at) { PATCHES_MADE } else { PATCHES_REFUSED }
        }
        Err(why) => why,
    }
}

/// Whether a function lies in the executable's code, and begins as it did in the file.
fn is_as_planned(patch: &Patch, bias: usize) -> bool {
    let entry = bias.wrapping_add(patch.entry_svma as usize);
    let displaced = first(&patch.displaced, usize::from(patch.displaced_bytes));
    let mut is_code = false;
    elf::each_object(|object| {
        is_code = object.has_code(entry, displaced.len());
        true
    });
    // SAFETY: code of a loaded object.
    is_code && unsafe { core::slice::from_raw_parts(entry as *const u8, displaced.len()) } == displaced
}

/// Maps the file of trampolines below the executable, as near as there is room; `write` fills it in for an address, or finds
/// that to be too far.
fn place(
    fd: i32,
    image_start: usize,
    bytes: usize,
    mut write: impl FnMut(usize) -> Option<()>,
) -> Result<usize, u32> {
    const STEP_BYTES: usize = 64 << 10;
    const TRIES: usize = 512;
    /// The lowest address that the kernel gives to anybody, on most systems.
    const LOWEST: usize = 64 << 10;
    let mut is_allowed = false;
    for distance in (1..TRIES).map(|times| times * STEP_BYTES) {
        let Some(at) = image_start.checked_sub(distance + bytes).map(|at| at & !(PAGE_BYTES - 1)) else {
            break;
        };
        if at < LOWEST {
            break;
        }
        let mapped = sys::map_code(fd, at, bytes);
        if mapped.is_null() {
            continue;
        }
        is_allowed = true;
        if write(at).is_some() {
            return Ok(at);
        }
        // SAFETY: ours, and used by nobody.
        unsafe { sys::unmap(mapped, bytes) };
        break;
    }
    Err(if is_allowed { PATCHES_REFUSED } else { PATCHES_NO_ROOM })
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
        let end = slot_avma + MOVED_OFFSET + usize::from(fixup.end);
        let distance = distance(end, bias.wrapping_add(fixup.target_svma as usize))?;
        let at = usize::from(fixup.at);
        moved.get_mut(at..at + 4)?.copy_from_slice(&distance);
    }
    // Whoever gets lost behind it traps.
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
        if !write(entry, &[0xe9, a, b, c, d]) {
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

/// Writes code where it is mapped, if it may be made writable for a moment.
///
/// # Safety
/// `entry..entry + bytes.len()` is code that nobody runs.
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

    fn patch() -> Patch {
        let mut patch = Patch {
            entry_svma: 0x2000,
            call: Call::Free as u32,
            arguments: Arguments { block: 0, size: NO_ARGUMENT, count: NO_ARGUMENT, spare: 0 },
            displaced_bytes: 5,
            moved_bytes: 10,
            fixup_count: 1,
            step_count: 2,
            spare: [0; 2],
            steps: [Step::default(); STEPS_MAX],
            displaced: [0x90; DISPLACED_BYTES_MAX],
            moved: [0x90; MOVED_BYTES_MAX],
            fixups: [Fixup::default(); FIXUPS_MAX],
        };
        patch.fixups[0] = Fixup { target_svma: 0x2005, at: 6, end: 10, spare: [0; 6] };
        patch
    }

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

    #[test]
    fn a_plan_that_is_none_is_not_carried_out() {
        assert!(is_possible(&patch()));
        for spoil in [
            (|patch: &mut Patch| patch.displaced_bytes = 4) as fn(&mut Patch),
            |patch| patch.displaced_bytes = 40,
            |patch| patch.moved_bytes = 200,
            |patch| patch.fixup_count = 7,
            |patch| patch.step_count = 9,
            |patch| patch.fixups[0].at = 8,
            |patch| patch.fixups[0].end = 40,
            |patch| patch.call = 99,
        ] {
            let mut bad = patch();
            spoil(&mut bad);
            assert!(!is_possible(&bad));
        }
    }
}
