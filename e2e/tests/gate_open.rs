//! A gate must fail if nothing is known: no baseline, a limit that limits nothing, an allocator that is not seen. And
//! it must not report an improvement as BLIND.

use e2e::Exit;
use e2e::gate::{Suite, sentences, source};
use e2e::session::json;
use serde_json::Value;

/// Without markers: a program that is counted as a whole, from `main`, and by its slope.
const PLAIN: &str = "#include <stdlib.h>\nchar *volatile kept;\nint main(void) {\n    long i, n = 100 * strtol(getenv(\"MALLOW_OPS\") ? \
                     getenv(\"MALLOW_OPS\") : \"1\", NULL, 10);\n    for (i = 0; i < n; i++) free(kept = malloc(16));\n    return 0;\n}\n";

#[test]
fn without_baseline_and_limit_a_test_is_missing_in_every_mode() {
    let suite = Suite::empty("modes-missing");
    suite.write("plain.c", PLAIN);
    suite.write("test_work.c", &source(""));
    for limit in ["", "limit.allocations = { min = 0 }\n", "limit.remaining = 0\n", "limit.bytes = 100000\n"]
    {
        let test = |mode: &str| {
            format!("[[test]]\nname = \"{mode}\"\nsource = \"plain.c\"\nops = 5\nmode = \"{mode}\"\n{limit}")
        };
        let text = ["process", "repeat", "slope"].map(test).concat();
        suite.write("mallow.toml", &format!("[gate]\nruns = 2\nsuites = [\".\"]\n{limit}{text}"));
        let outcomes = suite.outcomes(3, &[]);
        assert_eq!(outcomes.len(), 4, "{outcomes:?}");
        assert!(outcomes.iter().all(|(_, outcome)| outcome == "missing"), "{limit}: {outcomes:?}");
    }
}

/// `limit.remaining = 0` for a whole suite says nothing about allocations: neither without a baseline, nor with one
/// of another environment.
#[test]
fn a_limit_of_another_metric_does_not_open_the_gate_for_allocations() {
    let suite = Suite::new("half-limit", &source(""));
    let manifest = |cpus: u32| format!("[gate]\nsuites = [\".\"]\nlimit.remaining = 0\ncpus = {cpus}\n");
    suite.write("mallow.toml", &manifest(1));
    let test = suite.only_test(3);
    assert_eq!(test["outcome"], "missing", "{test:#}");
    assert!(sentences(&test).contains("--update --only test_work"), "{test:#}");
    let _ = suite.check(&["--update"]).well();
    let _ = suite.check(&[]).well();
    // Twice as many, on a machine with another number of CPUs.
    suite.write("test_work.c", &source("").replace("i < 1000", "i < 2000"));
    suite.write("mallow.toml", &manifest(2));
    let test = suite.only_test(3);
    assert_eq!(test["outcome"], "missing", "{test:#}");
    assert!(sentences(&test).contains("it is for 1 processor, here are 2"), "{test:#}");
    // The limited metric is still judged.
    suite.write("test_work.c", &source("mallow_keep(malloc(3));"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "regressed", "{test:#}");
    assert!(sentences(&test).contains("remaining: 1 per run; its limit allows 0"), "{test:#}");
    assert!(sentences(&test).contains("it is for 1 processor, here are 2"), "{test:#}");
}

/// The process that marks the region is checked, even if the `cmd` starts it through another program.
#[test]
fn an_allocator_of_its_own_is_found_behind_a_wrapper() {
    let own = "static char pool[1 << 20];\nstatic size_t at;\n\
               void *malloc(size_t bytes) { void *block = pool + at; at = (at + bytes + 15) % (sizeof pool / 2); return block; }\n\
               void free(void *block) { (void)block; }\n";
    let suite = Suite::empty("own-behind");
    suite.write("own.c", &(source("") + own));
    suite.write(
        "mallow.toml",
        "[gate]\nbuild = \"cc -O1 -I$MALLOW_INCLUDE -o own own.c\"\nlimit.allocations = 1000000\n\
         [[test]]\nname = \"behind\"\ncmd = [\"sh\", \"-c\", \"./own; true\"]\n",
    );
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "blind", "{test:#}");
    assert!(sentences(&test).contains("brings its own malloc"), "{test:#}");
    let refused = suite.check(&["--update"]).ended(Exit::Status(1));
    assert!(refused.stderr.contains("--allow-missing-counts"), "{refused}");
}

/// Conversely: the program that starts the marked one is not measured.
#[test]
fn an_allocator_of_the_wrapper_is_nobodys_business() {
    let own = "#include <stddef.h>\n#include <unistd.h>\nvoid *mi_malloc(size_t n) { (void)n; return 0; }\n\
               int main(int count, char **words) { (void)count; execv(words[1], words + 1); return !!mi_malloc(1); }\n";
    let suite = Suite::empty("own-before");
    suite.write("wrapper.c", own);
    suite.write("work.c", &source(""));
    suite.write(
        "mallow.toml",
        "[gate]\nbuild = \"cc -o wrapper wrapper.c && cc -O1 -I$MALLOW_INCLUDE -o work work.c\"\nlimit.allocations = { min = 1000, max = 1000 }\n\
         [[test]]\nname = \"before\"\ncmd = [\"./wrapper\", \"./work\"]\n",
    );
    let finished = suite.check(&[]).well();
    assert!(finished.stdout.contains("1 OK"), "{finished}");
}

/// The markers were served, and the hooks see the same process allocate outside of its region: it is not BLIND.
#[test]
fn an_optimisation_down_to_nothing_is_an_improvement() {
    let with = |count: u32| {
        source("")
            .replace("i < 1000", &format!("i < {count}"))
            .replace("int main(void) { ", "int main(void) { void *volatile before = malloc(100); ")
    };
    let suite = Suite::new("to-nothing", &with(1000));
    let _ = suite.check(&["--update"]).well();
    suite.write("test_work.c", &with(0));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "improved", "{test:#}");
    assert!(sentences(&test).contains("keep the win with `--update --only test_work`"), "{test:#}");
    let _ = suite.check(&["--update", "--only", "test_work"]).well();
    let _ = suite.check(&[]).well();
    // A process that never allocates at all is seen as well: its markers were served, and it has no allocator of its own.
    let suite = Suite::new("to-nothing-at-all", &source(""));
    let _ = suite.check(&["--update"]).well();
    suite.write("test_work.c", &source("").replace("i < 1000", "i < 0"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "improved", "{test:#}");
}

/// Files of an earlier run must not stay if nothing could be built.
#[test]
fn a_build_that_fails_is_written_into_every_file() {
    let suite = Suite::new("build-line", &source(""));
    suite.write("test_other.c", &source(""));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\nbuild = \"echo no such header; exit 3\"\n");
    let file = |name: &str| suite.workshop.file(name).to_str().unwrap().to_owned();
    let (junit, report) = (file("junit.xml"), file("report.json"));
    let _ = suite.check(&["--junit", &junit, "--json", "-o", &report]).ended(Exit::Status(1));
    let report = json(&std::fs::read_to_string(&report).unwrap());
    let outcomes: Vec<&Value> =
        report["tests"].as_array().unwrap().iter().map(|test| &test["outcome"]).collect();
    assert_eq!(outcomes, ["error", "error"], "{report:#}");
    assert!(sentences(&report["tests"][0]).contains("no such header"), "{report:#}");
    let junit = std::fs::read_to_string(&junit).unwrap();
    assert!(junit.contains("no such header") && junit.contains("errors=\"2\""), "{junit}");
    let updated = suite.check(&["--update"]).ended(Exit::Status(1));
    assert!(updated.stderr.contains("no such header"), "{updated}");
}

/// Returns a program whose regions are functions with a given number of allocations.
fn of_regions(regions: &[(&str, u32)]) -> String {
    let mut source = "#include \"mallow.h\"\n".to_owned();
    let mut main = String::new();
    for (name, count) in regions {
        source += &format!(
            "static void {name}(void *context) {{ int i; (void)context; for (i = 0; i < {count}; i++) \
             {{ void *block = malloc(16); mallow_keep(block); free(block); }} }}\n"
        );
        main += &format!("mallow_measure(\"{name}\", {name}, NULL); ");
    }
    format!("{source}int main(void) {{ mallow_ops(1000); {main}return 0; }}\n")
}

/// A second region does not rename the first, nor does one that is gone rename the other. Each is compared with its
/// own baseline; one without a baseline is MISSING, and one that only a baseline has is STALE.
#[test]
fn a_region_keeps_its_baseline_however_many_there_are() {
    let told = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, outcome)| ((*name).to_owned(), (*outcome).to_owned())).collect()
    };
    let suite = Suite::new("regions", &of_regions(&[("one", 1000)]));
    let _ = suite.check(&["--update"]).well();
    // One more, and three times as many allocations in the first.
    suite.write("test_work.c", &of_regions(&[("one", 3000), ("two", 500)]));
    assert_eq!(suite.outcomes(1, &[]), told(&[("test_work", "regressed"), ("test_work.two", "missing")]));
    suite.write("test_work.c", &of_regions(&[("one", 1000), ("two", 500)]));
    assert_eq!(suite.outcomes(3, &[]), told(&[("test_work", "ok"), ("test_work.two", "missing")]));
    let _ = suite.check(&["--update"]).well();
    assert_eq!(suite.outcomes(0, &[]), told(&[("test_work", "ok"), ("test_work.two", "ok")]));
    // Either of them removed.
    suite.write("test_work.c", &of_regions(&[("two", 600)]));
    assert_eq!(suite.outcomes(1, &[]), told(&[("test_work.two", "regressed"), ("test_work", "stale")]));
    suite.write("test_work.c", &of_regions(&[("one", 1000)]));
    assert_eq!(suite.outcomes(3, &[]), told(&[("test_work", "ok"), ("test_work.two", "stale")]));
    let finished = suite.check(&[]).ended(Exit::Status(3));
    assert!(finished.stdout.contains("a region that the test ran"), "{finished}");
    let _ = suite.check(&["--update"]).well();
    assert_eq!(suite.outcomes(0, &[]), told(&[("test_work", "ok")]));
    // Several from the beginning, of which one stays.
    let suite = Suite::new("regions-gone", &of_regions(&[("one", 1000), ("two", 500), ("three", 7)]));
    let _ = suite.check(&["--update"]).well();
    suite.write("test_work.c", &of_regions(&[("two", 1500)]));
    let outcomes = suite.outcomes(1, &[]);
    let stale = [("test_work.one", "stale"), ("test_work.three", "stale")];
    assert_eq!(outcomes, told(&[&[("test_work.two", "regressed")], &stale[..]].concat()));
}

/// With `--against`, too, regions are paired by their names, and one that this build no longer has is reported.
#[test]
fn regions_are_paired_with_those_of_another_build() {
    let old = Suite::new("pair-old", &of_regions(&[("one", 1000), ("two", 500)]));
    let new = Suite::new("pair-new", &of_regions(&[("two", 1500)]));
    let folder = old.workshop.file("suite");
    let against = ["--against", folder.to_str().unwrap()];
    let told = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, outcome)| ((*name).to_owned(), (*outcome).to_owned())).collect()
    };
    assert_eq!(new.outcomes(1, &against), told(&[("test_work", "regressed"), ("test_work.one", "stale")]));
    new.write("test_work.c", &of_regions(&[("two", 500)]));
    assert_eq!(new.outcomes(3, &against), told(&[("test_work", "ok"), ("test_work.one", "stale")]));
    new.write("test_work.c", &of_regions(&[("two", 500), ("one", 1000)]));
    assert_eq!(new.outcomes(0, &against), told(&[("test_work.two", "ok"), ("test_work.one", "ok")]));
}
