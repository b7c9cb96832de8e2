//! Snapshots of Python programs: compared with pympler and with what the program itself counts, and that the program does not notice.

use crate::heap_capture::{Running, capture, mode, page, program, sums};
use crate::scripts::pythons;
use e2e::session::metric;
use e2e::{Exit, Workshop};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PYTHON: &str = "/usr/bin/python3";

/// A program that keeps a thousand orders in a variable of a call, an object whose methods all end the program, and what pympler measures.
fn is_written_while_the_program_goes_on(python: &str) {
    let workshop = Workshop::new("capture-python");
    let keep = program("keep.py");
    let mut running = Running::start(&workshop, &["-o", "snapshots"], &[python, &keep]);
    let told = running.capture(&["-o", "before.json"]).well();
    let bytes = fs::metadata(workshop.file("before.json")).unwrap().len();
    assert_eq!(told.stderr, format!("wrote before.json, {bytes} bytes\nnext: mallow heap before.json\n"));
    for number in 0..7 {
        writeln!(running.input, "{number}").unwrap();
    }
    sleep(Duration::from_millis(300));
    let _ = running.capture(&["-o", "after.json"]).well();
    assert_eq!(mode(&workshop.file("after.json")), 0o600);

    let report = page(&workshop, &["after.json"]);
    let classes = sums(&report["classes"], "__main__.");
    assert_eq!((classes["__main__.Order"].0, classes["__main__.Point"].0), (1007, 2000), "{classes:?}");
    // The collector has run, so every object is held: the other assertions rely on this.
    assert_eq!(metric(&report, "unreachable_objects"), 0, "{python}");
    let diff = page(&workshop, &["diff", "before.json", "after.json", "--holders"]);
    let orders = &diff["held"][0];
    assert_eq!((&orders["class"], &orders["holder"]), (&"__main__.Order".into(), &"list".into()), "{diff:#}");
    assert!(orders["site"].as_str().unwrap().ends_with("keep.py:59"), "{orders:#}");
    let root = orders["example"]["path_root"].as_str().unwrap();
    assert!(root.starts_with("keep (") && root.contains("keep.py:"), "{root}");
    let generator = page(&workshop, &["after.json", "--class", "generator"]);
    let held = |page: &Value| {
        let rows = page["example"]["references"].as_array().unwrap().clone();
        rows.into_iter().any(|row| row["field"] == ".held" && row["label"] == "list")
    };
    // Up to 3.10 a generator has its variables in a frame that is an object of its own.
    let has_frame = || held(&page(&workshop, &["after.json", "--class", "frame"]));
    assert!(held(&generator) || has_frame(), "{python}: {generator:#}");

    let pid = running.pid.clone();
    assert_eq!(running.ends(), Exit::Status(0));
    let text = |name: &str| fs::read_to_string(workshop.file(name)).unwrap();
    let said = "1007 orders, 1000 secrets, threads ['MainThread']\natexit\n";
    assert_eq!(text("stdout"), format!("ready {pid} alone\n{said}"));
    let note = format!("mallow: note: for a snapshot of its heap: mallow heap capture {pid} -o snapshots\n");
    assert_eq!(text("stderr"), note);
}

#[test]
fn a_python_program_goes_on_while_its_heap_is_written() {
    for python in pythons() {
        println!("{python}");
        is_written_while_the_program_goes_on(&python);
    }
}

#[test]
fn what_a_graph_retains_is_what_pympler_measures() {
    let workshop = Workshop::new("python-pympler");
    let pympler = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join("pympler-1.1");
    assert!(pympler.is_dir(), "{} is not there; `cargo xtask packages` fetches it", pympler.display());
    let keep = program("keep.py");
    let set = [("PYTHONPATH", &*pympler)];
    let mut running = Running::start_with(&workshop, &["--no-trace"], &[PYTHON, &keep], &set);
    let _ = running.capture(&["-o", "heap.json"]).well();
    writeln!(running.input, "measure").unwrap();
    assert_eq!(running.ends(), Exit::Status(0));
    let text = fs::read_to_string(workshop.file("stdout")).unwrap();
    let measured: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    let at = format!("{:#x}", measured["at"].as_u64().unwrap());
    let object = page(&workshop, &["heap.json", "--object", &at]);
    assert_eq!(object["object"]["retained_bytes"], measured["bytes"], "{object:#}");
}

#[test]
fn a_redacted_python_snapshot_has_no_contents() {
    let workshop = Workshop::new("python-redact");
    let running = Running::start(&workshop, &["--no-trace"], &[PYTHON, &program("keep.py")]);
    let _ = running.capture(&["-o", "open.json"]).well();
    let _ = running.capture(&["-o", "closed.json", "--redact"]).well();
    let has = |name: &str| fs::read_to_string(workshop.file(name)).unwrap().contains("the-secret-list");
    assert!(has("open.json") && !has("closed.json"), "neither as a value nor as a key");
    let (open, closed) = (page(&workshop, &["open.json"]), page(&workshop, &["closed.json"]));
    assert_eq!(sums(&closed["classes"], "__main__."), sums(&open["classes"], "__main__."));
    let order = page(&workshop, &["closed.json", "--class", "__main__.Order"]);
    let fields: Vec<_> = order["example"]["references"].as_array().unwrap().iter().collect();
    let named = fields.iter().any(|row| [".customer", ".__dict__"].contains(&row["field"].as_str().unwrap()));
    assert!(named, "names of attributes are no contents: {fields:#?}");
    assert_eq!(closed["sites"].as_array().unwrap().len(), 0, "nothing was traced");
    assert_eq!(running.ends(), Exit::Status(0));
}

#[test]
fn a_python_that_ignores_its_environment_cannot_be_asked() {
    let workshop = Workshop::new("python-isolated");
    let running = Running::start(&workshop, &["--no-trace"], &[PYTHON, "-I", &program("keep.py")]);
    let refused = running.capture(&[]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("(without -E, -I or -S)"), "{refused}");
    assert_eq!(running.ends(), Exit::Status(0));
}

#[test]
fn forked_workers_are_asked_by_themselves_and_the_programs_own_hook_runs() {
    let workshop = Workshop::new("python-fork");
    fs::write(workshop.file("sitecustomize.py"), "import builtins\nbuiltins.own_hook = True\n").unwrap();
    let text = "import os, sys\nassert own_hook\nclass Job: pass\njobs = [Job() for _ in range(10)]\n\
                reader, writer = os.pipe()\nif os.fork() == 0:\n    os.close(writer)\n    jobs += [Job() for _ in range(5)]\n    \
                print('worker', os.getpid(), '', flush=True)\n    os.read(reader, 1)\n    os._exit(0)\n\
                os.close(reader)\nprint('ready', os.getpid(), '', flush=True)\nsys.stdin.read()\n";
    fs::write(workshop.file("fork.py"), text).unwrap();
    let own = workshop.path().to_owned();
    let running =
        Running::start_with(&workshop, &["--no-trace"], &[PYTHON, "fork.py"], &[("PYTHONPATH", &own)]);
    let started = Instant::now();
    let worker = loop {
        let text = fs::read_to_string(workshop.file("stdout")).unwrap();
        if let Some(rest) = text.lines().find_map(|line| line.strip_prefix("worker ")) {
            break rest.trim().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{text}");
        sleep(Duration::from_millis(10));
    };
    let _ = capture(&workshop, &worker, &["-o", "worker.json"]).well();
    let _ = running.capture(&["-o", "parent.json"]).well();
    for (file, jobs) in [("worker.json", 15), ("parent.json", 10)] {
        let classes = sums(&page(&workshop, &[file])["classes"], "__main__.Job");
        assert_eq!(classes["__main__.Job"].0, jobs, "{file}");
    }
    assert_eq!(running.ends(), Exit::Status(0));
}
