//! What a filter of system calls says of ours, before it is set: a program that is started behind it is started without the library if not
//! all of them are let through.
//!
//! A filter is a program for a machine with one register, an index and sixteen words, which jumps forward only (classic BPF). The kernel runs it for
//! each call, over the call's number and arguments (`struct seccomp_data` of `linux/seccomp.h`). It is run here for the calls that a
//! recording begins with, with the arguments that they have; pointers and descriptors, which nobody can decide by, are 0.
//!
//! Known limits: filters that programs set which are not recorded; a filter that decides by the instruction's address.

use crate::process;
use crate::sys::{self, Call};
use core::sync::atomic::{AtomicBool, Ordering};

/// Some filter does not let all of the calls through that a recording begins with.
static STOPS_OURS: AtomicBool = AtomicBool::new(false);
/// Some filter does not let a thread ask for its number.
static HIDES_THREADS: AtomicBool = AtomicBool::new(false);

/// Instructions that the kernel accepts at most.
const INSTRUCTIONS_MAX: usize = 4096;

/// `struct sock_filter`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// Notes a filter that is about to be set. `program` is the address of its `struct sock_fprog`.
pub fn note(program: usize) {
    for (stops, calls) in [(&STOPS_OURS, &sys::CALLS_OF_A_START[..]), (&HIDES_THREADS, &[sys::THREAD_ID])] {
        if !stops.load(Ordering::Relaxed) && !lets_all_through(program, calls) {
            stops.store(true, Ordering::Relaxed);
        }
    }
}

/// Notes that no call of ours, or no time stamp, is possible from now on.
pub fn note_closed() {
    STOPS_OURS.store(true, Ordering::Relaxed);
}

/// Returns whether a thread that comes now may be killed if it asks for its number.
pub fn hide_threads() -> bool {
    HIDES_THREADS.load(Ordering::Relaxed)
}

/// Returns whether a filter that was set in this process stops calls of ours in a program that is started.
pub fn stop_ours() -> bool {
    STOPS_OURS.load(Ordering::Relaxed)
}

/// What cannot be read or understood lets nothing through; the kernel will refuse it, too.
#[inline(never)]
fn lets_all_through(program: usize, calls: &[Call]) -> bool {
    // struct sock_fprog: the number of instructions, and where they are.
    let mut list = [0usize; 2];
    // SAFETY: there is room for both words.
    let is_read =
        unsafe { process::copy_checked(&[[program, size_of_val(&list)]], list.as_mut_ptr().cast()) };
    let count = list[0] & 0xffff;
    if !is_read || count == 0 || count > INSTRUCTIONS_MAX {
        return false;
    }
    let bytes = count * size_of::<Instruction>();
    let copy = sys::map_private(bytes);
    if copy.is_null() {
        return false;
    }
    // SAFETY: the mapping has room for the instructions, whose fields may have any value, and is released when nobody uses it any more.
    unsafe {
        let is_read = process::copy_checked(&[[list[1], bytes]], copy);
        let instructions = core::slice::from_raw_parts(copy.cast::<Instruction>(), count);
        let lets = is_read && calls.iter().all(|call| lets_through(instructions, *call));
        sys::unmap(copy, bytes);
        lets
    }
}

/// Whether a filter lets a call through, or has it fail where that does no harm.
fn lets_through(filter: &[Instruction], call: Call) -> bool {
    const ALLOW: u32 = 0x7fff_0000;
    const LOG: u32 = 0x7ffc_0000;
    const ERRNO: u32 = 0x0005_0000;
    const ACTION: u32 = 0xffff_0000;
    answer(filter, call).is_some_and(|answer| match answer & ACTION {
        ALLOW | LOG => true,
        // An error of 0 is no failure.
        ERRNO => call.may_fail && answer != ERRNO,
        _ => false,
    })
}

/// What the filter returns; none if it makes no sense.
fn answer(filter: &[Instruction], call: Call) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut rest = filter.iter();
    loop {
        let Instruction { code, if_true, if_false, value } = *rest.next()?;
        // Bit 3 takes the index in place of the value, where something is calculated or compared.
        let operand = if code & 0x08 == 0 { value } else { x };
        let loaded = |memory: &[u32; 16]| match code & 0xf8 {
            0x00 => Some(value),
            0x20 => word_of(call, value),
            0x60 => memory.get(value as usize).copied(),
            0x80 => Some(DATA_BYTES),
            _ => None,
        };
        match code & 0x07 {
            LOAD => a = loaded(&memory)?,
            LOAD_INDEX => x = loaded(&memory)?,
            STORE => *memory.get_mut(value as usize)? = a,
            STORE_INDEX => *memory.get_mut(value as usize)? = x,
            CALCULATE => a = calculated(code & 0xf0, a, operand)?,
            JUMP => {
                let skipped = match holds(code & 0xf0, a, operand) {
                    None => value,
                    Some(true) => if_true.into(),
                    Some(false) => if_false.into(),
                };
                if let Some(last) = skipped.checked_sub(1) {
                    rest.nth(last as usize)?;
                }
            }
            RETURN => return Some(if code & 0x10 == 0 { value } else { a }),
            _ if code & 0x80 == 0 => x = a,
            _ => a = x,
        }
    }
}

const LOAD: u16 = 0;
const LOAD_INDEX: u16 = 1;
const STORE: u16 = 2;
const STORE_INDEX: u16 = 3;
const CALCULATE: u16 = 4;
const JUMP: u16 = 5;
const RETURN: u16 = 6;

fn calculated(how: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match how {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        0x30 => return a.checked_div(operand),
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.wrapping_shl(operand),
        0x70 => a.wrapping_shr(operand),
        0x80 => a.wrapping_neg(),
        0xa0 => a ^ operand,
        _ => return None,
    })
}

/// Whether the condition of a jump holds; none if it has none.
fn holds(condition: u16, a: u32, operand: u32) -> Option<bool> {
    Some(match condition {
        0x10 => a == operand,
        0x20 => a > operand,
        0x30 => a >= operand,
        0x40 => a & operand != 0,
        _ => return None,
    })
}

/// Bytes of `struct seccomp_data`.
const DATA_BYTES: u32 = 64;

/// A word of `struct seccomp_data`: the number, the machine, the instruction's address, six arguments.
fn word_of(Call { number, arguments, .. }: Call, offset: u32) -> Option<u32> {
    const X86_64: u32 = 0xc000_003e;
    let half = |word: usize| if offset.is_multiple_of(8) { word as u32 } else { (word >> 32) as u32 };
    match offset {
        _ if !offset.is_multiple_of(4) || offset >= DATA_BYTES => None,
        0 => Some(number as u32),
        4 => Some(X86_64),
        8 | 12 => Some(half(note as *const () as usize)),
        _ => Some(half(arguments.get((offset as usize - 16) / 8).copied().unwrap_or(0))),
    }
}

#[cfg(test)]
#[path = "filters_tests.rs"]
mod tests;
