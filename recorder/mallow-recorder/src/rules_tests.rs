//! Rules against those that gimli's reading of the same tables gives, for every function that is loaded into the test.

use super::*;
use crate::{elf, sys};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
    X86_64,
};

/// Room for evaluating a table row on the stack: x86-64 has 17 registers, `remember_state` is rarely nested.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 20];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

type Bytes = EndianSlice<'static, NativeEndian>;

/// Reads the tables of an object; none when they do not cover `pc`.
fn judged(object: &Object, pc: usize) -> Option<FullRule> {
    if object.eh_frame_header == 0 || !(object.start..object.end).contains(&object.eh_frame_header) {
        return None;
    }
    let header_bytes = mapped(object, object.eh_frame_header);
    let bases = BaseAddresses::default().set_eh_frame_hdr(object.eh_frame_header as u64);
    let header = EhFrameHdr::new(header_bytes, NativeEndian).parse(&bases, 8).ok()?;
    let frames_at = header.eh_frame_ptr().direct().ok()? as usize;
    if !(object.start..object.end).contains(&frames_at) {
        return None;
    }
    let frames: EhFrame<Bytes> = EhFrame::new(mapped(object, frames_at), NativeEndian);
    let bases = bases.set_eh_frame(frames_at as u64);
    let fde = header.table()?.fde_for_address(&frames, &bases, pc as u64, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = fde.unwind_info_for_address(&frames, &bases, &mut context, pc as u64).ok()?;
    Some(if fde.is_signal_trampoline() { judged_signal(row, &frames) } else { judged_plain(row, &frames) })
}

fn judged_plain(row: &UnwindTableRow<usize, OnStack>, frames: &EhFrame<Bytes>) -> FullRule {
    let unsupported = FullRule::UNSUPPORTED;
    match row.register(X86_64::RA) {
        Some(RegisterRule::Undefined) => return FullRule { kind: RuleKind::Root, a: 0, b: 0 },
        // The rows of this ABI start with "the return address is at cfa - 8"; anything else is hand-written.
        Some(RegisterRule::Offset(-8)) => {}
        _ => return unsupported,
    }
    match (row.cfa(), row.register(X86_64::RBP)) {
        (CfaRule::RegisterAndOffset { register, offset }, bp) => {
            let (keeps, saves) = match *register {
                X86_64::RSP => (RuleKind::Sp, RuleKind::SpSavesBp),
                X86_64::RBP => (RuleKind::Bp, RuleKind::BpSavesBp),
                _ => return unsupported,
            };
            match bp {
                None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => rule(keeps, *offset, 0),
                Some(RegisterRule::Offset(saved)) => rule(saves, *offset, saved),
                _ => unsupported,
            }
        }
        (CfaRule::Expression(cfa), Some(RegisterRule::Expression(bp))) => {
            match (bp_relative(cfa, frames), bp_relative(&bp, frames)) {
                (Some((a, true)), Some((b, false))) => rule(RuleKind::Realigned, a, b),
                _ => unsupported,
            }
        }
        _ => unsupported,
    }
}

/// An expression `rbp + offset`, and whether it is then read through.
fn bp_relative(expression: &UnwindExpression<usize>, frames: &EhFrame<Bytes>) -> Option<(i64, bool)> {
    let (register, offset, deref) = register_relative(expression, frames)?;
    (register == X86_64::RBP).then_some((offset, deref))
}

fn register_relative(
    expression: &UnwindExpression<usize>,
    frames: &EhFrame<Bytes>,
) -> Option<(Register, i64, bool)> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut operations = expression.get(frames).ok()?.operations(encoding);
    let Some(Operation::RegisterOffset { register, offset, .. }) = operations.next().ok()? else {
        return None;
    };
    let deref = match operations.next().ok()? {
        None => return Some((register, offset, false)),
        Some(Operation::Deref { size: 8, .. }) => true,
        Some(_) => return None,
    };
    operations.next().ok()?.is_none().then_some((register, offset, deref))
}

/// The kernel's `ucontext` keeps the registers in a fixed order; the rule needs only the place of the saved
/// rsp.
fn judged_signal(row: &UnwindTableRow<usize, OnStack>, frames: &EhFrame<Bytes>) -> FullRule {
    let CfaRule::Expression(cfa) = row.cfa() else { return FullRule::UNSUPPORTED };
    match register_relative(cfa, frames) {
        Some((X86_64::RSP, offset, true)) => rule(RuleKind::Signal, offset, 0),
        _ => FullRule::UNSUPPORTED,
    }
}

/// A rule with distances of any size.
fn rule(kind: RuleKind, a: i64, b: i64) -> FullRule {
    match (i32::try_from(a), i32::try_from(b)) {
        (Ok(a), Ok(b)) => FullRule { kind, a, b },
        _ => FullRule::UNSUPPORTED,
    }
}

fn mapped(object: &Object, at: usize) -> &'static [u8] {
    // SAFETY: the tables lie in the object's mapping, and the parser reads only within them.
    unsafe { core::slice::from_raw_parts(at as *const u8, object.end - at) }
}

fn loaded() -> Vec<Object> {
    let mut objects = Vec::new();
    elf::each_object(|object| {
        let (start, end) = object.range();
        objects.push(Object {
            start,
            end,
            bias: object.bias,
            eh_frame_header: object.eh_frame_header(),
            name: object.name(),
        });
        false
    });
    objects
}

/// The first address and the length of each function that has an entry.
fn functions(object: &Object) -> Vec<(usize, usize)> {
    if object.eh_frame_header == 0 {
        return Vec::new();
    }
    let bases = BaseAddresses::default().set_eh_frame_hdr(object.eh_frame_header as u64);
    let header =
        EhFrameHdr::new(mapped(object, object.eh_frame_header), NativeEndian).parse(&bases, 8).unwrap();
    let at = header.eh_frame_ptr().direct().unwrap() as usize;
    let frames = EhFrame::new(mapped(object, at), NativeEndian);
    let bases = bases.set_eh_frame(at as u64);
    let mut entries = frames.entries(&bases);
    let mut found = Vec::new();
    // Behind the section comes something else, which is no entry.
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry {
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { break };
            found.push((fde.initial_address() as usize, fde.len() as usize));
        }
    }
    found
}

#[test]
fn every_loaded_function_has_the_rules_that_gimli_reads() {
    let mut compared = 0;
    for object in loaded() {
        for (start, bytes) in functions(&object) {
            let (inside, before, behind) =
                ((0..bytes).step_by((bytes / 40).max(1)), start.wrapping_sub(1), start + bytes);
            for pc in inside.map(|at| start + at).chain([before, behind]) {
                assert_eq!(compile(&object, pc), judged(&object, pc), "{pc:#x} of {object:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100_000, "{compared} addresses are too few");
}

/// The tables of a small object, with bytes changed at random: whatever is read lies in them.
#[test]
fn damaged_tables_are_read_to_their_end_and_no_further() {
    let objects = loaded().into_iter().filter(|object| functions(object).len() > 20);
    let own = objects.min_by_key(|object| object.end - object.eh_frame_header).unwrap();
    let pages = (own.eh_frame_header..own.end).step_by(4096);
    let bytes = pages.take_while(|page| sys::is_readable(*page)).count() * 4096 - 4096;
    let mut copy = mapped(&own, own.eh_frame_header)[..bytes].to_vec();
    let start = copy.as_ptr() as usize;
    let shift = start.wrapping_sub(own.eh_frame_header);
    let object = Object { start, end: start + bytes, eh_frame_header: start, ..own };
    let functions: Vec<usize> = functions(&own).iter().map(|(at, _)| at.wrapping_add(shift)).collect();
    let (mut seed, mut found, mut lost) = (7u64, 0, 0);
    let mut chance = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    for _ in 0..2_000 {
        let changes: Vec<(usize, u8)> =
            (0..bytes / 50).map(|_| (12 + chance(bytes - 12), chance(256) as u8)).collect();
        let kept: Vec<u8> =
            changes.iter().map(|(at, byte)| core::mem::replace(&mut copy[*at], *byte)).collect();
        for _ in 0..20 {
            let rule = compile(&object, functions[chance(functions.len())]);
            (found, lost) = (found + usize::from(rule.is_some()), lost + usize::from(rule.is_none()));
        }
        changes.iter().zip(kept).rev().for_each(|((at, _), kept)| copy[*at] = kept);
    }
    assert!(found > 1_000 && lost > 1_000, "{found} found, {lost} not");
}

#[test]
fn rules_round_trip_their_offsets_or_are_wide() {
    for (a, b) in [(8, 0), (16, -16), ((8 << 15) - 8, -(8 << 11)), (-(8 << 15), (8 << 11) - 8), (-8, 8)] {
        for kind in [
            RuleKind::Sp,
            RuleKind::Bp,
            RuleKind::SpSavesBp,
            RuleKind::BpSavesBp,
            RuleKind::Realigned,
            RuleKind::Signal,
        ] {
            let rule = FullRule { kind, a, b }.packed();
            assert_eq!((rule.kind(), rule.a(), rule.b()), (kind, a as isize, b as isize));
        }
    }
    for (a, b) in [(8 << 15, 0), (-(8 << 15) - 8, 0), (8, 8 << 11), (8, -(8 << 11) - 8), (12, 0), (16, 4)] {
        assert_eq!(FullRule { kind: RuleKind::BpSavesBp, a, b }.packed().kind(), RuleKind::Wide);
        assert_eq!(FullRule { kind: RuleKind::Realigned, a, b }.packed().kind(), RuleKind::Unsupported);
    }
}

#[test]
fn an_entry_of_the_cache_tells_its_whole_address() {
    for pc in [0x1000usize, 0x5555_5555_4321, 0x7fff_ffff_fffe, 0x7f12_3456_789a] {
        for other in (0..47).map(|bit| pc ^ 1 << bit) {
            let meets = [place(pc), place(pc) ^ 1].contains(&place(other)) || place(other) ^ 1 == place(pc);
            assert!(!meets || tag(pc) != tag(other), "{pc:#x} {other:#x}");
        }
        for place in [place(pc), place(pc) ^ 1] {
            assert_eq!(pc_of(place, tag(pc)), pc);
        }
        assert!(tag(pc) >> 32 == 0 && tag(pc | 1 << 47) >> 32 != 0);
    }
}

#[test]
fn an_address_in_code_has_a_rule_and_one_outside_has_none() {
    let here = an_address_in_code_has_a_rule_and_one_outside_has_none as *const () as usize;
    assert!(matches!(
        rule_at(here + 1, 0).kind(),
        RuleKind::Sp | RuleKind::SpSavesBp | RuleKind::Bp | RuleKind::BpSavesBp
    ));
    assert_eq!(rule_at(16, 0).kind(), RuleKind::FramePointer);
}

/// What a linker has left out mallow makes: with that, every function has the rules of the linker's table.
#[test]
fn mallows_unwind_table_equals_the_linkers() {
    let own = crate::objects::find(mallows_unwind_table_equals_the_linkers as *const () as usize).unwrap();
    let bases = BaseAddresses::default().set_eh_frame_hdr(own.eh_frame_header as u64);
    let header = EhFrameHdr::new(mapped(&own, own.eh_frame_header), NativeEndian).parse(&bases, 8).unwrap();
    let mut made = Vec::new();
    let table = header.table().unwrap();
    let mut rows = table.iter(&bases);
    while let Some((start, entry)) = rows.next().unwrap() {
        made.push([start, entry].map(|it| (it.direct().unwrap() as usize - own.start) as u32));
    }
    // SAFETY: the rows live as long as they are looked at: no other test finds an object without a table that begins there.
    unsafe { cfi::note_table(own.start, made.as_ptr() as usize, made.len()) };
    let without = Object { eh_frame_header: 0, ..own };
    for [start, _] in made.iter().step_by(7) {
        let pc = own.start + *start as usize + 1;
        assert_eq!(compile(&without, pc), compile(&own, pc), "{pc:#x}");
    }
    // SAFETY: none any more.
    unsafe { cfi::note_table(0, 0, 0) };
    assert_eq!(compile(&without, own.start + made[0][0] as usize + 1), None);
}

/// The rule of code that has no table and follows the call before its byte `at`.
fn ruled_without_table(code: &[u8], at: usize) -> FullRule {
    let start = code.as_ptr() as usize;
    let object =
        Object { start, end: start + code.len(), bias: 0, eh_frame_header: 0, name: core::ptr::null() };
    without_table(&object, start + at - 1)
}

/// musl's has no table, and is known by its instructions.
#[test]
fn the_signal_trampoline_is_recognised_without_a_table() {
    let code = [0x90, 0xc3, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x90];
    let rule = ruled_without_table(&code, 2);
    assert_eq!((rule.kind, rule.a), (RuleKind::Signal, 160));
    assert_eq!(ruled_without_table(&code[..10], 2), FullRule::NO_TABLE, "not within the object");
    assert_eq!(ruled_without_table(&code[1..], 1), FullRule::NO_TABLE, "nor what is before it");
    assert_eq!(ruled_without_table(&code, 3), FullRule::NO_TABLE);
}

/// Programs and threads of musl begin in code without a table: as its compiler and two others may write it.
#[test]
fn what_calls_main_and_ends_with_its_result_has_no_caller_to_miss() {
    let codes: [&[u8]; 4] = [
        // call *%rbx; mov %eax,%edi; call exit
        &[0xff, 0xd3, 0x89, 0xc7, 0xe8, 0xaf, 0xfb, 0xff, 0xff, 0x66, 0x2e],
        // call *(%rbx); mov %rax,%rdi; call pthread_exit
        &[0xff, 0x13, 0x48, 0x89, 0xc7, 0xe8, 0x3a, 0xfd, 0xff, 0xff, 0xb9],
        // call *(%rax); movslq %eax,%rdi; call pthread_exit
        &[0xff, 0x10, 0x48, 0x63, 0xf8, 0xe8, 0x0b, 0xfd, 0xff, 0xff, 0x66],
        // call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall
        &[0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4],
    ];
    for code in codes {
        assert_eq!(ruled_without_table(code, 2), FullRule::FRAME_POINTER, "{code:x?}");
    }
    // mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je
    let context = [0x00, 0x00, 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85];
    assert_eq!(ruled_without_table(&context, 2), FullRule::FRAME_POINTER);
    // A named function's result is passed on; a pointer's is kept.
    let passed_on = [0xfb, 0xff, 0x89, 0xc7, 0xe8, 0xaf, 0xfb, 0xff, 0xff, 0x66, 0x2e];
    let kept = [0xff, 0xd3, 0x48, 0x89, 0xc3, 0xe8, 0x3a, 0xfd, 0xff, 0xff, 0xb9];
    for code in [passed_on, kept] {
        assert_eq!(ruled_without_table(&code, 2), FullRule::NO_TABLE, "{code:x?}");
    }
}

/// What is behind the last page of code may not be readable.
#[test]
fn code_at_the_end_of_what_is_mapped_is_not_read_beyond() {
    let (readable, gap) = (sys::map_private(2 * PAGE_BYTES), PAGE_BYTES);
    // SAFETY: the second page of our own mapping, to which nothing refers.
    unsafe { sys::unmap(readable.add(gap), PAGE_BYTES) };
    let start = readable as usize;
    let object =
        Object { start, end: start + 2 * PAGE_BYTES, bias: 0, eh_frame_header: 0, name: core::ptr::null() };
    for bytes_before_gap in 0..12 {
        assert_eq!(without_table(&object, start + gap - 1 - bytes_before_gap), FullRule::NO_TABLE);
    }
}
