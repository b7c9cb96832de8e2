//! The commands of the guide's page on Kubernetes do what it says, in a process namespace of their own as in a container.
//!
//! Lists behind `command:` are what a container runs; blocks marked `sh` are what a person types. Of both the folders are
//! replaced by those of the test. Blocks marked `console` need a cluster.

use e2e::program::build_text;
use e2e::run::{self, Exit};
use e2e::{Finished, Workshop};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Makes 100 blocks in one line, and works until it is told to end.
const SERVER: &str = "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    static void *volatile kept[100];\nstatic volatile long sum;\nstatic volatile sig_atomic_t is_over;\n\
    static void end(int signal) { (void)signal; is_over = 1; }\n\
    static __attribute__((noinline)) void session(int at) {\n    kept[at] = malloc(64);\n}\n\
    static __attribute__((noinline)) void serve(void) {\n    while (!is_over) sum++;\n}\n\
    int main(void) {\n    signal(SIGTERM, end);\n    for (int at = 0; at < 100; at++) session(at);\n    fclose(fopen(\"ready\", \"w\"));\n    serve();\n    return 0;\n}\n";

fn page() -> String {
    std::fs::read_to_string(e2e::repository().join("docs/guide/kubernetes.md")).unwrap()
}

struct Pod {
    workshop: Workshop,
}

impl Pod {
    fn new() -> Pod {
        let workshop = Workshop::new("kubernetes");
        for folder in ["mallow", "app", "image", "bin"] {
            std::fs::create_dir(workshop.file(folder)).unwrap();
        }
        let _ = build_text(&workshop.file("app"), "server", SERVER);
        std::os::unix::fs::symlink(run::mallow_binary(), workshop.file("image/mallow")).unwrap();
        Pod { workshop }
    }

    /// The words behind each `command:` of the page, with the test's folders.
    fn commands(&self) -> Vec<Vec<String>> {
        let folder = |name: &str| format!("{}/", self.workshop.file(name).display());
        let of = |line: &str| -> Vec<String> {
            let words: Vec<String> = serde_json::from_str(line).unwrap();
            let replaced = |word: String| match word.as_str() {
                "/usr/bin/mallow" => folder("image") + "mallow",
                word => match (word.strip_prefix("/mallow/"), word.strip_prefix("/app/")) {
                    (Some(name), _) => folder("mallow") + name,
                    (_, Some(name)) => folder("app") + name,
                    _ => word.to_owned(),
                },
            };
            words.into_iter().map(replaced).collect()
        };
        page().lines().filter_map(|line| line.trim().strip_prefix("command: ").map(of)).collect()
    }

    /// A command as the first process of a container.
    fn first(&self, words: &[String]) -> Command {
        let mut first = run::command("unshare");
        first
            .args(["--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"])
            .args(words);
        first.current_dir(self.workshop.path());
        first
    }

    /// Starts it, and waits until the server is at work. Returns it, and its first process as its parent numbers that.
    fn started(&self, words: &[String]) -> (Child, String) {
        let ready = self.workshop.file("ready");
        let _ = std::fs::remove_file(&ready);
        let pod = self.first(words).spawn().unwrap();
        let begun = Instant::now();
        while !ready.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server was never ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        let children = format!("/proc/{0}/task/{0}/children", pod.id());
        let first = std::fs::read_to_string(children).unwrap().trim().to_owned();
        (pod, first)
    }

    fn end(&self, mut pod: Child, first: &str, signal: &str) -> Exit {
        let _ = run::finish(run::command("kill").args(["-s", signal, first])).well();
        run::wait(&mut pod, "unshare")
    }

    /// Types a line in the volume's folder.
    fn typed(&self, line: &str) -> Finished {
        let path = format!("{}:/usr/bin:/bin", self.workshop.file("mallow").display());
        let mut shell = run::command("/bin/sh");
        run::finish(shell.args(["-c", line]).env("PATH", path).current_dir(self.workshop.file("mallow")))
            .well()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.workshop.file("mallow").join(name)
    }
}

/// The lines of the blocks marked `sh`.
fn lines() -> Vec<String> {
    let page = page();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_pod_that_is_recorded_leaves_a_trace_with_names() {
    let pod = Pod::new();
    let commands = pod.commands();
    let [copy, record, keep, soak] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!(keep.join(" "), "sleep infinity");
    let lines = lines();
    let [report, picture, sample, killed] = lines.as_slice() else { panic!("{lines:?}") };

    let _ = run::finish(run::command(&copy[0]).args(&copy[1..])).well();
    let (server, first) = pod.started(record);
    assert_eq!(pod.end(server, &first, "TERM"), Exit::Status(0), "the server ends by itself");
    let leaked = pod.typed(report).stdout;
    assert!(leaked.contains("6.25 KiB  100.0%  100 blocks of 100 allocations, 64 B each"), "{leaked}");
    assert!(leaked.contains("session (") && leaked.contains("server.c:9)"), "{leaked}");
    let _ = pod.typed(picture);
    assert!(std::fs::read_to_string(pod.file("server.svg")).unwrap().contains("session"));

    // A container that has no memory left: the kernel kills every process in it.
    let (server, first) = pod.started(record);
    // A trace is written every half second.
    std::thread::sleep(Duration::from_secs(2));
    // How unshare itself then ends depends on its version.
    assert_ne!(pod.end(server, &first, "KILL"), Exit::Status(0));
    std::fs::rename(pod.file("server.mallow"), pod.file("killed.mallow")).unwrap();
    let of_killed = pod.typed(killed);
    assert!(of_killed.stdout.contains("6.25 KiB"), "{of_killed}");
    assert!(of_killed.stderr.contains("ends early"), "{of_killed}");

    is_sampled(&pod, &record[record.iter().position(|word| word == "--").unwrap() + 1..], sample);
    is_soaked(&pod, soak);
}

/// A container that joins the process namespace sees the server as process 1.
fn is_sampled(pod: &Pod, server: &[String], line: &str) {
    let (server, first) = pod.started(server);
    let inside =
        ["nsenter", "--user", "--preserve-credentials", "--pid", "--mount", "--target", &first, "--"]
            .join(" ");
    let _ = pod.typed(&format!("{inside} sh -c 'cd {} && {line}'", pod.file("").display()));
    let functions = pod.typed("mallow report now.cpu.pb.gz --functions").stdout;
    assert!(functions.contains("  serve "), "{functions}");
    // A first process has no handler of its own for SIGTERM unless it sets one, as this one does.
    assert_eq!(pod.end(server, &first, "TERM"), Exit::Status(0));
}

/// With another server, which speaks HTTP, and less of a load.
fn is_soaked(pod: &Pod, soak: &[String]) {
    let port = e2e::soak::free_port().to_string();
    let server = Path::new(&e2e::repository()).join("programs/soak/python/server.py");
    let (flags, _) = soak.split_at(soak.iter().position(|word| word == "--").unwrap());
    let mut command = run::command(&flags[0]);
    command.args(flags[1..].iter().map(|word| word.replace("8080", &port)));
    command
        .args(["-n", "50", "--idle", "0s", "--iterations", "3", "--no-extend", "--", "/usr/bin/python3"])
        .arg(server);
    let _ =
        run::finish(command.args(["--port", &port]).current_dir(pod.workshop.path())).ended(Exit::Status(3));
    assert!(std::fs::read_to_string(pod.file("soak.xml")).unwrap().contains("INCONCLUSIVE"));
}
