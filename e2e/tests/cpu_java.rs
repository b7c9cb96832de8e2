//! CPU profiles of Java: time is attributed to the right lines, in compiled, inlined and interpreted code, with every way of sampling.

use crate::cpu::{built, cpu, mallow, number, report};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Returns the JVMs of the tests: Debian's, and those of `MALLOW_JVMS`.
fn jvms() -> Vec<String> {
    crate::scripts::interpreters("/usr/bin/java", "MALLOW_JVMS")
}

fn source(name: &str) -> PathBuf {
    e2e::repository().join("programs/cpu").join(name)
}

/// Creates a folder with the classes of a program of `programs/cpu`, for version 11 and later.
fn compiled(test: &str, name: &str) -> Workshop {
    let workshop = Workshop::new(test);
    let words = ["-nowarn", "-source", "11", "-target", "11", "-d"];
    let mut javac = run::command(Path::new("javac"));
    let _ = run::finish(javac.args(words).arg(workshop.path()).arg(source(name))).well();
    workshop
}

/// Returns the line of a source whose comment is this.
fn line_of(name: &str, comment: &str) -> u64 {
    let source = std::fs::read_to_string(source(name)).unwrap();
    let marked = source.lines().position(|line| line.ends_with(&format!("// {comment}")));
    marked.unwrap_or_else(|| panic!("no line says '{comment}'")) as u64 + 1
}

/// Returns the Java frames of a stack, innermost first: methods without their package, and lines.
fn java(stack: &Value) -> Vec<(&str, u64)> {
    let frames = stack["frames"].as_array().unwrap().iter();
    let of_java = frames.filter(|frame| frame["language"] == "java");
    of_java.map(|frame| (frame["function"].as_str().unwrap(), frame["line"].as_u64().unwrap_or(0))).collect()
}

/// Compares the sampled time of `Shares.java` with what its source states.
fn hold_shares(what: &str, recorded: &Finished, document: &Value) {
    let line = |comment: &str| line_of("Shares.java", comment);
    let [twice, once, within, around, lambda] = ["twice", "once", "within", "around", "lambda"].map(line);
    let (mut all, mut counted, mut first, mut second) = (0, 0, 0, 0);
    let mut under = [("three", 0), ("ofThread", 0), ("deep", 0), ("around", 0), ("lambda", 0)];
    let (mut deepest, mut from_start) = (0, 0);
    for stack in document["stacks"].as_array().unwrap() {
        let (samples, frames) = (number(&stack["totals"]["samples"]), java(stack));
        all += samples;
        let Some((function, at)) = frames.first().filter(|(name, _)| name.starts_with("Shares.")) else {
            continue;
        };
        // The loop's head is in the line before its body.
        match *function {
            "Shares.spin" if (twice - 1..=twice).contains(at) => first += samples,
            "Shares.spin" if (once - 1..=once).contains(at) => second += samples,
            "Shares.looped" => {
                assert!((within - 1..=within + 3).contains(at), "{what}: looped at {at}\n{recorded}");
                assert_eq!(frames[1], ("Shares.around", around), "{what}\n{recorded}");
            }
            _ => {}
        }
        counted += samples;
        let outermost = stack["frames"].as_array().unwrap().last().map(|frame| &frame["function"]);
        from_start += if outermost.is_some_and(|function| function == "clone3") { samples } else { 0 };
        for (name, sum) in &mut under {
            let is_it = |(function, at): &&(&str, u64)| match *name {
                "lambda" => *at == lambda && function.starts_with("Shares.lambda$"),
                name => *function == format!("Shares.{name}"),
            };
            let calls = frames.iter().filter(is_it).count();
            *sum += if calls > 0 { samples } else { 0 };
            deepest = deepest.max(if *name == "deep" { calls } else { 0 });
        }
    }
    assert!(counted >= 40, "{what}: too few samples for what follows\n{recorded}");
    assert!(counted * 100 >= all * 50, "{what}: {counted} of {all}\n{recorded}");
    let hold = |name: &str, part: u64, of: u64, share: f64| {
        let is = part as f64 / of as f64;
        // Four times the standard deviation, and how much a busy machine distorts equal turns.
        let off_max = 4.0 * (share * (1.0 - share) / of as f64).sqrt() + 0.03;
        assert!((is - share).abs() < off_max, "{what}: {name}: {part} of {of}\n{recorded}");
    };
    hold("the first loop", first, first + second, 2.0 / 3.0);
    for ((name, part), eighths) in under.into_iter().zip([3.0, 2.0, 1.0, 2.0, 1.0]) {
        hold(name, part, counted, eighths / 8.0);
    }
    assert_eq!(deepest, 41, "{what}\n{recorded}");
    assert!(from_start * 100 >= counted * 98, "{what}: {from_start} of {counted}\n{recorded}");
    let quality = &document["quality"];
    let [samples, whole] = ["samples", "whole"].map(|name| number(&quality[name]));
    let kernel_only = quality["kernel_only"].as_u64().unwrap_or(0);
    // While a JVM starts, its stack may have untouched pages in between, where the kernel's copy ends: version 25 has such pages.
    assert!((whole + kernel_only) * 100 >= samples * 95, "{what}: {quality}\n{recorded}");
    assert_eq!(quality["lost"], 0, "{what}: {quality}");
}

#[test]
fn lines_of_java_have_the_share_that_their_source_states() {
    let workshop = compiled("cpu-java", "Shares.java");
    for jvm in jvms() {
        for (mode, work) in
            [("-XX:+TieredCompilation", "40000"), ("-XX:TieredStopAtLevel=1", "40000"), ("-Xint", "3000")]
        {
            for by in ["cpu-clock", "timers"] {
                let line = format!("{jvm} {mode} -cp . Shares {work}; exit $?");
                let words = ["-e", by, "-o", "s.pb.gz", "--force", "--", "sh", "-c", &line];
                let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
                let document = report(&workshop, &["s.pb.gz", "--sort", "time"]);
                hold_shares(&format!("{jvm} {mode} {by}"), &recorded, &document);
            }
        }
    }
}

/// No library is in such a process, and it was not asked for anything.
#[test]
fn a_jvm_that_runs_already_has_its_lines() {
    let workshop = compiled("cpu-java-pid", "Shares.java");
    for jvm in jvms() {
        let words = ["-cp", ".", "Shares", "400000"];
        let mut running =
            run::command(Path::new(&jvm)).args(words).current_dir(workshop.path()).spawn().unwrap();
        let pid = running.id().to_string();
        // Wait until it is compiled.
        std::thread::sleep(Duration::from_millis(700));
        let words = ["-o", "p.pb.gz", "--force", "--pid", &pid, "--duration", "600ms"];
        let recorded = cpu(&workshop, &words).well();
        running.kill().unwrap();
        running.wait().unwrap();
        let document = report(&workshop, &["p.pb.gz", "--sort", "time"]);
        let [twice, once] = ["twice", "once"].map(|comment| line_of("Shares.java", comment));
        let (mut all, mut with_lines) = (0, 0);
        for stack in document["stacks"].as_array().unwrap() {
            let samples = number(&stack["totals"]["samples"]);
            all += samples;
            let frames = java(stack);
            let is_line =
                |(name, line): &(&str, u64)| *name == "Shares.spin" && (twice - 1..=once).contains(line);
            with_lines += if frames.first().is_some_and(is_line) && frames.len() > 2 { samples } else { 0 };
        }
        assert!(all >= 40 && with_lines * 100 >= all * 90, "{jvm}: {with_lines} of {all}\n{recorded}");
        assert!(number(&document["quality"]["whole"]) * 100 >= all * 98, "{recorded}");
    }
}

#[test]
fn waits_of_java_have_its_lines() {
    let workshop = compiled("cpu-java-waits", "Waits.java");
    for jvm in jvms() {
        let words = ["--off-cpu", "-o", "w.pb.gz", "--force", "--", &jvm, "-cp", ".", "Waits"];
        let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
        let document = report(&workshop, &["w.pb.gz", "--sort", "blocked"]);
        for (method, comment) in [("Waits.sleeps", "sleeps"), ("Waits.main", "waits")] {
            let at = (method, line_of("Waits.java", comment));
            let stacks = document["stacks"].as_array().unwrap().iter();
            let there = stacks.filter(|stack| java(stack).contains(&at));
            let blocked: u64 = there.map(|stack| number(&stack["totals"]["blocked_ns"])).sum();
            assert!((400_000_000..600_000_000).contains(&blocked), "{jvm} {comment}: {blocked}\n{recorded}");
        }
    }
}

/// The lines of Java in every view of a profile.
#[test]
fn every_view_has_the_lines_of_java() {
    let workshop = compiled("cpu-java-views", "Shares.java");
    std::fs::copy(source("Shares.java"), workshop.file("Shares.java")).unwrap();
    let words = ["-o", "s.pb.gz", "--", "java", "-cp", ".", "Shares", "30000"];
    let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
    let text_of = |words: &[&str]| mallow(&workshop, words).well().stdout;
    let table = text_of(&["report", "s.pb.gz", "--process", "largest"]);
    assert!(table.contains("Shares.spin  [Shares.java]"), "{table}\n{recorded}");
    let twice = line_of("Shares.java", "twice");
    let tree = text_of(&["report", "s.pb.gz", "--tree=callees"]);
    assert!(tree.contains(&format!("Shares.spin (Shares.java:{twice})")), "{tree}");
    let annotated = text_of(&["report", "s.pb.gz", "--annotate", "Shares.spin"]);
    let line = annotated.lines().find(|line| line.contains(&format!(" {twice}  ")));
    assert!(line.is_some_and(|line| line.contains('%')), "{annotated}");
    let functions = report(&workshop, &["s.pb.gz"]);
    let rows = functions["functions"].as_array().unwrap();
    let spin = rows.iter().find(|row| row["function"] == "Shares.spin").unwrap();
    assert_eq!((&spin["language"], &spin["module"]), (&"java".into(), &Value::Null), "{spin}");
    assert_eq!(spin["file"], "Shares.java", "{spin}");
    let folded = text_of(&["flamegraph", "s.pb.gz", "--folded"]);
    assert!(folded.contains(";Shares.deep;Shares.spin "), "{folded}");
    let speedscope = text_of(&["export", "s.pb.gz", "--format", "speedscope"]);
    assert!(speedscope.contains("Shares.java"));
    // The command line is unchanged, and no perf map was requested.
    let map = map_of(&functions);
    assert!(!map.exists(), "{recorded}");
    assert_eq!(functions["command"], serde_json::json!(["java", "-cp", ".", "Shares", "30000"]));
}

/// Returns the path of a JVM's perf map.
fn map_of(document: &Value) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{}.map", document["processes"][0]["pid"]))
}

#[test]
fn a_jvm_that_may_not_be_read_has_no_lines_and_it_is_said() {
    let workshop = compiled("cpu-java-unread", "Shares.java");
    let mut confined = run::command(built(&workshop, "confined"));
    let words = ["cpu", "-o", "s.pb.gz", "--", "java", "-Xint", "-cp", ".", "Shares", "500"];
    confined.arg("unread").arg(run::mallow_binary()).args(words).current_dir(workshop.path());
    let recorded = run::finish(&mut confined).ended(Exit::Status(7));
    let why = "stacks have no lines of Java, because the kernel does not let mallow read its memory";
    assert!(recorded.stderr.contains(why), "{recorded}");
    let document = report(&workshop, &["s.pb.gz", "--sort", "time"]);
    assert!(document["stacks"].as_array().unwrap().iter().all(|stack| java(stack).is_empty()), "{document}");
}

/// A perf map that was requested by another tool is kept.
#[test]
fn the_list_of_a_jvm_that_was_asked_by_others_stays() {
    let workshop = compiled("cpu-java-list", "Shares.java");
    let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
    let program = ["-cp", ".", "Shares", "5000"];
    let words = [&["-o", "s.pb.gz", "--", "java"], &options[..], &program].concat();
    let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
    let map = map_of(&report(&workshop, &["s.pb.gz"]));
    assert!(map.exists(), "{recorded}");
    std::fs::remove_file(map).unwrap();
}

/// The JVM is not asked, and still has its lines, where the compiler recorded them.
#[test]
fn a_jvm_that_is_left_alone_has_its_lines() {
    let workshop = compiled("cpu-java-alone", "Shares.java");
    let began = Instant::now();
    let words = ["--no-runtime-flags", "-o", "s.pb.gz", "--", "java", "-cp", ".", "Shares", "30000"];
    let recorded = cpu(&workshop, &words).ended(Exit::Status(7));
    let document = report(&workshop, &["s.pb.gz", "--sort", "time"]);
    hold_shares("left alone", &recorded, &document);
    assert!(began.elapsed() < Duration::from_secs(60));
}
