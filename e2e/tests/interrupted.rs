//! Ctrl-C and SIGTERM end a recording within a second, in every state that it can be in.
//!
//! The first one is meant for the program, which may take its time to end; the second one for mallow. Each is sent to mallow alone.

use e2e::Workshop;
use e2e::program::build_text;
use e2e::run::{self, Exit};
use e2e::session::report_of;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a recording may take to end. It is a second on a machine that has nothing else to do.
const TIME_MAX: Duration = Duration::from_secs(1);

/// A program that does not hear what ends others, says "begun" and does something.
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

    /// Sends a signal twice; gives how it ended, and how long that took.
    fn end(&mut self, signal: &str) -> (Exit, Duration) {
        self.signal(signal);
        std::thread::sleep(Duration::from_millis(100));
        self.signal(signal);
        let begun = Instant::now();
        (run::wait(&mut self.mallow, &self.line), begun.elapsed())
    }
}

/// Ends what a test has left behind: whatever runs from its folder.
fn sweep(workshop: &Workshop) {
    let _ = Command::new("pkill").args(["-KILL", "-f"]).arg(workshop.path()).status();
}

/// Each signal, after something has been done to a recording that runs.
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

/// The trace can no longer be written: the program goes on, and mallow waits for its end beside it.
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
        assert_eq!(exit, Exit::Status(2), "{}", recording.line);
        assert!(took < TIME_MAX, "{signal}: {took:?}");
        assert!(!recording.trace.exists());
    }
}

/// A program that hears ends by the first one, and the recording with it.
#[test]
fn once_is_enough_for_a_program_that_hears() {
    let workshop = Workshop::new("hears");
    let text = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { free(malloc(9)); if (write(1, \"begun\\n\", 6) != 6) return 2; for (;;) pause(); }\n";
    let program = build_text(workshop.path(), "hears", text);
    let mut recording = Recording::of(&workshop, &program);
    recording.signal("-TERM");
    let begun = Instant::now();
    let exit = run::wait(&mut recording.mallow, &recording.line);
    assert!(begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
    assert_eq!(exit, Exit::Status(128 + 15));
    let _ = report_of(&recording.trace, &[]).well();
}
