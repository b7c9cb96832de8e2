//! `mallow soak` of servers whose truth is known. All of them are in `cargo xtask soak-record`; here are those that stand
//! for a kind.

use e2e::soak::{Mode, modes};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// What `expected.toml` holds for.
const SHORT: [&str; 4] = ["--iterations", "20", "--requests", "1000"];

fn mode(server: &str, name: &str) -> &'static Mode {
    static MODES: OnceLock<Vec<Mode>> = OnceLock::new();
    let all = MODES.get_or_init(|| modes(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak-servers")));
    all.iter().find(|mode| mode.server == server && mode.name == name).expect("expected.toml has it")
}

/// The verdict is right, and so are its figures, its line and its exit code.
#[track_caller]
fn is_told(server: &str, name: &str) {
    let mode = mode(server, name);
    let finished = mode.soak(&SHORT);
    let said = mode.judge(&finished);
    assert!(said.faults.is_empty() && said.verdict != "inconclusive", "{said:#?}\n{finished}");
}

#[test]
fn sixteen_bytes_a_request_are_a_leak_with_their_line() {
    is_told("rust", "leak16");
}

#[test]
fn a_container_that_doubles_is_a_leak_and_a_cache_is_none() {
    is_told("rust", "leak_vec");
    is_told("rust", "cache_small");
}

#[test]
fn memory_that_an_allocator_keeps_is_no_leak() {
    is_told("rust", "arena_retain");
}

#[test]
fn holes_are_no_leak() {
    is_told("rust", "frag");
}

#[test]
fn what_is_not_on_the_heap_is_told_apart() {
    is_told("rust", "leak_threads");
    is_told("rust", "leak_mmap");
}

#[test]
fn a_server_that_leaks_nothing_is_clean() {
    is_told("rust", "clean");
}

#[test]
fn the_experiment_of_the_report_is_no_leak_and_one_line_makes_it_one() {
    is_told("hello", "hello");
    is_told("hello", "hello-leaking");
    let read = |name: &str| fs::read_to_string(e2e::soak::sources().join("hello").join(name)).unwrap();
    let (plain, leaking) = (read("hello.rs"), read("hello_leaking.rs"));
    let without: String =
        leaking.lines().filter(|line| !line.contains("// LEAK")).map(|line| format!("{line}\n")).collect();
    assert_eq!(without, plain, "the two differ by one line");
}

#[test]
fn a_leak_in_c_is_found() {
    is_told("c", "leak");
}

#[test]
fn a_leak_in_python_is_found_in_its_own_heap() {
    is_told("python", "leak");
}

#[test]
fn a_leak_in_ruby_is_found() {
    is_told("ruby", "leak");
}

#[test]
fn a_leak_in_node_is_found_in_its_own_heap() {
    is_told("node", "leak");
}
