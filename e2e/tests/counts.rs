//! A program counts what a function of its own allocates, in each language of the markers: the figures are exact, and where nothing is counted
//! it is told so.

use e2e::gate::Suite;
use e2e::run::{self, Finished};
use e2e::{Exit, Workshop, repository};
use std::fs;
use std::process::Command;

/// Another thread allocates all the time, and a block of the count is freed by it; what it does is not counted.
const IN_C: &str = r#"#include "mallow.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static void *volatile kept[3];
static void *_Atomic handed;
static atomic_int is_over;

static void *other(void *nothing) {
    while (!is_over) {
        free(malloc(7));
        void *given = atomic_load(&handed);
        free(given);
        // Only now may the count end, as it waits for this.
        if (given) atomic_store(&handed, NULL);
    }
    return nothing;
}

static void inner(void *nothing) {
    (void)nothing;
    kept[1] = malloc(1000);
}

static void work(void *before) {
    struct mallow_counts counts = { 0 };
    void *block = malloc(100);
    mallow_keep(block);
    free(block);
    free(before);
    kept[0] = realloc(malloc(10), 3000);
    if (mallow_count(inner, NULL, &counts) == 0) printf("inner %lu %lu\n", (unsigned long)counts.allocations, (unsigned long)counts.bytes);
    free(kept[1]);
    atomic_store(&handed, malloc(50));
    while (atomic_load(&handed)) {}
}

int main(void) {
    static char buffer[4096];
    struct mallow_counts c = { 9, 9, 9, 9, 9, 9, 9 };
    pthread_t thread;
    void *before = malloc(500);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    pthread_create(&thread, NULL, other, NULL);
    if (mallow_count(work, before, &c) == 0)
        printf("%lu %lu %lu %lu %lu %lu %lu\n", (unsigned long)c.allocations, (unsigned long)c.bytes, (unsigned long)c.reallocations,
               (unsigned long)c.temporary, (unsigned long)c.peak_bytes, (unsigned long)c.remaining_blocks, (unsigned long)c.remaining_bytes);
    else
        printf("not counted, %lu\n", (unsigned long)c.allocations);
    is_over = 1;
    pthread_join(thread, NULL);
    return 0;
}
"#;

/// 100, 10, 3000, 1000 and 50 bytes. The block of 100 is freed at once, and so are the one of 10, by `realloc`, and the one of 1000. The most is
/// 3000 and 1000. What remains is the block of 3000, if the other thread has freed the one of 50, which the program waits for.
const COUNTED_IN_C: &str = "inner 1 1000\n5 4160 1 3 4000 1 3000\n";

const IN_RUST: &str = r#"
fn main() {
    let (vector, counts) = mallow_markers::count(|| {
        let mut vector = Vec::with_capacity(4);
        vector.extend([1u64, 2, 3, 4]);
        vector.push(5);
        drop(mallow_markers::keep(Box::new([0u8; 48])));
        vector
    });
    match counts {
        Ok(c) => println!(
            "{} {} {} {} {} {} {}",
            c.allocations, c.bytes, c.reallocations, c.temporary, c.peak_bytes, c.remaining_blocks, c.remaining_bytes
        ),
        Err(why) => println!("{why}"),
    }
    assert_eq!(vector.len(), 5);
}
"#;

/// 4 numbers, 8 numbers, and a box that is made and dropped.
const COUNTED_IN_RUST: &str = "3 144 1 2 112 1 64\n";

const IN_PYTHON: &str = r#"
import mallow

def work():
    return bytes(100_000), bytearray(50_000)

work()
result, counts = mallow.count(work)
print(counts if counts is None else (counts.allocations, counts.bytes, counts.remaining_blocks, counts.remaining_bytes), len(result))
result, counts = mallow.count(lambda: None)
print(counts if counts is None else (counts.allocations, counts.remaining_blocks))
"#;

const IN_RUBY: &str = r#"
require "mallow"

def work = ["a" * 100_000, "b" * 50_000]

Mallow.count { work }
result, counts = Mallow.count { work }
p counts && [counts.allocations, counts.bytes, counts.remaining_blocks, counts.remaining_bytes]
p result.size
_, counts = Mallow.count { nil }
p counts && [counts.allocations, counts.remaining_blocks]
"#;

const IN_NODE: &str = r#"
const mallow = require('mallow');
const work = () => [Buffer.allocUnsafeSlow(100000), Buffer.allocUnsafeSlow(50000)];
const none = () => undefined;
// What has not run before is compiled, which allocates.
for (let warm = 0; warm < 3; warm++) [work, none].forEach((body) => mallow.count(body));
const { result, counts } = mallow.count(work);
console.log(counts && [counts.allocations, counts.bytes, counts.remainingBlocks, counts.remainingBytes], result.length);
const nothing = mallow.count(none).counts;
console.log(nothing && [nothing.allocations, nothing.remainingBlocks]);
"#;

/// `mallow VERB -- COMMAND`, which writes what it has to into the workshop.
fn under(workshop: &Workshop, verb: &[&str], command: &Command) -> Finished {
    let mut mallow = run::mallow();
    mallow.args(verb).arg("--").arg(command.get_program()).args(command.get_args());
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    mallow.envs(variables).env("XDG_CACHE_HOME", workshop.file("cache")).current_dir(workshop.path());
    run::finish(&mut mallow)
}

/// Returns what a program prints under `mallow record`, under `mallow stat`, which counts no stretches, and alone.
fn printed(workshop: &Workshop, command: &mut Command) -> [String; 3] {
    let recorded = under(workshop, &["record", "-o", "x.mallow", "--force"], command).well();
    let summed = under(workshop, &["stat", "-o", "stat.txt", "--force"], command).well();
    [recorded.stdout, summed.stdout, run::finish(command).well().stdout]
}

#[test]
fn a_function_in_c_is_counted_whatever_other_threads_do() {
    let workshop = Workshop::new("counts-c");
    fs::write(workshop.file("app.c"), IN_C).unwrap();
    for (compiler, standard) in [("gcc", "-std=gnu11"), ("gcc", "-std=gnu2x")] {
        let mut build = run::command(compiler);
        build.args([standard, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "app.c", "-o", "app", "-I"]);
        let _ = run::finish(build.arg(repository().join("markers/c")).current_dir(workshop.path())).well();
        let [recorded, summed, alone] = printed(&workshop, &mut run::command(workshop.file("app")));
        assert_eq!(recorded, COUNTED_IN_C);
        assert_eq!((summed.as_str(), alone.as_str()), ("not counted, 9\n", "not counted, 9\n"));
    }
}

#[test]
fn a_closure_in_rust_is_counted() {
    let workshop = Workshop::new("counts-rust");
    fs::write(workshop.file("app.rs"), IN_RUST).unwrap();
    let rustc = |words: &[&str], source: &std::path::Path| {
        let mut rustc = run::command(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
        rustc.args(["--edition", "2021", "-O"]).args(words).arg(source).current_dir(workshop.path());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let homes = ["HOME", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"];
        rustc.env("PATH", path).envs(homes.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        let _ = run::finish(&mut rustc).well();
    };
    rustc(
        &["--crate-type", "lib", "--crate-name", "mallow_markers"],
        &repository().join("markers/rust/src/lib.rs"),
    );
    rustc(&["--extern", "mallow_markers=libmallow_markers.rlib"], &workshop.file("app.rs"));
    let [recorded, summed, alone] = printed(&workshop, &mut run::command(workshop.file("app")));
    assert_eq!(recorded, COUNTED_IN_RUST);
    assert!(summed.contains("`mallow stat` counts whole programs only"), "{summed}");
    assert!(alone.contains("does not run under mallow. Run it with `mallow record -- PROGRAM`"), "{alone}");
}

#[test]
fn a_function_in_python_is_counted() {
    let workshop = Workshop::new("counts-python");
    fs::write(workshop.file("app.py"), IN_PYTHON).unwrap();
    let mut python = run::command("/usr/bin/python3");
    python.arg(workshop.file("app.py")).env("PYTHONPATH", repository().join("markers/python"));
    let _ = python.env("PYTHONDONTWRITEBYTECODE", "1");
    let [recorded, summed, alone] = printed(&workshop, &mut python);
    // The bytes with their head of 33, and the storage of the array with a zero behind it.
    assert_eq!(recorded, "(2, 150034, 2, 150034) 2\n(0, 0)\n");
    assert_eq!((summed.as_str(), alone.as_str()), ("None 2\nNone\n", "None 2\nNone\n"));
}

#[test]
fn a_block_in_ruby_is_counted() {
    let workshop = Workshop::new("counts-ruby");
    fs::write(workshop.file("app.rb"), IN_RUBY).unwrap();
    let mut ruby = run::command("/usr/bin/ruby");
    ruby.arg("-I").arg(repository().join("markers/ruby")).arg(workshop.file("app.rb"));
    let [recorded, summed, alone] = printed(&workshop, &mut ruby);
    // Both with a zero behind them.
    assert_eq!(recorded, "[2, 150002, 2, 150002]\n2\n[0, 0]\n");
    assert_eq!((summed.as_str(), alone.as_str()), ("nil\n2\nnil\n", "nil\n2\nnil\n"));
}

#[test]
fn a_function_in_node_is_counted() {
    let workshop = Workshop::new("counts-node");
    fs::write(workshop.file("app.js"), IN_NODE).unwrap();
    let mut node = run::command("/usr/bin/node");
    // Compilers that begin when a function has run often allocate at a moment of their own.
    node.args(["--no-opt", "--no-sparkplug"]);
    node.arg(workshop.file("app.js")).env("NODE_PATH", repository().join("markers/node"));
    let [recorded, summed, alone] = printed(&workshop, &mut node);
    // Each buffer is 4 blocks: its bytes, what owns them, a pointer to that, and what the collector knows of it.
    assert!(recorded.starts_with("[ 8, 15") && recorded.ends_with(" ] 2\n[ 0, 0 ]\n"), "{recorded}");
    assert_eq!((summed.as_str(), alone.as_str()), ("null 2\nnull\n", "null 2\nnull\n"));
}

/// A region of the gate that counts within itself is measured as ever.
#[test]
fn a_test_of_the_gate_counts_too() {
    let source = r#"#include "mallow.h"
static void *volatile kept;
static void one(void *nothing) { (void)nothing; free(kept); kept = malloc(64); }
static void run(void *nothing) {
    struct mallow_counts counts;
    if (mallow_count(one, nothing, &counts) != 0 || counts.allocations != 1 || counts.bytes != 64) exit(3);
    free(kept);
    kept = NULL;
}
int main(void) { mallow_measure("work", run, NULL); return 0; }
"#;
    let suite = Suite::new("counts", source);
    suite.write(
        "mallow.toml",
        "[[test]]\nname = \"test_work\"\nsource = \"test_work.c\"\nlimit.allocations = 1\n",
    );
    let _ = suite.check(&["--json"]).ended(Exit::Status(0));
}
