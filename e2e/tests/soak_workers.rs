//! `mallow soak` of a server whose workers are replaced after 400 requests, so that what they leak goes with them.

use e2e::soak::{free_port, line_of, sources};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;

/// Soaks `workers.py` in a mode, with so many requests an iteration.
fn soak(workshop: &Workshop, mode: &str, requests: &str) -> (Finished, Value) {
    let script = sources().join("python/workers.py").display().to_string();
    let port = free_port().to_string();
    let url = format!("http://127.0.0.1:{port}/");
    let mut mallow = run::mallow();
    mallow.current_dir(workshop.path()).args(["soak", "-c", "2", "--idle", "0s", "--requests", requests]);
    mallow.args(["--json", "--url", &url, "--", "python3", &script, "--mode", mode, "--port", &port]);
    let finished = run::finish(&mut mallow);
    let report = e2e::session::json(&finished.stdout);
    (finished, report)
}

#[test]
fn a_leak_of_workers_that_are_replaced_is_found_with_its_line() {
    let workshop = Workshop::new("soak-workers-leak");
    let (finished, report) = soak(&workshop, "leak", "300");
    let finished = finished.ended(Exit::Status(1));
    assert_eq!(report["verdict"], "leaking", "{finished}");
    assert!(finished.stdout.contains("in each worker, until it is replaced"), "{finished}");
    assert!(
        finished.stdout.contains("processes of the server ended during the load and others began"),
        "{finished}"
    );
    let growth = &report["growth"];
    assert_eq!((&growth["by_age"], &growth["bytes_per_day"]), (&true.into(), &Value::Null), "{growth}");
    // 600 bytes of each, and an object of 57 where the interpreter keeps it; the age is known to a tenth.
    let [low, high] = ["low", "high"].map(|end| growth["bytes_per_request"][end].as_f64().unwrap());
    assert!(low < 657.0 && high > 540.0, "{growth}");
    let line = line_of("python/workers.py", "LEAK workers");
    let frame = &report["stacks"][0]["frames"];
    let is_line =
        |frame: &Value| frame["line"] == line && frame["file"].as_str().unwrap().ends_with("workers.py");
    assert!(frame.as_array().unwrap().iter().any(is_line), "{frame}");
}

#[test]
fn workers_that_fill_their_caches_before_they_are_replaced_leak_nothing() {
    let workshop = Workshop::new("soak-workers-clean");
    let (finished, report) = soak(&workshop, "clean", "300");
    let finished = finished.ended(Exit::Status(0));
    assert!(["clean", "plateau"].iter().any(|word| report["verdict"] == *word), "{finished}");
    assert_eq!(report["growth"]["by_age"], true, "{finished}");
}
