//! Starts one command, waits for it, and says when it started and ended and what it used.
//!
//! A forked process begins with the peak of resident memory of whoever forked it, and the kernel keeps the higher of the two. So whoever starts a
//! command that is measured must be smaller than any command: this program is a few pages, with no library, no heap and no thread. It must
//! never do more than that; `mallow_wire::spawn_report` says what it is told and what it answers.

#![no_std]
#![no_main]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod sys;

use core::arch::naked_asm;
use mallow_wire::spawn_report as report;

/// What a process that cannot run a program ends with, as shells have it.
const CANNOT_RUN_STATUS: usize = 127;
/// What it ends with when its words are not ours.
const USAGE_STATUS: usize = 64;

/// The kernel enters here, with the number of words, the words and the environment on the stack.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("mov rdi, rsp", "and rsp, -16", "call {main}", "ud2", main = sym main)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(134)
}

/// The words of the command line, and the environment behind them.
struct Words {
    at: *const *const u8,
    count: usize,
}

impl Words {
    /// A word, ended by a zero byte; null behind the last.
    fn word(&self, index: usize) -> *const u8 {
        if index >= self.count {
            return core::ptr::null();
        }
        // SAFETY: the kernel put `count` pointers there.
        unsafe { *self.at.add(index) }
    }

    /// The words from one on, as `execve` wants them.
    fn from(&self, index: usize) -> *const *const u8 {
        self.at.wrapping_add(index)
    }
}

unsafe extern "C" fn main(stack: *const usize) -> ! {
    // SAFETY: by the kernel's convention the first word is the number of words, and they follow.
    let words = Words { at: stack.wrapping_add(1).cast(), count: unsafe { *stack } };
    // A command that does nothing at all is what the cost of a shell is measured with.
    let Some(stream) = number(words.word(1)) else { sys::exit(0) };
    if words.word(3).is_null() {
        sys::exit(USAGE_STATUS);
    }
    sys::end_with_parent();
    sys::close_on_exec(stream);
    let before = sys::block_signals();
    if !sys::read_byte(stream) {
        sys::exit(0);
    }
    let mut words_out = [0_u64; report::WORDS];
    words_out[report::KIND] = report::ENDED;
    words_out[report::STARTED_NS] = sys::monotonic_ns();
    let child = sys::fork();
    if child == 0 {
        sys::end_with_parent();
        sys::set_signals(before);
        // SAFETY: the words and the environment are the kernel's, ended by null pointers.
        let refused = unsafe { sys::execve(words.word(2), words.from(3), words.from(words.count + 1)) };
        cannot_run(stream, &mut words_out, refused);
    }
    if child < 0 {
        cannot_run(stream, &mut words_out, child);
    }
    let (used, head) = (report::RUSAGE, report::STATUS);
    let status = sys::wait(child, &mut words_out, used);
    words_out[head] = u64::from(status);
    words_out[report::ENDED_NS] = sys::monotonic_ns();
    sys::write(stream, &words_out);
    sys::exit(0)
}

fn cannot_run(stream: i32, words: &mut [u64; report::WORDS], refused: isize) -> ! {
    words[report::KIND] = report::CANNOT_RUN;
    words[report::STATUS] = refused.unsigned_abs() as u64;
    sys::write(stream, words);
    sys::exit(CANNOT_RUN_STATUS)
}

/// A number of decimal digits; none of anything else.
fn number(word: *const u8) -> Option<i32> {
    if word.is_null() {
        return None;
    }
    let mut value = 0_i32;
    let mut at = word;
    loop {
        // SAFETY: a word ends with a zero byte, at which this ends.
        let byte = unsafe { *at };
        match byte {
            0 => break,
            b'0'..=b'9' => value = value.wrapping_mul(10).wrapping_add(i32::from(byte - b'0')),
            _ => return None,
        }
        at = at.wrapping_add(1);
    }
    (at != word).then_some(value)
}
