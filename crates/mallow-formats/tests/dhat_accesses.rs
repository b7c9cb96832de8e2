//! DHAT's reads and writes: Valgrind's own figures, ours in the viewer that ships with Valgrind, and files that make no sense.

use crate::dhat::{Viewed, dhat, refusal, text_of, view};
use crate::valgrind_files::exported;
use mallow_formats::export::ExportFormat;
use mallow_formats::{Format, Imported, read_as};
use mallow_profile::Profile;

/// Runs of bytes that were accessed equally often: how many bytes, how often.
type Runs = Vec<(u32, u32)>;

/// Returns the reads and writes of sites by innermost function, with their runs.
fn accesses(profile: &Profile) -> Vec<(String, u64, u64, Option<Runs>)> {
    let of = |site: &mallow_profile::Site| {
        let function = profile.frames(site.stack).next().unwrap().function.clone();
        let bytes = profile.accesses.of(site.process, site.stack).map(|bytes| bytes.runs().to_vec());
        (function, site.totals.read_bytes, site.totals.written_bytes, bytes)
    };
    let mut list: Vec<_> = profile.sites.iter().map(of).collect();
    list.sort();
    list
}

#[test]
fn reads_and_writes_of_valgrinds_file_are_kept() {
    let Imported { profile, warnings, .. } = dhat("dhat/accesses.json");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let expected = [
        ("blocks_of_two_sizes", 4, 2, None),
        ("hot_byte", 1, 70_000, Some(vec![(1, 65_535)])),
        ("log_that_nobody_reads", 0, 4096, None),
        ("reserve_that_nobody_touches", 0, 0, Some(vec![(1000, 0)])),
        ("rows", 24, 252, Some(vec![(4, 3), (4, 0), (8, 33)])),
    ];
    let expected = expected.map(|(function, read, written, runs)| (function.to_owned(), read, written, runs));
    assert_eq!(accesses(&profile), expected);
    let mut trace = Vec::new();
    mallow_trace::write_profile(&profile, "dhat", &mut trace).unwrap();
    assert_eq!(accesses(&mallow_trace::read_bytes(&trace).unwrap().profile), expected);
}

/// What the viewer shows of our file is what it shows of Valgrind's.
#[test]
fn reads_and_writes_come_back_in_the_viewer() {
    let names = ["accesses", "cxx_exceptions", "realloc_chain"];
    let theirs = names.map(|name| text_of(&format!("dhat/{name}.json")));
    let ours = names.map(|name| exported(&dhat(&format!("dhat/{name}.json")).profile, ExportFormat::Dhat).0);
    let shown = |texts: &[String]| -> Vec<Vec<String>> {
        let viewed = view(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let of = |viewed: &Viewed| {
            let leaves = viewed.json["leaves"].as_array().unwrap().iter();
            let leaf = |leaf: &serde_json::Value| {
                let bytes = leaf["acc"].as_array().filter(|bytes| !bytes.is_empty());
                format!("{} {} {} {bytes:?}", leaf["tb"], leaf["rb"], leaf["wb"])
            };
            let mut leaves: Vec<String> = leaves.map(leaf).collect();
            leaves.sort();
            leaves
        };
        viewed.iter().map(of).collect()
    };
    let (theirs, ours) = (shown(&theirs), shown(&ours));
    assert_eq!(ours, theirs);
    let never_read = "4096 0 4096 None";
    assert!(ours[0].iter().any(|leaf| leaf == never_read), "{:?}", ours[0]);
}

#[test]
fn reads_and_writes_of_one_stack_are_added_as_the_viewer_adds_them() {
    let point = |rb: u64, acc: &str, frame: u32| {
        format!("{{\"tb\":4,\"tbk\":1,\"rb\":{rb},\"wb\":2{acc},\"fs\":[{frame},3]}}")
    };
    let text = |one: &str, other: &str| {
        format!(
            "{{\"dhatFileVersion\":2,\"bklt\":false,\"bkacc\":true,\"tu\":\"instrs\",\"pps\":[{},{}],\"ftbl\":[\"[root]\",\
             \"0x1: malloc (in /v/vgpreload_dhat-amd64-linux.so)\",\"0x2: calloc (in /v/vgpreload_dhat-amd64-linux.so)\",\"0x3: main (a.c:1)\"]}}",
            point(5, one, 1),
            point(6, other, 2)
        )
    };
    let of = |one: &str, other: &str| {
        let Imported { profile, .. } = read_as(text(one, other).as_bytes(), Format::Dhat).unwrap();
        assert_eq!(profile.sites.len(), 1);
        accesses(&profile).remove(0)
    };
    let sum = |runs| ("main".to_owned(), 11, 4, runs);
    assert_eq!(of(",\"acc\":[-4,7]", ",\"acc\":[1,-3,65535]"), sum(Some(vec![(1, 8), (3, 65_535)])));
    assert_eq!(of(",\"acc\":[-4,7]", ",\"acc\":[-5,7]"), sum(None));
    assert_eq!(of(",\"acc\":[-4,7]", ""), sum(None));
    let refused = [",\"acc\":[65536]", ",\"acc\":[-4]", ",\"acc\":[-4,-4]"];
    for acc in refused {
        let expected = "counts of accesses up to 65535 in program point 1 was expected";
        assert!(refusal(&text(acc, "")).ends_with(expected), "{acc}");
    }
}
