//! Who is killed while the kernel kills for want of memory is told so; who is killed otherwise is not. The kernel's count is a file of the test's.

use e2e::Workshop;
use e2e::run::{self, Exit, Finished};
use e2e::soak::free_port;
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

/// What it printed on stdout, where lines of a verdict are short.
fn in_one_line(finished: &Finished) -> String {
    finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
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
        let text = in_one_line(&checked);
        assert_eq!(text.contains(TOLD), is_told, "{checked}");
        assert!(text.contains("killed by signal 9"), "{checked}");
    }
}

/// Killed by its 2,000th request.
const SERVER: &str = r#"
import http.server, itertools, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    requests = itertools.count()
    def do_GET(self):
        if next(self.requests) == 2000:
            open("vmstat", "w").write("oom_kill %s\n" % sys.argv[2])
            os.kill(os.getpid(), signal.SIGKILL)
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn a_soak_says_that_its_server_was_killed_for_want_of_memory() {
    let workshop = Workshop::new("oom-soak");
    fs::write(workshop.file("server.py"), SERVER).unwrap();
    for (killed, is_told) in [("8", true), ("7", false)] {
        let port = free_port().to_string();
        let url = format!("http://127.0.0.1:{port}/");
        let server = ["python3", "server.py", &port, killed];
        let soaked = mallow(&workshop, &[&["soak", "--url", &url, "--"][..], &server].concat());
        let text = in_one_line(&soaked);
        assert_eq!(text.contains(TOLD), is_told, "{soaked}");
        assert!(text.contains("killed by signal 9"), "{soaked}");
    }
}
