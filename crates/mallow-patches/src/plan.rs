//! Plans: what the recorder is handed.

use crate::Image;
use mallow_wire::patches::{DISPLACED_BYTES_MAX, IMAGES_MAX, STEPS_MAX};
use mallow_wire::patches::{FIXUPS_MAX, MOVED_BYTES_MAX, PLAN_BYTES_MAX, PLAN_MAGIC, PLAN_VERSION, Patch};

/// A plan for images, each with its place in the question that it answers. None when there is nothing to patch, or too much.
pub fn plan_of<'a>(images: impl Iterator<Item = (u32, &'a Image)>) -> Option<Vec<u8>> {
    let images: Vec<_> = images.filter(|(_, image)| !image.patches.is_empty()).collect();
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&PLAN_MAGIC.to_le_bytes());
    bytes.extend_from_slice(&PLAN_VERSION.to_le_bytes());
    bytes.extend_from_slice(&(images.len() as u32).to_le_bytes());
    for (object, image) in &images {
        bytes.extend_from_slice(&image.elf_header);
        bytes.extend_from_slice(&(image.patches.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(image.unseen.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(image.names.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&object.to_le_bytes());
        image.patches.iter().for_each(|patch| append(patch, &mut bytes));
        for function in &image.names {
            bytes.extend_from_slice(&function.svma.to_le_bytes());
            bytes.extend_from_slice(&function.name);
        }
    }
    let is_plan = !images.is_empty() && images.len() <= IMAGES_MAX && bytes.len() <= PLAN_BYTES_MAX;
    is_plan.then_some(bytes)
}

/// In the order of the fields, which leave no gap.
fn append(patch: &Patch, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&patch.entry_svma.to_le_bytes());
    bytes.extend_from_slice(&patch.call.to_le_bytes());
    let arguments = patch.arguments;
    bytes.extend_from_slice(&[arguments.block, arguments.size, arguments.count, arguments.record]);
    bytes.extend_from_slice(&[patch.displaced_bytes, patch.moved_bytes, patch.fixup_count, patch.step_count]);
    bytes.extend_from_slice(&patch.spare);
    patch.steps.iter().for_each(|step| bytes.extend_from_slice(&[step.displaced, step.moved]));
    bytes.extend_from_slice(&patch.displaced);
    bytes.extend_from_slice(&patch.moved);
    for fixup in &patch.fixups {
        bytes.extend_from_slice(&fixup.target_svma.to_le_bytes());
        bytes.extend_from_slice(&[fixup.at, fixup.end, fixup.kind]);
        bytes.extend_from_slice(&fixup.spare);
    }
    debug_assert_eq!(bytes.len() - start, size_of::<Patch>());
}

const _: () = assert!(
    22 + 2 * STEPS_MAX + DISPLACED_BYTES_MAX + MOVED_BYTES_MAX + 16 * FIXUPS_MAX == size_of::<Patch>()
);
