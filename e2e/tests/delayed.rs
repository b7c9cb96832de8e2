//! `mallow record --delay`: what a command does until then is not known, and is never shown as if it were nothing.

use e2e::program::build_text;
use e2e::session::{json, metric, report_of};
use e2e::{Workshop, run};

/// Allocates 1,000 blocks, lets 4 s pass, forks a child that does what the parent does: frees 100 of them, makes one of them larger, and
/// allocates 7 new ones of which it keeps 3.
const SOURCE: &str = r"
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile old[1000];
static void *volatile fresh[7];

int main(void) {
    struct timespec rest = { 4, 0 };
    for (int i = 0; i < 1000; i++) old[i] = malloc(64);
    nanosleep(&rest, 0);
    pid_t child = fork();
    for (int i = 0; i < 100; i++) free(old[i]);
    old[100] = realloc(old[100], 5000);
    for (int i = 0; i < 7; i++) fresh[i] = malloc(1000);
    for (int i = 0; i < 4; i++) free(fresh[i]);
    if (child == 0) _exit(0);
    return waitpid(child, 0, 0) != child;
}
";

#[test]
fn what_was_allocated_before_is_not_known_and_said_to_be() {
    let workshop = Workshop::new("delayed");
    let program = build_text(workshop.path(), "late", SOURCE);
    let trace = workshop.file("late.mallow");
    let mut record = run::mallow();
    let recorded =
        run::finish(record.args(["record", "--delay", "2", "-o"]).arg(&trace).arg("--").arg(&program)).well();
    let sentence = "recording began 2s after the command: blocks that it had allocated until then are not known and are in no figure, \
                    and 202 frees were of blocks that are not known";
    assert!(recorded.stderr.contains(sentence), "{recorded}");

    let report = json(&report_of(&trace, &[]).well().stdout);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{recorded}");
    for process in processes {
        let totals = ["allocations", "bytes", "frees", "leaked_blocks", "leaked_bytes", "peak_bytes"]
            .map(|name| metric(&process["totals"], name));
        // A block that grows frees one that is not known.
        assert_eq!(totals, [8, 12_000, 105, 4, 8_000, 12_000], "{process}");
    }
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|it| it.as_str().unwrap().contains(sentence)), "{report}");
    // Times begin where recording does: the program slept for 2 s of its 4 from there on.
    let duration_s = report["duration"].as_u64().unwrap() as f64 / 1e6;
    assert!((1.0..3.5).contains(&duration_s), "{duration_s} s");
}

#[test]
fn a_command_that_ends_before_has_nothing_recorded() {
    let workshop = Workshop::new("delayed-short");
    let trace = workshop.file("short.mallow");
    let mut record = run::mallow();
    record.args(["record", "--delay", "1min", "-o"]).arg(&trace).args(["--", "sh", "-c", "exit 3"]);
    let recorded = run::finish(&mut record).ended(e2e::Exit::Status(3));
    let sentence = "the command ended before the delay of 60s was over, so nothing was recorded";
    assert!(recorded.stderr.contains(sentence), "{recorded}");
    let report = json(&report_of(&trace, &[]).well().stdout);
    assert_eq!(metric(&report["totals"], "allocations"), 0);
    assert!(report["warnings"].to_string().contains(sentence), "{report}");
}
