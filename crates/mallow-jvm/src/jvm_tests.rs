//! A JVM of four pieces of code and two methods, written down by hand.

use super::*;
use crate::blobs::BELIEVED_NS;
use crate::memory::made_up::MadeUp;
use crate::methods::made_up::{PLACES as METHOD_PLACES, bytecode_of, put_method};
use std::cell::RefCell;

const CODE: u64 = 0x50_0000;
const INTERPRETER: u64 = CODE + 0x8000;
const CALL_STUB: u64 = CODE + 0x7010;
const INNER: u64 = 0x2_0000;
const OUTER: u64 = 0x3_0000;
/// Where the stack lies.
const SP: u64 = 0x7000_0000;

const PLACES: [(Place, u64); 18] = [
    (Place::Heaps, 0x100),
    (Place::LowBound, 0x110),
    (Place::HighBound, 0x118),
    (Place::HeapMemory, 8),
    (Place::HeapSegments, 40),
    (Place::HeapShift, 72),
    (Place::SpaceLow, 0),
    (Place::SpaceHigh, 8),
    (Place::BlockSize, 16),
    (Place::BlobName, 0),
    (Place::BlobFrameSize, 8),
    (Place::CodeOffset, 12),
    (Place::FrameComplete, 16),
    (Place::CompiledMethod, 24),
    (Place::CompileId, 32),
    (Place::OriginalPc, 36),
    (Place::DeoptOffset, 40),
    (Place::ScopePcs, 44),
];
const MORE_PLACES: [(Place, u64); 4] =
    [(Place::ScopePcsEnd, 48), (Place::Metadata, 52), (Place::ScopesBegin, 56), (Place::BlobBytes, 64)];

/// A process with a JVM.
struct Process {
    memory: &'static MadeUp,
    /// Words of the stack, from [`SP`] on.
    stack: Vec<u64>,
    table: RefCell<FrameTable>,
}

impl Process {
    fn new() -> Process {
        let memory: &'static MadeUp = Box::leak(Box::default());
        memory.put_word(0x100, 0x200);
        memory.put_int(0x200, 1);
        memory.put_word(0x208, 0x300);
        memory.put_word(0x300, 0x400);
        for (at, word) in [(8, CODE), (16, CODE + 0x1_0000), (40, 0x1_0000)] {
            memory.put_word(0x400 + at, word);
        }
        memory.put_int(0x400 + 72, 12);
        memory.put_word(0x110, CODE);
        memory.put_word(0x118, CODE + 0x1_0000);
        // Segments of 4 KiB: each piece of code has two.
        memory.put(0x1_0000, &[0, 1, 0, 1, 0, 1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        put_method(memory, INNER, "shop/Cart", "add");
        put_method(memory, OUTER, "shop/Main", "run");
        let process = Process { memory, stack: vec![0; 64], table: RefCell::default() };
        process.compiled(0, 1, &[(0x40, &[INNER, OUTER])]);
        process.compiled(0x2000, 2, &[(0x40, &[OUTER])]);
        process.blob(0x4000, b"StubRoutines (1)\0", 0);
        process.blob(0x6000, b"call stub\0\0\0\0\0\0\0\0", 0);
        process
    }

    fn blob(&self, at: u64, name: &[u8], frame_words: i32) -> u64 {
        let blob = CODE + at + 16;
        self.memory.put(blob, &[0; 0x800]);
        self.memory.put(blob + 0x700, name);
        self.memory.put_word(blob, blob + 0x700);
        self.memory.put_int(blob + 8, frame_words);
        self.memory.put_int(blob + 12, 0x100);
        self.memory.put_int(blob + 64, 0x1800);
        blob
    }

    /// A compiled method with frames of 48 bytes; the scopes of its places, each of methods innermost first, at bytecodes 1, 6, 1, 6, …
    fn compiled(&self, at: u64, number: i32, places: &[(i32, &[u64])]) {
        let blob = self.blob(at, b"nmethod\0\0\0\0\0\0\0\0\0", 6);
        self.memory.put(blob + 16, &8i16.to_le_bytes());
        self.memory.put_word(blob + 24, OUTER);
        self.memory.put_int(blob + 32, number);
        self.memory.put_int(blob + 36, 8);
        self.memory.put_int(blob + 40, 0x300);
        self.memory.put_int(blob + 44, 0x400);
        self.memory.put_int(blob + 48, 0x400 + 16 * places.len() as i32);
        self.memory.put_int(blob + 52, 0x500);
        self.memory.put_word(blob + 56, blob + 0x600);
        let mut decode = 1;
        for (at, (offset, methods)) in (blob + 0x400..).step_by(16).zip(places) {
            self.memory.put_int(at, *offset);
            self.memory.put_int(at + 4, decode);
            for (index, method) in methods.iter().enumerate() {
                let outside = if index + 1 < methods.len() { decode + 4 } else { 0 };
                let bytecode = if index % 2 == 0 { 1 } else { 6 };
                let scope = [outside as u8, decode as u8, bytecode + 1];
                self.memory.put(blob + 0x600 + decode as u64, &scope);
                self.memory.put_word(blob + 0x500 + (decode as u64 - 1) * 8, *method);
                decode += 4;
            }
        }
    }

    fn jvm(&self) -> Jvm<&'static MadeUp> {
        let all = [&PLACES[..], &MORE_PLACES, &METHOD_PLACES].concat();
        let layout = Layout::made_up(17, &all);
        let exports = Exports::of(|_| Some(8)).unwrap();
        let mut jvm = Jvm::new(exports, self.memory);
        jvm.state = State::Met(Box::new(Met {
            layout,
            bounds: CODE..CODE + 0x1_0000,
            interpreter: INTERPRETER..INTERPRETER + 0x1000,
            call_stub: CALL_STUB,
            looked_at_ns: 0,
        }));
        jvm
    }

    /// The frames of a walk, and where it ends.
    fn walk(&self, jvm: &mut Jvm<&'static MadeUp>, at: At) -> (Vec<String>, At) {
        let stack = |address: u64| {
            let offset = address.checked_sub(SP)?;
            (offset % 8 == 0).then(|| self.stack.get(offset as usize / 8).copied()).flatten()
        };
        let (mut table, mut stood, mut at) = (self.table.borrow_mut(), Vec::new(), at);
        while jvm.holds(at.pc) {
            let Some(caller) = jvm.step(&at, &stack, &mut table, &mut stood) else { break };
            at = caller;
        }
        let shown = stood.iter().map(|number| {
            let frame = table.frame(*number).unwrap();
            format!("{}:{}", frame.function, frame.line.unwrap_or(0))
        });
        (shown.collect(), at)
    }
}

/// An address of the first compiled method's code, and of the second's.
fn first(offset: u64) -> u64 {
    CODE + 16 + 0x100 + offset
}

fn second(offset: u64) -> u64 {
    first(offset) + 0x2000
}

const NATIVE: u64 = 0x9999;

#[test]
fn compiled_methods_and_those_within_them_are_left_by_their_length() {
    let mut process = Process::new();
    (process.stack[5], process.stack[4]) = (second(0x40), 0x77);
    (process.stack[11], process.stack[10]) = (CALL_STUB, SP + 14 * 8);
    (process.stack[14], process.stack[15]) = (0x88, NATIVE);
    let mut jvm = process.jvm();
    assert_eq!((jvm.may_hold(CODE), jvm.may_hold(NATIVE)), (true, false));
    let at = At { pc: first(0x40), sp: SP, bp: 1, ..At::default() };
    let (shown, end) = process.walk(&mut jvm, at);
    assert_eq!(shown, ["shop.Cart.add:7", "shop.Main.run:9", "shop.Main.run:7"]);
    assert_eq!(end, At { pc: NATIVE, sp: SP + 16 * 8, bp: 0x88, ..At::default() });
    // What was met before costs nothing.
    let reads = process.memory.reads.get();
    assert_eq!(process.walk(&mut jvm, at).0.len(), 3);
    assert_eq!(process.memory.reads.get(), reads);
}

#[test]
fn an_interrupted_method_is_left_by_what_it_does() {
    let mut process = Process::new();
    // push rbp; sub rsp, 0x20: its frame is made behind 8 bytes. At 0x20: pop rbp; ret.
    process.memory.put(first(0), &[0x55, 0x48, 0x81, 0xec, 0x20, 0, 0, 0]);
    process.memory.put(first(0x20), &[0x5d, 0xc3]);
    let mut jvm = process.jvm();
    let mut caller = |offset: u64, stack: &[(usize, u64)]| {
        process.stack.fill(0);
        stack.iter().for_each(|(at, word)| process.stack[*at] = *word);
        let at = At { pc: first(offset), sp: SP, bp: 0x66, is_exact: true, ..At::default() };
        let (shown, end) = process.walk(&mut jvm, at);
        (shown.first().cloned(), (end.pc, end.sp - SP, end.bp))
    };
    let (inner, ra) = (Some("shop.Cart.add:7".to_owned()), second(0x40));
    assert_eq!(caller(0, &[(0, ra)]), (inner.clone(), (ra, 8, 0x66)));
    assert_eq!(caller(1, &[(1, ra), (0, 0x77)]), (inner.clone(), (ra, 16, 0x77)));
    assert_eq!(caller(8, &[(5, ra), (4, 0x77)]), (inner.clone(), (ra, 48, 0x77)));
    assert_eq!(caller(0x20, &[(1, ra), (0, 0x77)]), (inner.clone(), (ra, 16, 0x77)));
    assert_eq!(caller(0x21, &[(0, ra)]), (inner.clone(), (ra, 8, 0x66)));
    // Behind no call, so it is no caller; and it is not looked for elsewhere.
    assert_eq!(caller(8, &[(5, ra + 1), (0, ra)]), (inner, (first(8), 0, 0x66)));
}

#[test]
fn interpreted_frames_say_which_method_they_are_in() {
    let mut process = Process::new();
    let bp = SP + 20 * 8;
    process.stack[20 - 8] = bytecode_of(INNER) + 1;
    process.stack[20 - 3] = INNER;
    process.stack[20 - 1] = SP + 26 * 8;
    (process.stack[20], process.stack[21]) = (0x55, second(0x40));
    process.stack[26 + 5] = NATIVE;
    let mut jvm = process.jvm();
    let at = At { pc: INTERPRETER + 9, sp: SP, bp, ..At::default() };
    let (shown, end) = process.walk(&mut jvm, at);
    assert_eq!(shown, ["shop.Cart.add:7", "shop.Main.run:7"]);
    assert_eq!((end.pc, end.sp), (second(0x40), SP + 26 * 8), "a caller that is none of Java's");
    // The register is further than what was saved; what it has elsewhere is something else.
    let line = |jvm: &mut Jvm<&'static MadeUp>, r13| {
        process.walk(jvm, At { r13, is_exact: true, ..at }).0.swap_remove(0)
    };
    assert_eq!(line(&mut jvm, Some(bytecode_of(INNER) + 6)), "shop.Cart.add:9");
    assert_eq!(line(&mut jvm, Some(SP)), "shop.Cart.add:7");
    // Where it has no frame yet the caller's words are on top.
    let mut process = Process::new();
    process.stack[0] = second(0x40);
    let entering = At { pc: INTERPRETER + 9, sp: SP, bp: 3, r13: Some(SP + 24), is_exact: true };
    let (shown, end) = process.walk(&mut process.jvm(), entering);
    assert_eq!((shown[0].as_str(), shown[1].as_str()), ("Stub Interpreter:0", "shop.Main.run:7"));
    assert_eq!(end.sp, SP + 24);
    // The first words of one are there.
    process.stack[0] = 0;
    (process.stack[2], process.stack[3]) = (0x77, second(0x40));
    let (shown, end) = process.walk(&mut process.jvm(), At { bp: SP + 16, r13: Some(SP + 40), ..entering });
    assert_eq!((shown.len(), end.pc, end.sp, end.bp), (2, second(0x40), SP + 40, 0x77));
}

#[test]
fn a_frame_that_was_given_up_says_where_it_stands() {
    let mut process = Process::new();
    process.stack[1] = first(0x40);
    process.stack[5] = second(0x40);
    let mut jvm = process.jvm();
    // The handler is 0x300 behind the piece's beginning, which is 0x100 in front of its code.
    let (shown, end) = process.walk(&mut jvm, At { pc: first(0x200), sp: SP, ..At::default() });
    assert_eq!(shown, ["shop.Cart.add:7", "shop.Main.run:9", "shop.Main.run:7"]);
    assert_eq!(end.pc, second(0x40));
}

#[test]
fn stubs_have_their_name_where_the_time_is_in_them() {
    let mut process = Process::new();
    let stub = CODE + 0x4000 + 0x110;
    process.stack[0] = second(0x40);
    let mut jvm = process.jvm();
    let at = At { pc: stub, sp: SP, bp: 5, is_exact: true, ..At::default() };
    assert_eq!(process.walk(&mut jvm, at).0, ["StubRoutines (1):0", "shop.Main.run:7"]);
    // With a frame.
    process.stack[0] = 0;
    (process.stack[4], process.stack[5]) = (0x77, second(0x40));
    let (shown, end) = process.walk(&mut jvm, At { bp: SP + 32, ..at });
    assert_eq!((shown.len(), end.pc, end.bp), (2, second(0x40), 0x77));
    let (shown, _) = process.walk(&mut jvm, At { bp: SP + 32, is_exact: false, ..at });
    assert_eq!(shown, ["shop.Main.run:7"]);
    // The barrier at a method's entry, which is called where the compiler notes nothing.
    process.memory.put(second(0x50), &[0xe8, 0, 0, 0, 0]);
    (process.stack[5], process.stack[6]) = (u64::MAX, second(0x55));
    let (shown, end) = process.walk(&mut jvm, At { bp: SP + 32, ..at });
    assert_eq!((shown[1].as_str(), end.pc, end.sp), ("shop.Main.run:0", second(0x55), SP + 56));
}

#[test]
fn code_that_took_the_place_of_other_code_is_looked_at_anew() {
    let mut process = Process::new();
    process.stack[5] = NATIVE;
    let mut jvm = process.jvm();
    let at = At { pc: first(0x40), sp: SP, ..At::default() };
    assert_eq!(process.walk(&mut jvm, at).0.len(), 2);
    process.compiled(0, 3, &[(0x40, &[OUTER])]);
    jvm.begin(BELIEVED_NS - 1);
    assert_eq!(process.walk(&mut jvm, at).0.len(), 2, "for a moment nobody looks");
    jvm.begin(BELIEVED_NS);
    assert_eq!(process.walk(&mut jvm, at).0, ["shop.Main.run:7"]);
    // What is known of a process that has ended stays, and nothing is added.
    process.memory.refuses.set(Some(Unreadable::Gone));
    jvm.begin(9 * BELIEVED_NS);
    assert_eq!(process.walk(&mut jvm, at).0, ["shop.Main.run:7"]);
    assert_eq!(process.walk(&mut jvm, At { pc: second(0x40), ..at }).0.len(), 0);
}

#[test]
fn a_jvm_that_cannot_be_read_says_why() {
    let memory = MadeUp::default();
    let exports = Exports::of(|_| Some(8)).unwrap();
    let mut jvm = Jvm::new(exports, &memory);
    // It has not begun, or is something else: it is asked some times.
    let mut now_ns = 0;
    for _ in 0..30 {
        jvm.begin(now_ns);
        now_ns += 1_000_000_000;
    }
    assert_eq!((jvm.unread(), jvm.holds(CODE), jvm.may_hold(CODE)), (None, false, true));
    memory.put_word(8, 0x1000);
    memory.put(0x1000, &[0; 4096]);
    for _ in 0..17 {
        jvm.begin(now_ns);
        now_ns += 1_000_000_000;
    }
    assert_eq!(jvm.unread(), Some(Unread::Layout));
    memory.refuses.set(Some(Unreadable::Refused));
    let mut other = jvm.forked(&memory);
    other.begin(0);
    assert_eq!(other.unread(), Some(Unread::Refused));
}

#[test]
fn whatever_lies_in_memory_ends_a_walk() {
    // Numbers that repeat after a long time, over all that is read.
    let mut seed = 0x1234_5678_9abc_def1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 16
    };
    for round in 0..100 {
        let mut process = Process::new();
        for _ in 0..round {
            let at = [0x100, 0x200, 0x300, 0x400, CODE + 16, CODE + 0x410, CODE + 0x610, INNER, OUTER]
                [next() as usize % 9];
            let byte = [0, 1, 0x7f, 0xff, next() as u8][next() as usize % 5];
            process.memory.put(at + next() % 0x90, &[byte]);
        }
        let words = [
            0,
            u64::MAX,
            SP,
            SP + 64,
            INNER,
            bytecode_of(INNER),
            first(0x40),
            second(0x40),
            CALL_STUB,
            INTERPRETER,
        ];
        for word in &mut process.stack {
            *word = words[next() as usize % words.len()];
        }
        let mut jvm = process.jvm();
        for pc in [first(0), first(0x40), second(0x41), INTERPRETER, CALL_STUB, CODE + 0x4110, first(0x200)] {
            for is_exact in [false, true] {
                let bp = [0, SP + 64, u64::MAX - 7, SP + 8][next() as usize % 4];
                let at = At { pc, sp: SP + next() % 3 * 8, bp, r13: Some(next()), is_exact };
                let (shown, _) = process.walk(&mut jvm, at);
                assert!(shown.len() < 64 * 64);
            }
        }
    }
}
