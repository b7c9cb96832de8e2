//! Refactored programs compared with themselves: `mallow diff` shows the one real change and nothing else.
//!
//! Each program of `programs/refactor` is built in two versions, before and after, in different folders, and
//! recorded.

use e2e::session::json;
use e2e::{Exit, Finished, Session, Workshop, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSIONS: [&str; 2] = ["before", "after"];

/// A program in two versions, and the site that only the later version has.
struct Refactored {
    folder: &'static str,
    source: &'static str,
    /// The innermost function of the new site, and its bytes.
    new: (&'static str, u64),
    /// A renamed function, or a part of its name.
    renamed: (&'static str, &'static str),
}

fn compiler(source: &str) -> Command {
    let words: &[&str] = match source.rsplit('.').next() {
        Some("c") => &["cc", "-O2", "-g", "-Wall", "-Wextra"],
        Some("cpp") => &["c++", "-std=c++17", "-O2", "-g", "-Wall", "-Wextra"],
        _ => &["rustc", "--edition", "2024", "-O", "-g"],
    };
    if words[0] != "rustc" {
        let mut compiler = run::command(words[0]);
        compiler.args(&words[1..]);
        return compiler;
    }
    // The Rust compiler that builds this test, with the environment that locates its parts.
    let mut compiler = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    compiler.args(&words[1..]);
    compiler
}

/// Builds and records one version, in a folder of its own. Returns the trace.
fn recorded(workshop: &Workshop, program: &Refactored, version: &str) -> PathBuf {
    let sources = workshop.file(&format!("built-{version}")).join("src");
    std::fs::create_dir_all(&sources).unwrap();
    let source = sources.join(program.source);
    let original =
        e2e::repository().join("programs/refactor").join(program.folder).join(version).join(program.source);
    std::fs::copy(original, &source).unwrap();
    let binary = sources.join("program");
    let built = run::finish(compiler(program.source).arg(&source).arg("-o").arg(&binary)).well();
    assert!(built.stderr.is_empty(), "the compiler warns:\n{built}");
    let session = Session::new(&sources, &[binary.to_str().unwrap()]);
    let _ = session.record().well();
    session.trace()
}

fn diff(traces: &[PathBuf; 2], arguments: &[&str]) -> Finished {
    run::finish(run::mallow().arg("diff").args(traces).args(arguments))
}

/// Returns the sites of a section, each with what was allocated there on both sides.
fn section<'a>(document: &'a Value, name: &str) -> Vec<&'a Value> {
    document["sites"].as_array().into_iter().flatten().filter(|site| site["section"] == name).collect()
}

#[track_caller]
fn shows_only_the_real_change(program: &Refactored) {
    let workshop = Workshop::new(&format!("diff-{}", program.folder));
    let traces = VERSIONS.map(|version| recorded(&workshop, program, version));
    for measure in ["allocations", "bytes"] {
        let finished = diff(&traces, &["--json", "--by", measure]).well();
        let document = json(&finished.stdout);
        let new = section(&document, "new");
        assert_eq!(new.len(), 1, "{finished}");
        let metrics = &new[0]["figures"];
        assert_eq!(metrics["allocations"]["difference"], 1, "{finished}");
        assert_eq!(metrics["bytes"]["difference"], program.new.1, "{finished}");
        assert!(new[0]["after"]["frames"].to_string().contains(program.new.0), "{finished}");
        assert_eq!(section(&document, "gone"), Vec::<&Value>::new(), "{finished}");
        assert_eq!(section(&document, "changed"), Vec::<&Value>::new(), "{finished}");
        assert!(!section(&document, "moved").is_empty(), "the refactoring is seen: {finished}");
        let is_renamed = |rename: &Value| {
            let has = |side: &str, part: &str| rename[side].as_str().is_some_and(|name| name.contains(part));
            has("before", program.renamed.0) && has("after", program.renamed.1)
        };
        assert!(document["renames"].as_array().is_some_and(|all| all.iter().any(is_renamed)), "{finished}");
        assert_eq!(document["totals"]["allocations"]["difference"], 1, "{finished}");
    }
    limits(&traces);
    readable(&traces);
}

/// One additional allocation exceeds a limit that allows none, and no other limit.
fn limits(traces: &[PathBuf; 2]) {
    let _ = diff(traces, &["--fail-on", "allocations>+1"]).well();
    let broken = diff(traces, &["--fail-on", "allocations>+0", "--fail-on", "allocations>+50%"]);
    let broken = broken.ended(Exit::Status(1));
    let sentences: Vec<&str> = broken.stderr.lines().filter(|line| line.contains(" is broken: ")).collect();
    assert_eq!(sentences.len(), 1, "{broken}");
    assert!(sentences[0].starts_with("mallow: the limit allocations>+0 is broken: "), "{broken}");
    let _ = diff(traces, &["--per", "2", "--fail-on", "allocations>+0.5"]).well();
    let _ = diff(traces, &["--fail-on", "allocations>1%"]).ended(Exit::Status(2));
}

/// The report fits a terminal, and the Markdown a comment.
fn readable(traces: &[PathBuf; 2]) {
    let page = diff(traces, &["--width", "80"]).well();
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(page.stdout.contains("\nnew: +1 allocation at 1 site\n"), "{page}");
    assert!(!page.stdout.contains("\ngone: ") && !page.stdout.contains("\nchanged: "), "{page}");
    let comment = diff(traces, &["--markdown", "--fail-on", "allocations>+0"]).ended(Exit::Status(1));
    assert!(comment.stdout.contains("\n**The limit allocations>+0 is broken: "), "{comment}");
    assert!(comment.stdout.len() < 65_000, "{comment}");
}

#[test]
fn of_a_c_program() {
    let renamed = ("load_table", "read_table");
    shows_only_the_real_change(&Refactored { folder: "c", source: "table.c", new: ("print", 64), renamed });
}

#[test]
fn of_a_cpp_program() {
    let renamed = ("Words", "WordCounter");
    shows_only_the_real_change(&Refactored {
        folder: "cxx",
        source: "words.cpp",
        new: ("main", 80),
        renamed,
    });
}

#[test]
fn of_a_rust_program() {
    let renamed = ("load_orders", "read_orders");
    shows_only_the_real_change(&Refactored {
        folder: "rust",
        source: "orders.rs",
        new: ("log_of", 4000),
        renamed,
    });
}

#[test]
fn a_program_is_itself() {
    let workshop = Workshop::new("diff-itself");
    let program = Refactored {
        folder: "c",
        source: "table.c",
        new: ("print", 64),
        renamed: ("load_table", "read_table"),
    };
    let trace = recorded(&workshop, &program, "before");
    let document = json(&diff(&[trace.clone(), trace], &["--json"]).well().stdout);
    assert_eq!(document["sites"], Value::Array(Vec::new()), "{document}");
    assert_eq!(document["unchanged"]["difference"], 0, "{document}");
}
