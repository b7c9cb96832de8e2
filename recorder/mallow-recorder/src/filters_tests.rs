//! Filters run here, against what the kernel would say.

use super::*;

const fn step(code: u16, if_true: u8, if_false: u8, value: u32) -> Instruction {
    Instruction { code, if_true, if_false, value }
}

const CALL: Call = Call { number: 41, arguments: [1, 0x5_0000_0002, 3], may_fail: false };
const ALLOW: Instruction = step(6, 0, 0, 0x7fff_0000);
const KILL: Instruction = step(6, 0, 0, 0);

/// Filters with every instruction, and what they say of a call with number 41 and arguments 1, 0x5_0000_0002 and 3.
#[test]
fn a_filter_says_here_what_it_says_to_the_kernel() {
    let is = |value| step(0x15, 0, 1, value);
    let word = |offset| step(0x20, 0, 0, offset);
    let of = |steps: &[Instruction]| answer(steps, CALL);
    let lets = |steps: &[Instruction]| {
        let all: Vec<Instruction> = steps.iter().copied().chain([ALLOW, KILL]).collect();
        of(&all) == Some(ALLOW.value)
    };
    for (offset, value) in
        [(0, 41), (4, 0xc000_003e), (16, 1), (20, 0), (24, 2), (28, 5), (32, 3), (40, 0), (60, 0)]
    {
        assert!(lets(&[word(offset), is(value)]) && !lets(&[word(offset), is(value + 1)]), "{offset}");
    }
    for offset in [2, 64, 68, u32::MAX] {
        assert_eq!(of(&[word(offset), ALLOW]), None);
    }
    let constant = |value| step(0x00, 0, 0, value);
    let index = |value| step(0x01, 0, 0, value);
    let calculations = [
        (0x04, 25),
        (0x14, 15),
        (0x24, 100),
        (0x34, 4),
        (0x44, 21),
        (0x54, 4),
        (0x64, 640),
        (0x74, 0),
        (0xa4, 17),
    ];
    for (code, expected) in calculations {
        assert!(lets(&[constant(20), step(code, 0, 0, 5), is(expected)]), "{code:x}");
        assert!(lets(&[constant(20), index(5), step(code | 8, 0, 0, 99), is(expected)]), "{code:x} by index");
    }
    assert!(lets(&[constant(1), step(0x84, 0, 0, 0), is(u32::MAX)]));
    // By a constant of 0 the kernel lets nobody divide; by the index, the answer is 0.
    assert_eq!(of(&[constant(1), step(0x34, 0, 0, 0), ALLOW]), None);
    assert_eq!(of(&[constant(1), index(0), step(0x3c, 0, 0, 0), ALLOW]), Some(0));
    // By way of memory, both registers, and the length.
    assert!(lets(&[constant(7), step(0x02, 0, 0, 3), constant(0), step(0x60, 0, 0, 3), is(7)]));
    assert!(lets(&[index(8), step(0x03, 0, 0, 15), step(0x61, 0, 0, 15), step(0x87, 0, 0, 0), is(8)]));
    assert!(lets(&[constant(9), step(0x07, 0, 0, 0), constant(0), step(0x87, 0, 0, 0), is(9)]));
    assert!(
        lets(&[step(0x80, 0, 0, 0), is(64)]) && lets(&[step(0x81, 0, 0, 0), step(0x87, 0, 0, 0), is(64)])
    );
    assert_eq!(of(&[step(0x60, 0, 0, 16), ALLOW]), None);
    for (code, value, holds) in [
        (0x25, 4, true),
        (0x25, 5, false),
        (0x35, 5, true),
        (0x35, 6, false),
        (0x45, 4, true),
        (0x45, 2, false),
    ] {
        assert_eq!(lets(&[constant(5), step(code, 0, 1, value)]), holds, "{code:x} {value}");
        assert_eq!(lets(&[constant(5), index(value), step(code | 8, 0, 1, 0)]), holds, "{code:x} {value}");
    }
    assert_eq!(of(&[step(0x05, 0, 0, 1), KILL, ALLOW]), Some(ALLOW.value));
    assert_eq!(of(&[constant(3), step(0x16, 0, 0, 0)]), Some(3));
    // What leaves the program or is none.
    for broken in
        [&[][..], &[constant(0)], &[step(0x05, 0, 0, u32::MAX), ALLOW], &[step(0x28, 0, 0, 0), ALLOW]]
    {
        assert_eq!(of(broken), None, "{broken:?}");
    }
}

#[test]
fn a_filter_that_answers_one_of_our_calls_is_told_from_one_that_does_not() {
    let against = |number: u32, action| {
        let filter = [step(0x20, 0, 0, 0), step(0x15, 0, 1, number), step(6, 0, 0, action), ALLOW];
        let program = [filter.len(), filter.as_ptr() as usize];
        lets_all_through(program.as_ptr() as usize, &sys::CALLS_OF_A_START).unwrap()
    };
    const LOG: u32 = 0x7ffc_0000;
    // socket and ptrace: killed, trapped, refused, answered by nobody, and let through.
    for action in [0x8000_0000, 0, 0x3_0000, 0x5_0001, 0x7ff0_0000, 0x7fc0_0000] {
        assert_eq!((against(41, action), against(101, action)), (false, true), "{action:x}");
    }
    assert!(against(41, LOG));
    // process_vm_readv may fail, and must not kill or give nothing for success.
    assert_eq!(
        [against(310, 0x5_0001), against(310, 0x5_0000), against(310, 0x8000_0000)],
        [true, false, false]
    );
    for nothing in [[0, 0], [1, 0], [5000, 8]] {
        assert_eq!(lets_all_through(nothing.as_ptr() as usize, &[sys::THREAD_ID]), None, "{nothing:?}");
    }
    assert_eq!(lets_all_through(8, &[]), None);
}

/// Whatever a program may try to set: an answer or none, after as many steps as it has instructions at most.
#[test]
fn no_program_is_too_odd_to_be_asked() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut answered = 0;
    for _ in 0..200_000 {
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let filter: Vec<Instruction> = (0..random() % 12)
            .map(|_| {
                step((random() & 0xff) as u16, (random() & 3) as u8, (random() & 3) as u8, random() % 72)
            })
            .collect();
        answered += usize::from(answer(&filter, CALL).is_some());
    }
    assert!(answered > 10_000, "{answered}");
}

#[test]
fn a_number_is_found_in_a_status_however_it_is_cut() {
    let found = |name: &str, text: &str| {
        let mut line = NumberLine { name: name.as_bytes(), met: 0, number: None };
        let _ = text.bytes().any(|byte| line.ends_with(byte));
        line.number
    };
    let text = "Name:\ta\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t13\n";
    assert_eq!((found("Seccomp", text), found("Seccomp_filters", text)), (Some(2), Some(13)));
    assert_eq!(found("Seccomp", "Name:\tSeccomp:\t1\n\n\nSec\nSeccomp:\t0\n"), Some(0));
    for nothing in ["Name:\ta\nSeccomp_filters:\t1\n", "Seccomp:\t1\n", "\nSeccomp:\tx\n", ""] {
        assert_eq!(found("Seccomp", nothing), None, "{nothing:?}");
    }
    let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("Seccomp:\t")).unwrap();
    assert_eq!(status_number("Seccomp"), Some(own.parse().unwrap()));
    assert_eq!(status_number("Nothing"), None);
}
