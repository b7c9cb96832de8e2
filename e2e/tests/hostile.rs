//! Programs that send wrong data to the mallow that records them: it stays small, ends with them, says what they are, and continues with others.

use e2e::Workshop;
use e2e::run::{self, Exit};
use e2e::session::{Session, json, report_of};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much more memory mallow may use than for an honest program.
const BYTES_MAX: u64 = 512 << 20;

/// The result of recording a hostile program.
#[derive(Debug)]
struct Outcome {
    /// The peak of mallow's own memory.
    bytes: u64,
    /// How long it ran after the program had exited.
    after: Duration,
    exit: Exit,
    stderr: String,
}

fn anonymous_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next());
    Some(kilobytes?.parse::<u64>().ok()? << 10)
}

/// Runs mallow on a program of this kind.
fn outcome(mallow: &mut Command) -> Outcome {
    let mut child = mallow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let ended = std::thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.filter(|line| line == "ends").map(|_| Instant::now()).last()
    });
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = err.read_to_string(&mut text);
        text
    });
    let mut bytes = 0;
    let exit = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.into();
        }
        bytes = bytes.max(anonymous_bytes(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    };
    let now = Instant::now();
    let ended = ended.join().unwrap().unwrap_or(now);
    Outcome { bytes, after: now.saturating_duration_since(ended), exit, stderr: said.join().unwrap() }
}

fn recorded(trace: &Path, kind: &str, seconds: f64) -> Outcome {
    let mut mallow = run::mallow();
    mallow.args(["record", "--force", "-o"]).arg(trace).arg("--");
    outcome(mallow.arg(env!("CARGO_BIN_EXE_hostile")).args([kind, &seconds.to_string()]))
}

/// Kinds, and the warning for each.
const KINDS: [(&str, &str); 8] = [
    ("scribble", "wrote over the recorder's memory"),
    ("blocks", "more blocks, stacks or threads than its memory has room for"),
    ("nodes", "deeper than a recorder goes"),
    ("pairs", "it was taken for damaged and left"),
    ("threads", ""),
    ("hellos", "not sealed"),
    ("modules", "log of modules names more than a recorder can"),
    ("codes", "deeper than a recorder goes"),
];

fn each_kind(seconds: f64, after_max: Duration) {
    let workshop = Workshop::new("hostile");
    let trace = workshop.file("trace.mallow");
    let honest = recorded(&trace, "honest", seconds);
    assert_eq!(honest.exit, Exit::Status(0), "{honest:?}");
    for (kind, said) in KINDS {
        let outcome = recorded(&trace, kind, seconds);
        let more = outcome.bytes.saturating_sub(honest.bytes);
        println!(
            "{kind}: {} MB more than an honest one, ended {:.2} s after it",
            more >> 20,
            outcome.after.as_secs_f64()
        );
        assert_eq!(outcome.exit, Exit::Status(0), "{kind}: {outcome:?}");
        assert!(outcome.stderr.contains(said), "{kind}: {outcome:?}");
        assert!(more <= BYTES_MAX, "{kind}: {} MB", more >> 20);
        assert!(outcome.after <= after_max, "{kind}: {:?}", outcome.after);
        let report = json(&report_of(&trace, &["--limit", "3"]).well().stdout);
        assert_eq!(report["complete"], said.is_empty(), "{kind}: {report:#}");
    }
}

/// Without a bound the end takes minutes. With one it takes some seconds of a slow build on a busy machine; the long suite checks the exact time.
#[test]
fn a_program_that_lies_costs_little_and_is_said_to() {
    each_kind(0.7, Duration::from_secs(60));
}

#[test]
#[ignore = "ten minutes, for its times and sizes: in `cargo xtask long`"]
fn programs_that_lie_for_ten_minutes() {
    each_kind(75.0, Duration::from_secs(2));
}

/// The same under the gate, whose marks wait for responses; it must not pass.
#[test]
fn a_test_that_lies_to_the_gate_is_an_error() {
    let workshop = Workshop::new("hostile-gate");
    let program = env!("CARGO_BIN_EXE_hostile");
    let manifest = format!(
        "[gate]\nruns = 1\nwarmup = 0\ntimeout = \"30s\"\n[[test]]\nname = \"lies\"\ncmd = [\"{program}\", \"marks\", \"0.5\"]\nmode = \"process\"\nlimit = {{ allocations = 100000000 }}\n"
    );
    fs::write(workshop.file("mallow.toml"), manifest).unwrap();
    let checked = run::finish(run::mallow().args(["check", "--json"]).current_dir(workshop.path()));
    let document: Value = json(&checked.stdout);
    assert_eq!(document["tests"][0]["outcome"], "error", "{checked}");
    assert!(document["tests"][0].to_string().contains("taken for damaged"), "{document:#}");
}

/// Three million inlined calls, each within the one before, cost the names of a function and nothing else.
#[test]
fn debug_information_that_nests_without_end_ends_nothing() {
    let workshop = Workshop::new("hostile-nested");
    let calls = ".fill 3000000, 1, 3\n.fill 3000000, 1, 0\n.byte 0, 0\n.Lend:\n";
    let debug = include_str!("../../crates/mallow-symbols/tests/nested.s").to_owned() + calls;
    fs::write(workshop.file("nested.s"), debug).unwrap();
    let source = "#include <stdlib.h>\nvoid *victim(void) { return malloc(7); }\nint main(void) { return victim() == 0; }\n";
    fs::write(workshop.file("app.c"), source).unwrap();
    let mut compiler = run::command("gcc");
    let _ =
        run::finish(compiler.args(["-o", "app", "app.c", "nested.s"]).current_dir(workshop.path())).well();
    let session = Session::new(workshop.path(), &["./app"]);
    let recorded = session.record();
    assert_eq!(recorded.exit, Exit::Status(0), "{recorded}");
    let report = session.report(&[]);
    assert!(report.to_string().contains("\"victim\""), "{report:#}");
}
