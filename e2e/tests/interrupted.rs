//! Ctrl-C and SIGTERM end a recording within a second, in every state.
//!
//! The first signal is for the program, which may take its time to exit; the second one for mallow. Each is sent to
//! mallow only.
//!
//! How long a process waits for a processor does not depend on the process: a program that constantly starts others
//! may have hundreds of runnable ones. So the limit of one second is for the time in which mallow runs and waits for
//! other things. Its threads must not have a lower priority than others, because a process has exited only when the
//! last of them has.

use e2e::Workshop;
use e2e::program::build_text;
use e2e::run::{self, Exit};
use e2e::session::report_of;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a recording may take to end, without the time in which it waits for a processor.
const TIME_MAX: Duration = Duration::from_secs(1);
/// The maximum difference of another thread's nice value from the first thread's: it then gets a third of the CPU time of others.
const NICER_MAX: i32 = 5;

/// A program that ignores signals, prints "begun" and does something.
fn stubborn(workshop: &Workshop, name: &str, body: &str) -> PathBuf {
    let text = format!(
        "#define _GNU_SOURCE\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static void pair(void) {{ void *p = malloc(30); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); free(p); }}\n\
         int main(void) {{\n    signal(SIGINT, SIG_IGN); signal(SIGTERM, SIG_IGN); signal(SIGQUIT, SIG_IGN); signal(SIGHUP, SIG_IGN);\n\
         \x20   pair();\n    if (write(1, \"begun\\n\", 6) != 6) return 2;\n    {body}\n    return 0;\n}}\n"
    );
    build_text(workshop.path(), name, &text)
}

struct Recording {
    mallow: Child,
    line: String,
    trace: PathBuf,
}

impl Recording {
    /// Records a program until it has begun.
    fn of(workshop: &Workshop, program: &Path) -> Recording {
        let trace = workshop.file("trace.mallow");
        let mut command = run::mallow();
        command.args(["record", "--force", "-o"]).arg(&trace).arg("--").arg(program);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let line = run::line(&command);
        let mut mallow = command.spawn().unwrap();
        let mut begun = [0; 6];
        std::io::Read::read_exact(mallow.stdout.as_mut().unwrap(), &mut begun).unwrap();
        Recording { mallow, line, trace }
    }

    fn signal(&self, name: &str) {
        let _ = run::finish(run::command("kill").args([name, &self.mallow.id().to_string()])).well();
    }

    /// Sends a signal twice; returns how mallow exited, and how much time of its own that took.
    fn end(&mut self, signal: &str) -> (Exit, Duration) {
        self.signal(signal);
        // A second signal that is sent before the first was handled would be merged with it.
        while is_pending(self.mallow.id()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(100));
        self.signal_last(signal)
    }

    /// The same for the last signal.
    fn signal_last(&mut self, signal: &str) -> (Exit, Duration) {
        let (pid, begun) = (self.mallow.id(), Instant::now());
        let waited = kept_waiting(pid);
        let nicenesses = nicenesses(pid);
        let range = nicenesses.iter().max().unwrap() - nicenesses.iter().min().unwrap();
        assert!(range <= NICER_MAX, "some threads of mallow's are nicer by {range}");
        self.signal(signal);
        // Until only exiting threads are left.
        while !has_left(pid) && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let took = begun.elapsed().saturating_sub(kept_waiting(pid) - waited);
        (run::wait(&mut self.mallow, &self.line), took)
    }
}

/// Returns whether a signal is pending for a process.
fn is_pending(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status
        .lines()
        .filter_map(|line| line.strip_prefix("ShdPnd:"))
        .any(|set| set.trim().contains(|c| c != '0'))
}

/// Returns how long a process's first thread was runnable without running. It can be read until the process is reaped.
fn kept_waiting(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(text.split(' ').nth(1).unwrap().parse().unwrap())
}

/// Returns the fields after a thread's name in its `stat` in `/proc`.
fn fields(stat: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(stat).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Returns whether a process's first thread has exited.
fn has_left(pid: u32) -> bool {
    fields(format!("/proc/{pid}/stat").as_ref()).unwrap()[0] == "Z"
}

fn nicenesses(pid: u32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let fields = threads.filter_map(|thread| fields(&thread.unwrap().path().join("stat")));
    fields.map(|fields| fields[16].parse().unwrap()).collect()
}

/// Kills what a test has left running: every process of its folder.
fn sweep(workshop: &Workshop) {
    let _ = Command::new("pkill").args(["-KILL", "-f"]).arg(workshop.path()).status();
}

/// Sends each signal, after something has been done to a running recording.
fn ends_soon(name: &str, body: &str, before: impl Fn(&Recording)) {
    let workshop = Workshop::new(name);
    let program = stubborn(&workshop, "stubborn", body);
    for signal in ["-INT", "-TERM"] {
        let mut recording = Recording::of(&workshop, &program);
        before(&recording);
        let (exit, took) = recording.end(signal);
        sweep(&workshop);
        assert!(took < TIME_MAX, "{signal}: {took:?} ({exit:?})\n{}", recording.line);
        let _ = report_of(&recording.trace, &[]).well();
    }
}

#[test]
fn a_program_that_does_not_hear_is_left() {
    ends_soon("stubborn-waits", "for (;;) pause();", |_| {});
}

#[test]
fn a_program_that_fills_its_ring_is_left() {
    ends_soon("stubborn-storms", "for (;;) pair();", |_| {});
}

#[test]
fn a_program_that_was_stopped_is_left() {
    ends_soon("stubborn-stopped", "for (;;) { kill(getpid(), SIGSTOP); pair(); }", |_| {
        std::thread::sleep(Duration::from_millis(50));
    });
}

#[test]
fn orphans_of_a_program_that_has_ended_are_left() {
    ends_soon("stubborn-orphans", "if (fork() == 0) { for (;;) { pair(); usleep(1000); } }", |_| {
        std::thread::sleep(Duration::from_millis(100));
    });
}

#[test]
fn a_program_that_starts_others_all_the_time_is_left() {
    ends_soon(
        "stubborn-forks",
        "for (;;) { if (fork() == 0) { pair(); _exit(0); } while (waitpid(-1, NULL, WNOHANG) > 0) {} }",
        |_| {
            std::thread::sleep(Duration::from_millis(200));
        },
    );
}

/// The trace can no longer be written: the program continues, and mallow waits for its exit.
#[test]
fn a_recording_that_cannot_be_written_is_left() {
    let workshop = Workshop::new("stubborn-full");
    let program = stubborn(
        &workshop,
        "stubborn",
        "for (;;) { for (int i = 0; i < 100000; i++) pair(); usleep(1000); }",
    );
    for signal in ["-INT", "-TERM"] {
        let mut mallow = run::command("env");
        mallow.arg("--ignore-signal=XFSZ").arg(run::mallow_binary()).args(["record", "--force", "-o"]);
        mallow.arg(workshop.file("trace.mallow")).arg("--").arg(&program);
        mallow.stdout(Stdio::piped()).stderr(Stdio::null());
        let line = run::line(&mallow);
        let mut mallow = mallow.spawn().unwrap();
        let mut begun = [0; 6];
        std::io::Read::read_exact(mallow.stdout.as_mut().unwrap(), &mut begun).unwrap();
        let pid = mallow.id().to_string();
        let _ = run::finish(run::command("prlimit").args(["--pid", &pid, "--fsize=1"])).well();
        std::thread::sleep(Duration::from_secs(1));
        let mut recording = Recording { mallow, line, trace: workshop.file("trace.mallow") };
        let (exit, took) = recording.end(signal);
        sweep(&workshop);
        assert_eq!(exit, Exit::Status(125), "{}", recording.line);
        assert!(took < TIME_MAX, "{signal}: {took:?}");
        assert!(!recording.trace.exists());
    }
}

/// A program that handles the signal exits after the first one, and the recording with it.
#[test]
fn once_is_enough_for_a_program_that_hears() {
    let workshop = Workshop::new("hears");
    let text = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { free(malloc(9)); if (write(1, \"begun\\n\", 6) != 6) return 2; for (;;) pause(); }\n";
    let program = build_text(workshop.path(), "hears", text);
    let mut recording = Recording::of(&workshop, &program);
    let (exit, took) = recording.signal_last("-TERM");
    assert!(took < TIME_MAX, "{took:?}");
    assert_eq!(exit, Exit::Status(128 + 15));
    let _ = report_of(&recording.trace, &[]).well();
}

/// A program that goes into the background. Its child says whose child it was, and works on.
const DAEMON: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    int parent = getpid();
    void *volatile kept = malloc(1000);
    if (fork() > 0) _exit(0);
    setsid();
    while (getppid() == parent) usleep(1000);
    for (int i = 0; i < 10; i++) { void *volatile block = malloc(10); free(block); }
    char line[32];
    int bytes = snprintf(line, sizeof line, "%d\n", parent);
    if (write(1, line, bytes) != bytes || !kept) return 2;
    close(1);
    close(2);
    for (int i = 0; i < 10000; i++) usleep(10000);
    return 0;
}
"#;

/// Starts mallow with these arguments, and waits until its command has ended and a daemon remains.
fn with_daemon_left(workshop: &Workshop, arguments: &[&str]) -> (Child, String) {
    let program = build_text(workshop.path(), "daemon", DAEMON);
    let mut command = run::mallow();
    command.args(arguments).arg("--").arg(&program).stdout(Stdio::piped()).stderr(Stdio::piped());
    let line = run::line(&command);
    let mut mallow = command.spawn().unwrap();
    let mut parent = String::new();
    let mut stdout = std::io::BufReader::new(mallow.stdout.as_mut().unwrap());
    let _ = std::io::BufRead::read_line(&mut stdout, &mut parent).unwrap();
    while Path::new(&format!("/proc/{}", parent.trim())).exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(200));
    (mallow, line)
}

/// The command has ended, so the first signal is for mallow. `docker stop` and `timeout -k` kill who does not hear it.
#[test]
fn once_is_enough_when_only_a_daemon_is_left_and_what_goes_on_is_named() {
    let sentence = "(daemon): it still ran when this was ended; what it did from then on is missing, and what was live then counts as leaked";
    for signal in ["-INT", "-TERM", "-HUP"] {
        for subcommand in ["record", "stat"] {
            let workshop = Workshop::new("daemon-left");
            let file = workshop.file("result");
            let file = file.to_str().unwrap();
            let arguments = match subcommand {
                "record" => vec!["record", "-o", file],
                _ => vec!["stat", "--json", "-o", file],
            };
            let (mallow, line) = with_daemon_left(&workshop, &arguments);
            let _ = run::finish(run::command("kill").args([signal, &mallow.id().to_string()])).well();
            let began = Instant::now();
            let output = mallow.wait_with_output().unwrap();
            sweep(&workshop);
            assert!(began.elapsed() < Duration::from_secs(20), "{line}");
            let stderr = String::from_utf8_lossy(&output.stderr);
            // A count has the program's.
            let code = if subcommand == "record" { 130 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{line}\n{stderr}");
            assert!(stderr.contains(sentence), "{line}\n{stderr}");
            let document = match subcommand {
                "record" => report_of(Path::new(file), &[]).well().stdout,
                _ => std::fs::read_to_string(file).unwrap(),
            };
            let document = e2e::session::json(&document);
            let totals = match subcommand {
                "record" => (&document["complete"], &document["totals"]),
                _ => (&document["complete"], &document["runs"][0]["totals"]),
            };
            assert_eq!(totals.0, false, "{document:#}");
            assert_eq!(totals.1["allocations"], 11, "{document:#}");
        }
    }
}

/// A script that ends its whole process group is a script that ends mallow, too.
#[test]
fn a_count_is_shown_of_a_program_that_is_asked_to_end_with_everybody_in_its_group() {
    let workshop = Workshop::new("group");
    let text = "#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        static void leave(int signal) { (void)signal; _exit(5); }\n\
        int main(void) { signal(SIGTERM, leave); signal(SIGHUP, leave); for (int i = 0; i < 7; i++) { void *volatile p = malloc(9); free(p); } kill(0, WHICH); for (;;) pause(); }\n";
    for signal in ["SIGTERM", "SIGHUP"] {
        let program = build_text(workshop.path(), signal, &text.replace("WHICH", signal));
        let file = workshop.file("stat.json");
        let mut mallow = run::command("setsid");
        mallow
            .arg("--wait")
            .arg(run::mallow_binary())
            .args(["stat", "--json", "--force", "-r", "3", "-o"])
            .arg(&file);
        let finished = run::finish(mallow.arg("--").arg(&program)).ended(Exit::Status(5));
        let document = e2e::session::json(&std::fs::read_to_string(&file).unwrap());
        // The first run was the last: whoever asked did not mean that one alone.
        assert_eq!(document["runs"].as_array().unwrap().len(), 1, "{finished}\n{document:#}");
        assert_eq!(document["runs"][0]["totals"]["allocations"], 7, "{document:#}");
    }
}
