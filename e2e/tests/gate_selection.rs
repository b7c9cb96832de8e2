//! `--only` selects tests and regions; what is not selected is neither judged nor written.

use e2e::gate::Suite;
use e2e::session::json;
use e2e::{Exit, Finished};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Returns a program with three regions with a given number of allocations.
fn regions(read: u32, write: u32, parse: u32) -> String {
    let region = |name: &str, count: u32| {
        format!(
            "static void {name}(void *context) {{ int i; (void)context; for (i = 0; i < {count}; i++) \
             {{ void *block = malloc(16); mallow_keep(block); free(block); }} }}\n"
        )
    };
    format!(
        "#include \"mallow.h\"\n{}{}{}int main(void) {{ mallow_ops(1000); mallow_measure(\"json_read\", json_read, NULL); \
         mallow_measure(\"json_write\", json_write, NULL); mallow_measure(\"parse\", parse, NULL); return 0; }}\n",
        region("json_read", read),
        region("json_write", write),
        region("parse", parse)
    )
}

/// Creates a suite of a program `test_alloc` with three regions and one `test_other`, with baselines.
fn suite(name: &str) -> Suite {
    let suite = Suite::empty(name);
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\nruns = 3\n");
    suite.write("test_alloc.c", &regions(1000, 2000, 3000));
    suite.write("test_other.c", &e2e::gate::source(""));
    let _ = suite.check(&["--update"]).well();
    suite
}

/// Returns the allocations that each baseline of the suite allows, by its file's name.
fn baselines(suite: &Suite) -> BTreeMap<String, u64> {
    let class =
        fs::read_dir(suite.workshop.file("suite/mallow/baselines")).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(class).unwrap().map(|entry| entry.unwrap().path());
    let allocations = |path: &Path| {
        json(&fs::read_to_string(path).unwrap())["figures"]["allocations"]["min"].as_u64().unwrap()
    };
    files.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), allocations(&path))).collect()
}

fn expected(read: u64, write: u64, parse: u64) -> BTreeMap<String, u64> {
    [
        ("test_alloc.json_read", read),
        ("test_alloc.json_write", write),
        ("test_alloc.parse", parse),
        ("test_other", 1000),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into()
}

fn written(finished: &Finished) -> &str {
    finished.stdout.lines().last().unwrap_or_default()
}

#[test]
fn an_update_writes_the_regions_that_are_named_and_nothing_else() {
    let suite = suite("update-only");
    assert_eq!(baselines(&suite), expected(1000, 2000, 3000));
    // Everything allocates more, the other test too.
    suite.write("test_alloc.c", &regions(1500, 2500, 3500));
    suite.write("test_other.c", &e2e::gate::source("").replace("i < 1000", "i < 1500"));
    let updated = suite.check(&["--update", "--only", "test_alloc.json_write"]).well();
    assert_eq!(written(&updated), "1 baseline written, 0 unchanged.", "{updated}");
    assert_eq!(baselines(&suite), expected(1000, 2500, 3000));
    let updated = suite.check(&["--update", "--only", "*json_*"]).well();
    assert_eq!(written(&updated), "1 baseline written, 1 unchanged.", "{updated}");
    assert_eq!(baselines(&suite), expected(1500, 2500, 3000));
    let outcomes = suite.outcomes(1, &[]);
    let regressed: Vec<&str> = outcomes
        .iter()
        .filter(|(_, outcome)| outcome == "regressed")
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(regressed, ["test_alloc.parse", "test_other"]);
    // The name of a test selects all of its regions.
    let updated = suite.check(&["--update", "--only", "test_alloc"]).well();
    assert_eq!(written(&updated), "1 baseline written, 2 unchanged.", "{updated}");
    assert_eq!(baselines(&suite), expected(1500, 2500, 3500));
}

#[test]
fn an_update_from_a_report_writes_what_is_named() {
    let suite = suite("from-only");
    suite.write("test_alloc.c", &regions(1500, 2500, 3500));
    let report = suite.workshop.file("report.json");
    let path = report.to_str().unwrap();
    let _ = suite.check(&["--json", "-o", path]).ended(Exit::Status(1));
    let updated = suite.check(&["--update", "--from", path, "--only", "test_alloc.json_write"]).well();
    assert_eq!(written(&updated), "1 baseline written, 0 unchanged.", "{updated}");
    assert_eq!(baselines(&suite), expected(1000, 2500, 3000));
    let updated = suite.check(&["--update", "--from", path, "--only", "test_alloc.p*"]).well();
    assert_eq!(written(&updated), "1 baseline written, 0 unchanged.", "{updated}");
    assert_eq!(baselines(&suite), expected(1000, 2500, 3500));
    let refused = suite.check(&["--update", "--from", path, "--only", "*jsn_write"]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("test_alloc.json_write"), "{refused}");
}

#[test]
fn only_the_regions_that_are_named_are_judged() {
    let suite = suite("judge-only");
    suite.write("test_alloc.c", &regions(1000, 2500, 3000));
    let names = |status, only: &str| -> Vec<String> {
        suite.outcomes(status, &["--only", only]).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(0, "test_alloc.json_read"), ["test_alloc.json_read"]);
    assert_eq!(names(1, "*json_write"), ["test_alloc.json_write"]);
    assert_eq!(names(1, "*json*"), ["test_alloc.json_read", "test_alloc.json_write"]);
    assert_eq!(names(0, "*r"), ["test_other"]);
    // A region that does not exist has not passed, not even beside another that does.
    for only in ["test_alloc.json_writ", "*json_writ", "test_alloc.xml*"] {
        let refused = suite.check(&["--only", only, "--only", "test_alloc.parse"]).ended(Exit::Status(2));
        assert!(refused.stderr.contains(only) && refused.stderr.contains("test_alloc."), "{refused}");
    }
}

#[test]
fn regions_are_listed_once_they_are_known() {
    let suite = suite("list-regions");
    let listed = suite.check(&["--list"]).well();
    assert_eq!(
        listed.stdout,
        "test_alloc\ntest_alloc.json_read\ntest_alloc.json_write\ntest_alloc.parse\ntest_other\n"
    );
    let listed = suite.check(&["--list", "--only", "*json*"]).well();
    assert_eq!(listed.stdout, "test_alloc.json_read\ntest_alloc.json_write\n");
}

/// Baselines of a branch are beside those of the repository, and only those of the given name are used.
#[test]
fn baselines_have_names() {
    let suite = Suite::empty("named");
    suite.write("test_alloc.c", &regions(1000, 1000, 1000));
    let _ = suite.check(&["--update"]).well();
    let missing = suite.check(&["--baseline", "main"]).ended(Exit::Status(2));
    assert!(
        missing
            .stderr
            .contains("there is no baseline \"main\"; `mallow check --update --baseline main` makes it"),
        "{missing}"
    );
    suite.write("test_alloc.c", &regions(1200, 1000, 1000));
    let _ = suite.check(&["--update", "--baseline", "feature/read"]).well();
    suite.write("test_alloc.c", &regions(1000, 1500, 1000));
    let _ = suite.check(&["--update", "--baseline", "main", "--only", "test_alloc.json_write"]).well();
    let listed = suite.check(&["--list-baselines"]).well();
    let names: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(names, [["feature/read", "3", "tests"], ["main", "1", "test"]], "{listed}");
    // The program as it was at first, against each of the three.
    suite.write("test_alloc.c", &regions(1000, 1000, 1000));
    let outcomes = |arguments: &[&str], status| -> Vec<String> {
        suite.outcomes(status, arguments).into_iter().map(|(_, outcome)| outcome).collect()
    };
    assert_eq!(outcomes(&[], 0), ["ok", "ok", "ok"]);
    assert_eq!(outcomes(&["--baseline", "feature/read"], 1), ["improved", "ok", "ok"]);
    assert_eq!(outcomes(&["--baseline", "main"], 1), ["missing", "improved", "missing"]);
    let told = suite.check(&["--baseline", "main"]).ended(Exit::Status(1));
    let words = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`--update --baseline main --only test_alloc.json_write`"), "{told}");
    assert!(told.stdout.contains("--update --baseline main\n"), "{told}");
    let unknown = suite.check(&["--baseline", "mian"]).ended(Exit::Status(2));
    assert!(unknown.stderr.contains("there are feature/read, main;"), "{unknown}");
}
