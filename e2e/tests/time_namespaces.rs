//! Programs whose monotonic clock is ahead of mallow's or behind it, as in a time namespace: who was started when is told by that clock.

use e2e::program::build_text;
use e2e::run::{self, Finished};
use e2e::session::{json, metric, report_of};
use e2e::{Exit, Workshop};
use serde_json::Value;

const OFFSETS_S: [&str; 2] = ["--monotonic=1000000", "--monotonic=-100"];

/// Runs a command of mallow in front of a program that is in such a namespace, which `unshare` enters by becoming the program, or by a fork.
fn within(workshop: &Workshop, mallow: &[&str], unshare: &[&str], program: &[&str]) -> Finished {
    let mut command = run::mallow();
    command.args(mallow).args(["--", "unshare", "-T"]).args(unshare).args(program);
    run::finish(command.current_dir(workshop.path())).ended(Exit::Status(0))
}

/// The allocations of the processes that `unshare` has become or started.
fn allocations_within(document: &Value) -> u64 {
    let processes = document["processes"].as_array().unwrap().iter();
    let its = processes.filter(|it| !it["command"].to_string().contains("unshare"));
    its.map(|it| metric(&it["totals"], "allocations")).sum()
}

#[test]
fn a_program_in_a_time_namespace_is_seen_to_register() {
    let workshop = Workshop::new("time-registers");
    let text = "#include <stdlib.h>\nstatic void *volatile kept;\nint main(void) { for (int i = 0; i < 1000; i++) kept = malloc(64); return 0; }\n";
    let program = build_text(workshop.path(), "app", text);
    let program = program.to_string_lossy();
    for offset in OFFSETS_S {
        for unshare in [&["-r", offset][..], &["-r", offset, "--fork"]] {
            let recorded = within(&workshop, &["record", "--force", "-o", "a.mallow"], unshare, &[&program]);
            let report = json(&report_of(&workshop.file("a.mallow"), &[]).well().stdout);
            assert_eq!(
                (allocations_within(&report), &report["complete"]),
                (1000, &true.into()),
                "{recorded}"
            );
            let counted = within(&workshop, &["stat", "--json"], unshare, &[&program]);
            let count = json(&counted.stdout);
            assert_eq!(
                (allocations_within(&count["runs"][0]), &count["complete"]),
                (1000, &true.into()),
                "{counted}"
            );
        }
    }
}

#[test]
fn recording_begins_as_late_in_a_time_namespace() {
    let workshop = Workshop::new("time-delay");
    let text = "#include <stdlib.h>\n#include <unistd.h>\nstatic void *volatile kept;\n\
                int main(void) {\n    for (int i = 0; i < 1000; i++) kept = malloc(64);\n    sleep(3);\n    for (int i = 0; i < 7; i++) kept = malloc(64);\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "app", text);
    for offset in OFFSETS_S {
        let mallow = ["record", "--delay", "1.5", "--force", "-o", "a.mallow"];
        let finished = within(&workshop, &mallow, &["-r", offset], &[&program.to_string_lossy()]);
        let report = json(&report_of(&workshop.file("a.mallow"), &[]).well().stdout);
        assert_eq!(metric(&report["totals"], "allocations"), 7, "{offset}\n{finished}");
    }
}

/// All that it does comes behind the delay, which it cannot see by its own clock.
#[test]
fn what_starts_later_in_a_time_namespace_is_recorded_from_its_first_call() {
    let workshop = Workshop::new("time-later");
    let text = "#include <stdlib.h>\nstatic void *volatile kept;\nint main(void) { for (int i = 0; i < 1000; i++) kept = malloc(64); return 0; }\n";
    let program = build_text(workshop.path(), "app", text);
    for offset in OFFSETS_S {
        let line = format!("sleep 1.5; exec unshare -r -T {offset} {}", program.display());
        let mut record = run::mallow();
        record.args(["record", "--delay", "1", "--force", "-o", "a.mallow", "--", "/bin/sh", "-c", &line]);
        let recorded = run::finish(record.current_dir(workshop.path())).ended(Exit::Status(0));
        let report = json(&report_of(&workshop.file("a.mallow"), &[]).well().stdout);
        assert_eq!(allocations_within(&report), 1000, "{offset}\n{recorded}");
    }
}

/// The kernel's samples and what the script's process leaves are held against each other by the time of both.
#[test]
fn lines_of_a_script_in_a_time_namespace_are_sampled() {
    let workshop = Workshop::new("time-lines");
    let text = "def work(n):\n    return sum(str(i).count('7') for i in range(n))\nfor _ in range(20): work(50000)\n";
    std::fs::write(workshop.file("spin.py"), text).unwrap();
    for offset in OFFSETS_S {
        for more in [&[][..], &["-e", "timers"]] {
            let mallow = [&["cpu", "--force", "-o", "a.mallow"], more].concat();
            let finished = within(&workshop, &mallow, &[offset], &["/usr/bin/python3", "spin.py"]);
            assert!(!finished.stderr.contains("lines are not known"), "{finished}");
            let report = json(&report_of(&workshop.file("a.mallow"), &[]).well().stdout);
            assert!(report.to_string().contains("spin.py"), "{finished}");
        }
    }
}
