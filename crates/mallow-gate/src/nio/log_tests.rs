//! Logs of today, of before, and of CI.

use super::*;
use proptest::prelude::*;

const TODAY: &str = "\
Working directory: /srv/demo/tmp
- /srv/demo/test_future.swift
DEBUG: After waiting 7 times, we quiesced to unfreeds=2
WARNING: negative remaining allocation count, skipping.
test_future_chain.remaining_allocations: 0
test_future_chain.total_allocated_bytes: 4138056
test_future_chain.total_allocations: 75001
test_future_chain.leaked_fds: 0
DEBUG: [Test_future.Measurement(totalAllocations: 75001, totalAllocatedBytes: 4138056, remainingAllocations: 0, leakedFDs: []), Test_future.Measurement(totalAllocations: 75004, totalAllocatedBytes: 4138100, remainingAllocations: 0, leakedFDs: [])]
- /srv/demo/test_udp.swift
udp.total_allocations: -1
";

#[test]
fn log_lines_of_the_current_version_are_parsed() {
    let log = read_log(TODAY);
    let future = LogTest {
        name: "future_chain".to_owned(),
        file: Some("/srv/demo/test_future.swift".to_owned()),
        total_allocations: Some(75_001),
        remaining_allocations: Some(0),
        total_allocated_bytes: Some(4_138_056),
        leaked_fds: Some(0),
        runs: vec![75_001, 75_004],
    };
    let udp = LogTest {
        name: "udp".to_owned(),
        file: Some("/srv/demo/test_udp.swift".to_owned()),
        total_allocations: Some(-1),
        ..LogTest::default()
    };
    assert_eq!(log.tests, [future, udp]);
    assert_eq!(log.warnings, ["negative remaining allocation count, skipping."]);
}

#[test]
fn log_lines_of_older_versions_are_parsed() {
    let log = read_log(
        "test_a.total_allocations: 12\n\
         DEBUG: [[\"total_allocated_bytes\": 42000, \"total_allocations\": 12, \"remaining_allocations\": 0], \
         [\"total_allocations\": 13, \"remaining_allocations\": 0, \"total_allocated_bytes\": 1]]\n\
         info: b: total number of mallocs: 99\n",
    );
    let told: Vec<(&str, Option<i64>, &[i64])> =
        log.tests.iter().map(|t| (t.name.as_str(), t.total_allocations, &t.runs[..])).collect();
    assert_eq!(told, [("a", Some(12), &[12, 13][..]), ("b", Some(99), &[])]);
}

#[test]
fn a_time_stamp_before_a_log_line_is_ignored() {
    let log = read_log(
        "2026-07-24T10:11:12.1234567Z - /srv/ci/test_x.swift\r\n\
         2026-07-24T10:11:12.1234567Z test_x.total_allocations: 5\r\n\
         service-1  | test_y.total_allocations: 6\n\
         test_x.total_allocations: 7\n",
    );
    let told: Vec<(&str, Option<&str>, Option<i64>)> =
        log.tests.iter().map(|t| (t.name.as_str(), t.file.as_deref(), t.total_allocations)).collect();
    let file = Some("/srv/ci/test_x.swift");
    assert_eq!(told, [("x", file, Some(7)), ("y", file, Some(6))], "a second attempt counts");
}

#[test]
fn other_lines_are_passed_over() {
    let text =
        "hello\nx.total_allocations: many\n.total_allocations: 5\n- no path\nDEBUG: [totalAllocations: 5]\n";
    assert_eq!(read_log(text), Log::default());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "([ -~\n]|DEBUG: \\[|a\\.total_allocations: 9|totalAllocations: |- /){0,60}") {
        let lines = text.lines().count();
        prop_assert!(read_log(&text).tests.len() <= lines);
    }
}
