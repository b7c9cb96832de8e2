//! CPU profiles of scripts: time is attributed to the right lines, with every way of sampling, and the program does not notice.

use crate::cpu::{cpu, number, report, text};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A script frame.
struct Line {
    function: String,
    line: u64,
}

/// Returns the script frames of a stack, innermost first.
fn lines(stack: &Value, language: &str) -> Vec<Line> {
    let frames = stack["frames"].as_array().unwrap().iter();
    let of_script = frames.filter(|frame| frame["language"] == language);
    of_script
        .map(|frame| Line {
            function: frame["function"].as_str().unwrap().to_owned(),
            line: frame["line"].as_u64().unwrap_or(0),
        })
        .collect()
}

/// What a source of `programs/cpu/shares` states, by the lines that its comments name.
struct Shares {
    language: &'static str,
    source: String,
}

impl Shares {
    fn of(name: &str, language: &'static str) -> (PathBuf, Shares) {
        let path = e2e::repository().join("programs/cpu").join(name);
        let source = std::fs::read_to_string(&path).unwrap();
        (path, Shares { language, source })
    }

    fn line(&self, comment: &str) -> u64 {
        let marked = self.source.lines().position(|line| line.ends_with(&format!("# {comment}")));
        marked.unwrap_or_else(|| panic!("no line says '{comment}'")) as u64 + 1
    }

    /// Compares the sampled time with what the source states.
    fn hold(&self, recorded: &Finished, document: &Value) {
        let [twice, once, by_c] = ["twice", "once", "called by C"].map(|comment| self.line(comment));
        let (mut all, mut spun, mut first, mut called) = (0, 0, 0, 0);
        let mut under = [("three", 0), ("of_thread", 0), ("deep", 0), ("of_child", 0)];
        let mut deepest = 0;
        for stack in document["stacks"].as_array().unwrap() {
            let (time, lines) = (number(&stack["totals"]["time_ns"]), lines(stack, self.language));
            all += time;
            let Some(innermost) = lines.first().filter(|line| line.function.ends_with("spin")) else {
                continue;
            };
            // The loop's head is in the line before its body. The function's own lines are around the two.
            assert!(
                (twice - 3..=once + 4).contains(&innermost.line),
                "spin at {}\n{recorded}",
                innermost.line
            );
            spun += time;
            first += if innermost.line <= twice { time } else { 0 };
            called += if lines.iter().any(|line| line.line == by_c) { time } else { 0 };
            for (name, sum) in &mut under {
                let calls = lines.iter().filter(|line| line.function.ends_with(*name)).count();
                *sum += if calls > 0 { time } else { 0 };
                deepest = deepest.max(if *name == "deep" { calls } else { 0 });
            }
        }
        assert!(spun * 100 >= all * 60, "{spun} of {all}\n{recorded}");
        // Four times the standard deviation of this number of samples, at least.
        let samples = number(&document["totals"]["samples"]) as f64;
        assert!(samples >= 40.0, "too few samples for what follows: {recorded}");
        let off_max = (2.0 / samples.sqrt()).max(0.12);
        let is_near = |part: u64, of: f64| part > 0 && (part as f64 / spun as f64 - of).abs() < off_max;
        assert!(is_near(first, 2.0 / 3.0), "the first loop: {first} of {spun}\n{recorded}");
        assert!(is_near(called, 1.0 / 7.0), "called by C: {called} of {spun}\n{recorded}");
        for ((name, part), sevenths) in under.into_iter().zip([3.0, 2.0, 1.0, 1.0]) {
            assert!(is_near(part, sevenths / 7.0), "{name}: {part} of {spun}\n{recorded}");
        }
        assert_eq!(deepest, 41, "{recorded}");
    }
}

/// Python behind a shim, which is a shell, and Ruby behind a shell of its own: by events and by timers.
#[test]
fn lines_of_scripts_are_found_where_they_are() {
    let workshop = Workshop::new("cpu-scripts");
    for (interpreter, name, language, work) in
        [("python3", "shares.py", "python", "600"), ("ruby", "shares.rb", "ruby", "600")]
    {
        let (source, shares) = Shares::of(name, language);
        let line = format!("{interpreter} {} {work}; exit $?", text(&source));
        for by in ["cpu-clock", "timers"] {
            let words = ["-e", by, "-o", "s.pb.gz", "--force", "--", "sh", "-c", &line];
            let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
            let document = report(&workshop, &["s.pb.gz", "--sort", "time"]);
            assert_eq!(document["quality"]["lost"], 0, "{recorded}");
            shares.hold(&recorded, &document);
        }
    }
}

/// The lines of a script in every view of a profile.
#[test]
fn every_view_has_a_scripts_lines() {
    let workshop = Workshop::new("cpu-script-views");
    let (source, shares) = Shares::of("shares.py", "python");
    let words = ["-o", "s.pb.gz", "--", "python3", text(&source), "200"];
    let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
    let text_of = |words: &[&str]| crate::cpu::mallow(&workshop, words).well().stdout;
    let table = text_of(&["report", "s.pb.gz", "--process", "largest"]);
    let first = table.lines().find(|line| line.contains('%') && line.contains(" ms ")).unwrap();
    assert!(first.ends_with("spin  [shares.py]"), "{table}\n{recorded}");
    let twice = shares.line("twice");
    let tree = text_of(&["report", "s.pb.gz", "--tree=callees"]);
    assert!(tree.contains(&format!("spin (shares.py:{twice})")), "{tree}");
    let annotated = text_of(&["report", "s.pb.gz", "--annotate", "spin"]);
    let line = annotated.lines().find(|line| line.ends_with("# twice")).unwrap();
    assert!(line.contains('%'), "{annotated}");
    let folded = text_of(&["flamegraph", "s.pb.gz", "--folded"]);
    assert!(folded.contains(";three;spin "), "{folded}");
    let native = text_of(&["flamegraph", "s.pb.gz", "--folded", "--native"]);
    assert!(!native.contains(";three;") && native.contains("_PyEval_EvalFrameDefault"), "{native}");
    let all = text_of(&["report", "s.pb.gz", "--tree=callees", "--all-frames"]);
    assert!(all.contains("_PyEval_EvalFrameDefault") && all.contains("spin (shares.py:"), "{all}");
    let functions = report(&workshop, &["s.pb.gz"]);
    let spin =
        functions["functions"].as_array().unwrap().iter().find(|row| row["function"] == "spin").unwrap();
    assert_eq!((&spin["language"], &spin["module"]), (&"python".into(), &Value::Null), "{spin}");
    assert!(spin["file"].as_str().unwrap().ends_with("shares.py"), "{spin}");
    let speedscope = text_of(&["export", "s.pb.gz", "--format", "speedscope"]);
    assert!(speedscope.contains("shares.py"));
    // A profile does not differ from itself.
    let diff = text_of(&["diff", "s.pb.gz", "s.pb.gz"]);
    assert!(!diff.contains("spin"), "{diff}");
}

/// No library is in a process that already runs.
#[test]
fn whose_lines_cannot_be_seen_is_said() {
    let workshop = Workshop::new("cpu-script-pid");
    let (source, _) = Shares::of("shares.py", "python");
    let mut running =
        run::command(Path::new("/usr/bin/python3")).args([text(&source), "5000"]).spawn().unwrap();
    let pid = running.id().to_string();
    let words = ["-o", "s.pb.gz", "--pid", &pid, "--duration", "300ms"];
    let recorded = cpu(&workshop, &words).well();
    running.kill().unwrap();
    running.wait().unwrap();
    let said = format!("nobody looked into the interpreter of python3 ({pid})");
    assert!(recorded.stderr.contains(&said), "{recorded}");
}

/// It looks like an interpreter, so that each sample comes with a signal.
#[test]
fn a_program_does_not_notice_the_signals() {
    let workshop = Workshop::new("cpu-script-signals");
    let source = e2e::repository().join("programs/cpu/signals.c");
    let program = workshop.path().join("signals");
    let flags = ["-O2", "-g", "-pthread", "-rdynamic", "-DINTERPRETER", "-o"];
    let _ = run::finish(run::command(Path::new("cc")).args(flags).args([&program, &source])).well();
    for what in [
        "blocked",
        "unseen",
        "handled",
        "waits",
        "interrupted",
        "threads",
        "elsewhere",
        "filtered",
        "forks",
        "trapped",
        "executes",
        "chain",
    ] {
        // It executes itself more often than the maximum number of processes.
        let words = ["-e", "cpu-clock", "-o", "s.pb.gz", "--force", "--", text(&program), what, "300"];
        let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
        assert_eq!(recorded.stdout, "", "{what}: {recorded}");
        let document = report(&workshop, &["s.pb.gz"]);
        let (_, spun) = crate::cpu::of_function(&document, "spin_for");
        // The kernel's timer restarts in each thread, and these live shorter than a sampling interval.
        assert!(spun >= 90 || what == "threads", "{what}: {spun} samples\n{recorded}");
        assert_eq!(document["quality"]["lost"], 0, "{what}: {recorded}");
        assert!(!recorded.stderr.contains("too many at once"), "{what}: {recorded}");
        // While a signal was blocked, nobody can say where the script was.
        let is_late = recorded.stderr.contains("the program had blocked SIGTRAP");
        if ["unseen", "executes"].contains(&what) {
            assert!(is_late, "{what}: {recorded}");
        }
    }
}
