//! A metric that a file does not have is never 0: in `report`, `diff`, limits, JSON, flame graphs and exports.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns exit code, stdout and stderr.
fn mallow(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    let output = command.args(line.split(' ')).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Creates two files of folded stacks, which have only allocations, and one with every metric except lifetimes and times.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f1"), "a;b;c 10\na;d 5\n").unwrap();
    std::fs::write(folder.path().join("f2"), "a;b;c 12\na;d 5\n").unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for (fixture, name) in [
        ("heaptrack/csv-map-per-row.zst", "csv.zst"),
        ("heaptrack-print/merged.txt", "print.txt"),
        ("massif/realloc_chain.txt", "massif.txt"),
        ("bpftrace/maps.txt", "maps.txt"),
    ] {
        std::fs::copy(fixtures.join(fixture), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn a_diff_leaves_out_what_one_of_its_files_does_not_tell() {
    let folder = folder();
    for pair in ["f1 f2", "f1 csv.zst", "csv.zst f1", "print.txt csv.zst"] {
        let (code, text, said) = mallow(folder.path(), &format!("diff {pair}"));
        assert_eq!(code, Some(0), "{pair}: {said}");
        assert!(!text.lines().any(|line| line.starts_with("bytes ")), "{pair}:\n{text}");
        assert!(text.contains("Left out, because "), "{pair}:\n{text}");
        let (_, json, _) = mallow(folder.path(), &format!("diff {pair} --json"));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["totals"]["bytes"], Value::Null, "{pair}");
        assert!(json["totals"].as_object().unwrap().contains_key("bytes"), "{pair}");
        assert!(
            json["left_out"].as_array().unwrap().contains(&"bytes".into()),
            "{pair}: {}",
            json["left_out"]
        );
        for site in json["sites"].as_array().unwrap() {
            assert_eq!(site["figures"]["bytes"], Value::Null, "{pair}");
        }
    }
    let (code, text, _) = mallow(folder.path(), "diff f1 f2");
    assert_eq!(code, Some(0));
    assert!(
        text.contains("Left out, because neither file contains: bytes, peak, leaked, temporary."),
        "{text}"
    );
}

#[test]
fn a_limit_on_what_a_file_does_not_tell_is_an_error() {
    let folder = folder();
    for (line, sentence) in [
        (
            "diff f1 f2 --fail-on bytes>+1%",
            "mallow: f1 does not contain bytes allocated; it contains allocations.\n",
        ),
        (
            "diff csv.zst f2 --fail-on bytes>0",
            "mallow: f2 does not contain bytes allocated; it contains allocations.\n",
        ),
        ("diff f1 f2 --by bytes", "mallow: f1 does not contain bytes allocated; it contains allocations.\n"),
        (
            "flamegraph f1 --measure bytes",
            "mallow: f1 does not contain bytes allocated; it contains allocations.\n",
        ),
        (
            "flamegraph f1 --measure leaked",
            "mallow: f1 does not contain bytes live at the end; it contains allocations.\n",
        ),
        (
            "export f1 -f folded --measure bytes",
            "mallow: f1 does not contain bytes allocated; it contains allocations.\n",
        ),
    ] {
        let (code, out, said) = mallow(folder.path(), line);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(out.is_empty() && said.ends_with(sentence), "{line}: {said}");
    }
    let (code, _, said) = mallow(folder.path(), "diff f1 f2 --fail-on allocations>+1%");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_report_has_null_for_each_metric_that_is_not_told() {
    let folder = folder();
    let told = |file: &str| -> Vec<String> {
        let (_, json, _) = mallow(folder.path(), &format!("report --json {file}"));
        let json: Value = serde_json::from_str(&json).unwrap();
        let names = |metrics: &Value| -> Vec<String> {
            let metrics = metrics.as_object().unwrap().iter();
            metrics
                .filter(|(name, value)| !value.is_null() && *name != "frames")
                .map(|(name, _)| name.clone())
                .collect()
        };
        for site in json["sites"].as_array().unwrap() {
            for name in names(site) {
                assert!(
                    names(&json["sites"][0]).contains(&name),
                    "{file}: {name} is told of some sites only"
                );
            }
        }
        names(&json["totals"])
    };
    assert_eq!(told("f1"), ["allocations"]);
    assert_eq!(told("maps.txt"), ["allocations", "bytes"]);
    assert_eq!(told("print.txt"), ["allocations", "leaked_bytes", "peak_bytes", "temporary"]);
    assert_eq!(told("massif.txt"), ["peak_bytes"]);
}

#[test]
fn an_export_holds_no_metric_that_is_not_told() {
    let folder = folder();
    let (code, _, said) = mallow(folder.path(), "export f1 -f pprof -o f1.pb.gz");
    assert_eq!(code, Some(0), "{said}");
    let (_, json, _) = mallow(folder.path(), "report --json f1.pb.gz");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["totals"]["allocations"], &json["totals"]["bytes"]), (&15.into(), &Value::Null));
    let (code, stacks, said) = mallow(folder.path(), "export f1 -f folded");
    assert_eq!((code, stacks.as_str()), (Some(0), "# metric: allocations\na;b;c 10\na;d 5\n"), "{said}");
    for (format, needed) in [
        ("dhat", "numbers of allocations and their bytes"),
        ("massif", "live bytes"),
        ("jemalloc-heap", "live bytes"),
        ("heaptrack", "bytes"),
        ("firefox", "bytes"),
    ] {
        let (code, out, said) = mallow(folder.path(), &format!("export f1 -f {format} -o out.{format}"));
        let sentence = format!(
            "mallow: cannot export f1: a {format} file needs {needed}, and the profile does not contain that.\n"
        );
        assert!(code == Some(2) && out.is_empty() && said.ends_with(&sentence), "{format}: {said}");
        assert!(!folder.path().join(format!("out.{format}")).exists(), "{format}");
    }
    let (code, _, _) = mallow(folder.path(), "export f1 -f speedscope -o f1.json");
    assert_eq!(code, Some(0));
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("f1.json")).unwrap()).unwrap();
    assert_eq!(json["profiles"].as_array().unwrap().len(), 1);
}
