//! A function's first instructions, made to work in another place.
//!
//! A jump of five bytes is written over them. What stood there is done elsewhere, before a jump back: distances within it are counted
//! from another place, short jumps become long ones. A `call` leaves on the stack where it stands, and unwinders look for it there: it becomes a `push` of the
//! address behind it where it was, and a jump, so that the function goes on there. What would not be the same is refused.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use mallow_wire::patches::{
    DISPLACED_BYTES_MAX, FIXUP_ADDRESS, FIXUP_DISTANCE, FIXUPS_MAX, Fixup, JUMP_BYTES, MOVED_BYTES_MAX,
    STEPS_MAX, Step,
};

/// Instructions for another place, by the recorder's plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Displaced {
    /// How many bytes they take where they are.
    pub(crate) bytes: usize,
    pub(crate) moved: Vec<u8>,
    pub(crate) fixups: Vec<Fixup>,
    pub(crate) steps: Vec<Step>,
    /// Where they jump to at once when the first of them is a jump: the function is another one's name.
    pub(crate) leads_to: Option<u64>,
}

/// Why a function cannot be patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpatchable {
    TooShort,
    Call,
    Undecodable,
    UnusualJump,
    NoCode,
    JumpedInto,
    KeepsRegisters,
}

impl Unpatchable {
    /// Why, as the end of a sentence.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Unpatchable::TooShort => "it is too short",
            Unpatchable::Call => "it begins with a call",
            Unpatchable::Undecodable => "its first bytes are no instructions",
            Unpatchable::UnusualJump => "it begins with an unusual jump",
            Unpatchable::NoCode => "its symbol leads to where there is no code",
            Unpatchable::JumpedInto => "the program jumps between its first instructions",
            Unpatchable::KeepsRegisters => {
                "its callers were compiled to know which registers it leaves alone"
            }
        }
    }
}

/// Moves the instructions at the start of `code`, which begins at `svma`. `function_bytes` is how many of them are the function's, where
/// that is known.
pub(crate) fn displace(
    code: &[u8],
    svma: u64,
    function_bytes: Option<usize>,
) -> Result<Displaced, Unpatchable> {
    let mut displaced = Displaced::default();
    let mut decoder = Decoder::with_ip(64, code, svma, DecoderOptions::NONE);
    let mut ends = false;
    while displaced.bytes < JUMP_BYTES {
        let start = displaced.bytes;
        if ends || function_bytes.is_some_and(|bytes| start >= bytes) {
            // What follows is somebody else's, unless it only fills the space up to the next function.
            return padding(&code[start..], JUMP_BYTES - start)
                .then(|| fill(displaced))
                .ok_or(Unpatchable::TooShort);
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Err(Unpatchable::Undecodable);
        }
        let bytes = code.get(start..start + instruction.len()).ok_or(Unpatchable::TooShort)?;
        displaced.steps.push(Step { displaced: start as u8, moved: displaced.moved.len() as u8 });
        displaced.add(&instruction, bytes, &decoder)?;
        displaced.bytes += instruction.len();
        let is_call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        if is_call && displaced.bytes < JUMP_BYTES {
            return Err(Unpatchable::Call);
        }
        ends = is_call
            || matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
            );
    }
    if !ends {
        displaced.steps.push(Step { displaced: displaced.bytes as u8, moved: displaced.moved.len() as u8 });
        displaced.jump(&[0xe9], svma + displaced.bytes as u64);
    }
    Ok(displaced.checked())
}

/// A function that ends before the jump does, with what fills the space behind it.
fn fill(mut displaced: Displaced) -> Displaced {
    displaced.bytes = JUMP_BYTES;
    displaced.checked()
}

/// Whether so many bytes only fill space: `int3`, or instructions that do nothing.
fn padding(code: &[u8], bytes: usize) -> bool {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    while decoder.position() < bytes {
        let instruction = decoder.decode();
        let is_nothing = matches!(
            instruction.code(),
            Code::Int3
                | Code::Nopd
                | Code::Nopq
                | Code::Nopw
                | Code::Nop_rm16
                | Code::Nop_rm32
                | Code::Nop_rm64
        );
        if !is_nothing {
            return false;
        }
    }
    true
}

impl Displaced {
    fn checked(self) -> Displaced {
        debug_assert!(
            self.bytes <= DISPLACED_BYTES_MAX
                && self.moved.len() <= MOVED_BYTES_MAX
                && self.fixups.len() <= FIXUPS_MAX
                && self.steps.len() <= STEPS_MAX
        );
        self
    }

    /// Adds an instruction that does the same from another place.
    fn add(
        &mut self,
        instruction: &Instruction,
        bytes: &[u8],
        decoder: &Decoder<'_>,
    ) -> Result<(), Unpatchable> {
        let is_first = self.moved.is_empty();
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                let opcode = match bytes {
                    [short @ 0x70..=0x7f, _] => [0x0f, short + 0x10],
                    [0x0f, near @ 0x80..=0x8f, ..] if bytes.len() == 6 => [0x0f, *near],
                    _ => return Err(Unpatchable::UnusualJump),
                };
                self.jump(&opcode, instruction.near_branch_target());
                Ok(())
            }
            FlowControl::UnconditionalBranch => {
                if !matches!(bytes, [0xeb, _] | [0xe9, _, _, _, _]) {
                    return Err(Unpatchable::UnusualJump);
                }
                let target = instruction.near_branch_target();
                self.leads_to = is_first.then_some(target);
                self.jump(&[0xe9], target);
                Ok(())
            }
            FlowControl::Call => {
                let behind = instruction.next_ip();
                self.push_address(behind, |displaced| {
                    displaced.jump(&[0xe9], instruction.near_branch_target())
                });
                Ok(())
            }
            FlowControl::IndirectCall if matches!(bytes, [0xff, 0x15, ..]) => {
                // `call [rip + …]`: where the address to call stands.
                let place = instruction.ip_rel_memory_address();
                self.push_address(instruction.next_ip(), |displaced| displaced.jump(&[0xff, 0x25], place));
                Ok(())
            }
            FlowControl::IndirectCall => Err(Unpatchable::Call),
            FlowControl::Next | FlowControl::IndirectBranch | FlowControl::Return => {
                self.copy(instruction, bytes, decoder)
            }
            _ => Err(Unpatchable::UnusualJump),
        }
    }

    fn jump(&mut self, opcode: &[u8], target_svma: u64) {
        self.moved.extend_from_slice(opcode);
        let at = self.moved.len() as u8;
        self.moved.extend_from_slice(&[0; 4]);
        self.fixups.push(Fixup { target_svma, at, end: at + 4, kind: FIXUP_DISTANCE, spare: [0; 5] });
    }

    /// Pushes an address, and goes on by the jump that `add` adds. The address stands behind that.
    fn push_address(&mut self, svma: u64, add: impl FnOnce(&mut Displaced)) {
        const PUSH_BYTES: usize = 6;
        let push = self.moved.len();
        self.moved.extend_from_slice(&[0xff, 0x35, 0, 0, 0, 0]);
        // The stack is then as at a function's beginning, and so it is unwound.
        self.steps.push(Step { displaced: 0, moved: self.moved.len() as u8 });
        add(self);
        let at = self.moved.len();
        self.moved[push + 2] = (at - push - PUSH_BYTES) as u8;
        self.moved.extend_from_slice(&[0; 8]);
        self.fixups.push(Fixup {
            target_svma: svma,
            at: at as u8,
            end: at as u8 + 8,
            kind: FIXUP_ADDRESS,
            spare: [0; 5],
        });
    }

    fn copy(
        &mut self,
        instruction: &Instruction,
        bytes: &[u8],
        decoder: &Decoder<'_>,
    ) -> Result<(), Unpatchable> {
        let start = self.moved.len();
        self.moved.extend_from_slice(bytes);
        let is_relative = instruction.op_kinds().any(|kind| kind == OpKind::Memory)
            && instruction.is_ip_rel_memory_operand();
        if !is_relative {
            return Ok(());
        }
        let place = decoder.get_constant_offsets(instruction);
        if place.displacement_size() != 4 {
            return Err(Unpatchable::Undecodable);
        }
        let at = start + place.displacement_offset();
        self.moved[at..at + 4].fill(0);
        self.fixups.push(Fixup {
            target_svma: instruction.ip_rel_memory_address(),
            at: at as u8,
            end: self.moved.len() as u8,
            kind: FIXUP_DISTANCE,
            spare: [0; 5],
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVMA: u64 = 0x40_1000;

    fn fixups(displaced: &Displaced) -> Vec<(u8, u8, u64)> {
        displaced.fixups.iter().map(|fixup| (fixup.at, fixup.end, fixup.target_svma)).collect()
    }

    #[test]
    fn plain_instructions_are_copied_and_lead_back() {
        // push r15, r14, r13; the rest is the function's.
        let found = displace(&[0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x90], SVMA, None).unwrap();
        assert_eq!(found.bytes, 6);
        assert_eq!(found.moved, [0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0xe9, 0, 0, 0, 0]);
        assert_eq!(fixups(&found), [(7, 11, SVMA + 6)]);
        let steps: Vec<_> = found.steps.iter().map(|step| (step.displaced, step.moved)).collect();
        assert_eq!(steps, [(0, 0), (2, 2), (4, 4), (6, 6)]);
    }

    #[test]
    fn what_is_counted_from_the_place_is_counted_anew() {
        // cmp byte [rip + 0x10], 0: the distance is not at the end of the instruction.
        let found = displace(&[0x80, 0x3d, 0x10, 0, 0, 0, 0, 0xc3], SVMA, None).unwrap();
        assert_eq!(found.bytes, 7);
        assert_eq!(fixups(&found), [(2, 7, SVMA + 7 + 0x10), (8, 12, SVMA + 7)]);
        // test rdi, rdi; je +0x13: the short jump becomes a long one.
        let found = displace(&[0x48, 0x85, 0xff, 0x74, 0x13, 0x90], SVMA, None).unwrap();
        assert_eq!(found.moved, [0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0]);
        assert_eq!(fixups(&found), [(5, 9, SVMA + 5 + 0x13), (10, 14, SVMA + 5)]);
    }

    #[test]
    fn a_function_that_is_a_jump_leads_to_another() {
        let found = displace(&[0xe9, 0xfb, 0x0f, 0, 0], SVMA, Some(5)).unwrap();
        assert_eq!((found.leads_to, found.bytes), (Some(SVMA + 0x1000), 5));
        assert_eq!(found.moved.len(), 5);
        // jmp [rip + 8]
        let found = displace(&[0xff, 0x25, 8, 0, 0, 0], SVMA, Some(6)).unwrap();
        assert_eq!((found.leads_to, fixups(&found)), (None, vec![(2, 6, SVMA + 6 + 8)]));
    }

    #[test]
    fn a_call_leaves_the_address_behind_it_where_it_was() {
        // push rax; call +0x100
        let found = displace(&[0x50, 0xe8, 0, 1, 0, 0, 0x58], SVMA, None).unwrap();
        assert_eq!(found.bytes, 6);
        // push rax; push [rip + 5]; jmp; the address.
        assert_eq!(found.moved, [&[0x50, 0xff, 0x35, 5, 0, 0, 0, 0xe9, 0, 0, 0, 0][..], &[0; 8]].concat());
        assert_eq!(fixups(&found), [(8, 12, SVMA + 6 + 0x100), (12, 20, SVMA + 6)]);
        assert_eq!(
            found.fixups.iter().map(|fixup| fixup.kind).collect::<Vec<_>>(),
            [FIXUP_DISTANCE, FIXUP_ADDRESS]
        );
        let steps: Vec<_> = found.steps.iter().map(|step| (step.displaced, step.moved)).collect();
        assert_eq!(steps, [(0, 0), (1, 1), (0, 7)]);
        // call [rip + 8]: 6 bytes.
        let found = displace(&[0xff, 0x15, 8, 0, 0, 0, 0xc3], SVMA, None).unwrap();
        assert_eq!(found.moved[..8], [0xff, 0x35, 6, 0, 0, 0, 0xff, 0x25]);
        assert_eq!(fixups(&found), [(8, 12, SVMA + 6 + 8), (12, 20, SVMA + 6)]);
    }

    #[test]
    fn what_cannot_be_moved_is_refused() {
        let of = |code: &[u8], bytes| displace(code, SVMA, bytes).map(|found| found.bytes);
        assert_eq!(of(&[0xc3, 0x55, 0x55, 0x55, 0x55], None), Err(Unpatchable::TooShort));
        assert_eq!(of(&[0x31, 0xc0, 0xc3, 0x90, 0x90], Some(3)), Ok(5));
        assert_eq!(of(&[0x31, 0xc0, 0xc3, 0xcc, 0x55], Some(3)), Err(Unpatchable::TooShort));
        assert_eq!(of(&[0x55, 0xff, 0xd0, 0x90, 0x90], None), Err(Unpatchable::Call));
        assert_eq!(of(&[0xe3, 0x10, 0x90, 0x90, 0x90], None), Err(Unpatchable::UnusualJump));
        assert_eq!(of(&[0x06, 0, 0, 0, 0], None), Err(Unpatchable::Undecodable));
        assert_eq!(of(&[0x55], None), Err(Unpatchable::Undecodable));
    }
}
