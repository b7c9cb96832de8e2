//! What a filter of system calls says of ours, before it is set: a program that is started behind it is started without the library if not
//! all of them are let through.
//!
//! A filter is a program for a machine with one register, an index and sixteen words, which jumps forward only (classic BPF). The kernel runs it for
//! each call, over the call's number and arguments (`struct seccomp_data` of `linux/seccomp.h`). It is run here for the calls that a
//! recording begins with, with the arguments that they have; pointers and descriptors, which nobody can decide by, are 0.
//!
//! Known limits: filters that programs set which are not recorded, or a `vfork` child; a filter that decides by the instruction's address.

use crate::process;
use crate::sys::{self, Call};
use core::sync::atomic::{AtomicBool, Ordering};

/// Some filter does not let all of the calls through that a recording begins with.
static STOPS_OURS: AtomicBool = AtomicBool::new(false);
/// Some filter does not let a thread ask for its number.
static HIDES_THREADS: AtomicBool = AtomicBool::new(false);
/// Some filter does not let a thread look whether it is behind one.
static IS_BLIND: AtomicBool = AtomicBool::new(false);

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
    // What makes no sense, or cannot be read, the kernel will not take: a look will tell.
    let kinds: [(&AtomicBool, &[Call], bool); 3] = [
        (&STOPS_OURS, &sys::CALLS_OF_A_START, false),
        (&HIDES_THREADS, &[sys::THREAD_ID], false),
        (&IS_BLIND, &sys::CALLS_OF_A_LOOK, true),
    ];
    for (stops, calls, if_unknown) in kinds {
        if !stops.load(Ordering::Relaxed) && !lets_all_through(program, calls).unwrap_or(if_unknown) {
            stops.store(true, Ordering::Relaxed);
        }
    }
}

/// Notes that no call of ours, or no time stamp, is possible from now on.
pub fn note_closed() {
    STOPS_OURS.store(true, Ordering::Relaxed);
    IS_BLIND.store(true, Ordering::Relaxed);
}

/// Returns whether a thread that comes now may be killed if it asks for its number.
pub fn hide_threads() -> bool {
    HIDES_THREADS.load(Ordering::Relaxed) && is_behind_one()
}

/// Returns whether the calling thread is behind a filter that stops calls of ours: in its forked children and in programs that it starts, too. One that
/// was asked for and refused by the kernel is none, and neither is another thread's.
pub fn stop_ours() -> bool {
    STOPS_OURS.load(Ordering::Relaxed) && is_behind_one()
}

/// Whether the calling thread is behind some filter; also where the kernel does not say.
fn is_behind_one() -> bool {
    IS_BLIND.load(Ordering::Relaxed) || status_number("Seccomp").is_none_or(|mode| mode != 0)
}

/// The number that the kernel gives of the calling thread under a name; none where it gives none.
#[cold]
#[inline(never)]
pub fn status_number(name: &str) -> Option<u32> {
    let file = sys::open_read(c"/proc/thread-self/status");
    if file < 0 {
        return None;
    }
    let mut line = NumberLine { name: name.as_bytes(), met: 0, number: None };
    let mut part = [0u8; 256];
    let mut is_done = false;
    while !is_done {
        let bytes = sys::read(file as i32, &mut part);
        let part = part.get(..bytes.max(0) as usize).unwrap_or(&[]);
        is_done = part.is_empty() || part.iter().any(|byte| line.ends_with(*byte));
    }
    sys::close(file as i32);
    line.number
}

/// Finds a line like `Name:\t12` in a text that comes in parts.
#[derive(Debug)]
struct NumberLine<'a> {
    name: &'a [u8],
    /// How much of its beginning was met: a line's begin, the name, the two bytes behind it.
    met: usize,
    number: Option<u32>,
}

impl NumberLine<'_> {
    /// Takes a byte more. Returns whether the number ended with it.
    fn ends_with(&mut self, byte: u8) -> bool {
        let expected = match self.met.checked_sub(1) {
            None => Some(b'\n'),
            Some(at) => self.name.iter().chain(b":\t").nth(at).copied(),
        };
        match expected {
            None if byte.is_ascii_digit() => {
                let digit = u32::from(byte - b'0');
                self.number = Some(self.number.unwrap_or(0).wrapping_mul(10).wrapping_add(digit));
            }
            None => return true,
            Some(expected) if expected == byte => self.met += 1,
            // No line begins within the beginning of another one.
            Some(_) => self.met = usize::from(byte == b'\n'),
        }
        false
    }
}

/// Whether a filter lets calls through, or has them fail where that does no harm; none if it cannot be read or makes no sense.
#[inline(never)]
fn lets_all_through(program: usize, calls: &[Call]) -> Option<bool> {
    // struct sock_fprog: the number of instructions, and where they are.
    let mut list = [0usize; 2];
    // SAFETY: there is room for both words.
    let is_read =
        unsafe { process::copy_checked(&[[program, size_of_val(&list)]], list.as_mut_ptr().cast()) };
    let count = list[0] & 0xffff;
    if !is_read || count == 0 || count > INSTRUCTIONS_MAX {
        return None;
    }
    let bytes = count * size_of::<Instruction>();
    let copy = sys::map_private(bytes);
    if copy.is_null() {
        return Some(false);
    }
    // SAFETY: the mapping has room for the instructions, whose fields may have any value, and is released when nobody uses it any more.
    unsafe {
        let is_read = process::copy_checked(&[[list[1], bytes]], copy);
        let instructions = core::slice::from_raw_parts(copy.cast::<Instruction>(), count);
        let mut answers = calls.iter().map(|call| lets_through(instructions, *call));
        let lets = answers.try_fold(true, |all, lets| Some(all & lets?));
        sys::unmap(copy, bytes);
        lets.filter(|_| is_read)
    }
}

fn lets_through(filter: &[Instruction], call: Call) -> Option<bool> {
    const ALLOW: u32 = 0x7fff_0000;
    const LOG: u32 = 0x7ffc_0000;
    const ERRNO: u32 = 0x0005_0000;
    const ACTION: u32 = 0xffff_0000;
    let answer = answer(filter, call)?;
    Some(match answer & ACTION {
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
            // As the kernel has it, which takes no constant of 0 to divide by.
            CALCULATE if code & 0xf0 == DIVIDE && operand == 0 => return (code & 0x08 != 0).then_some(0),
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
const DIVIDE: u16 = 0x30;

fn calculated(how: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match how {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        DIVIDE => return a.checked_div(operand),
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
