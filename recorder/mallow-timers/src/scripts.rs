//! The frames of the script that a thread runs, left in a slot of their own.

use crate::memory::Memory;
use crate::regions;
use core::slice::from_raw_parts_mut;
use mallow_recorder::script::checked::{Keys, PAGE_WORDS, Pages};
use mallow_recorder::script::sampled;
use mallow_wire::timers::{IS_CUT, IS_LATE, Note, SCRIPT};

/// Leaves what the calling thread's script does, as the note's moment has it. False when nothing is left: the process runs no script, or there is
/// no room.
pub(crate) fn leave(memory: Memory, tid: u32, note: Note) -> bool {
    let Some(region) = regions::number().filter(|_| sampled::is_wanted()) else { return false };
    let Some(slot) = memory.claim(tid) else {
        memory.count(|header| &header.lost_scripts);
        return false;
    };
    let (into, room) = slot.room();
    let words = room / 8;
    let mut flags = note.flags;
    let mut count = 0;
    if let Some(keys) = words.checked_sub(PAGE_WORDS)
        && flags & IS_LATE == 0
    {
        // SAFETY: the slot is ours until it is published, is aligned to 8 bytes, and has this room: keys, and a page behind them.
        let (keys, page) = unsafe {
            let first = into.cast::<u64>();
            (from_raw_parts_mut(first, keys), &mut *first.add(keys).cast::<[usize; PAGE_WORDS]>())
        };
        let mut keys = Keys::new(keys);
        if sampled::frames(&mut Pages::new(page), &mut keys) {
            count = keys.count();
            flags |= if keys.is_cut() { IS_CUT } else { 0 };
        } else {
            // As good as a signal that came late: nobody knows what the script did.
            flags |= IS_LATE;
        }
    }
    slot.publish(Note { kind: SCRIPT, region, flags, bytes: (count * 8) as u32, ..note });
    true
}
