//! A script's frames at any instruction, as a signal handler finds them.
//!
//! A call of `malloc` comes when the runtime's frames are in order. A sample may come while one is linked or left, when a list may lead to memory that
//! has just been given back. So every word is read by the kernel, a page at a time, and nothing is kept from one sample to the next but the numbers of
//! code. Who follows a list that is being changed may find a frame that is no more, or none: the collector sees whether the frames fit the native stack.

use super::checked::{Keys, Pages};
use super::cpython::Python;
use super::interpreter::Stage;
use super::sampled_python::python_frames;
use super::sampled_ruby::ruby_frames;
use super::{READER, READING, RUBY, STATE, UNTRIED, met, settle};
use core::sync::atomic::{AtomicU32, Ordering};

/// How often frames may lie elsewhere than they should before nobody looks any more: the first may be looked at while they change.
const TRIES: u32 = 200;

static TRIED: AtomicU32 = AtomicU32::new(0);

/// Whether this process has a runtime whose frames are read, or may be.
pub fn is_wanted() -> bool {
    matches!(STATE.load(Ordering::Acquire), UNTRIED | READING)
}

/// The frames of the calling thread's script. False when they cannot be told, as opposed to a thread that runs none.
pub fn frames(pages: &mut Pages<'_>, keys: &mut Keys<'_>) -> bool {
    if STATE.load(Ordering::Acquire) == UNTRIED
        && let Some(is_known) = first_look()
    {
        return is_known;
    }
    if STATE.load(Ordering::Acquire) != READING {
        return false;
    }
    let is_read = match READER.load(Ordering::Relaxed) {
        0 => python_frames::<0>(pages, keys),
        1 => python_frames::<1>(pages, keys),
        2 => python_frames::<2>(pages, keys),
        3 => python_frames::<3>(pages, keys),
        4 => python_frames::<4>(pages, keys),
        5 => python_frames::<5>(pages, keys),
        6 => python_frames::<6>(pages, keys),
        RUBY => ruby_frames::<0>(pages, keys),
        _ => ruby_frames::<1>(pages, keys),
    };
    is_read.is_some()
}

/// Looks at the first stack; what is known of a sample without frames, or none when they are read from now on.
#[cold]
fn first_look() -> Option<bool> {
    let known = met().interpreter;
    // SAFETY: the module was met.
    let stage = unsafe {
        match READER.load(Ordering::Relaxed) {
            0 => Python::<0>::of_this_thread().look_at_first(known),
            1 => Python::<1>::of_this_thread().look_at_first(known),
            2 => Python::<2>::of_this_thread().look_at_first(known),
            3 => Python::<3>::of_this_thread().look_at_first(known),
            4 => Python::<4>::of_this_thread().look_at_first(known),
            5 => Python::<5>::of_this_thread().look_at_first(known),
            6 => Python::<6>::of_this_thread().look_at_first(known),
            RUBY => super::sampled_ruby::look_at_first::<0>(known),
            _ => super::sampled_ruby::look_at_first::<1>(known),
        }
    };
    match stage {
        // The runtime has no frames yet.
        Stage::Untold => Some(true),
        Stage::Elsewhere if TRIED.fetch_add(1, Ordering::Relaxed) < TRIES => Some(false),
        stage => (!settle(stage)).then_some(false),
    }
}
