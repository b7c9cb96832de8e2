//! Time off the processors (off-CPU): a program whose waits are known from its source and from its own clocks, and
//! every view of them.
//!
//! How long a sleep takes depends on the machine, so the measured time is compared with what the program measured
//! itself: the time that passed on the clock while the thread had no processor. The number of sleeps is exact.

use crate::cpu::{built, cpu, mallow, number, report, text};
use e2e::program::build_text;
use e2e::session::json;
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::collections::BTreeMap;

/// Records `waits` into `waits.pb.gz`; returns the wall time and the CPU time of each part, as the program prints them.
fn waits(workshop: &Workshop, more: &[&str]) -> (Finished, BTreeMap<String, (u64, u64)>) {
    let program = built(workshop, "waits");
    let words = [&["--off-cpu", "-o", "waits.pb.gz"], more, &["--", text(&program)]].concat();
    let recorded = cpu(workshop, &words).well();
    let mut told: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in recorded.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let part = told.entry(words[0].to_owned()).or_default();
        part.0 += words[1].parse::<u64>().unwrap();
        part.1 += words[2].parse::<u64>().unwrap();
    }
    assert_eq!(told.len(), 6, "{recorded}");
    (recorded, told)
}

/// Returns a metric of a function with all its callees.
fn under(document: &Value, function: &str, metric: &str) -> u64 {
    let rows = document["functions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["function"] == function);
    number(&row.unwrap_or_else(|| panic!("{function} is missing: {document}"))["children"][metric])
}

/// `perf` records the same two events, and its file has the same waits.
#[test]
fn waits_that_perf_recorded_are_those_that_the_program_knows() {
    let workshop = Workshop::new("off-cpu-perf");
    let program = built(&workshop, "waits");
    let record = |events: &str, file: &str| {
        let mut perf = run::command("perf");
        perf.args(["record", "-F", "997", "-e", events, "--switch-events", "--call-graph", "dwarf,16384"]);
        let _ =
            run::finish(perf.args(["-o", file, "--", text(&program)]).current_dir(workshop.path())).well();
    };
    record("cpu-clock,context-switches/period=1/", "stacks.data");
    let document = report(&workshop, &["stacks.data", "--measure", "off-cpu"]);
    assert_eq!(document["warnings"], serde_json::json!([]));
    for name in ["sleep_50", "sleep_100", "sleep_200"] {
        let (off, blocked) = (under(&document, name, "off_cpu_ns"), under(&document, name, "blocked_ns"));
        assert!((198_000_000..600_000_000).contains(&off), "{name} sleeps 200 ms: {off}");
        assert!(blocked >= 198_000_000 && blocked <= off, "{name}: {blocked} of {off}");
    }
    // Without stacks they are those of threads.
    record("cpu-clock", "threads.data");
    let document = report(&workshop, &["threads.data", "--threads", "--measure", "blocked"]);
    assert!(number(&document["totals"]["blocked_ns"]) >= 3 * 198_000_000, "{document}");
    // If switches were not requested, it is not reported that there were none.
    let mut perf = run::command("perf");
    perf.args(["record", "-e", "cpu-clock", "-g", "-o", "none.data", "--", text(&program)]);
    let _ = run::finish(perf.current_dir(workshop.path())).well();
    assert!(report(&workshop, &["none.data"])["totals"]["blocked_ns"].is_null());
}

#[test]
fn of_known_waits_each_is_found_where_it_is_and_as_long_as_it_is() {
    let workshop = Workshop::new("off-cpu");
    let (recorded, told) = waits(&workshop, &[]);
    let document = report(&workshop, &["waits.pb.gz", "--measure", "off-cpu"]);
    let quality = &document["quality"];
    assert_eq!((&quality["lost"], &document["by"]), (&0.into(), &"off_cpu".into()), "{recorded}");
    for (name, (clock_ns, cpu_ns)) in &told {
        let off = under(&document, name, "off_cpu_ns");
        // On a shared machine, the hypervisor may take a processor away without the kernel noticing.
        let known = clock_ns - cpu_ns;
        assert!(
            off <= *clock_ns && off * 10 >= known * 9,
            "{name}: {off} of {known}, {clock_ns} ns\n{recorded}"
        );
        let blocked = under(&document, name, "blocked_ns");
        match name.as_str() {
            "compete" => assert!(blocked * 20 <= off, "{name}: {blocked} of {off}"),
            _ => assert!(blocked > 0 && blocked <= off, "{name}: {blocked} of {off}"),
        }
    }
    for name in ["sleep_50", "sleep_100", "sleep_200"] {
        let off = under(&document, name, "off_cpu_ns");
        assert!(off >= 198_000_000, "{name} sleeps 200 ms: {off}");
    }
    // How often each sleeps.
    let stacks = report(&workshop, &["waits.pb.gz", "--sort", "blocked"]);
    let has = |stack: &Value, wanted: &dyn Fn(&str) -> bool| {
        let mut frames = stack["frames"].as_array().unwrap().iter();
        frames.any(|frame| wanted(frame["function"].as_str().unwrap()))
    };
    for (name, times) in [("sleep_50", 4), ("sleep_100", 2), ("sleep_200", 1)] {
        let stacks = stacks["stacks"].as_array().unwrap().iter();
        let of_name = stacks.filter(|stack| {
            has(stack, &|function| function == name) && has(stack, &|function| function.contains("nanosleep"))
        });
        let switches: u64 = of_name.map(|stack| number(&stack["totals"]["switches"])).sum();
        assert_eq!(switches, times, "{name}: {stacks:?}", stacks = stacks_of(&workshop));
    }
    assert!(
        recorded.stderr.contains("off processors ") && recorded.stderr.contains("where threads were blocked")
    );
    // The function that slept is named, and not the kernel function in which it slept.
    for (caller, called) in [("nap  [waits]", "nanosleep"), ("of_mutex  [waits]", "pthread_mutex_lock")] {
        let line = recorded.stderr.lines().find(|line| line.contains(caller));
        assert!(line.is_some_and(|line| line.contains(called)), "{recorded}");
    }
}

fn stacks_of(workshop: &Workshop) -> String {
    mallow(workshop, &["report", "waits.pb.gz", "--sort", "blocked"]).well().stdout
}

#[test]
fn every_view_and_every_export_of_waits_adds_up_to_the_same() {
    let workshop = Workshop::new("off-cpu-views");
    let (_, told) = waits(&workshop, &[]);
    let of = |words: &[&str]| report(&workshop, &[&["waits.pb.gz", "--measure", "off-cpu"], words].concat());
    let document = of(&[]);
    let off = number(&document["totals"]["off_cpu_ns"]);
    assert!(off >= told.values().map(|(clock_ns, cpu_ns)| clock_ns - cpu_ns).sum::<u64>() / 10 * 9);
    for tree in ["--tree", "--tree=callees"] {
        assert_eq!(number(&of(&[tree, "--threshold", "0"])["tree"]["totals"]["off_cpu_ns"]), off, "{tree}");
    }
    let threads = of(&["--threads"]);
    let threads = threads["threads"].as_array().unwrap();
    let of_threads = threads.iter().map(|thread| number(&thread["totals"]["off_cpu_ns"]));
    assert_eq!(of_threads.sum::<u64>(), off);
    for name in ["locking", "reading", "competing"] {
        assert!(threads.iter().any(|thread| thread["name"] == name), "{name}: {threads:?}");
    }
    let timeline = of(&["--timeline"]);
    let slices = timeline["timeline"]["slices"].as_array().unwrap().iter();
    assert_eq!(slices.map(|slice| number(&slice["off_cpu_ns"])).sum::<u64>(), off);
    let half = format!("{}us", number(&document["duration_ns"]) / 2000);
    let halves = [&["--to", &half][..], &["--from", &half]];
    assert_eq!(halves.map(|words| number(&of(words)["totals"]["off_cpu_ns"])).iter().sum::<u64>(), off);

    let text = |words: &[&str]| mallow(&workshop, words).well().stdout;
    let folded = text(&["export", "waits.pb.gz", "--format", "folded", "--measure", "off-cpu"]);
    let weights = folded.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(weights.sum::<u64>(), off);
    let speedscope =
        json(&text(&["export", "waits.pb.gz", "--format", "speedscope", "--measure", "off-cpu"]));
    let profiles = speedscope["profiles"].as_array().unwrap().iter();
    let weights = profiles.flat_map(|profile| profile["weights"].as_array().unwrap());
    assert_eq!(weights.map(number).sum::<u64>(), off);
    let svg = text(&["flamegraph", "waits.pb.gz", "--measure", "blocked"]);
    assert!(svg.contains("<title>sleep_200\n"), "{svg}");
    // Through a file and back: a profile does not differ from itself.
    let diff = json(&text(&["diff", "waits.pb.gz", "waits.pb.gz", "--by", "off-cpu", "--json"]));
    assert_eq!(diff["totals"]["off_cpu"]["after"], off);
    let gate = ["diff", "waits.pb.gz", "waits.pb.gz", "--fail-on", "blocked>100ms"];
    let broken = mallow(&workshop, &gate).ended(Exit::Status(1));
    assert!(broken.stderr.contains("blocked>"), "{broken}");
}

/// `go tool pprof` checks the file.
#[test]
fn waits_stand_in_the_file_as_nanoseconds() {
    let workshop = Workshop::new("off-cpu-pprof");
    let _ = waits(&workshop, &["--summary-only"]);
    let document = report(&workshop, &["waits.pb.gz", "--measure", "blocked"]);
    let mut go = std::process::Command::new("go");
    go.args(["tool", "pprof", "-top", "-sample_index=blocked", "-unit=us", "-nodefraction=0", "waits.pb.gz"]);
    let theirs = run::finish(go.current_dir(workshop.path())).well();
    for name in ["sleep_50", "sleep_100", "sleep_200", "of_mutex", "of_pipe"] {
        let row = theirs.stdout.lines().find(|line| line.split_whitespace().last() == Some(name));
        let row = row.unwrap_or_else(|| panic!("{name} is missing: {theirs}"));
        let theirs: f64 = row.split_whitespace().nth(3).unwrap().trim_end_matches("us").parse().unwrap();
        let ours = under(&document, name, "blocked_ns") as f64 / 1e3;
        assert!((theirs - ours).abs() <= 0.01, "{name}: {ours} {theirs}");
    }
}

#[test]
fn what_is_still_waited_for_at_the_end_counts_until_then() {
    let workshop = Workshop::new("off-cpu-end");
    let source = "#include <unistd.h>\n\
                  __attribute__((noinline)) int forever(void) { return usleep(999000) + 1; }\n\
                  int main(void) { return forever() - 1; }\n";
    let program = build_text(workshop.path(), "sleeper", source);
    let words = ["--off-cpu", "--duration", "600ms", "-o", "cut.pb.gz", "--", text(&program)];
    let _ = cpu(&workshop, &words).well();
    let document = report(&workshop, &["cut.pb.gz", "--measure", "blocked"]);
    let (slept, all) = (under(&document, "forever", "blocked_ns"), number(&document["duration_ns"]));
    assert!(slept > 0 && slept <= all, "{slept} of {all}");
    assert_eq!(under(&document, "forever", "switches"), 1);
}

/// More switches than stacks can be copied: stacks may be missing, waits are not.
#[test]
fn of_many_short_waits_each_is_counted() {
    let workshop = Workshop::new("off-cpu-many");
    let program = built(&workshop, "pingpong");
    let recorded = cpu(&workshop, &["--off-cpu", "-o", "many.pb.gz", "--", text(&program)]).well();
    let told: Vec<u64> = recorded.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let document = report(&workshop, &["many.pb.gz", "--measure", "off-cpu"]);
    assert_eq!(document["quality"]["lost"], 0, "{recorded}");
    let switches = number(&document["totals"]["switches"]);
    // The program counts from its first line to its last; before and after, it waits a few more times.
    assert!(switches >= told[0] && switches <= told[0] + 100, "{switches} of {told:?}\n{recorded}");
    let (off, known) = (number(&document["totals"]["off_cpu_ns"]), told[1] - told[2]);
    assert!(off >= known / 10 * 9, "{off} of {known}\n{recorded}");
    assert!(under(&document, "echo", "blocked_ns") > 0 && under(&document, "main", "blocked_ns") > 0);
}

/// A hanging process is never switched out while it is observed.
#[test]
fn a_process_that_hangs_is_seen_where_it_hangs() {
    let workshop = Workshop::new("off-cpu-hangs");
    let source = "#include <pthread.h>\n#include <unistd.h>\n\
                  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n\
                  __attribute__((noinline)) void *hangs(void *unused) {\n\
                    pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); return unused; }\n\
                  __attribute__((noinline)) int idles(int *ends) { char byte; return read(ends[0], &byte, 1) + 1; }\n\
                  int main(void) { int ends[2]; pthread_t thread; pthread_mutex_lock(&mutex);\n\
                    pthread_create(&thread, NULL, hangs, NULL);\n\
                    return pipe(ends) || idles(ends); }\n";
    let program = build_text(workshop.path(), "hanging", source);
    let mut child = std::process::Command::new(&program).spawn().unwrap();
    let pid = child.id();
    let calls = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        tasks
            .map(|task| std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default())
            .filter(|call| call.starts_with("202 ") || call.starts_with("0 "))
            .count()
    };
    while calls() < 2 {
        std::thread::yield_now();
    }
    let pid_word = pid.to_string();
    let words = ["--off-cpu", "--pid", &pid_word, "--duration", "300ms", "-o", "hangs.pb.gz"];
    let recorded = cpu(&workshop, &words).well();
    child.kill().unwrap();
    child.wait().unwrap();
    let document = report(&workshop, &["hangs.pb.gz", "--measure", "blocked"]);
    for name in ["hangs", "idles"] {
        assert_eq!(under(&document, name, "switches"), 1, "{recorded}");
        assert!(under(&document, name, "blocked_ns") >= 200_000_000, "{recorded}");
    }
    assert_eq!(
        (&document["quality"]["whole"], &document["quality"]["samples"]),
        (&2.into(), &2.into()),
        "{recorded}"
    );
}

#[test]
fn whoever_may_not_look_into_the_kernel_is_told_so() {
    let workshop = Workshop::new("off-cpu-plain");
    let confined = built(&workshop, "confined");
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    for flags in [&["--off-cpu"][..], &["-e", "context-switches"]] {
        let mut command = run::command(&confined);
        command.arg("plain").arg(run::mallow_binary()).arg("cpu").args(flags).args(["--", "touch", "ran"]);
        let finished = run::finish(command.current_dir(workshop.path()));
        if level.trim().parse::<i32>().unwrap() < 2 {
            let _ = finished.well();
            continue;
        }
        let refused = finished.ended(Exit::Status(125));
        let sentence = "can only be seen in the kernel, which may not be looked into here: kernel.perf_event_paranoid is ";
        assert!(
            refused.stderr.contains(sentence) && refused.stderr.contains("perf_event_paranoid=1"),
            "{refused}"
        );
        assert_eq!(workshop.names(), ["confined", "confined.c"]);
    }
}
