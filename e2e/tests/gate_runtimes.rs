//! Objects of Python, Ruby and Node: one more per operation and one that is kept are regressions by default, and a
//! test that cannot see them says so.

use e2e::gate::{Suite, sentences};
use serde_json::Value;

/// Returns the minimum of a metric.
fn least(test: &Value, metric: &str) -> Option<u64> {
    let conclusions = test["judgements"].as_array().unwrap();
    let conclusion = conclusions.iter().find(|conclusion| conclusion["metric"] == metric)?;
    conclusion["spread"]["min"].as_u64()
}

/// Returns whether a metric is above what its baseline allows.
fn is_above(test: &Value, metric: &str) -> bool {
    let conclusions = test["judgements"].as_array().unwrap();
    conclusions.iter().any(|conclusion| conclusion["metric"] == metric && conclusion["standing"] == "above")
}

/// Compares a script with its own baseline, and then with a fault: `source` returns the script with additional code in an operation.
fn gated(name: &str, file: &str, source: impl Fn(&str) -> String, faults: &[(&str, &str)]) {
    let suite = Suite::empty(name);
    suite.write(file, &source(""));
    let _ = suite.check(&["--update"]).well();
    for _ in 0..3 {
        let test = suite.only_test(0);
        assert_eq!(test["outcome"], "ok", "{test:#}");
    }
    for (more, metric) in faults {
        suite.write(file, &source(more));
        let test = suite.only_test(1);
        assert_eq!(test["outcome"], "regressed", "{more}: {test:#}");
        assert!(is_above(&test, metric), "{more}: {metric}: {test:#}");
        assert!(sentences(&test).contains(&format!("{metric}: ")), "{test:#}");
    }
}

#[test]
fn an_object_more_in_python_is_seen() {
    let source = |more: &str| {
        format!(
            "import mallow\nKEEP = [None] * 1000\nN = tuple(range(1000))\ndef run():\n    for i in N:\n        \
             word = ('x', i)\n        {more}\nmallow.ops(1000)\nmallow.measure('tok', run)\n"
        )
    };
    let faults = [("other = [i]", "allocations"), ("KEEP[i] = [i] if i % 100 == 0 else None", "remaining")];
    gated("python-objects", "test_tok.py", source, &faults);
}

#[test]
fn an_object_more_in_ruby_is_seen() {
    let source = |more: &str| {
        format!(
            "require 'mallow'\nKEEP = Array.new(20_000)\n$kept = -1\nMallow.ops(1000)\nMallow.measure('work') {{ 1000.times {{ |i| \
             a = [i]; {more} }} }}\n"
        )
    };
    let faults = [
        ("b = [i]", "objects"),
        ("b = \"#{i}\"", "objects"),
        ("(KEEP[$kept += 1] = [i]) if i % 100 == 0", "remaining_objects"),
    ];
    gated("ruby-objects", "test_work.rb", source, &faults);
}

#[test]
fn an_object_more_in_node_is_seen() {
    let source = |more: &str| {
        format!(
            "const mallow = require('mallow');\nconst keep = new Array(20000).fill(null);\nlet kept = 0;\n\
             mallow.ops(1000);\nmallow.measure('work', () => {{ for (let i = 0; i < 1000; i++) {{ const a = {{ i }}; {more} }} }});\n"
        )
    };
    let faults = [
        ("const b = { i };", "object_bytes"),
        ("if (i % 100 === 0) keep[kept++] = { i };", "remaining_object_bytes"),
    ];
    gated("node-objects", "test_work.js", source, &faults);
}

/// Objects that the collector frees during a run still count.
#[test]
fn objects_that_are_collected_in_a_run_count() {
    let suite = Suite::empty("collected");
    suite.write(
        "test_node.js",
        "const mallow = require('mallow');\nmallow.ops(1000);\n\
         mallow.measure('work', () => { for (let i = 0; i < 1000; i++) { new Array(10000).fill(i); } });\n",
    );
    suite.write(
        "test_ruby.rb",
        "require 'mallow'\nMallow.ops(1000)\nMallow.measure('work') { 1000.times { |i| a = [i]; GC.start if i == 500 } }\n",
    );
    let report = suite.report(3);
    let (node, ruby) = (&report["tests"][0], &report["tests"][1]);
    let bytes = least(node, "object_bytes").unwrap();
    // 10,000 elements of 8 bytes, an array around them, and the rest of a page of 256 KiB that holds three of them.
    assert!((80_000_000..88_000_000).contains(&bytes), "{bytes}: {node:#}");
    assert_eq!(least(node, "remaining_object_bytes").unwrap() / 4096, 0, "{node:#}");
    assert_eq!(least(ruby, "objects").unwrap() / 1000, 1, "{ruby:#}");
    assert_eq!(least(ruby, "remaining_objects"), Some(0), "{ruby:#}");
    // What a runtime does not report is not 0.
    assert_eq!((least(node, "objects"), least(ruby, "object_bytes")), (None, None));
}

/// The program keeps its own allocator, and each metric equals that of malloc.
#[test]
fn objects_of_pythons_own_allocator_are_counted_as_those_of_malloc() {
    let suite = Suite::empty("python-objects");
    suite.write("work.py", "import mallow\nmallow.measure('work', lambda: [str(i) for i in range(1000)])\n");
    let manifest = |more: &str| {
        format!(
            "[gate]\nruns = 2\n{more}\n[[test]]\nname = \"work\"\ncmd = [\"/usr/bin/python3\", \"work.py\"]\nlimit.allocations = 10000000\nlimit.remaining = 10000000\n"
        )
    };
    let allocations = |more: &str, words: &[&str]| {
        suite.write("mallow.toml", &manifest(more));
        let finished = suite.check(&[words, &["--json"]].concat()).well();
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        let test = &report["tests"][0];
        assert_eq!(test["outcome"], "ok", "{report:#}");
        least(test, "allocations").unwrap()
    };
    let of_malloc = allocations("", &[]);
    assert_eq!(of_malloc, 2779);
    assert_eq!(allocations("python_objects = true", &[]), of_malloc);
    assert_eq!(allocations("", &["--python-objects"]), of_malloc);
}

/// A process without markers, and an interpreter that was told to keep its own allocator: their objects are not seen.
#[test]
fn objects_that_are_not_seen_make_a_test_blind() {
    let suite = Suite::empty("blind-objects");
    suite.write("work.rb", "100.times { |i| a = [i] }\n");
    suite.write("work.py", "import mallow\nmallow.measure('work', lambda: [str(i) for i in range(1000)])\n");
    suite.write(
        "deaf.py",
        "import os, sys\nif os.environ.pop('PYTHONMALLOC', None):\n    os.execv(sys.executable, [sys.executable, 'deaf.py'])\nimport work\n",
    );
    let manifest = |more: &str| {
        let of = |name: &str, cmd: &str, rest: &str| {
            format!(
                "[[test]]\nname = \"{name}\"\ncmd = {cmd}\nlimit.allocations = 10000000\nlimit.remaining = 10000000\n{rest}\n{more}\n"
            )
        };
        [
            of("ruby", "[\"ruby\", \"work.rb\"]", "mode = \"process\""),
            of("arenas", "[\"python3\", \"work.py\"]", "env = { PYTHONMALLOC = \"pymalloc\" }"),
            of("deaf", "[\"python3\", \"deaf.py\"]", ""),
            of("seen", "[\"python3\", \"work.py\"]", ""),
        ]
        .concat()
    };
    suite.write("mallow.toml", &format!("[gate]\nruns = 2\n{}", manifest("")));
    let report = suite.report(1);
    let outcomes: Vec<(&str, &str)> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| (test["name"].as_str().unwrap(), test["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(
        outcomes,
        [("ruby", "blind"), ("arenas", "blind"), ("deaf", "blind"), ("seen", "ok")],
        "{report:#}"
    );
    assert!(sentences(&report["tests"][0]).contains("Ruby's objects"), "{report:#}");
    assert!(sentences(&report["tests"][1]).contains("PYTHONMALLOC=malloc"), "{report:#}");
    // A test for calls of malloc only says so, and the result repeats it.
    suite.write("mallow.toml", &format!("[gate]\nruns = 2\n{}", manifest("objects = false")));
    let finished = suite.check(&[]).well();
    assert!(finished.stdout.contains("4 OK") && finished.stdout.contains("objects = false"), "{finished}");
}

/// A helper in another language beside the program that marks the region is not measured.
#[test]
fn a_script_beside_a_marked_program_hides_nothing() {
    let suite = Suite::empty("beside");
    suite.write("work.c", &e2e::gate::source(""));
    suite.write(
        "mallow.toml",
        "[gate]\nruns = 2\nbuild = \"cc -O1 -I$MALLOW_INCLUDE -o work work.c\"\n[[test]]\nname = \"beside\"\n\
         cmd = [\"sh\", \"-c\", \"ruby -e 'puts [1]' && ./work\"]\nlimit.allocations = { min = 1000, max = 1000 }\n",
    );
    let finished = suite.check(&[]).well();
    assert!(finished.stdout.contains("1 OK"), "{finished}");
}
