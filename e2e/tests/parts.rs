//! Parts of a recording: filters, windows, threads, processes; in every command that accepts them, and with metrics that the source states.

use e2e::run::{self, Finished};
use e2e::session::json;
use e2e::{Exit, Session, Workshop};
use serde_json::Value;
use std::fs;

/// Two threads in turn, each with blocks of its own, a pause, and one more.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void *kept[4096];
static int used;
__attribute__((noinline)) void small(void) { for (int i = 0; i < 1000; i++) kept[used++] = malloc(16); }
__attribute__((noinline)) void big(void) { for (int i = 0; i < 100; i++) free(malloc(4096)); }
__attribute__((noinline)) void mixed(int both) { for (int i = 0; i < 20; i++) kept[used++] = malloc(both && i % 2 ? 5000 : 32); }
__attribute__((noinline)) void late(void) { for (int i = 0; i < 50; i++) kept[used++] = malloc(100); }
static void *work(void *unused) {
    pthread_setname_np(pthread_self(), "worker-7");
    big();
    mixed(1);
    // A thread's name is read when it is first observed.
    usleep(300000);
    return unused;
}
__attribute__((noinline)) void fall(int n) { if (n) fall(n - 1); else kept[used++] = malloc(7); }
int main(void) {
    pthread_t thread;
    small();
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    mixed(0);
    fall(30);
    late();
    return 0;
}
"#;

struct Parts {
    workshop: Workshop,
    session: Session,
}

impl Parts {
    fn recorded() -> Parts {
        let workshop = Workshop::new("parts");
        fs::write(workshop.file("parts.c"), SOURCE).unwrap();
        let mut gcc = run::command("gcc");
        gcc.args([
            "-g",
            "-O1",
            "-fno-optimize-sibling-calls",
            "-fno-builtin",
            "-pthread",
            "parts.c",
            "-o",
            "parts",
        ]);
        let _ = run::finish(gcc.current_dir(workshop.path())).well();
        let session = Session::new(workshop.path(), &["./parts"]);
        let _ = session.record().well();
        Parts { workshop, session }
    }

    fn mallow(&self, words: &[&str]) -> Finished {
        let trace = self.session.trace();
        let words = words.iter().map(|word| if *word == "T" { trace.to_str().unwrap() } else { word });
        run::finish(run::mallow().current_dir(self.workshop.path()).args(words))
    }

    fn report(&self, words: &[&str]) -> Value {
        json(&self.mallow(&[&["report", "T", "--json"], words].concat()).well().stdout)
    }

    /// Returns allocations, bytes and leaked bytes of what a filter selects.
    fn left(&self, filter: &str) -> [u64; 3] {
        let totals = &self.report(&["--filter", filter])["totals"];
        ["allocations", "bytes", "leaked_bytes"].map(|key| totals[key].as_u64().unwrap())
    }

    /// Returns the sum of folded stacks, and the stacks.
    fn folded(&self, words: &[&str]) -> (u64, String) {
        let text = self.mallow(&[&["flamegraph", "T", "--folded"], words].concat()).well().stdout;
        (text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum(), text)
    }
}

#[test]
fn filters_leave_what_the_source_states() {
    let parts = Parts::recorded();
    for (filter, expected) in [
        ("function=small", [1000, 16_000, 16_000]),
        ("function=big", [100, 409_600, 0]),
        ("function~^(small|late)$", [1050, 21_000, 21_000]),
        ("function=mixed", [40, 640 + 320 + 50_000, 640 + 320 + 50_000]),
        ("function=mixed and thread:worker", [20, 50_320, 50_320]),
        ("function=mixed and not thread=worker-7", [20, 640, 640]),
        ("function=mixed and size>=5000", [10, 50_000, 50_000]),
        ("function=mixed and size<5000", [30, 960, 960]),
        ("size=4096 and module=parts", [100, 409_600, 0]),
        ("size=100 or function:fall", [51, 5007, 5007]),
        ("process=parts and file:parts.c and function=late", [50, 5000, 5000]),
        ("language:native and function=late", [50, 5000, 5000]),
        ("language:python", [0, 0, 0]),
        ("process=other", [0, 0, 0]),
    ] {
        assert_eq!(parts.left(filter), expected, "{filter}");
    }
    // A filter and its negation add up to the whole, whatever has to be read for them.
    let whole = parts.report(&[]);
    for filter in ["function=mixed", "size>=4096", "thread:worker and size<100"] {
        let (with, without) =
            (parts.report(&["--filter", filter]), parts.report(&["--filter", &format!("not ({filter})")]));
        for key in [
            "allocations",
            "bytes",
            "temporary",
            "peak_bytes",
            "peak_blocks",
            "leaked_bytes",
            "leaked_blocks",
        ] {
            let of = |document: &Value| document["totals"][key].as_u64().unwrap();
            assert_eq!(of(&with) + of(&without), of(&whole), "{filter}: {key}");
        }
        assert_eq!(with["part"]["filter"], filter);
        assert_eq!(with["part"]["whole"]["bytes"], whole["totals"]["bytes"]);
    }
    let text = parts.mallow(&["report", "T", "--filter", "function=small"]).well().stdout;
    assert!(text.contains("\nfilter function=small\nleaves 1,000 of "), "{text}");
    let refused = parts.mallow(&["report", "T", "--filter", "fuction=small"]).ended(Exit::Status(2));
    assert!(
        refused.stderr.contains("there is no field fuction") && refused.stderr.contains("\n  ^"),
        "{refused}"
    );
}

#[test]
fn a_filter_is_the_same_in_every_command() {
    let parts = Parts::recorded();
    for (filter, bytes) in [("function=mixed and thread:worker", 50_320), ("function=big", 409_600)] {
        let measure = ["--measure", "bytes", "--filter", filter];
        assert_eq!(parts.folded(&measure).0, bytes, "{filter}");
        let exported = ["export", "T", "-f", "folded", "--measure", "bytes", "--filter", filter];
        let exported = parts.mallow(&exported).well().stdout;
        let sum = exported
            .lines()
            .skip(1)
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum::<u64>();
        assert_eq!(sum, bytes, "{filter}");
        let tree = parts.report(&["--tree", "--filter", filter]);
        assert_eq!(tree["tree"]["root"]["figures"]["bytes"], bytes, "{filter}");
        let histogram = parts.report(&["--histogram", "--filter", filter]);
        let sizes = histogram["histogram"]["sizes"].as_array().unwrap();
        assert_eq!(sizes.iter().map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>(), bytes, "{filter}");
        let diff = json(
            &parts.mallow(&["diff", "T", "T", "--by", "bytes", "--json", "--filter", filter]).well().stdout,
        );
        let hidden = diff["unchanged"]["after"].as_u64().unwrap();
        assert!(hidden >= bytes, "{diff}");
    }
    let diff = json(
        &parts
            .mallow(&["diff", "T", "T", "--by", "bytes", "--json", "--filter", "size=4096 and function=big"])
            .well()
            .stdout,
    );
    assert_eq!(diff["totals"]["bytes"]["after"], 409_600);
}

#[test]
fn windows_of_tables_pictures_and_files_side_by_side_are_the_whole() {
    let parts = Parts::recorded();
    let whole = parts.report(&["--sort", "bytes"]);
    // The threads' pause is in the middle.
    let sorted = |words: &[&str]| parts.report(&[&["--sort", "bytes"], words].concat());
    let (first, last) = (sorted(&["--to", "100ms"]), sorted(&["--from", "100ms"]));
    for key in ["allocations", "bytes", "temporary", "reallocations"] {
        let of = |document: &Value| document["totals"][key].as_u64().unwrap();
        assert_eq!(of(&first) + of(&last), of(&whole), "{key}");
    }
    assert_eq!(last["totals"]["leaked_bytes"], whole["totals"]["leaked_bytes"]);
    // What was live at the pause: small, the worker's of mixed, and its thread's own.
    let live = first["totals"]["leaked_bytes"].as_u64().unwrap();
    let (at_pause, stacks) = parts.folded(&["--at", "100ms"]);
    assert_eq!(at_pause, live);
    assert!(stacks.contains("main;small 16000\n") && !stacks.contains(";late "), "{stacks}");
    let (drawn, stacks) = parts.folded(&["--from", "100ms", "--measure", "allocations"]);
    assert_eq!(Some(drawn), last["totals"]["allocations"].as_u64());
    assert!(stacks.contains("main;late 50\n") && !stacks.contains(";small "), "{stacks}");
    let late = parts.report(&["--tree=callees", "--from", "100ms", "--filter", "function=late"]);
    assert_eq!(late["tree"]["root"]["figures"]["bytes"], 5000);
    let exported =
        parts.mallow(&["export", "T", "-f", "folded", "--measure", "leaked", "--at", "100ms"]).well().stdout;
    let numbers =
        exported.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(numbers.sum::<u64>(), live);
    let svg = parts.mallow(&["flamegraph", "T", "--at", "100ms"]).well().stdout;
    assert!(svg.contains(">Bytes live at 100 ms: parts</text>"), "{}", &svg[..3000]);
}

#[test]
fn functions_and_their_neighbours_count_recursion_once() {
    let parts = Parts::recorded();
    let functions = parts.report(&["--functions=children", "--sort", "allocations"]);
    let rows = functions["functions"].as_array().unwrap();
    let of = |name: &str| {
        let row =
            rows.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("{name}: {functions}"));
        ["self", "children"].map(|part| row[part]["allocations"].as_u64().unwrap())
    };
    assert_eq!((of("small"), of("late"), of("mixed")), ([1000, 1000], [50, 50], [40, 40]));
    assert_eq!((of("fall"), of("work")), ([1, 1], [0, 120]));
    assert_eq!(of("main")[0], 0);
    let peek = parts.report(&["--peek", "mixed", "--sort", "bytes"]);
    let peek = &peek["peek"][0];
    let callers: Vec<(&str, u64)> = peek["callers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["function"].as_str().unwrap(), row["totals"]["bytes"].as_u64().unwrap()))
        .collect();
    assert_eq!(callers, [("work", 50_320), ("main", 640)]);
    let fall = parts.report(&["--peek", "fall"]);
    assert_eq!(fall["peek"][0]["callers"].as_array().map(Vec::len), Some(1), "{fall}");
    let text = parts.mallow(&["report", "T", "--peek", "work", "--sort", "allocations"]).well().stdout;
    for line in [
        "work  [parts]: 120, ",
        "; nothing itself",
        "        100   83.3%  big  [parts]",
        "         20   16.7%  mixed  [parts]",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let text = parts.mallow(&["report", "T", "--functions", "--limit", "2"]).well().stdout;
    assert!(text.contains("more functions with ") && text.contains("  big  [parts]"), "{text}");
}

/// heaptrack's own file of the same program: its events have windows and sizes, and a filter on anything that it lacks is refused.
#[test]
fn events_of_heaptrack_tell_windows_and_sizes() {
    let parts = Parts::recorded();
    let mut heaptrack = run::command("heaptrack");
    heaptrack.args(["-o", "h", "./parts"]).current_dir(parts.workshop.path());
    let _ = run::finish(&mut heaptrack).well();
    let file = fs::read_dir(parts.workshop.path()).unwrap().flatten().map(|entry| entry.path());
    let file =
        file.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("h.")).max().unwrap();
    let file = file.to_str().unwrap();
    let report =
        |words: &[&str]| json(&parts.mallow(&[&["report", file, "--json"], words].concat()).well().stdout);
    let big = report(&["--filter", "size=4096 and function=big"]);
    assert_eq!((&big["totals"]["allocations"], &big["totals"]["bytes"]), (&100.into(), &409_600.into()));
    let (first, last) =
        (report(&["--sort", "bytes", "--to", "100ms"]), report(&["--sort", "bytes", "--from", "100ms"]));
    let whole = report(&[]);
    let bytes = |document: &Value| document["totals"]["bytes"].as_u64().unwrap();
    assert_eq!(bytes(&first) + bytes(&last), bytes(&whole));
    let histogram = &report(&["--histogram"])["histogram"];
    let blocks =
        histogram["sizes"].as_array().unwrap().iter().map(|row| row["blocks"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(Some(blocks), whole["totals"]["allocations"].as_u64());
    assert_eq!(histogram["lifetimes_us"], Value::Null);
    for (flag, part) in [
        ("--threads", "does not contain threads"),
        ("--chains", "realloc resized"),
        ("--filter=thread:w", "has no threads"),
        ("--filter=request=calloc", "does not tell how blocks were requested"),
    ] {
        let refused = parts.mallow(&["report", file, flag]).ended(Exit::Status(2));
        assert!(refused.stderr.contains(part), "{refused}");
    }
}
