//! A signal handler that allocates at any instruction of the recorder: every count, byte and stack is right. Every
//! run tests some instructions, the long suite all of them.
//!
//! `programs/hazards/single_step.c` explains how the signal is raised. Its metrics follow from the rounds that it
//! prints.

use e2e::session::{Session, json, metric};
use e2e::{Exit, Workshop, run, stacks};
use mallow_wire::shared::{CHANNELS_OFFSET, Channel, RING_WORDS};
use serde_json::Value;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};

/// Normal, a static alternate stack, and an alternate stack that is a local array of `main`.
const STACKS: [&str; 3] = ["normal", "static", "frame"];

fn built(workshop: &Workshop, libs: &[&str]) -> PathBuf {
    let program = workshop.file("single_step");
    let mut gcc = run::command("cc");
    gcc.args([
        "-O2",
        "-g",
        "-Wall",
        "-Wextra",
        "-fomit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-pthread",
    ]);
    gcc.arg("-I").arg(e2e::repository().join("markers/c"));
    gcc.arg("-o").arg(&program).arg(e2e::repository().join("programs/hazards/single_step.c"));
    gcc.args(libs);
    let _ = run::finish(&mut gcc).well();
    program
}

/// Returns what the program printed: the number of rounds, of signals, and of blocks that filled the ring.
fn printed(text: &str) -> [u64; 3] {
    let metric = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the program prints it");
        line.trim().parse().expect("a number")
    };
    ["rounds ", "struck ", "filled "].map(metric)
}

/// Expected calls and bytes of the program's own functions.
struct Expected {
    function: &'static str,
    allocations: u64,
    bytes: u64,
    /// Each of its stacks contains these, from the innermost out.
    through: &'static [&'static str],
}

fn of_operation(operation: &str, [rounds, struck, filled]: [u64; 3]) -> Vec<Expected> {
    let stepped = if operation == "full" { 3 * rounds } else { rounds };
    let mut expected = vec![Expected {
        function: "stepped_malloc",
        allocations: stepped,
        bytes: 100 * stepped,
        through: if operation == "thread" { &["in_thread"] } else { &["all_rounds", "main"] },
    }];
    if operation == "realloc" {
        let (allocations, bytes) = (rounds, 200 * rounds);
        expected.push(Expected { function: "stepped_realloc", allocations, bytes, through: &["main"] });
    }
    if operation == "full" {
        let (allocations, bytes) = (filled, 8 * filled);
        expected.push(Expected { function: "filler", allocations, bytes, through: &["main"] });
    }
    // A signal allocates and reallocates, and is on the stack of what it interrupted.
    expected.push(Expected {
        function: "struck",
        allocations: 2 * struck,
        bytes: 96 * struck,
        through: match operation {
            "thread" => &["on_step", "stepped_malloc", "in_thread"],
            "free" => &["on_step", "stepped_free", "main"],
            "realloc" => &["on_step", "stepped_realloc", "main"],
            _ => &["on_step", "stepped_malloc", "main"],
        },
    });
    expected
}

fn differences(report: &Value, expected: &[Expected], own: &Path) -> Vec<String> {
    let mut differences = Vec::new();
    for site in expected {
        let rows = stacks::of_site(report, &serde_json::json!({"function": site.function}), own);
        let sum = |name: &str| rows.iter().map(|row| metric(row, name)).sum::<u64>();
        let found = (sum("allocations"), sum("bytes"));
        if found != (site.allocations, site.bytes) {
            let wanted = (site.allocations, site.bytes);
            differences.push(format!("{}: {found:?} instead of {wanted:?}", site.function));
        }
        for row in rows {
            let names = stacks::names(row);
            let mut rest = names.iter();
            if !site.through.iter().all(|wanted| rest.any(|name| name == wanted)) {
                differences
                    .push(format!("{} does not lead through {:?}: {names:?}", site.function, site.through));
            }
        }
    }
    differences
}

/// Returns the positions of the first ring's head and tail in the shared memory, and its length.
fn ring_words() -> [String; 3] {
    let [head, tail] = [offset_of!(Channel, head), offset_of!(Channel, tail)].map(|at| CHANNELS_OFFSET + at);
    [head, tail, RING_WORDS].map(|metric| metric.to_string())
}

/// Raises the signal at every `stride`th instruction of an operation, on each stack, recorded and counted.
fn every_count_byte_and_stack_is_right(operation: &str, stride: u64) {
    with_libraries(operation, stride, &[]);
}

/// The same with an allocator linked in, whose functions are patched.
fn with_an_allocator(operation: &str, stride: u64) {
    with_libraries(operation, stride, &["-l:libjemalloc.a", "-lm", "-ldl"]);
}

/// Returns the stride of the stack with this number, and the first instruction: each stack meets others.
fn instructions(stride: u64, stack: usize) -> String {
    format!("{stride}+{}", stride * stack as u64 / STACKS.len() as u64)
}

fn with_libraries(operation: &str, stride: u64, libs: &[&str]) {
    let workshop = Workshop::new(&format!("step-{operation}"));
    let program = built(&workshop, libs).to_string_lossy().into_owned();
    for (number, stack) in STACKS.into_iter().enumerate() {
        let mut words: Vec<String> =
            vec![program.clone(), operation.into(), stack.into(), instructions(stride, number)];
        let session_of = |words: &[String]| {
            Session::new(workshop.path(), &words.iter().map(String::as_str).collect::<Vec<&str>>())
        };
        let counted_words = words.clone();
        if operation == "full" {
            words.extend(ring_words());
        }
        let session = session_of(&words);
        let recorded = session.record().well();
        let metrics = printed(&recorded.stdout);
        let [_, struck, _] = metrics;
        let report = session.report(&[]);
        assert_eq!(report["complete"], true, "{recorded}");
        let mut found = differences(&report, &of_operation(operation, metrics), workshop.path());
        // A thread's own block is libc's, and stays live.
        let has_thread = ["thread", "full"].contains(&operation);
        let totals = &report["totals"];
        if metric(totals, "allocations") != metric(totals, "frees") + u64::from(has_thread) {
            found.push(format!("allocations and frees do not meet: {totals}"));
        }
        assert!(struck >= 8, "only {struck} strikes\n{recorded}");
        assert!(found.is_empty(), "{operation} on {stack}: {}\n{recorded}", found.join("\n"));

        // What libc allocates for its threads is not stated, but the same each time.
        let of_libc = beyond(&report["totals"], &of_operation(operation, metrics));
        assert!(has_thread || of_libc == (0, 0), "{operation} on {stack}: {of_libc:?}");
        // Counting has no ring that could be full, and no thread that wakes mallow.
        let of_libc = if operation == "full" { (0, 0) } else { of_libc };
        let (counted, document) = session_of(&counted_words).stat();
        let metrics = printed(&counted.well().stdout);
        let found = beyond(&document["runs"][0]["totals"], &of_operation(operation, metrics));
        assert_eq!(found, of_libc, "stat: {operation} on {stack}");
    }
}

/// Raises the signal at instructions of a region's begin and end. Each is inside or outside of that region; a region
/// around all rounds contains all of them.
fn every_mark_is_right(stride: u64) {
    let workshop = Workshop::new("step-mark");
    let program = built(&workshop, &[]);
    for (number, stack) in STACKS.into_iter().enumerate() {
        let suite = workshop.file(stack);
        fs::create_dir(&suite).unwrap();
        let output = suite.join("printed");
        let stride = instructions(stride, number);
        let command = format!("{} mark {stack} {stride} > {}", program.display(), output.display());
        let manifest = format!(
            "[gate]\nruns = 1\nwarmup = 0\ntimeout = \"240s\"\n[[test]]\nname = \"step\"\ncmd = [\"sh\", \"-c\", \"exec {command}\"]\n"
        );
        fs::write(suite.join("mallow.toml"), manifest).unwrap();
        let mut mallow = run::mallow();
        mallow.env("XDG_CACHE_HOME", workshop.file("cache")).arg("check").arg(&suite).arg("--json");
        let checked = run::finish(&mut mallow).ended(Exit::Status(3));
        let [rounds, struck, _] = printed(&fs::read_to_string(&output).unwrap());
        assert!(struck >= 8, "only {struck} strikes\n{checked}");
        let report = json(&checked.stdout);
        let of_all = |metric: &str| {
            let tests = report["tests"].as_array().unwrap();
            let test = tests.iter().find(|test| test["name"] == "step.step.all").expect("the outer region");
            let conclusions = test["judgements"].as_array().unwrap();
            let conclusion = conclusions.iter().find(|conclusion| conclusion["metric"] == metric);
            conclusion.expect("each metric is judged")["spread"]["min"].clone()
        };
        let expected = [rounds + 2 * struck, 100 * rounds + 96 * struck, 0];
        assert_eq!(["allocations", "bytes", "remaining"].map(of_all), expected, "{stack}: {checked}");
    }
}

/// A handler that leaves a forked child's first call by a jump, at any instruction, leaves no lock behind: a thread
/// that starts afterwards is recorded.
fn no_jump_leaves_a_lock(stride: u64) {
    let workshop = Workshop::new("step-jump");
    let program = built(&workshop, &[]).to_string_lossy().into_owned();
    let session = Session::new(workshop.path(), &[&program, "jump", "normal", &stride.to_string()]);
    let recorded = session.record().well();
    let [rounds, struck, _] = printed(&recorded.stdout);
    assert!(struck >= 8, "only {struck} strikes\n{recorded}");
    let after = Expected { function: "after_jump", allocations: rounds, bytes: 16 * rounds, through: &[] };
    let found = differences(&session.report(&[]), &[after], workshop.path());
    assert!(found.is_empty(), "{}\n{recorded}", found.join("\n"));
}

/// Returns calls and bytes of a process beyond those that are expected of its own functions.
fn beyond(totals: &Value, expected: &[Expected]) -> (i64, i64) {
    let sum = |of: fn(&Expected) -> u64| expected.iter().map(of).sum::<u64>() as i64;
    let [calls, bytes] = ["allocations", "bytes"].map(|name| metric(totals, name) as i64);
    (calls - sum(|site| site.allocations), bytes - sum(|site| site.bytes))
}

#[test]
fn a_handler_at_instructions_of_malloc() {
    every_count_byte_and_stack_is_right("malloc", 7);
}

#[test]
fn a_handler_at_every_instruction_of_free() {
    every_count_byte_and_stack_is_right("free", 1);
}

#[test]
fn a_handler_at_instructions_of_realloc() {
    every_count_byte_and_stack_is_right("realloc", 7);
}

#[test]
fn a_handler_at_instructions_of_a_new_stack() {
    every_count_byte_and_stack_is_right("fresh", 431);
}

#[test]
fn a_handler_at_instructions_of_a_threads_first_call() {
    every_count_byte_and_stack_is_right("thread", 307);
}

#[test]
fn a_handler_at_instructions_of_a_forked_childs_first_call() {
    every_count_byte_and_stack_is_right("fork", 1999);
}

#[test]
fn a_handler_at_instructions_of_a_full_ring() {
    every_count_byte_and_stack_is_right("full", 149);
}

#[test]
fn a_handler_at_every_instruction_of_a_patched_free() {
    with_an_allocator("free", 1);
}

#[test]
fn a_handler_at_instructions_of_patched_functions() {
    with_an_allocator("malloc", 7);
    with_an_allocator("realloc", 17);
    with_an_allocator("thread", 499);
    with_an_allocator("fork", 2503);
}

#[test]
fn a_handler_at_instructions_of_a_regions_marks() {
    every_mark_is_right(61);
}

#[test]
fn a_handler_that_jumps_out_of_a_forked_childs_first_call() {
    no_jump_leaves_a_lock(2503);
}

#[test]
#[ignore = "minutes: in `cargo xtask long`"]
fn a_handler_at_every_instruction_of_a_known_stack() {
    every_count_byte_and_stack_is_right("malloc", 1);
    every_count_byte_and_stack_is_right("realloc", 1);
    with_an_allocator("malloc", 1);
    with_an_allocator("realloc", 1);
    every_mark_is_right(1);
}

#[test]
#[ignore = "minutes: in `cargo xtask long`"]
fn a_handler_at_many_instructions_of_a_new_stack_and_of_first_calls() {
    every_count_byte_and_stack_is_right("fresh", 23);
    every_count_byte_and_stack_is_right("thread", 3);
    every_count_byte_and_stack_is_right("fork", 79);
    every_count_byte_and_stack_is_right("full", 29);
    no_jump_leaves_a_lock(211);
}
