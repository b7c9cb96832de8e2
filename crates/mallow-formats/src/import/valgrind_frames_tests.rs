//! Tests of frames as Valgrind writes them.

use super::*;
use mallow_profile::{Availability, Process, Recording, SiteTotals};

fn frame(text: &str) -> (Option<u64>, String, Option<String>, Option<u32>, Option<String>) {
    let parsed = parse(text);
    let Frame { function, file, line, module, inlined, .. } = parsed.frame;
    assert!(!inlined);
    (parsed.address, function, file, line, module)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn frames_are_taken_apart() {
    let cases = [
        ("0x1091E8: grow_inner (rows.c:20)", (Some(0x1091e8), "grow_inner", some("rows.c"), Some(20), None)),
        (
            "0x10: f(int (*)(char)) (in /lib/x y.so)",
            (Some(16), "f(int (*)(char))", None, None, some("/lib/x y.so")),
        ),
        ("0x10: f (in /opt/a (b)/x.so)", (Some(16), "f", None, None, some("/opt/a (b)/x.so"))),
        ("0x10: f (a (b)/x.c:3)", (Some(16), "f", some("a (b)/x.c"), Some(3), None)),
        ("0x1f: <A as B>::c (src/d.rs:15:19)", (Some(31), "<A as B>::c", some("src/d.rs"), Some(15), None)),
        ("0x1f: a::b (???:0:0)", (Some(31), "a::b", None, None, None)),
        ("0x1f: a (b.c:0)", (Some(31), "a", some("b.c"), None, None)),
        ("0x48F: ??? (in /lib/a.so)", (Some(0x48f), "0x48f", None, None, some("/lib/a.so"))),
        ("0x48F: ???", (Some(0x48f), "0x48f", None, None, None)),
        ("0x0: ???", (None, "[unknown]", None, None, None)),
        ("0x0: main (in ???)", (None, "main", None, None, None)),
        ("0x10: operator()(int)", (Some(16), "operator()(int)", None, None, None)),
        ("0x10: work(int) (.isra.0)", (Some(16), "work(int) (.isra.0)", None, None, None)),
        ("0x10: closed)", (Some(16), "closed)", None, None, None)),
        ("main", (None, "main", None, None, None)),
        ("0xZZ: main", (None, "0xZZ: main", None, None, None)),
        ("", (None, "[unknown]", None, None, None)),
    ];
    for (text, (address, function, file, line, module)) in cases {
        assert_eq!(frame(text), (address, function.to_owned(), file, line, module), "{text}");
    }
}

#[test]
fn the_allocating_function_is_known() {
    for text in [
        "0x48: malloc (in /usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so)",
        "0x48: operator new(unsigned long) (vg_replace_malloc.c:422)",
        "0x48: <dhat::Alloc as core::alloc::global::GlobalAlloc>::alloc (dhat-0.3.3/src/lib.rs:1176:9)",
    ] {
        assert!(parse(text).is_allocator, "{text}");
    }
    assert!(!parse("0x48: malloc (in /lib/libc.so.6)").is_allocator);
}

/// Returns the stack's locations, innermost first, each with its frames; `~` precedes an inlined one.
fn stack(texts: &[&str], numbers: &[u32]) -> Vec<String> {
    let mut frames = Frames::new(texts, 1000);
    let mut builder = ProfileBuilder::new(Recording::default(), Availability::NOTHING);
    let stack = frames.stack(&mut builder, numbers).unwrap();
    let process = builder.add_process(Process::default());
    builder.add_site(process, stack, &SiteTotals::default());
    let profile = builder.finish();
    profile
        .stacks
        .chain(stack)
        .map(|id| {
            let frames = &profile.stacks.locations[profile.stacks.node(id).location.0 as usize].frames;
            let name = |frame: &Frame| format!("{}{}", if frame.inlined { "~" } else { "" }, frame.function);
            frames.iter().map(name).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[test]
fn one_address_is_one_location_unless_it_recurs() {
    let texts = [
        "0x9: malloc (vg_replace_malloc.c:1)",
        "0x1: item (a.c:1)",
        "0x1: fill (a.c:2)",
        "0x2: main (a.c:3)",
        "no",
    ];
    assert_eq!(stack(&texts, &[0, 1, 2, 3]), ["~item fill", "main"]);
    assert_eq!(stack(&texts, &[1, 2, 1, 2, 3]), ["~item fill", "~item fill", "main"]);
    assert_eq!(stack(&texts, &[2, 2, 2]), ["fill", "fill", "fill"]);
    assert_eq!(stack(&texts, &[4, 4]), ["no", "no"]);
    assert_eq!(stack(&texts, &[0]), [""; 0]);
    assert_eq!(stack(&texts, &[1, 0, 3]), ["item", "malloc", "main"]);
}

#[test]
fn inlined_frames_cannot_grow_without_bound() {
    let long = format!("0x1: {}", "x".repeat(1 << 18));
    let texts: Vec<String> = (0..5).map(|index| format!("0x1: f{index}")).chain([long]).collect();
    let mut frames = Frames::new(&texts, 1000);
    let mut builder = ProfileBuilder::new(Recording::default(), Availability::NOTHING);
    let made: Vec<bool> = (0..5).map(|short| frames.stack(&mut builder, &[short, 5]).is_ok()).collect();
    assert_eq!(made, [true, true, true, false, false]);
}
