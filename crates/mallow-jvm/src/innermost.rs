//! Where the return address of an interrupted function lies: while a compiled method makes its frame, and when it gives it up, elsewhere than
//! while it stands.
//!
//! What such code looks like is decided by HotSpot's two compilers (`macroAssembler_x86.cpp`: `verified_entry`, `c1_MacroAssembler_x86.cpp`: `build_frame`;
//! `x86_64.ad`: `MachEpilogNode`). The bytes are those of an instruction's beginning, as a sample's address is one.

/// How a frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The return address is its last word, and the caller's frame pointer stands below that.
    Whole,
    /// The return address is its last word; the register has the caller's frame pointer.
    WithoutPointer,
    /// The return address is what the stack pointer points at; the register has the caller's frame pointer.
    AtTop,
    /// The stack pointer points at the caller's frame pointer, with the return address above it.
    Pushed,
}

/// Bytes in front of an address that are looked at, and from it on.
pub(crate) const BEFORE: usize = 4;
pub(crate) const BEHIND: usize = 64;

const PUSH: &[u8] = &[0x55];
const POP: u8 = 0x5d;
const RETURN: u8 = 0xc3;
/// `mov rbp, rsp`, in both of its forms.
const MOVES: [&[u8]; 2] = [&[0x48, 0x8b, 0xec], &[0x48, 0x89, 0xe5]];
/// `sub rsp, …`, with one byte and with four.
const MAKES: [&[u8]; 2] = [&[0x48, 0x83, 0xec], &[0x48, 0x81, 0xec]];
/// `mov [rsp + …], rbp`.
const SAVES: [&[u8]; 2] = [&[0x48, 0x89, 0x6c, 0x24], &[0x48, 0x89, 0xac, 0x24]];

fn begins(bytes: &[u8], with: &[&[u8]]) -> bool {
    with.iter().any(|start| bytes.starts_with(start))
}

fn has(bytes: &[u8], parts: &[&[u8]]) -> bool {
    parts.iter().any(|part| bytes.windows(part.len()).any(|window| window == *part))
}

/// How the frame of a function that was interrupted at `behind` is left. `left` bytes are there until its frame is made, none behind that.
pub(crate) fn leave(before: &[u8; BEFORE], behind: &[u8; BEHIND], left: Option<u64>) -> Leave {
    let left = left.and_then(|left| usize::try_from(left).ok()).filter(|left| *left > 0);
    match left {
        Some(left) => while_made(before, behind.get(..left).unwrap_or(behind)),
        None => while_given_up(behind),
    }
}

fn while_made(before: &[u8], rest: &[u8]) -> Leave {
    let is_pushed = before.ends_with(PUSH) || MOVES.iter().any(|moves| before.ends_with(moves));
    if begins(rest, &MOVES) || is_pushed && begins(rest, &MAKES) {
        return Leave::Pushed;
    }
    if begins(rest, &SAVES) {
        return Leave::WithoutPointer;
    }
    // What is still to come says what has not been done.
    if has(rest, &MAKES) || rest.starts_with(PUSH) || rest.ends_with(PUSH) {
        return Leave::AtTop;
    }
    Leave::Whole
}

fn while_given_up(behind: &[u8]) -> Leave {
    match behind {
        [POP, rest @ ..] if is_return(rest) => Leave::Pushed,
        rest if is_return(rest) => Leave::AtTop,
        _ => Leave::Whole,
    }
}

/// Returns whether a return comes, with nothing in front of it but the question whether the thread is to stop.
fn is_return(bytes: &[u8]) -> bool {
    let bytes = match bytes {
        // `cmp rsp, [r15 + …]`, since version 16.
        [0x49, 0x3b, 0x67, _, rest @ ..] | [0x49, 0x3b, 0xa7, _, _, _, _, rest @ ..] => rest,
        // `mov r10, [r15 + …]`, up to 15.
        [0x4d, 0x8b, 0x57, _, rest @ ..] | [0x4d, 0x8b, 0x97, _, _, _, _, rest @ ..] => rest,
        rest => rest,
    };
    let bytes = match bytes {
        // A jump to where it stops, short or long.
        [0x77, _, rest @ ..] | [0x0f, 0x87, _, _, _, _, rest @ ..] => rest,
        // `test [r10], eax`, and `test [rip + …], eax`.
        [0x41, 0x85, 0x02, rest @ ..] | [0x85, 0x05, _, _, _, _, rest @ ..] => rest,
        rest => rest,
    };
    matches!(bytes, [RETURN, ..] | [0xf3, RETURN, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a function is left at each of its instructions, given as hexadecimal numbers; it is made behind the one with `|` in front of it.
    fn left(function: &str) -> Vec<Leave> {
        let instruction = |text: &str| -> Vec<u8> {
            let digits = text.trim().trim_start_matches('|');
            (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect()
        };
        let instructions: Vec<&str> = function.split_whitespace().collect();
        let all: Vec<u8> = instructions.iter().flat_map(|text| instruction(text)).collect();
        let code = [&[0x90; BEFORE][..], &all, &[0xcc; BEHIND]].concat();
        let end_of =
            |at: usize| instructions[..=at].iter().map(|text| instruction(text).len()).sum::<usize>();
        let made = instructions.iter().position(|text| text.starts_with('|')).map(end_of);
        (0..instructions.len())
            .map(|at| {
                let from = at.checked_sub(1).map_or(0, end_of);
                let before = code[from..][..BEFORE].try_into().unwrap();
                let behind = code[from + BEFORE..][..BEHIND].try_into().unwrap();
                leave(before, behind, made.map(|made| (made - from.min(made)) as u64))
            })
            .collect()
    }

    use Leave::{AtTop as T, Pushed as P, Whole as W, WithoutPointer as N};

    #[test]
    fn a_frame_of_the_second_compiler_is_made_and_given_up() {
        // mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20; mov eax, [rsi]; add rsp, 0x20; pop rbp; cmp rsp, [r15+0x348]; ja; ret
        let function = "89842400c0feff 55 |4883ec20 8b06 4883c420 5d 493ba748030000 0f8710000000 c3";
        assert_eq!(left(function), [T, T, P, W, W, P, T, T, T]);
        // Without room for a check of the stack: sub rsp, 0x18; mov [rsp+0x10], rbp.
        assert_eq!(left("4881ec18000000 |48896c2410 90 4883c410 5d c3"), [T, N, W, W, P, T]);
        // In front of that, whether the object is of the class that was expected, and behind it a barrier.
        let function = "448b5608 413bc2 0f85f0ffffff 55 4883ec10 41817f2001000000 |0f8510000000 90";
        assert_eq!(left(function), [T, T, T, T, P, W, W, W]);
    }

    #[test]
    fn a_frame_of_the_first_compiler_is_made_and_given_up() {
        // With a frame pointer, and polls of earlier versions.
        let function = "55 488bec |4883ec30 90 4883c430 5d 4d8b5770 418502 c3";
        assert_eq!(left(function), [T, P, P, W, W, P, T, T, T]);
        assert_eq!(left("89842400c0feff |55 90 5d 85051000aa00 c3"), [T, T, W, P, T, T]);
    }

    #[test]
    fn a_poll_within_a_loop_is_no_end() {
        // mov r10, [r15+0x70]; test [r10], eax; jmp
        assert_eq!(left("55 |4883ec10 4d8b5770 418502 ebf0"), [T, P, W, W, W]);
        assert_eq!(while_given_up(&[]), W);
    }
}
