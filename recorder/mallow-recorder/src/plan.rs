//! Plans of patches as mallow writes them ([`mallow_wire::patches`]): read, and not believed.

use crate::bounds::first;
use crate::session;
use crate::sys;
use core::ffi::CStr;
use mallow_wire::patches::*;

/// An object in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    /// Where its file is mapped.
    pub(crate) start: usize,
    /// Load bias: the mapped address minus the address in the file.
    pub(crate) bias: usize,
    /// It is the program itself.
    pub(crate) is_executable: bool,
}

/// A file that mallow wrote, in memory of ours that goes with it: a program may load libraries for as long as it runs.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Lent by no more than `self`.
    bytes: &'static [u8],
    /// How many bytes are mapped; 0 for bytes that are not ours.
    mapped_bytes: usize,
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.mapped_bytes > 0 {
            // SAFETY: our own mapping, of which nothing is lent any more.
            unsafe { sys::unmap(self.bytes.as_ptr().cast_mut(), self.mapped_bytes) };
        }
    }
}

/// The part of a plan for one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image<'a> {
    pub(crate) object: u32,
    pub(crate) elf_header: &'a [u8; ELF_HEADER_BYTES],
    pub(crate) patches: &'a [Patch],
    pub(crate) names: &'a [NamedFunction],
    pub(crate) unseen_count: u32,
}

impl Plan {
    /// The plan that was made before the start, when the environment names one.
    pub(crate) fn of_session() -> Option<Plan> {
        let value = session::variable(PATCHES_VARIABLE)?;
        // SAFETY: the value of a variable ends with a zero, as a string.
        let path = unsafe { CStr::from_ptr(value.as_ptr().cast()) };
        let fd = sys::open_read(path);
        if fd < 0 {
            return None;
        }
        let plan = Plan::of_file(fd as i32, PLAN_BYTES_MAX);
        sys::close(fd as i32);
        plan
    }

    /// The plan in a file, which has so many bytes at most.
    pub(crate) fn of_file(fd: i32, bytes_max: usize) -> Option<Plan> {
        let room = sys::map_private(bytes_max);
        if room.is_null() {
            return None;
        }
        // SAFETY: our own mapping, of this size.
        let bytes = unsafe { core::slice::from_raw_parts_mut(room, bytes_max) };
        let read = usize::try_from(sys::read_at(fd, 0, bytes)).unwrap_or(0);
        let plan = Plan { bytes: first(bytes, read), mapped_bytes: bytes_max };
        let header = plan.at::<PlanHeader>(0, 1)?.first()?;
        (header.magic == PLAN_MAGIC && header.version == PLAN_VERSION).then_some(plan)
    }

    /// `count` values at an offset; none when they are not all there.
    fn at<T: Copy>(&self, offset: usize, count: usize) -> Option<&[T]> {
        let end = offset.checked_add(count.checked_mul(size_of::<T>())?)?;
        let place = self.bytes.get(offset..end)?;
        // SAFETY: within what was read; records of a plan have lengths that are multiples of 8, from the start of a page on, and any
        // bytes make one.
        Some(unsafe { core::slice::from_raw_parts(place.as_ptr().cast(), count) })
    }

    /// Visits its images, except invalid ones, which mallow cannot have planned, until `visit` returns true.
    pub(crate) fn each_image(&self, mut visit: impl FnMut(&Image<'_>) -> bool) -> Option<()> {
        let mut offset = size_of::<PlanHeader>();
        for _ in 0..self.at::<PlanHeader>(0, 1)?.first()?.image_count {
            let image = self.at::<ImagePlan>(offset, 1)?.first()?;
            offset += size_of::<ImagePlan>();
            let patches = self.at::<Patch>(offset, image.patch_count as usize)?;
            offset += size_of_val(patches);
            let names = self.at::<NamedFunction>(offset, image.name_count as usize)?;
            offset += size_of_val(names);
            let is_whole = patches.len() <= PATCHES_MAX && patches.iter().all(is_possible);
            let (object, unseen_count) = (image.object, image.unseen_count);
            let image = Image { object, elf_header: &image.elf_header, patches, names, unseen_count };
            if is_whole && visit(&image) {
                break;
            }
        }
        Some(())
    }
}

impl Image<'_> {
    /// Returns whether it is that of a loaded object, by its first bytes.
    pub(crate) fn is_of(&self, object: Mapped) -> bool {
        // SAFETY: the first bytes of a loaded object's file are mapped there.
        unsafe { *(object.start as *const [u8; ELF_HEADER_BYTES]) == *self.elf_header }
    }
}

/// Returns whether a patch is one that mallow could have planned.
fn is_possible(patch: &Patch) -> bool {
    let moved = usize::from(patch.moved_bytes);
    let is_within = |fixup: &Fixup| {
        let bytes = if fixup.kind == FIXUP_ADDRESS { 8 } else { 4 };
        usize::from(fixup.at) + bytes <= moved && fixup.end <= patch.moved_bytes && fixup.at < fixup.end
    };
    (JUMP_BYTES..=DISPLACED_BYTES_MAX).contains(&usize::from(patch.displaced_bytes))
        && moved <= MOVED_BYTES_MAX
        && usize::from(patch.fixup_count) <= FIXUPS_MAX
        && usize::from(patch.step_count) <= STEPS_MAX
        && first(&patch.fixups, usize::from(patch.fixup_count)).iter().all(is_within)
        && Call::from_number(patch.call).is_some()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One of a function that begins with five bytes that do nothing.
    pub(crate) fn patch() -> Patch {
        let mut patch = Patch {
            entry_svma: 0x2000,
            call: Call::Free as u32,
            arguments: Arguments { block: 0, size: NO_ARGUMENT, count: NO_ARGUMENT, record: 0 },
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
        patch.fixups[0] = Fixup { target_svma: 0x2005, at: 6, end: 10, kind: FIXUP_DISTANCE, spare: [0; 5] };
        patch
    }

    #[test]
    fn an_invalid_patch_is_not_applied() {
        assert!(is_possible(&patch()));
        for spoil in [
            (|patch: &mut Patch| patch.displaced_bytes = 4) as fn(&mut Patch),
            |patch| patch.displaced_bytes = 40,
            |patch| patch.moved_bytes = 200,
            |patch| patch.fixup_count = FIXUPS_MAX as u8 + 1,
            |patch| patch.fixups[0].kind = FIXUP_ADDRESS,
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

    /// The numbers of the images in a plan of so many words.
    fn objects(words: &'static [u64], bytes: usize) -> Vec<u32> {
        // SAFETY: bytes of words.
        let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), bytes) };
        let mut found = Vec::new();
        let _ = Plan { bytes, mapped_bytes: 0 }.each_image(|image| {
            found.push(image.object);
            false
        });
        found
    }

    #[test]
    fn a_plan_that_ends_early_has_the_images_that_are_whole() {
        // A header that speaks of two images; for each 64 bytes of an ELF header, no patch, none unseen, one name, its number, and the name.
        static WORDS: [u64; 64] = {
            let mut words = [0; 64];
            words[1] = 2 << 32 | PLAN_VERSION as u64;
            let image = (size_of::<ImagePlan>() + size_of::<NamedFunction>()) / 8;
            (words[2 + 9], words[2 + image + 9]) = (5 << 32 | 1, 6 << 32 | 1);
            words
        };
        let whole = size_of::<PlanHeader>() + 2 * (size_of::<ImagePlan>() + size_of::<NamedFunction>());
        assert_eq!(objects(&WORDS, whole), [5, 6]);
        assert_eq!(objects(&WORDS, whole - 1), [5]);
        assert_eq!(objects(&WORDS, 20), []);
        assert_eq!(objects(&WORDS, 3), []);
    }
}
