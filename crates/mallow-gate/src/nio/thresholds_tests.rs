//! The slack exactly, and files of limits.

use super::*;
use proptest::prelude::*;

#[test]
fn slack_is_none_below_a_thousand_and_the_next_fifty_above() {
    let expected = [
        (0, 0),
        (88, 88),
        (296, 296),
        (999, 999),
        (1000, 1050),
        (1049, 1050),
        (1050, 1100),
        (2000, 2050),
        (2049, 2050),
        (2050, 2100),
        (68_001, 68_050),
        (75_001, 75_050),
        (u64::MAX, u64::MAX),
    ];
    for (raw, limit) in expected {
        assert_eq!(slack(raw), limit, "{raw}");
    }
}

proptest! {
    #[test]
    fn slack_is_the_first_greater_number_that_ends_so(raw in 1000u64..10_000_000) {
        let naive = (raw + 1..).find(|limit| limit % 50 == 0).unwrap();
        prop_assert_eq!(slack(raw), naive);
    }

    #[test]
    fn written_files_are_parsed_unchanged(limits in prop::collection::btree_map("\\PC{0,12}", any::<u64>(), 0..8)) {
        let limits = Thresholds(limits);
        prop_assert_eq!(Thresholds::from_text(&limits.to_text(), "t.json"), Ok(limits));
    }
}

#[test]
fn a_file_is_sorted_and_indented() {
    let mut limits = Thresholds::default();
    limits.set("udp", 2050);
    limits.set("1000_addHandlers", 47_050);
    assert_eq!(limits.to_text(), "{\n    \"1000_addHandlers\": 47050,\n    \"udp\": 2050\n}\n");
    assert_eq!(Thresholds::default().to_text(), "{}\n");
    assert_eq!(limits.iter().collect::<Vec<_>>(), [("1000_addHandlers", 47_050), ("udp", 2050)]);
}

#[test]
fn limits_of_a_log_leave_out_what_was_not_measured() {
    let test =
        |name: &str, total| LogTest { name: name.to_owned(), total_allocations: total, ..LogTest::default() };
    let limits = Thresholds::of_log(&[test("a", Some(75_001)), test("b", None), test("c", Some(-1))]);
    assert_eq!(limits.iter().collect::<Vec<_>>(), [("a", 75_050)]);
}

#[test]
fn damaged_files_are_a_sentence_with_the_place() {
    let expected = [
        ("", "6.2.json is not a file of thresholds: EOF while parsing a value (line 1, column 0)."),
        (
            "{\n    \"a\": \"5\"\n}",
            "6.2.json is not a file of thresholds: invalid type: string \"5\", expected u64 (line 2, column 12).",
        ),
        (
            "{\"a\": -1}",
            "6.2.json is not a file of thresholds: invalid value: integer `-1`, expected u64 (line 1, column 8).",
        ),
        (
            "{\"a\": null}",
            "6.2.json is not a file of thresholds: invalid type: null, expected u64 (line 1, column 10).",
        ),
        (
            "{\"a\": 1,\n\"a\": 2}",
            "6.2.json is not a file of thresholds: \"a\" is there twice (line 2, column 7).",
        ),
        (
            "[]",
            "6.2.json is not a file of thresholds: invalid type: sequence, expected an object of test names and whole \
             numbers (line 1, column 0).",
        ),
    ];
    for (text, sentence) in expected {
        let error = Thresholds::from_text(text, "6.2.json").map_err(|error| error.to_string());
        assert_eq!(error, Err(sentence.to_owned()), "{text:?}");
    }
}
