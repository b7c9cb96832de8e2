//! The first steps of a new user: record a program that leaks, read the report, find the line.

use e2e::session::json;
use e2e::{Session, Workshop, run};
use serde_json::Value;

/// A program of `programs/leaks`, recorded.
struct Leaking {
    _workshop: Workshop,
    session: Session,
    source: String,
}

impl Leaking {
    fn record(name: &str, compiler: &[&str]) -> Leaking {
        let workshop = Workshop::new(&format!("leaks-{name}"));
        let source = e2e::repository().join("programs/leaks").join(name);
        let binary = workshop.file("program");
        let mut compile = run::command(compiler[0]);
        let _ = run::finish(compile.args(&compiler[1..]).arg(&source).arg("-o").arg(&binary)).well();
        let session = Session::new(workshop.path(), &[binary.to_str().unwrap()]);
        let _ = session.record().well();
        Leaking { session, source: std::fs::read_to_string(source).unwrap(), _workshop: workshop }
    }

    /// Returns the line that the source marks.
    fn line(&self) -> u64 {
        self.source
            .lines()
            .position(|line| line.contains("the leak */") || line.ends_with("// the leak"))
            .unwrap() as u64
            + 1
    }

    fn report(&self) -> (String, Value) {
        let trace = self.session.trace();
        let text =
            run::finish(run::mallow().arg("report").arg(&trace).args(["--sort", "leaked"])).well().stdout;
        (text, json(&e2e::session::report_of(&trace, &["--sort", "leaked"]).well().stdout))
    }
}

#[test]
fn a_forgotten_session_is_told_from_a_cache_and_from_a_table() {
    let leaking = Leaking::record("sessions.c", &["cc", "-O1", "-g", "-Wall", "-Wextra"]);
    let (text, report) = leaking.report();
    let sites = report["sites"].as_array().unwrap();
    let leak = &sites[0];
    assert_eq!(
        (&leak["leaked_bytes"], &leak["leaked_blocks"]),
        (&Value::from(120_000), &Value::from(400)),
        "{text}"
    );
    let line = leaking.line();
    let is_the_line = |frame: &Value| {
        frame["line"] == line && frame["file"].as_str().is_some_and(|file| file.ends_with("sessions.c"))
    };
    assert!(leak["frames"].as_array().unwrap().iter().any(is_the_line), "line {line} is not in {leak}");
    // The place as text: function, file and line, and the verdict.
    assert!(text.contains(&format!("open_session (sessions.c:{line})")), "{text}");
    let of = |text: &str, start: &str| -> String {
        let from = text.find(start).unwrap_or_else(|| panic!("no {start} in\n{text}"));
        text[..from].lines().rev().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    assert!(of(&text, "open_session (").contains("growing"), "{text}");
    assert!(of(&text, "remember (").contains("levelled off"), "{text}");
    assert!(of(&text, "load_routes (").contains("start"), "{text}");
}

#[test]
fn a_circle_of_shared_pointers_is_found() {
    let leaking = Leaking::record("listeners.cpp", &["c++", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra"]);
    let (text, report) = leaking.report();
    let line = leaking.line();
    let at_the_line = |site: &&Value| {
        let frames = site["frames"].as_array().unwrap();
        frames
            .iter()
            .any(|frame| frame["line"] == line && frame["function"].as_str().unwrap().contains("make_button"))
    };
    let sites = report["sites"].as_array().unwrap();
    let button = sites.iter().find(at_the_line).unwrap_or_else(|| panic!("line {line} is not in\n{text}"));
    assert_eq!(button["leaked_blocks"], 500, "{text}");
    // Three blocks for each circle, and the C++ library's own pool for exceptions.
    assert_eq!(report["totals"]["leaked_blocks"], 1501, "{text}");
    assert!(text.contains(&format!("(listeners.cpp:{line})")), "{text}");
}
