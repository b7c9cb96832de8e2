//! Documents have what SARIF's schema requires, and say what the verdicts do.

use super::*;
use mallow_samples::check as sample;

fn document(result: &CheckResult) -> Value {
    sarif(result, false, &|file| file.strip_prefix("/srv/app/").map(str::to_owned))
}

/// What the schema of 2.1.0 requires of the objects that are written, and what it allows.
fn assert_valid(document: &Value) {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(document), ["$schema", "runs", "version"]);
    assert_eq!(document["version"], "2.1.0");
    for run in document["runs"].as_array().unwrap() {
        assert_eq!(keys(run), ["columnKind", "results", "tool"]);
        let driver = &run["tool"]["driver"];
        let rules: Vec<&str> =
            driver["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
        assert!(rules.is_sorted_by(|a, b| a < b), "ids are unique");
        for result in run["results"].as_array().unwrap() {
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
            assert!(["error", "warning"].contains(&result["level"].as_str().unwrap()));
            assert!(rules.contains(&result["ruleId"].as_str().unwrap()));
            for location in result["locations"].as_array().unwrap() {
                let physical = &location["physicalLocation"];
                assert!(physical["region"]["startLine"].as_u64().unwrap() >= 1);
                let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
                assert!(!uri.starts_with('/') && !uri.contains(' '), "{uri}");
            }
            for stack in result["stacks"].as_array().unwrap() {
                for frame in stack["frames"].as_array().unwrap() {
                    assert!(frame["location"].is_object());
                }
            }
        }
    }
}

#[test]
fn every_broken_limit_is_a_result_and_nothing_else_is() {
    let result = sample::check();
    let document = document(&result);
    assert_valid(&document);
    let results = document["runs"][0]["results"].as_array().unwrap();
    let shown: Vec<String> = results
        .iter()
        .map(|result| {
            format!(
                "{} {}",
                result["level"].as_str().unwrap(),
                result["partialFingerprints"]["mallowTest/v1"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "error crashes/error",
        "error header_map/blind",
        "error buffer_rw/allocations",
        "error rst_fd_leak/allocations",
        "error rst_fd_leak/remaining",
        "error rst_fd_leak/descriptors",
        "error row_sizes/bytes",
        "warning thread_hop/flaky",
        "warning cow_copy/missing",
        "warning old_name/stale",
        "error ring_modify/allocations",
    ];
    assert_eq!(shown, expected);
    let fine = self::document(&sample::fine());
    assert_valid(&fine);
    assert_eq!(fine["runs"][0]["results"], json!([]));
}

#[test]
fn a_result_has_its_sentence_its_line_and_its_stack() {
    let test = sample::regressed();
    let result = CheckResult { tests: vec![test.clone()], ..sample::fine() };
    let file =
        test.changes.iter().flat_map(|change| &change.frames).find_map(|frame| frame.file.clone()).unwrap();
    let shown = |path: &str| Some(format!("a b/{}", path.trim_start_matches('/')));
    let document = sarif(&result, false, &shown);
    assert_valid(&document);
    let first = &document["runs"][0]["results"][0];
    assert_eq!((&first["ruleId"], &first["level"]), (&json!("allocations"), &json!("error")));
    let sentence = test.sentences.iter().find(|sentence| sentence.starts_with("allocations:")).unwrap();
    assert_eq!(first["message"]["text"], format!("REGRESSED {}: {sentence}", test.name));
    let physical = &first["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], format!("a%20b/{}", file.trim_start_matches('/')));
    assert_eq!(physical["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    assert_eq!(first["partialFingerprints"]["mallowTest/v1"], format!("{}/allocations", test.name));
    assert!(first["stacks"][0]["frames"].as_array().unwrap().len() > 1);
}

/// A line outside of the checkout is no place that a reader could open.
#[test]
fn what_is_not_known_is_left_out() {
    let result = CheckResult { tests: vec![sample::regressed()], ..sample::fine() };
    let document = sarif(&result, false, &|_| None);
    assert_valid(&document);
    let first = &document["runs"][0]["results"][0];
    assert_eq!(first["locations"], json!([]));
    let frame = &first["stacks"][0]["frames"][0]["location"];
    assert_eq!(frame["physicalLocation"], Value::Null);
    assert!(frame["logicalLocations"][0]["fullyQualifiedName"].is_string());
    let blind = self::document(&sample::all_blind());
    assert_valid(&blind);
    assert_eq!(blind["runs"][0]["results"][0]["ruleId"], "blind");
}
