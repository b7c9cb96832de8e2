//! As the entry point of a container mallow is its first process: it waits for whoever has lost his parent, passes signals on, and ends as the program does.

use e2e::Workshop;
use e2e::run::{self, Exit, Finished};
use std::fs;

/// Starts 20 processes whose parents end before them; waits until none of them is left, for five seconds at most.
const ORPHANS: &str = r#"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh -c 'true & exit 0'; done
for i in 1 2 3 4 5 6 7 8 9 10; do
    left=$(cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z')
    [ "$left" = 0 ] && exit 7
    sleep 0.5
done
echo "$left are left"
"#;

/// Runs mallow as the first process of a namespace.
fn first(workshop: &Workshop, job: &[&str], program: &str) -> Finished {
    let mut command = run::command("unshare");
    command.args(["--map-root-user", "--pid", "--fork", "--mount-proc"]).arg(run::mallow_binary());
    run::finish(command.args(job).args(["sh", "-c", program]).current_dir(workshop.path()))
}

#[test]
fn who_has_lost_his_parent_is_waited_for() {
    let workshop = Workshop::new("first-process");
    for job in run::WATCHES {
        let finished = first(&workshop, job, ORPHANS);
        assert_eq!((finished.exit, finished.stdout.as_str()), (Exit::Status(7), ""), "{finished}");
    }
}

#[test]
fn signals_and_ends_are_passed_on() {
    let workshop = Workshop::new("first-signals");
    let told = "trap 'echo told > told; exit 5' TERM; kill -TERM 1; while :; do sleep 0.01; done";
    for job in run::WATCHES {
        let _ = fs::remove_file(workshop.file("told"));
        let finished = first(&workshop, job, told);
        assert_eq!((finished.exit, workshop.file("told").exists()), (Exit::Status(5), true), "{finished}");
        assert_eq!(first(&workshop, job, "kill -KILL $$").exit, Exit::Status(137), "{job:?}");
    }
}
