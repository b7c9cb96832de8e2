//! What the kernel does not have or refuses: mallow has the same metrics on the oldest kernel that it is for, and where a call is refused to it, it says so.

use e2e::Workshop;
use e2e::program::{build_text, build_text_with};
use e2e::run::{self, Exit, Finished};
use e2e::session::{json, report_of};
use serde_json::Value;
use std::path::PathBuf;

/// A thread, a forked child, and another program: 1,000 blocks that are freed at once, 100 and 50 that are not, and one of libc's for the thread.
const PROGRAM: &str = r#"#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[50];
static void *frees(void *none) {
    for (int i = 0; i < 1000; i++) { void *p = malloc(100); __asm__ volatile("" : : "r"(p) : "memory"); free(p); }
    return none;
}
int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, frees, NULL)) return 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < 100; i++) kept[i % 50] = malloc(1000);
    if (!fork()) {
        for (int i = 0; i < 50; i++) kept[i] = malloc(10);
        _exit(3);
    }
    int status = 0;
    if (wait(&status) < 0 || WEXITSTATUS(status) != 3) return 2;
    if (!fork()) execl("/bin/true", "true", (char *)NULL);
    return wait(&status) < 0;
}
"#;
const ALLOCATIONS: u64 = 1151;

struct Lab {
    workshop: Workshop,
    program: PathBuf,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let workshop = Workshop::new(name);
        let program = build_text(workshop.path(), "works", PROGRAM);
        Lab { workshop, program }
    }

    /// Builds a program of `programs/hazards` that runs others behind a filter.
    fn filter(&self, name: &str) -> PathBuf {
        let folder = e2e::repository().join("programs/hazards");
        let text = std::fs::read_to_string(folder.join(name).with_extension("c")).unwrap();
        build_text_with(self.workshop.path(), name, &text, &["-I", &folder.to_string_lossy()])
    }

    /// Runs mallow, or the program itself for no words, behind a filter that these words set.
    fn run(&self, filter: &[&str], words: &[&str]) -> Finished {
        let mut command = run::command(filter[0]);
        command.args(&filter[1..]);
        if !words.is_empty() {
            command.arg(run::mallow_binary()).args(words);
        }
        run::finish(command.arg(&self.program).current_dir(self.workshop.path()))
    }

    fn report(&self) -> Value {
        json(&report_of(&self.workshop.file("a.mallow"), &[]).well().stdout)
    }
}

fn allocations(run: &Value) -> Option<u64> {
    run["totals"]["allocations"].as_u64()
}

/// Without the breaks and columns of a terminal.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_complete(document: &Value) -> bool {
    document["complete"] == Value::Bool(true)
}

const RECORD: [&str; 5] = ["record", "-o", "a.mallow", "--force", "--"];
const STAT: [&str; 3] = ["stat", "--json", "--"];

#[test]
fn metrics_are_the_same_on_the_oldest_kernel() {
    let lab = Lab::new("oldest");
    let filter = lab.filter("older_kernel");
    let behind = [filter.to_str().unwrap()];
    let recorded = lab.run(&behind, &RECORD).well();
    let report = lab.report();
    assert_eq!((allocations(&report), is_complete(&report)), (Some(ALLOCATIONS), true), "{recorded}");
    assert_eq!(report["processes"].as_array().map(Vec::len), Some(3), "{recorded}");
    let counted = lab.run(&behind, &STAT).well();
    let stat = json(&counted.stdout);
    assert_eq!((allocations(&stat["runs"][0]), is_complete(&stat)), (Some(ALLOCATIONS), true), "{counted}");
    for event in [&[][..], &["-e", "timers"]] {
        let words = [&["cpu", "-o", "c.mallow", "--force"], event, &["--"]].concat();
        let sampled = lab.run(&behind, &words).well();
        assert!(sampled.stderr.contains("none lost"), "{sampled}");
    }
    let benched = lab.run(&behind, &["bench", "--runs", "2"]).well();
    assert!(in_one_line(&benched.stdout).contains("allocations 1,151 the same in 3 runs"), "{benched}");
}

/// Each of the kernel's calls, to mallow and what it starts. Calls that end a thread or a process are left out: without them nothing ends.
#[test]
#[ignore = "a minute: in `cargo xtask long`"]
fn who_refuses_a_call_to_mallow_gets_the_same_metrics_or_is_told() {
    const EXITS: [u32; 2] = [60, 231];
    let lab = Lab::new("refused");
    let filter = lab.filter("refused_call");
    let mut ended_well = 0;
    for number in (0..336).chain(424..462).filter(|number| !EXITS.contains(number)) {
        let text = number.to_string();
        let behind = [filter.to_str().unwrap(), &text];
        if lab.run(&behind, &[]).exit != Exit::Status(0) {
            continue;
        }
        let recorded = lab.run(&behind, &RECORD);
        let is_told = recorded.exit != Exit::Status(0) || {
            let report = lab.report();
            // Without `fork` the program has two processes less.
            let is_same = allocations(&report) == Some(ALLOCATIONS) || number == 56;
            is_same && is_complete(&report) || recorded.stderr.contains("warning: ")
        };
        assert!(is_told, "call {number}: {recorded}");
        let counted = lab.run(&behind, &STAT);
        let is_told = counted.exit != Exit::Status(0) || {
            let stat = json(&counted.stdout);
            allocations(&stat["runs"][0]) == Some(ALLOCATIONS) && is_complete(&stat)
                || counted.stderr.contains("warning: ")
                || number == 56
        };
        assert!(is_told, "call {number}: {counted}");
        ended_well += 1;
    }
    assert!(ended_well > 300, "{ended_well}");
}

#[test]
fn behind_a_filter_nobody_is_accused_of_having_reset_an_environment() {
    let lab = Lab::new("behind");
    let filter = lab.filter("refused_call");
    let recorded = lab.run(&[filter.to_str().unwrap(), "28"], &RECORD).well();
    let told = "nothing was recorded: mallow runs behind a filter of system calls";
    assert!(in_one_line(&recorded.stderr).contains(told), "{recorded}");
}
