//! Java frames with their lines on every stack, compared with the source and with what the JVM itself reports.

use e2e::run::{self, command};
use e2e::session::metric;
use e2e::{Session, Workshop, repository};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

use crate::scripts::{interpreters, script};

/// Returns Debian's JVMs, and those of `MALLOW_JVMS`, separated by colons.
fn jvms() -> Vec<String> {
    interpreters("/usr/bin/java", "MALLOW_JVMS")
}

/// Creates a folder with a program's classes, for version 11 and later.
fn compiled(test: &str, source: &str) -> Workshop {
    let workshop = Workshop::new(test);
    let words = ["-nowarn", "-source", "11", "-target", "11", "-sourcepath", &script(""), "-d"];
    let mut javac = command("javac");
    let _ = run::finish(javac.args(words).arg(workshop.path()).arg(script(source))).well();
    workshop
}

fn function(frame: &Value) -> &str {
    frame["function"].as_str().unwrap()
}

/// Returns the Java frames of a site, innermost first, if `Unsafe` allocates there; without the JDK's own frames around it.
fn taking(site: &Value) -> Option<Vec<&Value>> {
    let frames = site["frames"].as_array().unwrap();
    let first = frames.iter().position(|frame| frame["language"] == "java")?;
    let is_of_jvm = |frame: &Value| {
        ["os::malloc", "Unsafe_AllocateMemory0"].iter().any(|it| function(frame).starts_with(it))
    };
    let is_taken = function(&frames[first]) == "jdk.internal.misc.Unsafe.allocateMemory0";
    let java = frames[first..].iter().filter(|frame| frame["language"] == "java");
    let is_own = |frame: &&Value| !function(frame).starts_with("jdk.internal.misc.Unsafe.");
    let java: Vec<&Value> = java.skip_while(|frame| !is_own(frame)).collect();
    (is_taken && frames[..first].iter().all(is_of_jvm)).then_some(java)
}

const ALL: [&str; 5] = ["--all-frames", "--sort", "bytes", "--limit", "1000000"];

/// The execution modes in which frames are checked.
const MODES: [&str; 4] =
    ["-XX:+TieredCompilation", "-Xint", "-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation"];

#[test]
fn lines_of_java_have_what_the_source_states() {
    let workshop = compiled("java-lines", "Lines.java");
    let source = fs::read_to_string(script("Lines.java")).unwrap();
    let of_line = |(line, text): (u64, &str)| Some((line, text.rsplit_once("// ")?.1.parse().ok()?));
    let stated: BTreeMap<u64, u64> = (1..).zip(source.lines()).filter_map(of_line).collect();
    assert_eq!(stated.len(), 26);
    for jvm in jvms() {
        for mode in MODES {
            let session = Session::new(workshop.path(), &[&jvm, mode, "-cp", ".", "Lines"]);
            assert_eq!(session.record().well().stdout, "done\n");
            let mut found: BTreeMap<u64, u64> = BTreeMap::new();
            for site in session.report(&ALL)["sites"].as_array().unwrap() {
                let java = taking(site).unwrap_or_default();
                if let Some(frame) = java.iter().find(|frame| frame["file"] == "Lines.java") {
                    *found.entry(metric(frame, "line")).or_default() += metric(site, "allocations");
                }
            }
            assert_eq!(found, stated, "{jvm} {mode}");
        }
    }
}

/// Removes the numbers and addresses in names that the JVM generates, which ours do not have.
fn unnumbered(frame: &str) -> String {
    let (class, rest) = frame.rsplit_once('.').unwrap();
    let class = class.split_once("/0x").map_or(class, |(class, _)| class);
    let class =
        class.split_once("$$Lambda").map_or(class.to_owned(), |(class, _)| format!("{class}$$Lambda"));
    let is_made = class.contains("Generated") && class.contains("Accessor");
    let class = if is_made { class.trim_end_matches(|last: char| last.is_ascii_digit()) } else { &class };
    format!("{class}.{rest}")
}

/// The number of blocks and their bytes by stack: as the JVM reports them, and as mallow does.
type Stacks = BTreeMap<String, (u64, u64)>;

fn said(output: &str) -> Stacks {
    let mut stacks = Stacks::new();
    for line in output.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        let (bytes, frames) = line.split_once(' ').unwrap();
        let frames: Vec<String> = frames.split(' ').map(unnumbered).collect();
        let stack = stacks.entry(frames.join(" < ")).or_default();
        *stack = (stack.0 + 1, stack.1 + bytes.parse::<u64>().unwrap());
    }
    stacks
}

/// Leaves out what a virtual thread's carrier runs around it, as the JVM does.
fn recorded(report: &Value) -> Stacks {
    let mut stacks = Stacks::new();
    for site in report["sites"].as_array().unwrap() {
        let Some(java) = taking(site) else { continue };
        let own = java.iter().skip_while(|frame| function(frame) == "sun.misc.Unsafe.allocateMemory");
        let mut frames = Vec::new();
        for frame in own {
            frames.push(format!("{}:{}", function(frame), frame["line"].as_u64().unwrap_or(0)));
            if function(frame) == "jdk.internal.vm.Continuation.enter" {
                break;
            }
        }
        let stack = stacks.entry(frames.join(" < ")).or_default();
        *stack = (stack.0 + metric(site, "allocations"), stack.1 + metric(site, "bytes"));
    }
    stacks
}

/// Compares each stack of a program with what the JVM says of it. Returns how many events it says there were, and all that it said.
fn compare(workshop: &Workshop, jvm: &str, mode: &[&str], program: &str) -> (u64, String) {
    let shown = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"];
    let words = [&[jvm], mode, &shown, &["-cp", ".", program]].concat();
    let session = Session::new(workshop.path(), &words);
    let output = session.record().well().stdout;
    let report = session.report(&ALL);
    let (said, recorded) = (said(&output), recorded(&report));
    for (stack, sums) in &said {
        assert_eq!(recorded.get(stack), Some(sums), "{jvm} {mode:?}\n{stack}\n{recorded:#?}");
    }
    assert_eq!(said.len(), recorded.len(), "{jvm} {mode:?}");
    // Whole: each begins where its thread does.
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        let outermost = frames.last().unwrap();
        assert_ne!(outermost["language"], "java", "{jvm} {mode:?} {site}");
    }
    (said.values().map(|(count, _)| count).sum(), output)
}

/// Threads, exceptions, recursion, code that is compiled while it runs and discarded, reflection, proxies, lambdas, a
/// running collector, and virtual threads if the JVM has them.
#[test]
fn each_stack_of_java_is_the_one_that_the_jvm_gives() {
    let workshop = compiled("java-traces", "Traces.java");
    for jvm in jvms() {
        for mode in MODES {
            let (events, _) = compare(&workshop, &jvm, &[mode], "Traces");
            assert!(events >= 6000, "{events}");
        }
    }
}

/// A stack that a thread keeps may be that of a method which is gone, with another one in its place.
#[test]
fn a_method_at_the_place_of_an_unloaded_one_is_not_taken_for_it() {
    let workshop = compiled("java-unloads", "Unloads.java");
    for jvm in jvms() {
        for mode in ["-Xint", "-XX:+UseSerialGC"] {
            let (events, output) = compare(&workshop, &jvm, &[mode, "-Xlog:class+unload"], "Unloads");
            assert_eq!(events, 60);
            let unloaded = output
                .lines()
                .filter_map(|line| line.split_once("unloading class Unit ")?.1.split(' ').next());
            let mut places: Vec<&str> = unloaded.collect();
            let unloads = places.len();
            places.sort_unstable();
            places.dedup();
            assert!(unloads > 50 && places.len() < unloads / 2, "{unloads} classes at {places:?}");
        }
    }
}

#[test]
fn people_are_shown_the_lines_of_their_java_program() {
    let workshop = compiled("java-shown", "Buffers.java");
    let session = Session::new(workshop.path(), &["java", "-cp", ".", "Buffers", "a", "b"]);
    let (bare, recorded) = (session.bare().well(), session.record().well());
    assert_eq!((&recorded.stdout, bare.stdout.as_str()), (&bare.stdout, "20000 2 0\n"));
    assert!(!recorded.stderr.contains("Picked up"), "{recorded}");
    let report = |more: &[&str]| {
        let mut mallow = run::mallow();
        mallow.arg("report").arg(session.trace()).args(["--sort", "bytes", "--limit", "1"]).args(more);
        run::finish(&mut mallow).well().stdout
    };
    let lines = "\
            Buffers.keep (Buffers.java:10)
            Buffers.round (Buffers.java:15)
            Buffers.main (Buffers.java:21)
";
    let shown = report(&[]);
    assert!(shown.contains(lines), "{shown}");
    assert!(!shown.contains("libjvm") && !shown.contains("Unsafe."), "{shown}");
    let all = report(&["--all-frames"]);
    assert!(
        all.contains("jdk.internal.misc.Unsafe.allocateMemory0") && all.contains("JavaCalls::call_helper"),
        "{all}"
    );
    let native = report(&["--native"]);
    assert!(native.contains("os::malloc") && !native.contains("Buffers."), "{native}");
    let mut flamegraph = run::mallow();
    flamegraph.arg("flamegraph").arg(session.trace()).args(["--folded", "--measure", "bytes"]);
    let folded = run::finish(&mut flamegraph).well().stdout;
    assert!(folded.contains("Buffers.main;Buffers.round;Buffers.keep;"), "{folded}");
}

/// The JVM is not asked for it, and a kill loses nothing.
#[test]
fn a_jvm_that_is_killed_has_its_lines() {
    let workshop = Workshop::new("java-killed");
    let source = "public class Killed { public static void main(String[] words) throws Exception {\n\
        for (int at = 0; at < 1000; at++) java.nio.ByteBuffer.allocateDirect(2003);\n\
        new ProcessBuilder(\"kill\", \"-9\", \"\" + ProcessHandle.current().pid()).start(); Thread.sleep(60000); } }";
    fs::write(workshop.file("Killed.java"), source).unwrap();
    let _ = run::finish(command("javac").current_dir(workshop.path()).arg("Killed.java")).well();
    let session = Session::new(workshop.path(), &["java", "-cp", ".", "Killed"]);
    let recorded = session.record();
    assert!(!recorded.stderr.contains("names"), "{recorded}");
    let report = session.report(&ALL);
    let of_line = |site: &&Value| {
        let java = taking(site).unwrap_or_default();
        java.iter().any(|frame| frame["file"] == "Killed.java" && frame["line"] == 2)
    };
    let sites = report["sites"].as_array().unwrap().iter().filter(of_line);
    assert_eq!(sites.map(|site| metric(site, "allocations")).sum::<u64>(), 1000);
}

/// A library with HotSpot's tables counts as HotSpot, but of an unknown version or with unknown tables: then the
/// stacks are native, which is reported once.
#[test]
fn of_a_jvm_that_nobody_knows_the_native_stacks_are_recorded_and_it_is_said() {
    let program = repository().join("programs/scripts/unknown_jvm.c");
    for (version, why) in [
        (
            "26.0.1",
            "the JVM 26: stacks have no lines of Java, because where this version keeps its frames is not known",
        ),
        ("17.0.1", "the JVM 17: stacks have no lines of Java, because its build keeps its frames elsewhere"),
    ] {
        let workshop = Workshop::new("java-unknown");
        let binary = workshop.file("jvm");
        let mut cc = command("cc");
        cc.arg(format!("-DRELEASE=\"{version}\"")).args(["-g", "-rdynamic", "-o"]).arg(&binary).arg(&program);
        let _ = run::finish(&mut cc).well();
        let session = Session::new(workshop.path(), &[binary.to_str().unwrap()]);
        let recorded = session.record().well();
        assert_eq!(recorded.stderr.matches(why).count(), 1, "{recorded}");
        let report = session.report(&ALL);
        let is_made = |site: &&Value| {
            let frames = site["frames"].as_array().unwrap();
            function(&frames[0]).starts_with("0x") && function(&frames[1]) == "main"
        };
        let made = report["sites"].as_array().unwrap().iter().filter(is_made);
        assert_eq!(made.map(|site| metric(site, "allocations")).sum::<u64>(), 10);
    }
}
