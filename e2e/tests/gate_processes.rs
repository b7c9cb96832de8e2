//! Limits on what whole processes take: time and resident memory, measured without the recorder.

use e2e::Exit;
use e2e::gate::{Suite, sentences};
use serde_json::Value;

/// Returns a region that allocates a thousand times, in a process that sleeps and fills memory before it.
fn source(sleep_ms: u32, held_mib: u32) -> String {
    format!(
        "#include \"mallow.h\"\n#include <string.h>\n#include <time.h>\n\
         static void run(void *context) {{\n    int i;\n    (void)context;\n\
         \x20   for (i = 0; i < 1000; i++) {{ void *block = malloc(16); mallow_keep(block); free(block); }}\n}}\n\
         int main(void) {{\n    struct timespec time = {{ 0, {sleep_ms} * 1000000L }};\n    size_t bytes = {held_mib}ul << 20;\n\
         \x20   void *own = malloc(bytes + 4096);\n\
         \x20   memset(own, 1, bytes + 4096); mallow_keep(own);\n    nanosleep(&time, NULL);\n\
         \x20   mallow_ops(1000); mallow_measure(\"work\", run, NULL); return 0;\n}}\n"
    )
}

fn manifest(limits: &str) -> String {
    format!("[gate]\nsuites = [\".\"]\nlimit.allocations = 1000\n{limits}")
}

fn judged<'a>(test: &'a Value, metric: &str) -> &'a Value {
    let conclusions = test["judgements"].as_array().unwrap();
    conclusions.iter().find(|conclusion| conclusion["metric"] == metric).unwrap_or(&Value::Null)
}

#[test]
fn a_time_is_within_above_or_unclear() {
    let suite = Suite::new("wall", &source(100, 0));
    suite.write("mallow.toml", &manifest("limit.wall = \"20s\"\n"));
    let test = suite.only_test(0);
    let wall = judged(&test, "wall");
    assert_eq!((&wall["standing"], &wall["spread"]["runs"]), (&"within".into(), &10.into()), "{test:#}");
    let (least, most) = (wall["spread"]["min"].as_u64().unwrap(), wall["spread"]["max"].as_u64().unwrap());
    // One sleep of 100 ms in each process: the markers repeat nothing there.
    assert!(least >= 100_000_000, "{test:#}");
    assert_eq!(
        test["measurement"]["runs"][0]["process"]["peak_rss_bytes"].as_u64().map(|bytes| bytes > 0),
        Some(true),
        "{test:#}"
    );
    suite.write("mallow.toml", &manifest("limit.wall = \"90ms\"\n"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "regressed", "{test:#}");
    assert!(sentences(&test).contains("its limit allows 90.0 ms"), "{test:#}");
    // In the middle of its interval: neither kept nor exceeded.
    let between = u64::midpoint(least, most).max(least + 1) / 1000;
    suite.write("mallow.toml", &manifest(&format!("limit.wall = \"{between}us\"\n")));
    let few = suite.check(&["--runs", "3", "--json"]).ended(Exit::Status(3));
    assert!(few.stdout.contains("\"flaky\"") && few.stdout.contains("wall"), "{few}");
    suite.write("mallow.toml", &manifest("limit.wall = \"20s\"\n"));
    let few = suite.check(&["--runs", "3"]).ended(Exit::Status(3));
    let words = few.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("are too few for a limit of 20.0 s: it takes 8."), "{few}");
    // A baseline has no times.
    let _ = suite.check(&["--update"]).well();
    suite.write("mallow.toml", &manifest("limit.wall = { rel = \"10%\" }\n"));
    let refused = suite.check(&[]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("times have no baseline"), "{refused}");
}

#[test]
fn a_process_that_fails_or_takes_too_long_without_mallow_is_an_error() {
    let fails = source(0, 0)
        .replace("int main(void) {", "int main(void) {\n    if (!mallow_is_watching()) return 7;");
    let suite = Suite::new("alone", &fails);
    suite.write("mallow.toml", &manifest("limit.wall = \"20s\"\n"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "error", "{test:#}");
    let expected = "Without mallow, where its time and memory are measured, the program ended with status 7";
    assert!(sentences(&test).contains(expected), "{test:#}");
    let slow = source(0, 0)
        .replace("int main(void) {", "int main(void) {\n    if (!mallow_is_watching()) for (;;) {}");
    suite.write("test_work.c", &slow);
    suite.write("mallow.toml", &manifest("timeout = \"5s\"\nlimit.wall = \"20s\"\n"));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "error", "{test:#}");
    assert!(sentences(&test).contains("was killed after 5 seconds"), "{test:#}");
}

#[test]
fn resident_memory_has_a_limit_and_a_baseline() {
    let suite = Suite::new("resident", &source(0, 16));
    suite.write("mallow.toml", &manifest("limit.peak_rss = { rel = \"20%\" }\n"));
    let test = suite.only_test(3);
    assert_eq!(test["outcome"], "missing", "{test:#}");
    assert!(sentences(&test).contains("No baseline tells its peak_rss"), "{test:#}");
    let _ = suite.check(&["--update"]).well();
    let test = suite.only_test(0);
    let least = judged(&test, "peak_rss")["spread"]["min"].as_u64().unwrap();
    // 16 MiB, and libc; nothing of mallow's.
    assert!((16 << 20..22 << 20).contains(&least), "{test:#}");
    // As many allocations in the region, and 16 MiB more outside of it.
    suite.write("test_work.c", &source(0, 32));
    let test = suite.only_test(1);
    assert_eq!(test["outcome"], "regressed", "{test:#}");
    assert!(sentences(&test).starts_with("peak_rss: "), "{test:#}");
    suite.write("mallow.toml", &manifest("limit.peak_rss = 20000000\n"));
    assert_eq!(suite.only_test(1)["outcome"], "regressed");
    suite.write("test_work.c", &source(0, 8));
    assert_eq!(suite.only_test(0)["outcome"], "ok");
}
