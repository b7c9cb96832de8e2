//! Spawns commands one after the other, waits for each, and reports when it started and ended and what it used.
//!
//! A process inherits the peak of resident memory of the process that started it, and the kernel keeps the higher of the two. So
//! the process that spawns a measured command must be smaller than any command: this program is a few pages, with no
//! library, no heap and no thread. It must never do more than that; `mallow_wire::spawning` describes its requests and replies.

#![no_std]
#![no_main]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod request;
mod start;
mod sys;

use core::arch::naked_asm;
use mallow_wire::spawning as wire;
use request::Request;

/// What it ends with when what it is told is not ours.
const USAGE_STATUS: usize = 64;

/// The kernel enters here, with the number of words and the words on the stack.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("mov rdi, rsp", "and rsp, -16", "call {main}", "ud2", main = sym main)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(134)
}

unsafe extern "C" fn main(stack: *const usize) -> ! {
    // SAFETY: by the kernel's convention the first word is the number of words, and they follow, ended by a null pointer.
    let (count, word) = unsafe { (*stack, *stack.add(2) as *const u8) };
    // A command that does nothing at all is what the cost of a shell is measured with.
    let Some(stream) = (if count > 1 { number(word) } else { None }) else { sys::exit(0) };
    sys::end_with_parent();
    sys::close_on_exec(stream);
    let (signals, child_signal) = (sys::block_signals(), sys::keep_status_of_children());
    loop {
        match Request::read(stream) {
            request::Read::One(request) => {
                let mut report = [0_u64; wire::WORDS];
                run(&request, (signals, child_signal), &mut report);
                sys::write(stream, &report);
            }
            request::Read::End => sys::exit(0),
            request::Read::Unknown => sys::exit(USAGE_STATUS),
        }
    }
}

/// Starts a command and waits for its end.
fn run(request: &Request, inherited: (u64, sys::ChildSignal), words: &mut [u64; wire::WORDS]) {
    words[wire::KIND] = wire::ENDED;
    words[wire::STARTED_NS] = sys::monotonic_ns();
    let (child, refused) = start::start(request, inherited);
    if child > 0 {
        match sys::wait(child, words, wire::RUSAGE) {
            Ok(status) => words[wire::STATUS] = u64::from(status),
            Err(refused) => tell(words, wire::NOT_WAITED_FOR, refused),
        }
        words[wire::ENDED_NS] = sys::monotonic_ns();
    }
    if refused != 0 {
        tell(words, wire::CANNOT_RUN, refused);
    }
}

/// Reports what the kernel refused.
fn tell(words: &mut [u64; wire::WORDS], kind: u64, refused: isize) {
    words[wire::KIND] = kind;
    words[wire::STATUS] = refused.unsigned_abs() as u64;
}

/// A number of decimal digits; none of anything else.
fn number(word: *const u8) -> Option<i32> {
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
