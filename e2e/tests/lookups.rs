//! Names are looked up in a child process: whatever happens to it costs names, and of the module that it was asked about alone.
//!
//! What a hostile file makes of a parser is hard to come by, so the mallow that is built for tests has its child do it, as a variable says.

use e2e::Workshop;
use e2e::run::{self, Exit, Finished};
use e2e::session::report_of;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SOURCE: &str = "#include <stdlib.h>\n\
    static void *kept[100];\n\
    static __attribute__((noinline)) void keep(int at) {\n\
      kept[at] = malloc(64);\n\
    }\n\
    int main(void) {\n\
      for (int at = 0; at < 100; at++) keep(at);\n\
      return kept[99] == 0;\n\
    }\n";
/// How long mallow waits for an answer that does not come, and for one that does, in milliseconds.
const IN_VAIN: &str = "3000";
const PATIENTLY: &str = "60000";

fn build(workshop: &Workshop) -> PathBuf {
    std::fs::write(workshop.file("app.c"), SOURCE).unwrap();
    let line = "cc -g -O1 -fno-optimize-sibling-calls -Wl,--build-id app.c -o app";
    let _ = run::finish(run::command("sh").args(["-c", line]).current_dir(workshop.path())).well();
    workshop.file("app")
}

/// Records the program; `mischief` is what becomes of look-ups, and a name in front of its end.
fn recorded(workshop: &Workshop, cache: &Path, mischief: &str) -> (Finished, Value) {
    let trace = workshop.file("app.mallow");
    let mut record = run::mallow();
    record.args(["record", "--force", "-o"]).arg(&trace).arg("--").arg(workshop.file("app"));
    let is_in_vain = ["loop:", "stop:", "stop-child:"].iter().any(|kind| mischief.starts_with(kind));
    let patience = if is_in_vain { IN_VAIN } else { PATIENTLY };
    record.env("MALLOW_SYMBOL_CACHE", cache).env("MALLOW_LOOKUP_PATIENCE_MS", patience);
    if !mischief.is_empty() {
        record.env("MALLOW_LOOKUP_MISCHIEF", mischief);
    }
    let recorded = run::finish(&mut record);
    let report = serde_json::from_str(&report_of(&trace, &[]).well().stdout).unwrap();
    (recorded, report)
}

/// A report without what differs from run to run, and without the names of the program itself.
fn metrics_of(report: &Value) -> Value {
    let mut report = report.clone();
    let frames = |site: &mut Value| {
        for frame in site["frames"].as_array_mut().unwrap() {
            if frame["module"].as_str().is_some_and(|module| module.ends_with("/app")) {
                *frame = json!("of app");
            }
        }
    };
    report["sites"].as_array_mut().unwrap().iter_mut().for_each(frames);
    let timed = |site: &Value| {
        json!([site["allocations"], site["bytes"], site["leaked_blocks"], site["peak_bytes"], site["frames"]])
    };
    let sites: Vec<Value> = report["sites"].as_array().unwrap().iter().map(timed).collect();
    let totals = &report["totals"];
    json!([report["complete"], totals["allocations"], totals["bytes"], totals["leaked_bytes"], sites])
}

fn has_name(report: &Value, name: &str) -> bool {
    let sites = report["sites"].as_array().unwrap().iter();
    let mut frames = sites.flat_map(|site| site["frames"].as_array().unwrap());
    frames.any(|frame| frame["function"] == name)
}

/// What becomes of a look-up, and what is said of the process that should have answered.
const KINDS: [(&str, &str); 15] = [
    ("crash", "gave up: it needs more than 512 MB of memory, or more stack than there is"),
    ("recurse", "gave up: it needs more than 512 MB of memory, or more stack than there is"),
    ("memory", "gave up: it needs more than 512 MB of memory, or more stack than there is"),
    ("panic", "ended with status 2"),
    ("loop", "did not answer within 3 s"),
    ("stop", "did not answer within 3 s"),
    ("stop-child", "did not answer within 3 s"),
    ("kill", "was ended by signal 9"),
    ("kill-child", "ended without an answer"),
    ("half", "gave up: it needs more than 512 MB of memory, or more stack than there is"),
    ("truncated", "did not answer what it was asked"),
    ("nothing", "did not answer what it was asked"),
    ("long", "did not answer what it was asked"),
    ("indices", "did not answer what it was asked"),
    ("unknown-kind", "did not answer what it was asked"),
];

#[test]
fn a_look_up_that_fails_costs_the_names_of_its_module_and_nothing_else() {
    let workshop = Workshop::new("lookups");
    let app = build(&workshop);
    let (honest, expected) = recorded(&workshop, Path::new(""), "");
    assert!(honest.exit == Exit::Status(0) && !honest.stderr.contains("not looked up"), "{honest}");
    assert!(has_name(&expected, "keep") && expected.get("names").is_none(), "{expected:#}");
    for (kind, reason) in KINDS {
        let began = Instant::now();
        let (recorded, report) = recorded(&workshop, Path::new(""), &format!("{kind}:/app"));
        assert_eq!(recorded.exit, honest.exit, "{kind}: {recorded}");
        assert!(began.elapsed() < Duration::from_secs(60), "{kind}: {:?}", began.elapsed());
        assert_eq!(metrics_of(&report), metrics_of(&expected), "{kind}: {report:#}");
        assert!(!has_name(&report, "keep"), "{kind}: {report:#}");
        assert_eq!(report["names"], json!([{ "module": app.to_str().unwrap(), "reason": reason }]), "{kind}");
        let said = format!("names of {} were not looked up", app.display());
        let warnings = report["warnings"].to_string();
        for (place, text) in [("record", &recorded.stderr), ("report", &warnings)] {
            assert!(text.contains(&said) && text.contains(reason), "{kind}: {place}: {text}");
            assert_eq!(text.matches("not looked up").count(), 1, "{kind}: {place}: {text}");
        }
    }
}

/// Sends a signal to a command of mallow's when it waits for a look-up that does not end; returns how it ended, and what it said.
fn signalled_while_it_waits(workshop: &Workshop, words: &[&str], signal: &str) -> (Exit, String) {
    let said = workshop.file("said.txt");
    let mut mallow = run::mallow();
    mallow.args(words).current_dir(workshop.path()).stderr(std::fs::File::create(&said).unwrap());
    mallow.env("MALLOW_SYMBOL_CACHE", "").env("MALLOW_SYMBOLS_AT_END", "1");
    mallow.env("MALLOW_LOOKUP_MISCHIEF", "tell:/app").env("MALLOW_LOOKUP_PATIENCE_MS", PATIENTLY);
    let line = run::line(&mallow);
    let mut mallow = mallow.spawn().unwrap();
    let begun = workshop.file("app.looked-at");
    while !begun.exists() {
        assert_eq!(mallow.try_wait().unwrap(), None, "{signal}: it ended without a look-up");
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = run::finish(run::command("kill").args([&format!("-{signal}"), &mallow.id().to_string()])).well();
    let exit = run::wait(&mut mallow, &line);
    std::fs::remove_dir(begun).unwrap();
    (exit, std::fs::read_to_string(said).unwrap())
}

/// Who interrupts when the program has ended does not wait for a look-up that does not end, and keeps everything but names.
#[test]
fn an_interrupt_ends_the_wait_for_names() {
    let workshop = Workshop::new("lookups-interrupt");
    build(&workshop);
    for signal in ["INT", "TERM"] {
        let words = ["record", "--force", "-o", "app.mallow", "--", "./app"];
        let (exit, said) = signalled_while_it_waits(&workshop, &words, signal);
        assert_eq!(exit, Exit::Status(130), "{signal}: {said}");
        assert!(!said.contains("stripped"), "{signal}: {said}");
        let trace = workshop.file("app.mallow");
        let report: Value = serde_json::from_str(&report_of(&trace, &[]).well().stdout).unwrap();
        assert_eq!(report["totals"]["allocations"], 100, "{signal}: {report:#}");
        assert!(report["complete"] == true && !has_name(&report, "keep"), "{signal}: {report:#}");
        let reason = "was not waited for, because of an interrupt";
        let modules = report["names"].as_array().unwrap();
        assert!(modules.iter().all(|module| module["reason"] == reason), "{signal}: {report:#}");
        assert!(!modules.is_empty(), "{signal}: {report:#}");
    }
}

/// A gate that is interrupted there has judged nothing, and does not go on to the next test.
#[test]
fn an_interrupt_in_the_wait_for_names_ends_a_check() {
    let workshop = Workshop::new("lookups-interrupted-check");
    build(&workshop);
    let test = |name: &str| {
        format!(
            "[[test]]\nname = \"{name}\"\ncmd = [\"./app\"]\nmode = \"process\"\nlimit.allocations = 10\n"
        )
    };
    std::fs::write(workshop.file("mallow.toml"), test("one") + &test("two")).unwrap();
    let (exit, said) = signalled_while_it_waits(&workshop, &["check"], "INT");
    assert_eq!(exit, Exit::Status(2), "{said}");
    assert!(said.contains("interrupted"), "{said}");
}

/// A gate's page says which names are missing, in each of its forms.
#[test]
fn a_check_whose_names_could_not_be_looked_up_says_so_in_its_result() {
    let workshop = Workshop::new("lookups-check");
    let app = build(&workshop);
    let manifest =
        "[[test]]\nname = \"app\"\ncmd = [\"./app\"]\nmode = \"process\"\nlimit.allocations = 10\n";
    std::fs::write(workshop.file("mallow.toml"), manifest).unwrap();
    let check = |mischief: &str, form: &[&str]| {
        let mut check = run::mallow();
        check.arg("check").args(form).current_dir(workshop.path()).env("MALLOW_SYMBOL_CACHE", "");
        check.env("MALLOW_LOOKUP_MISCHIEF", mischief).env("MALLOW_LOOKUP_PATIENCE_MS", PATIENTLY);
        run::finish(&mut check).ended(Exit::Status(1))
    };
    let json =
        |mischief: &str| -> Value { serde_json::from_str(&check(mischief, &["--json"]).stdout).unwrap() };
    let honest = json("");
    assert_eq!(honest["sentences"], json!([]), "{honest:#}");
    let names = |result: &Value| -> Vec<Value> {
        result["frames"].as_array().unwrap().iter().map(|frame| frame["function"].clone()).collect()
    };
    assert!(names(&honest).contains(&json!("keep")), "{honest:#}");
    let result = json("crash:/app");
    assert!(!names(&result).contains(&json!("keep")), "{result:#}");
    let said = format!("names of {} were not looked up", app.display());
    let sentences = result["sentences"].as_array().unwrap();
    assert!(sentences.len() == 1 && sentences[0].as_str().unwrap().contains(&said), "{result:#}");
    let text = check("crash:/app", &["--width", "400"]);
    assert_eq!(text.stdout.matches("were not looked up").count(), 1, "{text}");
    assert!(!text.stderr.contains("not looked up"), "{text}");
}

/// Names that were not looked up are looked up later by who asks for them, and then nothing is missing.
#[test]
fn names_that_are_missing_are_added_on_request() {
    let workshop = Workshop::new("lookups-later");
    build(&workshop);
    let (_, report) = recorded(&workshop, Path::new(""), "crash:/app");
    assert!(!has_name(&report, "keep") && report.get("names").is_some(), "{report:#}");
    let trace = workshop.file("app.mallow");
    let mut symbolize = run::mallow();
    let _ = run::finish(symbolize.arg("symbolize").arg(&trace).env("MALLOW_SYMBOL_CACHE", "")).well();
    let report: Value = serde_json::from_str(&report_of(&trace, &[]).well().stdout).unwrap();
    assert!(has_name(&report, "keep") && report.get("names").is_none(), "{report:#}");
}

/// With all names cached nobody is asked, so that nothing can happen to whoever would be.
#[test]
fn a_recording_whose_names_are_cached_asks_nobody() {
    let workshop = Workshop::new("lookups-cached");
    build(&workshop);
    let cache = workshop.file("cache");
    let (_, first) = recorded(&workshop, &cache, "truncated:/app");
    assert!(!has_name(&first, "keep"), "{first:#}");
    let (_, second) = recorded(&workshop, &cache, "");
    assert!(has_name(&second, "keep"), "what was not looked up is not cached: {second:#}");
    let (third, report) = recorded(&workshop, &cache, "crash:");
    assert!(!third.stderr.contains("not looked up"), "{third}");
    assert_eq!(report["sites"][0]["frames"], second["sites"][0]["frames"], "{report:#}");
    assert!(has_name(&report, "keep") && report.get("names").is_none(), "{report:#}");
}

/// Whoever ran code of his own where names are looked up could write no file, start nothing and end nobody.
#[test]
fn a_look_up_may_write_nothing_and_start_nothing() {
    let workshop = Workshop::new("lookups-confined");
    build(&workshop);
    std::fs::write(workshop.file("app.victim"), "whole").unwrap();
    let (recorded, report) = recorded(&workshop, Path::new(""), "break-out:/app");
    assert_eq!(recorded.exit, Exit::Status(0), "{recorded}");
    assert!(has_name(&report, "keep") && report.get("names").is_none(), "{report:#}");
    assert!(!workshop.file("app.was-here").exists());
    assert_eq!(std::fs::read_to_string(workshop.file("app.victim")).unwrap(), "whole");
}
