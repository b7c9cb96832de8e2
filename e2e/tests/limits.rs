//! Limits that mallow and what it starts inherit from a shell: what they leave no room for is said, and mallow itself takes no more notice of them than it must.

use e2e::program::build_text;
use e2e::run::{self, Finished};
use e2e::session::{json, metric, report_of};
use e2e::{Exit, Workshop};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// A hundred processes at once, each of which allocates three times when all are there, and stays a while. Ends with 9 when it may have another number of files open
/// than its argument says.
const CROWD: &str = "#include <stdlib.h>\n#include <sys/resource.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(int n, char **words) {\n    if (n != 2) return 9;\n    struct rlimit files;\n    getrlimit(RLIMIT_NOFILE, &files);\n    if (files.rlim_cur != (rlim_t)atoi(words[1])) return 9;\n\
    \x20   int ends[2];\n    if (pipe(ends)) return 8;\n    for (int i = 0; i < 100; i++) {\n        if (fork() == 0) {\n            char all;\n            close(ends[1]);\n\
    \x20           if (read(ends[0], &all, 1)) _exit(7);\n            for (int k = 0; k < 3; k++) { void *volatile block = malloc(10); free(block); }\n            usleep(300000);\n            _exit(0);\n        }\n    }\n\
    \x20   close(ends[1]);\n    int left = 0, status;\n    while (wait(&status) > 0) left += status == 0;\n    return left == 100 ? 3 : 6;\n}\n";

/// Runs mallow below a limit, and returns what it printed and its document.
fn limited(workshop: &Workshop, limit: &str, verb: &str, words: &[&str]) -> (Finished, Value) {
    let file = workshop.file(&format!("{verb}.out"));
    let mallow = run::mallow_binary();
    let shown = mallow.display();
    let flags = if verb == "stat" { "--json" } else { "" };
    let mut shell = run::command("bash");
    shell.args(["-c", &format!("{limit}; exec \"$0\" {verb} {flags} --force -o \"$@\"")]);
    shell.arg(&mallow).arg(&file).arg("--").args(words).current_dir(workshop.path());
    let finished = run::finish(&mut shell);
    let document = match verb {
        "stat" => json(
            &std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{shown}: {error}\n{finished}")),
        ),
        _ => json(&report_of(&file, &[]).well().stdout),
    };
    (finished, document)
}

fn totals<'a>(verb: &str, document: &'a Value) -> &'a Value {
    if verb == "stat" { &document["runs"][0]["totals"] } else { &document["totals"] }
}

#[test]
fn a_limit_that_leaves_the_command_no_room_is_named_and_nothing_is_zero() {
    let workshop = Workshop::new("no-room");
    for (limit, reason) in [
        ("ulimit -f 10", "the limit on the length of files (ulimit -f) leaves no room"),
        ("ulimit -v 250000", "the limit on memory (ulimit -v) leaves no room"),
        ("ulimit -n 14", "mallow may have only 14 files open (ulimit -Hn), too few for a process"),
    ] {
        for (verb, done) in [("record", "recorded"), ("stat", "counted")] {
            let (finished, document) = limited(&workshop, limit, verb, &["/bin/ls", "/"]);
            let sentence = format!("no process took the recorder in, so nothing was {done}: {reason}");
            assert!(
                finished.exit == Exit::Status(0) && finished.stderr.contains(&sentence),
                "{limit}\n{finished}"
            );
            assert_eq!(document["complete"], false, "{document:#}");
        }
        let text = run::finish(
            run::command("bash")
                .args(["-c", &format!("{limit}; exec \"$0\" stat /bin/ls /")])
                .arg(run::mallow_binary()),
        );
        assert!(text.stderr.contains("wall time") && !text.stderr.contains("allocations"), "{limit}\n{text}");
    }
}

#[test]
fn more_processes_than_files_may_be_open_are_recorded_and_see_the_limit_that_they_would_see() {
    let workshop = Workshop::new("soft");
    let crowd = build_text(workshop.path(), "crowd", CROWD);
    for verb in ["record", "stat"] {
        let (finished, document) =
            limited(&workshop, "ulimit -Sn 40", verb, &[&crowd.to_string_lossy(), "40"]);
        let finished = finished.ended(Exit::Status(3));
        let totals = totals(verb, &document);
        assert_eq!(
            (metric(totals, "allocations"), metric(totals, "frees")),
            (300, 300),
            "{finished}\n{document:#}"
        );
        assert_eq!(document["complete"], true, "{document:#}");
    }
}

#[test]
fn processes_that_are_too_many_for_the_hard_limit_are_spoken_of() {
    let workshop = Workshop::new("hard");
    let crowd = build_text(workshop.path(), "crowd", CROWD);
    for verb in ["record", "stat"] {
        let (finished, document) =
            limited(&workshop, "ulimit -n 40", verb, &[&crowd.to_string_lossy(), "40"]);
        let finished = finished.ended(Exit::Status(3));
        let sentence =
            "mallow may have only 40 files open (ulimit -Hn), too few for all processes that ran at once";
        assert!(finished.stderr.contains(sentence), "{finished}");
        assert_eq!(document["complete"], false, "{document:#}");
        assert!(metric(totals(verb, &document), "allocations") <= 300, "{document:#}");
    }
}

/// A server in this process, with a thread for each connection.
fn serve() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = |mut stream: TcpStream| {
        let mut read = [0; 4096];
        while stream.read(&mut read).is_ok_and(|bytes| bytes > 0) {
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    };
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(std::thread::spawn(move || answer(stream))))
    });
    port
}

#[test]
fn a_load_has_more_connections_than_files_may_be_open_at_first() {
    let url = format!("http://127.0.0.1:{}/", serve());
    let soak = format!(
        "ulimit -Sn 64; exec \"$0\" soak --pid {} --url {url} -c 100 --iterations 2 --requests 400 --no-extend --idle 0s --no-burst \
         --warm-up 0 --json",
        std::process::id()
    );
    let finished = run::finish(run::command("bash").args(["-c", &soak]).arg(run::mallow_binary()));
    let report = json(&finished.stdout);
    let loads = report["samples"].as_array().unwrap().iter().filter_map(|sample| sample["load"].as_object());
    let counts: Vec<(u64, u64)> =
        loads.map(|load| (load["requests"].as_u64().unwrap(), load["succeeded"].as_u64().unwrap())).collect();
    assert_eq!(
        counts.iter().filter(|counts| counts.0 > 0).collect::<Vec<_>>(),
        [&(400, 400); 2],
        "{finished}"
    );
}

/// Some runs of a benchmark are recorded, for which mallow raises its own limit.
#[test]
fn a_benchmark_sees_the_limit_that_it_would_see_in_each_run() {
    let line = "ulimit -Sn 40; exec \"$0\" bench -r 4 --warmup 1 'sh -c \"test $(ulimit -Sn) -eq 40\"' 'sh -c \"test $(ulimit -Sn) -eq 40 && true\"'";
    let _ = run::finish(run::command("bash").args(["-c", line]).arg(run::mallow_binary())).well();
}
