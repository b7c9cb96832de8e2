//! Who is killed while the kernel kills for want of memory is told so; who is killed otherwise is not. The kernel's count is a file of the test's.

use e2e::Workshop;
use e2e::run::{self, Exit, Finished};
use std::fs;

/// What the program does: the kernel counts one process more, and it is killed.
const KILLED_BY_THE_KERNEL: &str = "echo 'oom_kill 8' > vmstat; kill -9 $$";
const KILLED_BY_OTHERS: &str = "kill -9 $$";

const TOLD: &str = "it was killed by SIGKILL, and the kernel killed a process for want of memory meanwhile";

/// Runs mallow where the kernel has killed seven processes.
fn mallow(workshop: &Workshop, words: &[&str]) -> Finished {
    fs::write(workshop.file("vmstat"), "nr_free_pages 40\noom_kill 7\n").unwrap();
    let script = "mount --bind vmstat /proc/vmstat && exec \"$@\"";
    let mut command = run::command("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(run::mallow_binary());
    run::finish(command.args(words).current_dir(workshop.path()))
}

#[test]
fn a_recording_says_that_its_program_was_killed_for_want_of_memory() {
    let workshop = Workshop::new("oom");
    for job in [&["record", "-o", "a.mallow", "--force", "--"][..], &["stat", "--"]] {
        let run = |script| mallow(&workshop, &[job, &["sh", "-c", script]].concat());
        let killed = run(KILLED_BY_THE_KERNEL);
        assert_eq!((killed.exit, killed.stderr.matches(TOLD).count()), (Exit::Status(137), 1), "{killed}");
        let killed = run(KILLED_BY_OTHERS);
        assert_eq!(
            (killed.exit, killed.stderr.contains("want of memory")),
            (Exit::Status(137), false),
            "{killed}"
        );
    }
}

#[test]
fn a_child_that_was_killed_is_the_one_that_is_named() {
    let workshop = Workshop::new("oom-child");
    let script = format!("sh -c \"echo \\$\\$ > pid; {}\"; exit 3", KILLED_BY_THE_KERNEL.replace('$', "\\$"));
    let killed = mallow(&workshop, &["record", "-o", "a.mallow", "--", "sh", "-c", &script]);
    let pid = fs::read_to_string(workshop.file("pid")).unwrap();
    assert_eq!(killed.exit, Exit::Status(3), "{killed}");
    assert!(killed.stderr.contains(&format!("process {}: {TOLD}", pid.trim())), "{killed}");
}

#[test]
fn a_test_says_that_its_program_was_killed_for_want_of_memory() {
    let workshop = Workshop::new("oom-check");
    for (script, is_told) in [(KILLED_BY_THE_KERNEL, true), (KILLED_BY_OTHERS, false)] {
        fs::write(workshop.file("killed.sh"), script).unwrap();
        let suite = "[[test]]\nname = \"killed\"\ncmd = [\"sh\", \"killed.sh\"]\nmode = \"process\"\n";
        fs::write(workshop.file("mallow.toml"), suite).unwrap();
        let checked = mallow(&workshop, &["check"]);
        // The table's lines are short.
        let text = checked.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(text.contains(TOLD), is_told, "{checked}");
        assert!(text.contains("killed by signal 9"), "{checked}");
    }
}
