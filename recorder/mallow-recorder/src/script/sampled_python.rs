//! A thread's frames of CPython, read by the kernel word by word.

use super::checked::{Keys, Pages};
use super::cpython::{Python, address, thread_state_at_signal};
use super::cpython_layout::*;
use super::frames::{FrameState, Frames};
use crate::tls;
use mallow_wire::script::script_key;

/// The keys of all frames, as far as there is room. None when the list leads nowhere.
#[inline(never)]
pub(super) fn python_frames<const V: usize>(pages: &mut Pages<'_>, keys: &mut Keys<'_>) -> Option<()> {
    let layout = &LAYOUTS[V];
    let state = thread_state_at_signal(layout);
    if state == 0 {
        return Some(());
    }
    // As the interpreter ends it frees states under threads that still run.
    if pages.word(state + layout.state_thread_id)? != tls::control_block() {
        return None;
    }
    let mut frame = pages.word(state + layout.state_frame)?;
    if let Some(offset) = layout.through {
        frame = pages.word(address(frame).checked_add(offset)?)?;
    }
    while frame != 0 {
        // What is no address of a frame is not mapped, either.
        frame = address(frame);
        let byte = |pages: &mut Pages<'_>, offset: usize| {
            let at = frame + offset;
            Some(pages.word(at & !7)? >> (at % 8 * 8) & 0xff)
        };
        let (is_entry, owner) = match layout.entry {
            Entry::Every => (true, 0),
            Entry::Flag(offset) => (byte(pages, offset)? & 1 == 1, 0),
            Entry::Shim(offset) | Entry::ShimAndEnd(offset) => (false, byte(pages, offset)?),
        };
        let outward = pages.word(frame + layout.frame_outward)?;
        let key = if owner >= SHIM {
            if layout.entry.is_call(owner, outward) { script_key(0, 0, true) } else { 0 }
        } else {
            let code = pages.word(frame + layout.frame_code)? & CODE_BITS;
            let place = pages.word(frame + layout.frame_place)?;
            let place = if layout.place == Place::Address { place } else { place & 0xffff_ffff };
            let look = FrameState { place, code: code | usize::from(is_entry) << 63 };
            // SAFETY: it asks for what the code is, by checked copies, and does not look at the frame.
            unsafe { Python::<V>::NOBODY.key(frame, look) }
        };
        if key != 0 && !keys.push(key) {
            break;
        }
        frame = outward;
    }
    Some(())
}
