//! A program is started with the signals ignored and blocked and with the streams closed that would be without mallow, and its status is known where SIGCHLD is
//! ignored.

use e2e::Workshop;
use e2e::program::build_text;
use e2e::run::{self, Exit, Finished};
use e2e::session::{json, report_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BENCH: &[&str] = &["bench", "--runs", "1", "--warmup", "0"];

/// A command that somebody starts with such signals.
fn told(signals: &str, program: &Path) -> Command {
    let mut command = run::command("/usr/bin/env");
    command.arg(signals).arg(program);
    command
}

fn script(workshop: &Workshop, name: &str, text: &str) -> PathBuf {
    let path = workshop.file(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    let _ = run::finish(run::command("chmod").arg("+x").arg(&path)).well();
    path
}

/// The signals that a program found ignored and blocked. SIGURG is the timers'; 32 and 33 are libc's own, and its `posix_spawn` has them ignored whoever calls it.
fn found(workshop: &Workshop, command: &mut Command) -> Vec<u64> {
    let told = workshop.file("signals");
    let _ = fs::remove_file(&told);
    let finished = run::finish(command.current_dir(workshop.path())).well();
    let text = fs::read_to_string(&told).unwrap_or_else(|_| panic!("it did not run\n{finished}"));
    let masks = text.lines().map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap());
    masks.map(|mask| mask & !(1 << 22 | 3 << 31)).collect()
}

#[test]
fn signals_are_ignored_and_blocked_as_without_mallow() {
    let workshop = Workshop::new("signals");
    let program = script(&workshop, "shows", "exec grep -E '^Sig(Blk|Ign)' /proc/self/status > signals");
    for signals in [
        "--default-signal",
        "--ignore-signal",
        "--ignore-signal=PIPE",
        "--ignore-signal=CHLD",
        "--block-signal",
    ] {
        let bare = found(&workshop, &mut told(signals, &program));
        for job in run::WATCHES.into_iter().chain([BENCH]) {
            let mut command = told(signals, &run::mallow_binary());
            let seen = found(&workshop, command.args(job).arg(&program));
            assert_eq!(seen, bare, "{signals}, {job:?}: blocked, ignored");
        }
    }
}

/// Shows which of the first descriptors are closed, which number the next file has, and allocates.
const STREAMS: &str = r#"#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int closed = 0;
    void *volatile kept = malloc(100);
    for (int i = 0; i < 10; i++) closed |= (fcntl(i, F_GETFD) < 0) << i;
    int next = open("/dev/null", O_RDONLY);
    FILE *told = fopen("streams", "w");
    return !told || !kept || fprintf(told, "%x %d\n", closed, next) < 0 || fclose(told);
}
"#;

#[test]
fn streams_are_closed_as_without_mallow() {
    let workshop = Workshop::new("streams");
    let program = build_text(workshop.path(), "shows", STREAMS);
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let shown = |words: &[&str]| {
            let _ = fs::remove_file(workshop.file("streams"));
            let mut command = run::command("sh");
            command.args(["-c", &format!("exec \"$@\" {closed}"), "sh"]).args(words);
            let finished = run::finish(command.arg(&program).current_dir(workshop.path())).well();
            let shown = fs::read_to_string(workshop.file("streams"));
            shown.unwrap_or_else(|error| panic!("{error}\n{finished}"))
        };
        let bare = shown(&[]);
        assert_ne!(bare, "3f8 3\n", "{closed}");
        for job in run::WATCHES {
            let mallow = run::mallow_binary();
            let words = [&[mallow.to_str().unwrap()], job].concat();
            assert_eq!(shown(&words), bare, "{closed}, {job:?}: closed, next");
        }
        let report = json(&report_of(&workshop.file("a.mallow"), &[]).well().stdout);
        assert_eq!(report["complete"], true, "{closed}: {report:#}");
    }
}

#[test]
fn a_program_that_fails_does_so_where_sigchld_is_ignored() {
    let workshop = Workshop::new("sigchld");
    let program = script(&workshop, "fails", "exit 7");
    let suite = format!("[[test]]\nname = \"fails\"\ncmd = [{program:?}]\nmode = \"process\"\n");
    fs::write(workshop.file("mallow.toml"), suite).unwrap();
    let mallow = |words: &[&str], program: Option<&Path>| -> Finished {
        let mut command = told("--ignore-signal=CHLD", &run::mallow_binary());
        run::finish(command.args(words).args(program).current_dir(workshop.path()))
    };
    for job in run::WATCHES {
        let finished = mallow(job, Some(&program));
        assert_eq!(finished.exit, Exit::Status(7), "{finished}");
    }
    let recorded = mallow(run::WATCHES[0], Some(&program));
    assert!(recorded.stderr.contains("exit status 7"), "{recorded}");
    let benched = mallow(BENCH, Some(&program));
    assert!(benched.exit != Exit::Status(0) && benched.stderr.contains("exit status 7"), "{benched}");
    let checked = mallow(&["check"], None);
    assert!(checked.stdout.contains("ended with status 7"), "{checked}");
}
