//! The document of a benchmark fits its schema, and is read again as it was.

use super::*;
use crate::schema_tests::assert_fits;
use serde_json::Value;

fn session() -> Session {
    let run = |wall_ns: u64| Run {
        wall_ns,
        user_ns: 5,
        peak_rss_bytes: 4096,
        end: RunEnd::Signal(9),
        events: vec![Some(EventCount { value: 2.5, share: 0.5 }), None],
        printed: Some(1.5),
        left: vec!["server".to_owned()],
        ..Run::default()
    };
    let command = |name: &str, wall_ns: u64, counts: [u64; 2]| BenchCommand {
        name: name.to_owned(),
        line: format!("./{name}"),
        parameters: vec![("n".to_owned(), "8".to_owned())],
        in_shell: true,
        runs: (0..12).map(|at| Run { at, ..run(wall_ns + at as u64) }).collect(),
        allocations: counts.map(|allocations| Allocations { allocations, ..Allocations::default() }).to_vec(),
        not_recorded: None,
    };
    Session {
        commands: vec![command("a", 1_000_000, [3, 3]), command("b", 2_000_000, [3, 4])],
        events: vec!["cycles".to_owned(), "r01c2".to_owned()],
        threshold: 0.01,
        error: 0.001,
        order: Order::Interleaved,
        stop: Stop::Precise,
        shell: Some(ShellCost { shell: "sh".to_owned(), wall_ns: 1, user_ns: 2, system_ns: 3 }),
        notes: vec!["x.".to_owned()],
        ..Session::default()
    }
}

fn value(session: &Session, limits: &[LimitRow]) -> Value {
    serde_json::from_str(&BenchJson::of(session, limits).text().unwrap()).unwrap()
}

#[test]
fn it_fits_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../docs/schema/bench.json")).unwrap();
    let row = LimitRow {
        limit: "wall>+3%".to_owned(),
        metric: Metric::Wall,
        command: "2: b".to_owned(),
        against: None,
        is_broken: None,
    };
    assert_fits(&value(&session(), &[row]), &schema);
    let bare = BenchCommand { not_recorded: Some("why.".to_owned()), ..BenchCommand::default() };
    assert_fits(&value(&Session { commands: vec![bare], ..Session::default() }, &[]), &schema);
}

#[test]
fn its_keys_are_hyperfines_in_seconds_and_bytes() {
    let value = value(&session(), &[]);
    let first = &value["results"][0];
    assert_eq!(first["times"][1], 0.001000001);
    assert_eq!((&first["memory_usage_byte"][0], &first["exit_codes"][0]), (&4096.into(), &137.into()));
    assert_eq!(first["parameters"]["n"], "8");
    let comparison = &value["results"][1]["mallow"]["comparison"]["wall"];
    assert_eq!((&comparison["verdict"], &comparison["pairs"]), (&"slower".into(), &12.into()));
    assert!(first["mallow"]["comparison"].is_null());
    assert_eq!(value["results"][1]["mallow"]["allocations"]["allocations"]["exact"], false);
}

#[test]
fn it_is_read_again_as_it_was() {
    let session = session();
    let text = BenchJson::of(&session, &[]).text().unwrap();
    assert_eq!(BenchJson::read(&text), Ok(session));
}

#[test]
fn another_document_is_refused() {
    assert!(BenchJson::read("{}").unwrap_err().contains("--save"));
    let other = BenchJson::of(&session(), &[]).text().unwrap().replace("mallow.bench/2", "mallow.bench/9");
    assert!(BenchJson::read(&other).unwrap_err().contains("mallow.bench/9"));
}
