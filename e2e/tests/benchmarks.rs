//! Benchmarks with mallow's counts: criterion's measurements, Google Benchmark's memory manager, and our own attribute. The figures are exact, and missing
//! where nothing is counted.

use e2e::session::json;
use e2e::{Exit, Finished, Workshop, repository, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A crate of the markers and the one that it depends on, copied, because traces and baselines are written where the benchmark is.
fn copied(name: &str, of: &str, files: &[&str]) -> Workshop {
    let workshop = Workshop::new(name);
    for (crate_name, files) in [("rust", &["Cargo.toml", "README.md", "src/lib.rs"][..]), (of, files)] {
        for file in files {
            let copy = workshop.file(crate_name).join(file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(repository().join("markers").join(crate_name).join(file), copy).unwrap();
        }
    }
    workshop
}

/// A crate in its copy.
struct Copy {
    workshop: Workshop,
    of: &'static str,
}

impl Copy {
    fn cargo(&self, words: &[&str]) -> Finished {
        run::finish(cargo_command(self).args(words))
    }

    /// Where it was never built, that takes longer than any other command may.
    fn build(&self, words: &[&str]) {
        assert!(cargo_command(self).args(words).status().unwrap().success());
    }
}

fn cargo_command(copy: &Copy) -> Command {
    let folder = run::mallow_binary().canonicalize().unwrap().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env("PATH", format!("{}:{path}", folder.display()));
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(copy.of));
    // Most of what these tests take is the build, and what is counted is the same without optimization. `cargo mallow` asks for line tables; so does this, or everything would
    // be built twice.
    cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    for profile in ["RELEASE", "BENCH"] {
        cargo.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "line-tables-only");
        cargo.env(format!("CARGO_PROFILE_{profile}_STRIP"), "none");
    }
    // Linted in the same build: `cargo xtask ci` leaves out criterion's workspace where it lints and tests the others.
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    cargo.env("CRITERION_HOME", copy.workshop.file("figures")).current_dir(copy.workshop.file(copy.of));
    cargo
}

/// Returns the mean of a benchmark and its standard deviation.
fn estimate(workshop: &Workshop, name: &str) -> (f64, f64) {
    let file = workshop.file("figures").join(name).join("new/estimates.json");
    let estimates = json(&fs::read_to_string(file).unwrap());
    let point = |of: &str| estimates[of]["point_estimate"].as_f64().unwrap();
    (point("mean"), point("std_dev"))
}

#[test]
fn criterion_measures_allocations_and_bytes_to_the_call() {
    let files = ["Cargo.toml", "Cargo.lock", "README.md", "src/lib.rs", "benches/counted.rs"];
    let copy = Copy { workshop: copied("criterion", "criterion", &files), of: "criterion" };
    copy.build(&["bench", "--locked", "--bench", "counted", "--no-run"]);
    // The second run is compared with the first one.
    for _ in 0..2 {
        let words = ["mallow", "record", "--summary-only", "bench", "--locked", "--bench", "counted"];
        let measured = copy.cargo(&words).well();
        assert!(measured.stdout.contains("3 allocations 3 allocations 3 allocations"), "{measured}");
        assert_eq!(estimate(&copy.workshop, "allocations_three"), (3.0, 0.0), "{measured}");
        // One of 1 byte, grown to 2, 4 and 8.
        assert_eq!(estimate(&copy.workshop, "allocations_grown"), (4.0, 0.0), "{measured}");
        assert_eq!(estimate(&copy.workshop, "bytes_three"), (1110.0, 0.0), "{measured}");
    }
    let refused = copy.cargo(&["bench", "--locked", "--bench", "counted"]);
    assert_ne!(refused.exit, Exit::Status(0), "{refused}");
    assert!(refused.stderr.contains("Run it with `cargo mallow record --summary-only bench`."), "{refused}");
    for tests in [&["--lib", "--benches"][..], &["--doc"]] {
        let tested = copy.cargo(&[&["test", "--release", "--locked"], tests].concat()).well();
        assert!(tested.stdout.contains("test result: ok."), "{tested}");
    }
}

/// A project whose benchmarks have the attribute.
fn with_attribute(name: &str) -> Copy {
    let sources =
        ["arguments.rs", "bencher.rs", "lib.rs", "table.rs", "times.rs"].map(|name| format!("src/{name}"));
    let others = [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "benches/functions.rs",
        "macros/Cargo.toml",
        "macros/src/lib.rs",
    ];
    let files: Vec<&str> = sources.iter().map(|name| &**name).chain(others).collect();
    let copy = Copy { workshop: copied(name, "benchmarks", &files), of: "benchmarks" };
    copy.build(&["bench", "--locked", "--bench", "functions", "--no-run"]);
    copy
}

/// The cells of a benchmark's row.
fn row<'a>(finished: &'a Finished, name: &str) -> Vec<&'a str> {
    let line = finished.stdout.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name}: {finished}")).split_whitespace().skip(1).collect()
}

#[test]
fn functions_with_the_attribute_are_timed_and_counted() {
    let copy = with_attribute("attribute");
    let bench = ["bench", "--locked", "--bench", "functions"];
    let timed = copy.cargo(&bench).well();
    assert!(timed.stdout.contains("Nothing was counted."), "{timed}");
    // A median with its unit, the fastest, the slowest, and calls.
    assert_eq!(row(&timed, "vector.grown").len(), 7, "{timed}");
    assert!(!timed.stdout.contains("allocations  "), "{timed}");

    let counted = copy.cargo(&[&["mallow", "record", "--summary-only"][..], &bench].concat()).well();
    for (name, counts) in [
        ("three", ["3", "1,110", "1,110", "0"]),
        // One of 1 byte, grown to 2, 4 and 8. A block that grows is there twice.
        ("vector.grown", ["4", "15", "8", "0"]),
        ("nothing", ["0", "0", "0", "0"]),
        ("leaves", ["1", "40", "40", "40"]),
    ] {
        assert_eq!(row(&counted, name), counts, "{counted}");
    }
    assert!(!counted.stdout.contains("median"), "{counted}");

    // Under stat nothing is known of a single call.
    let unknown = copy.cargo(&[&["mallow", "stat"][..], &bench].concat());
    assert_ne!(unknown.exit, Exit::Status(0), "{unknown}");
    assert_eq!(row(&unknown, "three"), ["not", "measured"], "{unknown}");

    let _ = copy.cargo(&["test", "--release", "--locked", "--benches"]).well();
    let listed = copy.cargo(&[&bench[..], &["--", "--list", "e"]].concat()).well();
    assert!(
        listed.stdout.contains("three: benchmark\nvector.grown: benchmark\nleaves: benchmark\n"),
        "{listed}"
    );
}

#[test]
fn the_gate_holds_functions_with_the_attribute_to_their_baselines() {
    let copy = with_attribute("attribute-gate");
    let folder = copy.workshop.file("benchmarks");
    let suite = "[[test]]\nname = \"benches\"\ncmd = [\"cargo\", \"bench\", \"--locked\", \"--bench\", \"functions\"]\n";
    fs::write(folder.join("mallow.toml"), suite).unwrap();
    let check = |words: &[&str]| {
        let settings = cargo_command(&copy);
        let mut check = run::mallow();
        settings.get_envs().for_each(|(name, value)| _ = check.env(name, value.unwrap()));
        run::finish(check.arg("check").args(words).current_dir(&folder))
    };
    let _ = check(&["--update"]).well();
    let held = check(&["--json"]).well();
    let allocations = |name: &str| {
        let report = json(&held.stdout);
        let tests = report["tests"].as_array().unwrap();
        let test = tests.iter().find(|test| test["measurement"]["region"] == name).unwrap().clone();
        test["measurement"]["runs"][0]["figures"]["allocations"].as_u64().unwrap()
    };
    let counted = ["three", "vector.grown", "nothing", "leaves"].map(allocations);
    assert_eq!(counted, [3, 4, 0, 1], "{held}");

    let file = folder.join("benches/functions.rs");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("[10, 100, 1000]", "[10, 100, 1000, 1]").replace("; 3]", "; 4]")).unwrap();
    copy.build(&["bench", "--locked", "--bench", "functions", "--no-run"]);
    let broken = check(&[]).ended(Exit::Status(1));
    assert!(broken.stdout.contains("allocations: 4 per run, 1 more than the baseline's 3"), "{broken}");
    assert!(broken.stdout.contains("functions.rs:"), "{broken}");
}

const OF_GOOGLE: &str = r#"#include <benchmark/benchmark.h>
#include "mallow_benchmark.h"

#include <cstdlib>

static void *volatile kept;

static void empty(benchmark::State &state) {
    for (auto _ : state) {}
}
BENCHMARK(empty)->Iterations(1000);

static void three(benchmark::State &state) {
    for (auto _ : state) {
        void *large = std::malloc(1000000);
        benchmark::DoNotOptimize(large);
        for (int size : {10, 100}) {
            void *block = std::malloc(size);
            benchmark::DoNotOptimize(block);
            std::free(block);
        }
        std::free(large);
    }
}
BENCHMARK(three)->Iterations(1000);

static void leaks(benchmark::State &state) {
    for (auto _ : state) kept = std::malloc(40);
}
BENCHMARK(leaks)->Iterations(1000);

int main(int count, char **words) {
    mallow::register_memory_manager();
    benchmark::Initialize(&count, words);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
"#;

/// Returns the benchmark that begins with a name.
fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["benchmarks"].as_array().unwrap();
    all.iter().find(|it| it["name"].as_str().unwrap().starts_with(name)).unwrap()
}

#[test]
fn google_benchmark_reports_what_mallow_counts() {
    let workshop = Workshop::new("google-benchmark");
    fs::write(workshop.file("bench.cpp"), OF_GOOGLE).unwrap();
    let mut build = run::command("g++");
    build.args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "bench.cpp", "-o", "bench", "-I"]);
    build.arg(repository().join("markers/c")).args(["-lbenchmark", "-lpthread"]).current_dir(workshop.path());
    let _ = run::finish(&mut build).well();
    let words = ["record", "--summary-only", "-o", "x.mallow", "--", "./bench", "--benchmark_format=json"];
    let recorded = run::finish(run::mallow().args(words).current_dir(workshop.path())).well();
    let report = json(&recorded.stdout);
    // The library's own allocations are the same for each.
    let more = |name: &str, metric: &str| {
        of(&report, name)[metric].as_f64().unwrap() - of(&report, "empty")[metric].as_f64().unwrap()
    };
    let metrics = ["allocs_per_iter", "total_allocated_bytes", "net_heap_growth"];
    assert_eq!(metrics.map(|metric| more("three", metric)), [3.0, 16.0 * 1_000_110.0, 0.0], "{recorded}");
    assert_eq!(metrics.map(|metric| more("leaks", metric)), [1.0, 16.0 * 40.0, 16.0 * 40.0], "{recorded}");
    let most = of(&report, "three")["max_bytes_used"].as_f64().unwrap();
    assert!((1_000_100.0..1_010_000.0).contains(&most), "{recorded}");
    let alone = run::finish(run::command(workshop.file("bench")).arg("--benchmark_format=json")).well();
    assert!(alone.stderr.contains("does not run under `mallow record`"), "{alone}");
    assert_eq!(of(&json(&alone.stdout), "three")["allocs_per_iter"], Value::Null, "{alone}");
}
