//! A program that was quiet and then allocates much does not wait for the end of mallow's sleep.

use e2e::program::build_text;
use e2e::session::{json, metric, report_of};
use e2e::{Workshop, run};
use std::fs;

/// Ten times nothing for a while, and then more records than half of a ring holds.
const BURSTS: &str = r#"
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 25000 };
static void *held[BLOCKS];

int main(void) {
    for (int round = 0; round < 10; round++) {
        usleep(100000);
        for (int i = 0; i < BLOCKS; i++) held[i] = malloc(24);
        for (int i = 0; i < BLOCKS; i++) free(held[i]);
    }
    return 0;
}
"#;

#[test]
fn a_ring_that_is_half_full_wakes_a_mallow_that_sleeps() {
    let workshop = Workshop::new("doorbell");
    let program = build_text(workshop.path(), "bursts", BURSTS);
    let (calls, trace) = (workshop.file("calls"), workshop.file("bursts.mallow"));
    let mut strace = run::command("strace");
    strace.args(["-f", "-e", "trace=futex,execve", "-o"]).arg(&calls);
    strace.arg(run::mallow_binary()).args(["record", "-o"]).arg(&trace).arg("--").arg(&program);
    let _ = run::finish(&mut strace).well();
    let calls = fs::read_to_string(&calls).unwrap();
    let name = program.to_str().unwrap();
    let begun =
        calls.lines().find(|line| line.contains("execve(") && line.contains(name)).expect("it begins");
    let own = begun.split_whitespace().next().unwrap();
    // Each of them woke somebody, who is no thread of the program's: it has one.
    let is_ringing = |line: &&str| {
        line.split_whitespace().next() == Some(own) && line.contains("FUTEX_WAKE,") && line.ends_with("= 1")
    };
    let rings = calls.lines().filter(is_ringing).count();
    assert!((5..100).contains(&rings), "{rings} of 10 bursts and more: {calls}");
    let totals = &json(&report_of(&trace, &[]).well().stdout)["totals"];
    assert_eq!(metric(totals, "allocations"), 250_000);
    assert_eq!((metric(totals, "frees"), metric(totals, "leaked_blocks")), (250_000, 0));
}
