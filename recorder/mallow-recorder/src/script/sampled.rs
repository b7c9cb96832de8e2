//! A script's frames at any instruction, as a signal handler finds them.
//!
//! A call of `malloc` comes when the runtime's frames are in order. A sample may come while one is linked or left, when a list may lead to memory that
//! has just been given back. So every word is read by the kernel, a page at a time, and nothing is kept from one sample to the next but the numbers of
//! code. Who follows a list that is being changed may find a frame that is no more, or none: the collector sees whether the frames fit the native stack.

use super::checked::{Keys, Pages};
use super::cpython::Python;
use super::interpreter::Stage;
use super::memo::Unframed;
use super::sampled_python::python_frames;
use super::sampled_ruby::ruby_frames;
use super::{READER, READING, RUBY, RUBY_NEW, STATE, UNTRIED, met, settle};
use core::sync::atomic::{AtomicU32, Ordering};

/// How often frames may be invalid before reading is given up: the first may be read while they change.
const TRIES: u32 = 200;

static TRIED: AtomicU32 = AtomicU32::new(0);

/// Returns whether this process has a runtime whose frames are read, or may be.
pub fn is_wanted() -> bool {
    matches!(STATE.load(Ordering::Acquire), UNTRIED | READING)
}

/// Reads the frames of the calling thread's script. Returns false if they cannot be read, as opposed to a thread that
/// runs none.
pub fn frames(pages: &mut Pages<'_>, keys: &mut Keys<'_>) -> bool {
    if STATE.load(Ordering::Acquire) == UNTRIED
        && let Some(is_known) = first_look()
    {
        return is_known;
    }
    if STATE.load(Ordering::Acquire) != READING {
        return false;
    }
    let is_read = by_reader!(V => python_frames::<V>(pages, keys), ruby_frames::<V>(pages, keys));
    is_read.is_some()
}

/// Looks at the first stack; what is known of a sample without frames, or none when they are read from now on.
#[cold]
fn first_look() -> Option<bool> {
    let known = met().interpreter;
    // SAFETY: the module was met.
    let stage = unsafe {
        by_reader!(
            V => Python::<V>::of_this_thread().look_at_first(known, &mut Unframed::default()),
            super::sampled_ruby::look_at_first::<V>(known)
        )
    };
    match stage {
        // The runtime has no frames yet.
        Stage::Unknown => Some(true),
        Stage::Elsewhere if TRIED.fetch_add(1, Ordering::Relaxed) < TRIES => Some(false),
        stage => (!settle(stage)).then_some(false),
    }
}
