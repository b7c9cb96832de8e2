//! Benchmarks of other libraries with mallow's counts in place of their times: criterion's measurements, and Google Benchmark's memory manager. The figures
//! are exact, and missing where nothing is counted.

use e2e::session::json;
use e2e::{Exit, Finished, Workshop, repository, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The crate and the one that it depends on, copied, because traces are written where the benchmark is.
fn criterion_crate(name: &str) -> Workshop {
    let workshop = Workshop::new(name);
    for (crate_name, files) in [
        ("rust", &["Cargo.toml", "README.md", "src/lib.rs"][..]),
        ("criterion", &["Cargo.toml", "Cargo.lock", "README.md", "src/lib.rs", "benches/counted.rs"]),
    ] {
        for file in files {
            let copy = workshop.file(crate_name).join(file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(repository().join("markers").join(crate_name).join(file), copy).unwrap();
        }
    }
    workshop
}

fn cargo(workshop: &Workshop, words: &[&str]) -> Finished {
    run::finish(&mut cargo_command(workshop, words))
}

fn cargo_command(workshop: &Workshop, words: &[&str]) -> Command {
    let folder = run::mallow_binary().canonicalize().unwrap().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env("PATH", format!("{}:{path}", folder.display()));
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("criterion"));
    cargo.env("CRITERION_HOME", workshop.file("figures")).current_dir(workshop.file("criterion"));
    cargo.args(words);
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
    let workshop = criterion_crate("criterion");
    // Where criterion was never built, that takes longer than any other command may.
    let built = cargo_command(&workshop, &["bench", "--locked", "--bench", "counted", "--no-run"]).status();
    assert!(built.unwrap().success());
    // The second run is compared with the first one.
    for _ in 0..2 {
        let words = ["mallow", "record", "--summary-only", "bench", "--locked", "--bench", "counted"];
        let measured = cargo(&workshop, &words).well();
        assert!(measured.stdout.contains("3 allocations 3 allocations 3 allocations"), "{measured}");
        assert_eq!(estimate(&workshop, "allocations_three"), (3.0, 0.0), "{measured}");
        // One of 1 byte, grown to 2, 4 and 8.
        assert_eq!(estimate(&workshop, "allocations_grown"), (4.0, 0.0), "{measured}");
        assert_eq!(estimate(&workshop, "bytes_three"), (1110.0, 0.0), "{measured}");
    }
    let refused = cargo(&workshop, &["bench", "--locked", "--bench", "counted"]);
    assert_ne!(refused.exit, Exit::Status(0), "{refused}");
    assert!(refused.stderr.contains("Run it with `cargo mallow record --summary-only bench`."), "{refused}");
    let _ = cargo(&workshop, &["test", "--locked", "--benches"]).well();
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
