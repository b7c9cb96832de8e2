//! The lines of a script on every stack: against what its own source states, in every kind of frame.

use e2e::run::{self, command};
use e2e::session::metric;
use e2e::{Session, Workshop, repository};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// Debian's, and whatever `MALLOW_PYTHONS` names, with colons between.
pub(crate) fn pythons() -> Vec<String> {
    let named = std::env::var("MALLOW_PYTHONS").unwrap_or_default();
    let named = named.split(':').filter(|path| !path.is_empty()).map(str::to_owned);
    std::iter::once("/usr/bin/python3".to_owned()).chain(named).collect()
}

/// A program of `programs/scripts`.
pub(crate) fn script(name: &str) -> String {
    repository().join("programs/scripts").join(name).to_string_lossy().into_owned()
}

fn recorded(test: &str, words: &[&str]) -> (Workshop, Session) {
    let workshop = Workshop::new(test);
    let session = Session::new(workshop.path(), words);
    let _ = session.record().well();
    (workshop, session)
}

/// Allocations and bytes by the innermost line of a script in a file.
fn by_line(report: &Value, file: &str) -> BTreeMap<u64, (u64, u64)> {
    let mut lines = BTreeMap::new();
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        let Some(frame) = frames.iter().find(|frame| frame["language"] == "python") else { continue };
        if frame["file"].as_str().unwrap().ends_with(file) {
            let line: &mut (u64, u64) = lines.entry(metric(frame, "line")).or_default();
            line.0 += metric(site, "allocations");
            line.1 += metric(site, "bytes");
        }
    }
    lines
}

/// The figures that comments at the ends of lines state: `# 3 x 1034`.
fn stated(path: &str) -> BTreeMap<u64, (u64, u64)> {
    let text = fs::read_to_string(path).unwrap();
    let of_line = |(line, text): (u64, &str)| {
        let (count, bytes) = text.rsplit_once("# ")?.1.split_once(" x ")?;
        let (count, bytes): (u64, u64) = (count.parse().ok()?, bytes.parse().ok()?);
        Some((line, (count, count * bytes)))
    };
    (1..).zip(text.lines()).filter_map(of_line).collect()
}

#[test]
fn lines_in_every_kind_of_frame_have_what_the_source_states() {
    let path = script("frames.py");
    let stated = stated(&path);
    assert_eq!(stated.len(), 38);
    for python in pythons() {
        println!("{python}");
        let (_workshop, session) = recorded("scripts-frames", &[&python, &path]);
        let report = session.report(&["--sort", "allocations", "--limit", "100000"]);
        assert_eq!(report["warnings"], serde_json::json!([]), "{python}");
        let mut found = by_line(&report, "/frames.py");
        found.retain(|line, _| stated.contains_key(line));
        assert_eq!(found, stated, "{python}");
        // What is made at run time has no file, and a name for one.
        assert_eq!(by_line(&report, "<string>").get(&2), Some(&(3, 3 * 2033)), "{python}");
    }
}

#[test]
fn code_at_addresses_that_were_used_before_is_code_of_its_own() {
    let mut expected = BTreeMap::new();
    for i in 0..3000 {
        let line: &mut (u64, u64) = expected.entry(i * 7 % 363 + 2).or_default();
        *line = (line.0 + 1, line.1 + 1233);
    }
    assert_eq!(expected.len(), 363);
    for python in pythons() {
        println!("{python}");
        let (_workshop, session) = recorded("scripts-reused", &[&python, &script("reused.py")]);
        let report = session.report(&["--sort", "allocations", "--limit", "100000"]);
        assert_eq!(by_line(&report, "made.py"), expected, "{python}");
    }
}

/// A program whose peak is made by a line of its own.
const KEEPS: &str = "\
import json

kept = []

def parse_row(number):
    return {'number': number, 'text': bytes(5000)}

class Store:
    def fill(self, rows):
        for number in range(rows):
            kept.append(parse_row(number))

def main():
    Store().fill(400)
    json.dumps([1, 2, 3])

main()
";

#[test]
fn people_are_shown_the_lines_of_their_script() {
    let workshop = Workshop::new("scripts-shown");
    fs::write(workshop.file("app.py"), KEEPS).unwrap();
    let session = Session::new(workshop.path(), &["/usr/bin/python3", "app.py"]);
    let recorded = session.record().well();
    assert!(recorded.stderr.contains("parse_row (app.py:6)"), "{recorded}");
    let report = |more: &[&str]| {
        let mut mallow = run::mallow();
        mallow.arg("report").arg(session.trace()).args(["--sort", "peak", "--limit", "1"]).args(more);
        run::finish(&mut mallow).well().stdout
    };
    let lines = "\
            parse_row (app.py:6)
            Store.fill (app.py:11)
            main (app.py:14)
            <module> (app.py:17)
";
    assert!(report(&[]).contains(lines), "{}", report(&[]));
    let all = report(&["--all-frames"]);
    assert!(all.contains("<module> (app.py:17)\n            _PyEval_EvalFrameDefault"), "{all}");
    assert!(all.contains("Py_BytesMain"), "{all}");
    let native = report(&["--native"]);
    assert!(!native.contains("(app.py:"), "{native}");
    assert!(native.contains("_PyEval_EvalFrameDefault"), "{native}");
}

#[test]
fn other_tools_get_the_lines_of_a_script_too() {
    let workshop = Workshop::new("scripts-exported");
    fs::write(workshop.file("app.py"), KEEPS).unwrap();
    let session = Session::new(workshop.path(), &["/usr/bin/python3", "app.py"]);
    let _ = session.record().well();
    let graph =
        run::finish(run::mallow().arg("flamegraph").arg(session.trace()).arg("--folded")).well().stdout;
    assert!(graph.contains(";<module>;main;Store.fill;parse_row "), "{graph}");
    let speedscope =
        run::finish(run::mallow().arg("export").arg(session.trace()).args(["--format", "speedscope"]));
    let speedscope: Value = serde_json::from_str(&speedscope.well().stdout).unwrap();
    let frames = speedscope["shared"]["frames"].as_array().unwrap();
    let frame = frames.iter().find(|frame| frame["name"] == "parse_row").unwrap();
    assert!(frame["file"].as_str().unwrap().ends_with("/app.py") && frame["line"] == 6, "{frame}");
}

/// One allocation more in a line that others call: a script's line that is new, and no file of the interpreter's.
#[test]
fn a_diff_names_the_line_that_is_new() {
    let workshop = Workshop::new("scripts-diff");
    let record = |name: &str, text: &str| {
        fs::write(workshop.file("app.py"), text).unwrap();
        let trace = workshop.file(name);
        let mut mallow = run::mallow();
        mallow.current_dir(workshop.path()).args(["record", "--force", "-o"]).arg(&trace);
        let _ = run::finish(mallow.args(["--", "/usr/bin/python3", "app.py"])).well();
        trace
    };
    let before = record("before.mallow", KEEPS);
    let more = KEEPS.replace("'text': bytes(5000)", "'text': bytes(5000), 'more': bytes(6000)");
    let after = record("after.mallow", &more);
    let mut mallow = run::mallow();
    let diff = run::finish(mallow.arg("diff").args([&before, &after]).args(["--by", "bytes"])).well().stdout;
    assert!(diff.contains("parse_row (app.py:6)"), "{diff}");
    assert!(!diff.contains("PyBytes"), "{diff}");
}

#[test]
fn a_module_that_only_looks_like_python_is_said_to_be_unread() {
    let workshop = Workshop::new("scripts-unread");
    let source = "#include <stdlib.h>\nint PyCode_Type = 1;\nint main(void) { free(malloc(100)); return PyCode_Type - 1; }\n";
    fs::write(workshop.file("odd.c"), source).unwrap();
    let program = workshop.file("odd");
    let mut gcc = command("gcc");
    let _ = run::finish(gcc.args(["-rdynamic", "-o"]).arg(&program).arg(workshop.file("odd.c"))).well();
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    let said = "Python (older than 3.8): stacks have no lines of the script, because where this version keeps its frames is not known";
    assert!(recorded.stderr.contains(said), "{recorded}");
    let report = session.report(&[]);
    assert_eq!(metric(&report["totals"], "allocations"), 1);
}
