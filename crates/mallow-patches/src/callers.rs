//! What the rest of a program's code asks of a function: that nobody jumps between the instructions that are displaced, and that nobody
//! counts on registers which functions may change.
//!
//! A compiler that sees a function and its caller at once may know that the function leaves a register alone which any other one could change
//! (GCC's `-fipa-ra`), and keep a value there. What is called in the function's place changes them all.

use crate::displace::Unpatchable;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use rustc_hash::FxHashMap;

/// A piece of code as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code<'a> {
    pub(crate) svma: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Code<'a> {
    /// What begins at an address.
    pub(crate) fn from(&self, svma: u64) -> Option<&'a [u8]> {
        self.bytes.get(usize::try_from(svma.checked_sub(self.svma)?).ok()?..).filter(|rest| !rest.is_empty())
    }
}

/// The beginning of a function that is to be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    pub(crate) entry: u64,
    /// Bytes of it.
    pub(crate) displaced: usize,
    /// Whether it comes back to its caller: what stands behind a call of one that does not is another function's.
    pub(crate) returns: bool,
}

/// What is wrong with functions, by their place in the list. `function_around` gives the beginning of the function that holds an address.
pub(crate) fn objections(
    code: &[Code<'_>],
    functions: &[Beginning],
    function_around: impl Fn(u64) -> Option<u64>,
) -> FxHashMap<usize, Unpatchable> {
    // Every byte that is part of a function's beginning leads to it.
    let mut starts: FxHashMap<u64, usize> = FxHashMap::default();
    for (index, function) in functions.iter().enumerate() {
        starts.extend(function.inner().chain([function.entry]).map(|svma| (svma, index)));
    }
    let (Some(first), Some(last)) = (starts.keys().min(), starts.keys().max()) else {
        return FxHashMap::default();
    };
    let range = *first..=*last;
    let mut found = FxHashMap::default();
    let mut registers = Registers::new();
    for piece in code {
        for (at, window) in piece.bytes.windows(6).enumerate() {
            // Calls and jumps with a distance of 32 bits, wherever their bytes may stand.
            let (length, distance) = match window {
                [0xe8 | 0xe9, a, b, c, d, _] => (5, [*a, *b, *c, *d]),
                [0x0f, 0x80..=0x8f, a, b, c, d] => (6, [*a, *b, *c, *d]),
                _ => continue,
            };
            let end = piece.svma + at as u64 + length;
            let target = end.wrapping_add_signed(i64::from(i32::from_le_bytes(distance)));
            if !range.contains(&target) {
                continue;
            }
            let Some(index) = starts.get(&target).copied() else { continue };
            let objection = match window[0] {
                _ if functions[index].entry != target => Unpatchable::JumpedInto,
                0xe8 if functions[index].returns && registers.are_kept(piece, end) => {
                    Unpatchable::KeepsRegisters
                }
                _ => continue,
            };
            let svma = piece.svma + at as u64;
            if function_around(svma).is_none_or(|start| may_be_instruction(piece, start, svma)) {
                found.insert(index, objection);
            }
        }
    }
    for (index, function) in functions.iter().enumerate() {
        let Some(body) = code.iter().find_map(|piece| piece.from(function.entry)) else { continue };
        if jumps_into_itself(body, function) {
            found.insert(index, Unpatchable::JumpedInto);
        }
    }
    found
}

impl Beginning {
    /// Where nobody may come in.
    pub(crate) fn inner(&self) -> std::ops::Range<u64> {
        self.entry + 1..self.entry + self.displaced as u64
    }
}

/// Whether an instruction begins at `svma`, in a function that begins at `start`, or that cannot be told.
fn may_be_instruction(piece: &Code<'_>, start: u64, svma: u64) -> bool {
    /// A longer function is not decoded for one place in it.
    const FUNCTION_BYTES_MAX: u64 = 1 << 20;
    let Some(bytes) = piece.from(start).filter(|_| svma - start <= FUNCTION_BYTES_MAX) else { return true };
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    while decoder.ip() < svma {
        if decoder.decode().is_invalid() {
            // Data, behind which nothing is certain.
            return true;
        }
    }
    decoder.ip() == svma
}

/// Whether a function has a jump to where its beginning was: within the reach of short jumps, which have no bytes that could be looked for.
fn jumps_into_itself(body: &[u8], function: &Beginning) -> bool {
    const REACH: usize = 160;
    let body = &body[..body.len().min(REACH)];
    let inner = function.inner();
    let mut decoder = Decoder::with_ip(64, body, function.entry, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let is_jump = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        if is_jump && inner.contains(&instruction.near_branch_target()) {
            return true;
        }
    }
    false
}

/// The registers whose values a call may change, other than those in which it gives its answer: a bit for each.
struct Registers {
    factory: InstructionInfoFactory,
}

impl Registers {
    fn new() -> Registers {
        Registers { factory: InstructionInfoFactory::new() }
    }

    /// Whether the code at `after`, behind a call, uses what was in a register before the call. Followed up to the first jump or call,
    /// and for some instructions: values that are kept are kept to be used.
    fn are_kept(&mut self, code: &Code<'_>, after: u64) -> bool {
        const INSTRUCTIONS_MAX: usize = 24;
        let Some(bytes) = code.from(after) else { return false };
        let mut decoder = Decoder::with_ip(64, bytes, after, DecoderOptions::NONE);
        let mut unset = CHANGED.iter().fold(0u64, |set, register| set | bit(*register));
        for _ in 0..INSTRUCTIONS_MAX {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return false;
            }
            // A register that is made zero by itself is not read.
            let is_zeroed = is_zeroing(&instruction);
            let used = self.factory.info(&instruction).used_registers();
            let mut written = 0;
            for register in used {
                let own = bit(register.register().full_register());
                match register.access() {
                    OpAccess::Write | OpAccess::CondWrite => written |= own,
                    OpAccess::NoMemAccess | OpAccess::None => {}
                    _ if is_zeroed => written |= own,
                    _ if unset & own != 0 => return true,
                    _ => {}
                }
            }
            unset &= !written;
            if instruction.flow_control() != FlowControl::Next {
                return false;
            }
        }
        false
    }
}

fn is_zeroing(instruction: &iced_x86::Instruction) -> bool {
    use iced_x86::Mnemonic::{Pxor, Sub, Vpxor, Vxorps, Xor, Xorpd, Xorps};
    matches!(instruction.mnemonic(), Xor | Sub | Pxor | Xorps | Xorpd | Vpxor | Vxorps)
        && instruction.op_count() >= 2
        && instruction.op_register(instruction.op_count() - 1) != Register::None
        && instruction.op_register(instruction.op_count() - 1)
            == instruction.op_register(instruction.op_count() - 2)
}

const CHANGED: [Register; 22] = [
    Register::RCX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::ZMM1,
    Register::ZMM2,
    Register::ZMM3,
    Register::ZMM4,
    Register::ZMM5,
    Register::ZMM6,
    Register::ZMM7,
    Register::ZMM8,
    Register::ZMM9,
    Register::ZMM10,
    Register::ZMM11,
    Register::ZMM12,
    Register::ZMM13,
    Register::ZMM14,
    Register::ZMM15,
];

fn bit(register: Register) -> u64 {
    CHANGED.iter().position(|known| *known == register).map_or(0, |at| 1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: u64 = 0x1000;

    fn objection(caller: &[u8]) -> Option<Unpatchable> {
        // push rbp; mov rbp, rsp; nop; ret, then the caller at 0x1010.
        let mut bytes = vec![0x55, 0x48, 0x89, 0xe5, 0x90, 0xc3];
        bytes.resize(16, 0xcc);
        bytes.extend_from_slice(caller);
        bytes.resize(64, 0xcc);
        let code = [Code { svma: ENTRY, bytes: &bytes }];
        let function = Beginning { entry: ENTRY, displaced: 5, returns: true };
        objections(&code, &[function], |svma| (svma >= CALLER).then_some(CALLER)).remove(&0)
    }

    const CALLER: u64 = ENTRY + 16;

    #[test]
    fn callers_that_keep_nothing_are_no_objection() {
        // call; mov rdi, rax; xor esi, esi; ret
        assert_eq!(objection(&[0xe8, 0xeb, 0xff, 0xff, 0xff, 0x48, 0x89, 0xc7, 0x31, 0xf6, 0xc3]), None);
        // call; pxor xmm1, xmm1; movaps xmm2, xmm1; ret
        assert_eq!(
            objection(&[0xe8, 0xeb, 0xff, 0xff, 0xff, 0x66, 0x0f, 0xef, 0xc9, 0x0f, 0x28, 0xd1, 0xc3]),
            None
        );
    }

    #[test]
    fn a_caller_that_knows_what_is_left_alone_is_one() {
        // call; mov [rax], r8; ret
        let kept = objection(&[0xe8, 0xeb, 0xff, 0xff, 0xff, 0x4c, 0x89, 0x00, 0xc3]);
        assert_eq!(kept, Some(Unpatchable::KeepsRegisters));
        // call; movsd [rax], xmm3; ret
        let kept = objection(&[0xe8, 0xeb, 0xff, 0xff, 0xff, 0xf2, 0x0f, 0x11, 0x18, 0xc3]);
        assert_eq!(kept, Some(Unpatchable::KeepsRegisters));
    }

    #[test]
    fn jumps_between_the_displaced_instructions_are_found() {
        // jmp 0x1001; then je 0x1004; then from behind the entry itself: jmp short.
        assert_eq!(objection(&[0xe9, 0xec, 0xff, 0xff, 0xff]), Some(Unpatchable::JumpedInto));
        assert_eq!(objection(&[0x0f, 0x84, 0xee, 0xff, 0xff, 0xff]), Some(Unpatchable::JumpedInto));
        assert_eq!(objection(&[0xeb, 0xf2]), Some(Unpatchable::JumpedInto));
        assert_eq!(objection(&[0xe9, 0xeb, 0xff, 0xff, 0xff]), None);
        // The same bytes within another instruction: mov eax, 0xffffebe9; call of nobody.
        assert_eq!(objection(&[0xb8, 0xe9, 0xeb, 0xff, 0xff, 0xff, 0x90]), None);
    }
}
