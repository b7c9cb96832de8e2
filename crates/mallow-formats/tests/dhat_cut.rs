//! DHAT files that were cut off, read as far as they go.

use crate::dhat::text_of;
use crate::valgrind_files::fixture;
use mallow_formats::{Format, Imported, read_as};

/// What stands before the cut is read: whole program points, and names as far as there are any.
#[test]
fn every_prefix_is_read_as_far_as_it_goes_or_refused_in_a_sentence() {
    for name in ["dhat/inlined.json", "dhat/cxx_exceptions.json"] {
        let bytes = fixture(name);
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let points = json["pps"].as_array().unwrap();
        let whole = bytes.trim_ascii_end().len();
        for length in 0..whole {
            let text = std::str::from_utf8(&bytes[..length]).unwrap();
            let count = text.matches("\n  }").count();
            if count > 0 {
                let Imported { profile, warnings, complete } =
                    read_as(text.as_bytes(), Format::Dhat).unwrap();
                let sum = |key: &str| points[..count].iter().map(|point| point[key].as_u64().unwrap()).sum();
                let totals = profile.totals();
                assert_eq!((totals.allocations, totals.bytes), (sum("tbk"), sum("tb")), "{length}");
                let beginning = format!("the file was cut off: {count} program points are read, ");
                assert!(!complete && warnings[0].starts_with(&beginning), "{length}: {warnings:?}");
                continue;
            }
            let error = read_as(text.as_bytes(), Format::Dhat).unwrap_err();
            let expected =
                if text.ends_with("[-") || text.ends_with(",-") { "JSON" } else { "the rest of the file" };
            assert!(error.to_string().ends_with(&format!("{expected} was expected")), "{length}: {error}");
        }
    }
}

#[test]
fn frames_of_a_cut_file_are_named_as_far_as_their_table_goes() {
    let text = text_of("dhat/inlined.json");
    let names = |behind: &str| -> Vec<String> {
        let cut = &text[..text.find(behind).unwrap() + behind.len()];
        let profile = read_as(cut.as_bytes(), Format::Dhat).unwrap().profile;
        profile.frames(profile.sites[0].stack).map(|frame| frame.function.clone()).collect()
    };
    let whole = read_as(text.as_bytes(), Format::Dhat).unwrap().profile;
    let whole: Vec<&str> = whole.frames(whole.sites[0].stack).map(|frame| frame.function.as_str()).collect();
    assert_eq!(names("\"ftbl\":"), ["[frame 1]", "[frame 2]", "[frame 3]", "[frame 4]"]);
    let table: Vec<&str> = text[text.find("\"ftbl\":").unwrap()..].lines().collect();
    // The root of the viewer's tree, the allocating function, and its caller.
    let some = names(&table[1..4].join("\n"));
    assert_eq!(some, [whole[0], "[frame 3]", "[frame 4]"]);
}
