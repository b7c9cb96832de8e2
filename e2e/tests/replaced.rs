//! A recorded process that becomes a program which is not recorded: nobody waits for that one, and its memory is not taken for the first one's.

use e2e::program::{build_text_with, strings};
use e2e::session::json;
use e2e::soak::free_port;
use e2e::{Finished, Session, Workshop, run};
use rustix::fs::{Mode, OFlags};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Keeps 64 MiB until somebody writes into the pipe, or for 20 seconds.
const PROGRAM: &str = "#include <fcntl.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
    int main(int count, char **words) {\n    if (count < 2) return 1;\n    for (int i = 0; i < 64; i++) memset(malloc(1 << 20), i, 1 << 20);\n\
    \x20   alarm(20);\n    char byte;\n    int pipe = open(words[1], O_RDONLY);\n    return pipe < 0 || read(pipe, &byte, 1) < 0;\n}\n";

struct Pipe(PathBuf);

impl Pipe {
    fn new(workshop: &Workshop, name: &str) -> Pipe {
        let path = workshop.file(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        Pipe(path)
    }

    /// Ends the program that reads, which may not have come so far yet. False if none does.
    fn write(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            let opened = rustix::fs::open(&self.0, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
            if opened.is_ok_and(|pipe| rustix::io::write(pipe, b"x") == Ok(1)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

/// A shell's script. What it leaves running must keep no stream of ours open.
fn shell(workshop: &Workshop, script: &str) -> Session {
    Session::new(workshop.path(), &["/bin/sh", "-c", script])
}

fn holds(workshop: &Workshop, name: &str, flags: &[&str]) -> PathBuf {
    build_text_with(workshop.path(), name, PROGRAM, &[&["-fno-builtin"], flags].concat())
}

#[track_caller]
fn has_no_other_allocator(finished: &Finished) {
    assert!(!finished.stderr.contains("did not come from malloc"), "{finished}");
}

#[test]
fn what_goes_on_unrecorded_is_not_waited_for() {
    let workshop = Workshop::new("replaced-goes-on");
    let (fixed, plain) = (holds(&workshop, "fixed", &["-static"]), holds(&workshop, "plain", &[]));
    for (name, program) in
        [("for-fixed", format!("{}", fixed.display())), ("for-plain", format!("env -i {}", plain.display()))]
    {
        let pipe = Pipe::new(&workshop, name);
        let session = shell(&workshop, &format!("{program} {} > /dev/null 2>&1 & exit 3", pipe.0.display()));
        let recorded = session.record();
        assert!(pipe.write(), "the program has ended before mallow\n{recorded}");
        assert_eq!(recorded.exit, e2e::Exit::Status(3), "{recorded}");
        has_no_other_allocator(&recorded);
        let report = session.report(&[]);
        let goes_on = serde_json::json!({"goes_on": true});
        let processes = report["processes"].as_array().unwrap();
        assert_eq!(processes.iter().filter(|process| process["exit"] == goes_on).count(), 1, "{report:#}");
        assert_eq!(report["complete"], false);
        let (counted, _) = session.stat();
        assert!(pipe.write(), "the program has ended before mallow\n{counted}");
        assert_eq!(counted.exit, e2e::Exit::Status(3), "{counted}");
        has_no_other_allocator(&counted);
    }
}

/// The next program introduces itself after what a machine that is busy may take: the command has ended long before.
#[test]
fn what_will_register_is_waited_for() {
    let workshop = Workshop::new("replaced-registers");
    // The loader asks which function it is before any code of the program runs, and before its own calls reach the recorder.
    let text = "#include <stdlib.h>\n#include <sys/syscall.h>\n#include <time.h>\nstatic void nothing(void) {}\n\
        static void (*slowly(void))(void) {\n    struct timespec span = {2, 0};\n    long answer;\n\
        \x20   __asm__ volatile(\"syscall\" : \"=a\"(answer) : \"0\"(SYS_nanosleep), \"D\"(&span), \"S\"(0) : \"rcx\", \"r11\", \"memory\");\n\
        \x20   return nothing;\n}\nvoid late(void) __attribute__((ifunc(\"slowly\")));\nvoid (*volatile used)(void) = late;\n\
        int main(void) {\n    for (int i = 0; i < 77; i++) free(malloc(5));\n    return 0;\n}\n";
    let program = build_text_with(workshop.path(), "late", text, &["-fno-builtin"]);
    let script = format!("{} > /dev/null 2>&1 & exit 0", program.display());
    let session = shell(&workshop, &script);
    let recorded = session.record().well();
    let report = session.report(&[]);
    assert_eq!(report["complete"], true, "{recorded}");
    let command = program.to_string_lossy().into_owned();
    let processes = report["processes"].as_array().unwrap();
    let late = processes.iter().find(|process| process["command"] == command.as_str());
    assert_eq!(late.unwrap()["totals"]["allocations"], 77, "{report:#}");
    let (_, counted) = session.stat();
    let processes = counted["runs"][0]["processes"].as_array().unwrap();
    let late = processes.iter().find(|process| process["command"] == command.as_str());
    assert_eq!(late.unwrap()["totals"]["allocations"], 77, "{counted:#}");
}

/// Its parent ends before it comes to its first call.
#[test]
fn a_daemon_is_recorded_when_the_command_has_ended_at_once() {
    let workshop = Workshop::new("replaced-daemon");
    let text = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n    if (daemon(1, 0)) return 1;\n    usleep(500000);\n\
        \x20   for (int i = 0; i < 77; i++) free(malloc(5));\n    return 0;\n}\n";
    let program = build_text_with(workshop.path(), "daemon", text, &["-fno-builtin"]);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    assert_eq!(
        (&report["totals"]["allocations"], &report["complete"]),
        (&77.into(), &true.into()),
        "{recorded}"
    );
    let (counted, document) = session.stat();
    assert_eq!(document["runs"][0]["processes"][1]["totals"]["allocations"], 77, "{counted}");
}

/// A system call of the program's own is not seen: the program that it starts is found by its mappings.
#[test]
fn a_program_that_is_replaced_unseen_is_noticed() {
    let workshop = Workshop::new("replaced-unseen");
    let fixed = holds(&workshop, "fixed", &["-static"]);
    let text = format!(
        "#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nint main(int count, char **words) {{\n    if (count < 2 || fork()) return 3;\n\
         \x20   free(malloc(1));\n    for (int i = 0; i < 3; i++) close(i);\n    words[0] = \"{}\";\n    char *none[] = {{0}};\n    long answer;\n\
         \x20   __asm__ volatile(\"syscall\" : \"=a\"(answer) : \"0\"(SYS_execve), \"D\"(words[0]), \"S\"(words), \"d\"(none) : \"rcx\", \"r11\", \"memory\");\n\
         \x20   return 5;\n}}\n",
        fixed.display()
    );
    let program = build_text_with(workshop.path(), "unseen", &text, &["-fno-builtin"]);
    let pipe = Pipe::new(&workshop, "pipe");
    let session = Session::new(workshop.path(), &[&program.to_string_lossy(), &pipe.0.to_string_lossy()]);
    for counted in [false, true] {
        let finished = if counted { session.stat().0 } else { session.record() };
        assert!(pipe.write(), "the program has ended before mallow\n{finished}");
        assert_eq!(finished.exit, e2e::Exit::Status(3), "{finished}");
        has_no_other_allocator(&finished);
        let is_named = finished.stderr.contains("it became another program (fixed)");
        assert!(is_named, "{finished}");
    }
}

/// A child that has not come to its first call when everything else has ended is not silently left out.
#[test]
fn who_never_comes_is_named() {
    let workshop = Workshop::new("replaced-never");
    // No call is one that the recorder sees.
    let text = "#include <fcntl.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        static long call(long number, long first, long second, long third) {\n    long answer;\n\
        \x20   __asm__ volatile(\"syscall\" : \"=a\"(answer) : \"0\"(number), \"D\"(first), \"S\"(second), \"d\"(third) : \"rcx\", \"r11\", \"memory\");\n\
        \x20   return answer;\n}\nint main(int count, char **words) {\n    if (count < 2 || fork()) return 4;\n    call(SYS_alarm, 20, 0, 0);\n\
        \x20   for (int i = 0; i < 3; i++) call(SYS_close, i, 0, 0);\n    char byte;\n    int pipe = call(SYS_open, (long)words[1], O_RDONLY, 0);\n\
        \x20   call(SYS_exit_group, call(SYS_read, pipe, (long)&byte, 1) < 0, 0, 0);\n    return 0;\n}\n";
    let program = build_text_with(workshop.path(), "never", text, &[]);
    let pipe = Pipe::new(&workshop, "pipe");
    let session = Session::new(workshop.path(), &[&program.to_string_lossy(), &pipe.0.to_string_lossy()]);
    let recorded = session.record();
    assert!(pipe.write(), "{recorded}");
    assert_eq!(recorded.exit, e2e::Exit::Status(4), "{recorded}");
    let report = session.report(&[]);
    assert_eq!(report["complete"], false);
    let (counted, document) = session.stat();
    assert!(pipe.write(), "{counted}");
    for warnings in [&report["warnings"], &document["warnings"]] {
        let warnings = strings(warnings);
        let named = |text: &&String| {
            text.contains("(never) was not recorded: it was still running when everything else had ended")
        };
        assert_eq!(warnings.iter().filter(named).count(), 1, "{warnings:#?}");
    }
}

#[test]
fn its_memory_is_not_taken_for_the_first_programs() {
    let workshop = Workshop::new("replaced-memory");
    let fixed = holds(&workshop, "fixed", &["-static"]);
    let pipe = Pipe::new(&workshop, "pipe");
    let session = shell(&workshop, &format!("exec {} {}", fixed.display(), pipe.0.display()));
    let told = |finished: Finished, document: &serde_json::Value| {
        assert_eq!(finished.exit, e2e::Exit::Status(0), "{finished}");
        has_no_other_allocator(&finished);
        let warnings = strings(&document["warnings"]);
        assert!(warnings.iter().any(|text| text.contains("it is a static program")), "{warnings:#?}");
    };
    std::thread::scope(|scope| {
        // So long that its memory is seen.
        let end = || {
            std::thread::sleep(Duration::from_millis(500));
            assert!(pipe.write());
        };
        scope.spawn(end);
        let recorded = session.record();
        told(recorded, &session.report(&[]));
        scope.spawn(end);
        let (counted, document) = session.stat();
        told(counted, &document);
    });
}

/// The heap of the program that it was would be flat for ever.
#[test]
fn a_server_that_takes_the_place_of_a_recorded_program_has_no_heap_that_is_known() {
    let port = free_port();
    let script =
        format!("exec env -i /usr/bin/python3 -m http.server {port} --bind 127.0.0.1 --directory /tmp");
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["soak", "--json", "--max-time", "1s", "--url", &url, "--", "/bin/sh", "-c", &script];
    let finished = run::finish(run::mallow().args(words));
    let report = json(&finished.stdout);
    assert_eq!(report["verdict"], "inconclusive", "{finished}");
    let samples = report["samples"].as_array().unwrap();
    assert!(!samples.is_empty() && samples.iter().all(|sample| sample["heap"].is_null()), "{finished}");
    let warnings = strings(&report["warnings"]);
    assert!(warnings.iter().any(|text| text.contains("(/usr/bin/python3) was not recorded")), "{finished}");
}
