//! Limits that mallow and what it starts inherit from a shell: what they leave no room for is said, and mallow itself takes no more notice of them than it must.

use e2e::program::build_text;
use e2e::run::{self, Finished};
use e2e::session::{json, metric, report_of};
use e2e::soak::loads;
use e2e::{Exit, Workshop};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;

/// A hundred processes at once, each of which allocates three times when all are there, and stays a while. Ends with 9 when it may have another number of files open
/// than its argument says.
const CROWD: &str = "#include <stdlib.h>\n#include <sys/resource.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(int n, char **words) {\n    if (n != 2) return 9;\n    struct rlimit files;\n    getrlimit(RLIMIT_NOFILE, &files);\n    if (files.rlim_cur != (rlim_t)atoi(words[1])) return 9;\n\
    \x20   int ends[2];\n    if (pipe(ends)) return 8;\n    for (int i = 0; i < 100; i++) {\n        if (fork() == 0) {\n            char all;\n            close(ends[1]);\n\
    \x20           if (read(ends[0], &all, 1)) _exit(7);\n            for (int k = 0; k < 3; k++) { void *volatile block = malloc(10); free(block); }\n            usleep(300000);\n            _exit(0);\n        }\n    }\n\
    \x20   close(ends[1]);\n    int left = 0, status;\n    while (wait(&status) > 0) left += status == 0;\n    return left == 100 ? 3 : 6;\n}\n";

/// Twelve open files, the same for whoever runs the tests: what the shell inherited besides its three would take some of them.
const TWELVE_FILES: &str = "for file in {3..40}; do eval \"exec $file<&-\"; done; ulimit -n 12";

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
        (TWELVE_FILES, "mallow may have only 12 files open (ulimit -Hn), too few for a process"),
    ] {
        for (verb, done) in [("record", "recorded"), ("stat", "counted")] {
            let (finished, document) = limited(&workshop, limit, verb, &["/bin/ls", "/"]);
            let sentence = format!("no process took the recorder in, so nothing was {done}: {reason}");
            assert!(
                finished.exit == Exit::Status(0) && finished.stderr.contains(&sentence),
                "{limit}\n{finished}"
            );
            assert_eq!(document["complete"], false, "{document:#}");
            if verb == "stat" {
                assert_eq!(document["runs"][0]["totals"], Value::Null, "{document:#}");
                assert_eq!(document["equal_counts"], false, "{document:#}");
            } else {
                let totals = document["totals"].as_object().unwrap();
                assert!(totals.len() > 5 && totals.values().all(Value::is_null), "{document:#}");
                assert_eq!(document["warnings"].as_array().unwrap().len(), 1, "{document:#}");
                assert!(finished.stderr.contains("this trace contains no metrics\n"), "{finished}");
                assert!(!finished.stderr.contains("allocations"), "{finished}");
            }
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
fn a_limit_that_leaves_mallow_no_room_is_named() {
    let shell = TWELVE_FILES.replace("12", "5");
    let mut command = run::command("bash");
    command.args(["-c", &format!("{shell}; exec \"$0\" stat -- /bin/ls /")]).arg(run::mallow_binary());
    let finished = run::finish(&mut command);
    let sentence = "mallow may have only 5 files open (ulimit -Hn), too few to start";
    assert!(finished.exit == Exit::Status(125) && finished.stderr.contains(sentence), "{finished}");
}

/// The threads of a program have the limit as their size; mallow's own stack is none of theirs.
#[test]
fn a_small_stack_is_enough() {
    let workshop = Workshop::new("small-stack");
    let program = build_text(
        workshop.path(),
        "threads",
        "#include <pthread.h>\n#include <stdlib.h>\n#include <sys/resource.h>\n\
         static void *work(void *unused) { for (int i = 0; i < 10; i++) { void *volatile block = malloc(10); free(block); } return unused; }\n\
         int main(void) {\n    struct rlimit stack;\n    pthread_t thread;\n    if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur != 64 << 10) return 9;\n\
         \x20   if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) return 8;\n    return 3;\n}\n",
    );
    for verb in ["record", "stat"] {
        let (finished, document) = limited(&workshop, "ulimit -s 64", verb, &[&program.to_string_lossy()]);
        assert_eq!(finished.exit, Exit::Status(3), "{finished}");
        // One of them is the thread's.
        assert_eq!(metric(totals(verb, &document), "allocations"), 11, "{document:#}");
        assert_eq!(document["complete"], true, "{document:#}");
    }
    let mut shell = run::command("bash");
    shell
        .args(["-c", "ulimit -s 64; exec \"$0\" report record.out --metric allocations"])
        .arg(run::mallow_binary());
    let named = run::finish(shell.current_dir(workshop.path())).well();
    assert!(named.stdout.contains("work (threads.c:4)"), "{named}");
}

/// Runs the crowd below a limit of 40 open files, under each of the verbs; returns what was printed, and the document with its totals.
fn crowd_below(limit: &str) -> [(Finished, Value, Value); 2] {
    let workshop = Workshop::new("crowd");
    let crowd = build_text(workshop.path(), "crowd", CROWD);
    ["record", "stat"].map(|verb| {
        let (finished, document) = limited(&workshop, limit, verb, &[&crowd.to_string_lossy(), "40"]);
        let totals = totals(verb, &document).clone();
        (finished.ended(Exit::Status(3)), document, totals)
    })
}

#[test]
fn more_processes_than_files_may_be_open_are_recorded_and_see_the_limit_that_they_would_see() {
    for (finished, document, totals) in crowd_below("ulimit -Sn 40") {
        let counts = ["allocations", "frees"].map(|name| metric(&totals, name));
        assert_eq!(counts, [300, 300], "{finished}\n{document:#}");
        assert_eq!(document["complete"], true, "{document:#}");
    }
}

/// Those that mallow cannot hold at once it reads when others have ended. Of a user without rights the kernel lets no more files be on their way than
/// one process may have open, so of his some are missing.
#[test]
fn processes_that_are_too_many_for_the_hard_limit_are_spoken_of_and_read_later() {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    for (finished, document, totals) in crowd_below("ulimit -n 40") {
        let sentence =
            "mallow may have only 40 files open (ulimit -Hn), too few for all processes that ran at once";
        assert!(finished.stderr.contains(sentence), "{finished}");
        assert_eq!(document["complete"], false, "{document:#}");
        let allocations = metric(&totals, "allocations");
        assert!(allocations == 300 || !is_root && allocations > 0, "{allocations}\n{document:#}");
    }
}

/// Prints how many MiB there are.
const FILLS: &str = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n    int mib = 0;\n    while (malloc(1 << 20)) mib++;\n    printf(\"%d\\n\", mib);\n    return 0;\n}\n";

#[test]
fn a_limit_on_private_memory_leaves_the_program_most_of_it_and_what_is_lost_is_said() {
    let workshop = Workshop::new("data");
    let fills = build_text(workshop.path(), "fills", FILLS);
    let limit = "ulimit -d 200000";
    let mib =
        |finished: &Finished| finished.stdout.trim().parse::<u64>().unwrap_or_else(|_| panic!("{finished}"));
    let mut shell = run::command("bash");
    let bare = mib(&run::finish(shell.args(["-c", &format!("{limit}; exec \"$0\"")]).arg(&fills)));
    assert!(bare > 150, "{bare}");
    for verb in ["record", "stat"] {
        let (finished, document) = limited(&workshop, limit, verb, &[&fills.to_string_lossy()]);
        assert!(mib(&finished) * 10 > bare * 7, "{bare}\n{finished}");
        // What `stat` knows of blocks takes more than a quarter.
        assert_eq!(document["complete"], verb == "record", "{finished}\n{document:#}");
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
    assert_eq!(loads(&report), [(400, 400); 2], "{finished}");
}

/// The last runs of a benchmark are counted, for which mallow raises its own limit.
#[test]
fn what_a_benchmark_starts_has_the_limit_that_it_would_have() {
    let is_seen = "'test \"$(ulimit -Sn)\" = 40'";
    let line = format!(
        "ulimit -Sn 40; exec \"$0\" bench -r 2 --shell sh --prepare {is_seen} --cleanup {is_seen} {is_seen}"
    );
    let _ = run::finish(run::command("bash").args(["-c", &line]).arg(run::mallow_binary())).well();
}
