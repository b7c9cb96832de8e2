//! A thread's frames of CRuby, read by the kernel word by word.
//!
//! Whether code has died cannot be seen here, as nobody stands in front of `free`. So what makes a piece of code the one that it is, its names, its first
//! line and its instructions' place, is looked at in each sample; where any of it has changed, it is another piece.

use super::checked::{Keys, Pages};
use super::code_log;
use super::interpreter::{self, Stage};
use super::ruby::{Ruby, entries};
use super::ruby_context::context_at_signal;
use super::ruby_layout::*;
use super::structures::words_at;
use crate::bounds::at;
use crate::{cfi, objects};
use core::sync::atomic::{AtomicU64, Ordering};
use mallow_wire::script::script_key;

/// Words of what code has beside it, up to its first line.
const KNOWN_WORDS: usize = FIRST_LINE / 8 + 1;
const MARKS: usize = 1 << 16;

/// For each number of code, a sum of what it was when it got it.
static KNOWN: [AtomicU64; MARKS] = [const { AtomicU64::new(0) }; MARKS];

/// The innermost frame and the end of all frames of this thread's scripts; none without a context.
fn frames_of<const V: usize>() -> Option<(usize, usize)> {
    let context = context_at_signal::<V>();
    if context == 0 {
        return None;
    }
    let words: [usize; INNERMOST / 8 + 1] = words_at(context)?;
    within(words[0], words[1], words[INNERMOST / 8], LAYOUTS[V].frame_bytes)
}

/// Returns whether frames are what they should be.
pub(super) fn look_at_first<const V: usize>(known: [[u64; 2]; 2]) -> Stage {
    let Some((innermost, end)) = frames_of::<V>() else { return Stage::Unknown };
    match entries::<V>(innermost, end) {
        Some((0, _)) => Stage::Unknown,
        Some(_) if known[0][1] != 0 => Stage::Found(known),
        // The function that executes instructions represents the one that calls it, which has no symbol.
        Some((_, handler)) => {
            let around = |object: objects::Object| {
                let (start, end) = cfi::function_around(&object, handler)?;
                Some(interpreter::parts(&object, start, end - start))
            };
            objects::find(handler).and_then(around).map_or(Stage::Elsewhere, Stage::Found)
        }
        None => Stage::Elsewhere,
    }
}

/// The keys of all frames of the script, as far as there is room. None when one of them cannot be read.
#[inline(never)]
pub(super) fn ruby_frames<const V: usize>(pages: &mut Pages<'_>, keys: &mut Keys<'_>) -> Option<()> {
    let Some((innermost, end)) = frames_of::<V>() else { return Some(()) };
    for frame in (innermost..end).step_by(LAYOUTS[V].frame_bytes) {
        let place = pages.word(frame)?;
        let (code, scope) = (pages.word(frame + CODE)?, pages.word(frame + SCOPE)?);
        if place == 0 {
            continue;
        }
        let [scope] = words_at(scope)?;
        if scope & OF_C != 0 {
            continue;
        }
        let (number, place) = place_of::<V>(code, place).unwrap_or((0, 0));
        if !keys.push(script_key(number, place, scope & ENTRY != 0)) {
            break;
        }
    }
    Some(())
}

/// Returns the number of code, and where in it a counter is; `None` if it cannot be determined.
fn place_of<const V: usize>(code: usize, counter: usize) -> Option<(u32, u32)> {
    let mut code = code;
    let mut words: [usize; BODY / 8 + 1] = words_at(code)?;
    if words[0] & 0x1f == MOVED {
        code = *at(&words, LAYOUTS[V].moved_to / 8);
        words = words_at(code)?;
    }
    let body = Some(words[BODY / 8]).filter(|_| is_code(words[0]))?;
    let known: [usize; KNOWN_WORDS] = words_at(body)?;
    let (first, count) = (known[1], known[0] >> 32);
    // The counter points behind the current instruction.
    let place = (counter.wrapping_sub(first) / 8).saturating_sub(1);
    if place > count {
        return None;
    }
    let [file, name, line] = [known[FILE / 8], known[NAME / 8], known[FIRST_LINE / 8]];
    let sum = [known[0], first, file, name, line].iter().fold(body as u64, |sum, word| {
        (sum.rotate_left(5) ^ *word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let is_same = |number: &u32| mark(*number).load(Ordering::Relaxed) == sum;
    let number = match code_log::number(body).filter(is_same) {
        Some(number) => number,
        None => {
            code_log::forget(body);
            let number = Ruby::<V>::log(body);
            mark(number).store(sum, Ordering::Relaxed);
            number
        }
    };
    (number != 0).then_some((number, place as u32))
}

fn mark(number: u32) -> &'static AtomicU64 {
    at(&KNOWN, number as usize % MARKS)
}
