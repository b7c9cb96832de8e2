//! `mallow soak` of servers with known results. All of them are in `cargo xtask soak-record`, which the long suite
//! runs; here are those that represent a kind of verdict or of server. The slow ones of these run only in the long
//! suite.

use e2e::run::{self, Exit, Finished};
use e2e::soak::Mode;
use std::fs;
use std::path::Path;

fn mode(server: &str, name: &str) -> &'static Mode {
    e2e::soak::mode(Path::new(env!("CARGO_TARGET_TMPDIR")), server, name)
}

/// Asserts that the verdict is right, and so are its metrics, its line and its exit code.
#[track_caller]
fn is_told(server: &str, name: &str) -> Finished {
    let mode = mode(server, name);
    let finished = mode.soak_short();
    let said = mode.judge(&finished);
    assert!(said.faults.is_empty() && said.verdict != "INCONCLUSIVE", "{said:#?}\n{finished}");
    finished
}

/// Asserts that the class that grows on the managed heap is named first, with its holder, the line that allocated it
/// if that is known, and something on the path from a root to one of its objects.
#[track_caller]
fn names_the_class(
    finished: &Finished,
    [class, holder]: [&str; 2],
    site: Option<&str>,
    on_the_way: &str,
    missing_max: u64,
) {
    let managed = &e2e::session::json(&finished.stdout)["managed"];
    let first = &managed["held"][0];
    assert_eq!((&first["class"], &first["holder"]), (&class.into(), &holder.into()), "{finished}");
    let requests = managed["requests"].as_u64().unwrap();
    let more = first["objects"][1].as_u64().unwrap() - first["objects"][0].as_u64().unwrap();
    assert!(
        more + missing_max >= requests && more < requests + requests / 10,
        "{more} objects of {requests} requests"
    );
    let named = first["site"].as_str();
    assert!(site.map_or(named.is_none(), |site| named.unwrap_or_default().ends_with(site)), "{first}");
    let path = first["path"].as_array().unwrap();
    let is_there =
        |row: &serde_json::Value| format!("{} {}", row["field"], row["label"]).contains(on_the_way);
    assert!(path.iter().any(is_there), "{first}");
    assert_eq!(managed["files"], serde_json::Value::Null, "{managed}");
}

#[test]
fn sixteen_bytes_a_request_are_a_leak_with_their_line() {
    let _ = is_told("rust", "leak16");
}

#[test]
fn a_container_that_doubles_is_a_leak_and_a_cache_is_none() {
    let _ = is_told("rust", "leak_vec");
    let _ = is_told("rust", "cache_small");
}

#[test]
#[ignore = "in `cargo xtask long`, as each of its soaks"]
fn memory_that_an_allocator_keeps_is_no_leak() {
    let _ = is_told("rust", "arena_retain");
}

#[test]
fn holes_are_no_leak() {
    let _ = is_told("rust", "frag");
}

#[test]
fn what_is_not_on_the_heap_is_told_apart() {
    let _ = is_told("rust", "leak_mmap");
}

#[test]
#[ignore = "in `cargo xtask long`, as each of its soaks"]
fn threads_that_are_not_joined_are_told_apart() {
    let _ = is_told("rust", "leak_threads");
}

#[test]
fn a_server_that_leaks_nothing_is_clean() {
    let _ = is_told("rust", "clean");
}

#[test]
fn the_experiment_of_the_report_is_no_leak_and_one_line_makes_it_one() {
    let _ = is_told("hello", "hello");
    let _ = is_told("hello", "hello-leaking");
    let read = |name: &str| fs::read_to_string(e2e::soak::sources().join("hello").join(name)).unwrap();
    let (plain, leaking) = (read("hello.rs"), read("hello_leaking.rs"));
    let without: String =
        leaking.lines().filter(|line| !line.contains("// LEAK")).map(|line| format!("{line}\n")).collect();
    assert_eq!(without, plain, "the two differ by one line");
}

/// The server of the report has no page at `/`, and its script requests that.
#[test]
fn the_workflow_of_the_report_is_one_command() {
    let mode = mode("hello", "hello");
    let port = e2e::soak::free_port().to_string();
    let mut mallow = run::mallow();
    mallow.args(["soak", "--compat", "warp", "--format", "warp", "--no-extend", "--idle", "0s", "--"]);
    mallow.args(&mode.command);
    mallow.env("PORT", &port).env("TRIES", "2").env("DURATION", "200ms").env("WORKERS", "4");
    let finished = run::finish(&mut mallow).ended(Exit::Status(3));
    let begin = |line: &str| finished.stdout.lines().filter(|found| found.starts_with(line)).count();
    let lines =
        ["Server running on PID: ", "Iteration: 1 of 2", "Requests/sec: ", "Memory leaked: ", "INCONCLUSIVE"];
    assert_eq!(lines.map(begin), [1, 1, 2, 2, 1], "{finished}");
    assert!(finished.stdout.contains(&format!("Loading 127.0.0.1:{port}")), "{finished}");
    let words: Vec<&str> = finished.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("what was tested is how the server refuses"), "{finished}");
}

#[test]
fn a_leak_in_c_is_found() {
    let _ = is_told("c", "leak");
}

#[test]
fn a_leak_in_python_is_found_in_its_own_heap() {
    let finished = is_told("python", "leak");
    names_the_class(&finished, ["str", "list"], Some("python/server.py:25"), ".HISTORY", 0);
}

/// What a script takes from malloc has the script's own line.
#[test]
fn buffers_that_a_python_script_keeps_are_named_with_their_line() {
    let finished = is_told("python", "buffers");
    let first = &e2e::session::json(&finished.stdout)["stacks"][0];
    let of_script = first["frames"].as_array().unwrap().iter().find(|frame| frame["language"] == "python");
    assert_eq!(of_script.unwrap()["function"], "buffers", "{finished}");
}

#[test]
fn buffers_that_a_node_script_keeps_are_named_with_their_function() {
    let finished = is_told("node", "buffers");
    let first = &e2e::session::json(&finished.stdout)["stacks"][0];
    let frames = first["frames"].as_array().unwrap();
    let of_app =
        frames.iter().find(|frame| frame["file"].as_str().unwrap_or_default().ends_with("server.js"));
    let of_app = of_app.unwrap();
    assert_eq!(
        (&of_app["language"], &of_app["function"]),
        (&"javascript".into(), &"buffers".into()),
        "{finished}"
    );
}

#[test]
fn a_leak_in_ruby_is_found() {
    let finished = is_told("ruby", "leak");
    // Once 4,999 of 5,000 were counted. It was not found out why: Ruby's collector takes any word on a stack for a reference, so a dead
    // object may have been counted before.
    names_the_class(&finished, ["String", "Array"], Some("ruby/server.rb:16"), "Class Object", 5);
    // Its text is longer than what fits into the object itself, so it comes from malloc.
    let first = &e2e::session::json(&finished.stdout)["stacks"][0];
    let of_script = first["frames"].as_array().unwrap().iter().find(|frame| frame["language"] == "ruby");
    let line = of_script.map(|frame| (&frame["function"], &frame["line"]));
    assert_eq!(line, Some((&"leak".into(), &16.into())), "{finished}");
}

#[test]
#[ignore = "a minute: in `cargo xtask long`, as each of its soaks"]
fn a_leak_in_node_is_found_in_its_own_heap() {
    let finished = is_told("node", "leak");
    names_the_class(&finished, ["{name, answer}", "Array"], None, ".history", 0);
}

#[test]
fn a_leak_in_java_is_found_in_its_own_heap() {
    let finished = is_told("java", "leak");
    names_the_class(&finished, ["java.lang.String", "java.lang.Object[]"], None, ".HISTORY", 0);
}

/// Asserts that the report names the series that was judged, the detection limit, and where to look; 4 bytes would be
/// the limit of a heap that the server does not use.
#[track_caller]
fn is_judged_by_resident_memory(server: &str, name: &str, who: (&str, &str, &str)) {
    let (holder, recognised, tool) = who;
    let mode = mode(server, name);
    let finished = mode.soak_short();
    let said = mode.judge(&finished);
    assert!(said.faults.is_empty() && said.verdict != "INCONCLUSIVE", "{said:#?}\n{finished}");
    let report = e2e::session::json(&finished.stdout);
    assert_eq!(report["growth"]["plane"], "resident", "{finished}");
    assert!(report["detectable_per_request"].as_f64().unwrap() >= 64.0, "{finished}");
    assert_eq!((&report["complete"], &report["holder"]), (&false.into(), &holder.into()), "{finished}");
    let advice = report["advice"][0].as_str().unwrap();
    assert!(advice.starts_with(recognised), "{advice}");
    assert_eq!(advice.contains(tool), said.verdict == "MAPPINGS", "{advice}");
    let headline = report["sentence"].as_str().unwrap();
    assert!(headline.starts_with(&format!("{}: the memory is ", said.verdict)), "{headline}");
}

const GO: (&str, &str, &str) = ("go", "This is a Go program, whose heap is not malloc's", "go tool pprof");

#[test]
fn a_go_program_is_judged_by_resident_memory() {
    is_judged_by_resident_memory("go", "clean", GO);
    is_judged_by_resident_memory("go", "slice", GO);
}

#[test]
fn a_pool_of_the_programs_own_is_judged_by_resident_memory() {
    let who = ("unknown", "The program's memory is not malloc's", "a build that allocates by malloc");
    is_judged_by_resident_memory("c-pool", "clean", who);
    is_judged_by_resident_memory("c-pool", "leak256", who);
}

#[test]
fn a_malloc_of_the_programs_own_is_judged_by_resident_memory_however_small_it_is() {
    let who = ("malloc", "The program brings a malloc of its own", "A build without it");
    is_judged_by_resident_memory("c-malloc", "clean", who);
    is_judged_by_resident_memory("c-malloc", "leak256", who);
}

#[test]
fn a_static_go_program_is_too() {
    is_judged_by_resident_memory("go-static", "slice", GO);
}

#[test]
#[ignore = "in `cargo xtask long`, as each of its soaks"]
fn goroutines_that_never_end_are_found() {
    is_judged_by_resident_memory("go", "goroutines", GO);
}

#[test]
fn a_native_leak_of_a_jvm_is_found_beside_its_restless_compiler() {
    let finished = is_told("java", "native");
    let first = &e2e::session::json(&finished.stdout)["stacks"][0];
    let is_of_server = |frame: &&serde_json::Value| frame["file"] == "Server.java";
    let of_script = first["frames"].as_array().unwrap().iter().find(is_of_server);
    let source = include_str!("../../programs/soak/java/Server.java");
    let line = source.lines().position(|line| line.ends_with("// LEAK java-native")).unwrap() + 1;
    let named = of_script.map(|frame| (&frame["language"], &frame["function"], &frame["line"]));
    assert_eq!(named, Some((&"java".into(), &"Server.work".into(), &line.into())), "{first}");
}
