//! heaptrack's text as mallow writes it: synthetic events with the sums of the profile.

use super::print::{Conclusion, judge};
use super::{FILES, by_stack, fixture, folded, held, import, our_conclusion};
use mallow_base::Frame;
use mallow_formats::export::{ExportFormat, ExportOptions, write};
use mallow_formats::{Format, read_as};
use mallow_profile::{
    Address, Availability, Measure, Module, Process, Profile, ProfileBuilder, Recording, Sample, SiteTotals,
    Totals,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

const OPTIONS: ExportOptions = ExportOptions { measure: Measure::Allocations };

pub(super) fn exported(profile: &Profile) -> (Vec<u8>, Vec<String>) {
    let mut text = Vec::new();
    let warnings = write(profile, ExportFormat::Heaptrack, &OPTIONS, &mut text).unwrap();
    (text, warnings)
}

fn judge_export(profile: &Profile) -> Conclusion {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("export.txt");
    std::fs::write(&file, exported(profile).0).unwrap();
    judge(&file)
}

#[test]
fn an_export_has_the_metrics_of_the_profile_in_heaptracks_eyes() {
    for name in FILES.into_iter().chain(["family.raw.zst", "csv-map-per-row.raw.zst"]) {
        let profile = import(&fixture(name)).profile;
        assert_eq!(judge_export(&profile), our_conclusion(&profile), "{name}");
    }
}

fn held_by_stack(profile: &Profile) -> BTreeMap<String, SiteTotals> {
    let mut sites = BTreeMap::<String, SiteTotals>::new();
    for site in &profile.sites {
        sites.entry(folded(profile, site.stack)).or_default().add(&held(&site.totals));
    }
    sites
}

#[test]
fn a_round_trip_keeps_what_the_format_holds() {
    for name in FILES {
        let before = import(&fixture(name)).profile;
        let (text, _) = exported(&before);
        let again = read_as(&text, Format::Heaptrack).unwrap();
        let after = &again.profile;
        assert!(again.complete, "{name}: {:?}", again.warnings);
        assert_eq!(held_by_stack(after), held_by_stack(&before), "{name}");
        // Only a free of a foreign block is lost.
        let unmatched = before.processes[0].frees_unmatched;
        let frees = before.totals().frees - unmatched;
        assert_eq!(after.totals(), Totals { frees, ..before.totals() }, "{name}");
        assert_eq!(after.processes[0].samples, before.processes[0].samples, "{name}");
        assert_eq!(after.processes[0].peak_us, before.processes[0].peak_us, "{name}");
        assert_eq!(after.recording, before.recording, "{name}");
        assert!(!after.known.times && !after.known.own_maximum && after.processes[0].live_samples.is_empty());
    }
}

#[test]
fn an_export_says_what_it_made_up_and_left_out() {
    let (text, warnings) = exported(&import(&fixture("by-hand.v1.txt")).profile);
    assert_eq!(
        warnings,
        [
            "heaptrack's format has no place for these and they are left out: own maxima, first and last times",
            "the order of events and the sizes of single blocks are made up from the sums: read no timeline and no histogram from the \
             file",
        ]
    );
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "v 10400 3\n# mallow export: the sums are real, the order of events is made up\nX demo\nI 1000 0\n\
         s 4 demo\ns 4 work\ns 6 demo.c\ni 1 1 2 3 5\ns 4 main\ni 2 1 4 3 a\nt 2 0\nt 1 1\n\
         a 0 2\na 20 2\na 16 2\na 15 2\na 30 1\n\
         + 3\n- 3\n+ 3\n- 3\n+ 2\n- 2\nc 0\n+ 1\n+ 1\n+ 4\n- 1\n- 1\nc 64\n# strings: 4\n# ips: 2\n"
    );
}

/// heaptrack takes the first of equal peaks, our counting rules the last.
#[test]
fn of_equal_peaks_the_last_is_broken_down() {
    let text = "v 10400 3\ns 1 d\ns 5 first\ns 6 second\ni 1 1 2\ni 2 1 3\nt 1 0\nt 2 0\n\
                a 0 1\na 10 1\na 10 2\n+ 1\n- 1\n+ 2\n- 2\n# strings: 3\n";
    let profile = read_as(text.as_bytes(), Format::Heaptrack).unwrap().profile;
    assert_eq!(by_stack(&profile, Measure::Peak), BTreeMap::from([(String::from("second;"), 16)]));
    // In an export, a block that is as large as the peak comes after it, so that heaptrack breaks down the same moment.
    assert_eq!(judge_export(&profile), our_conclusion(&profile));
}

/// Returns a raw file of random allocations and frees.
fn raw_file(events: &[(u8, u32, u8)]) -> String {
    let mut text =
        String::from("v 10400 3\nx 1 x\nm 1 x 1000 0 1000\nt 1010 0\nt 1020 1\nt 1030 1\nt 1040 0\n");
    let mut live = Vec::new();
    for (pointer, &(stack, size, choice)) in events.iter().enumerate() {
        text += &format!("+ {size:x} {:x} {:x}\n", 1 + stack % 4, pointer + 1);
        live.push(pointer + 1);
        // Often the newest, so that some are temporary.
        while !live.is_empty() && choice % 4 < 3 && live.len() > usize::from(choice % 16) {
            let index = if choice % 2 == 0 { live.len() - 1 } else { usize::from(choice) % live.len() };
            text += &format!("- {:x}\n", live.remove(index));
        }
    }
    text + "c 10\n"
}

fn histories() -> impl Strategy<Value = Vec<(u8, u32, u8)>> {
    // Sizes are large and therefore differ, otherwise peaks would be equal.
    prop::collection::vec((0u8..4, 1u32..0x7fff_ffff, any::<u8>()), 1..40)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(500))]

    /// Whatever a program did, the synthetic events have the same sums.
    #[test]
    fn any_history_survives_export(events in histories()) {
        let before = read_as(raw_file(&events).as_bytes(), Format::Heaptrack).unwrap().profile;
        let (text, _) = exported(&before);
        let after = read_as(&text, Format::Heaptrack).unwrap().profile;
        prop_assert_eq!(held_by_stack(&after), held_by_stack(&before));
        prop_assert_eq!(after.totals(), before.totals());
    }
}

/// The same according to heaptrack. That takes longer, so it is tried with fewer histories than `proptest!` would use.
#[test]
fn heaptrack_sees_any_history_in_its_export() {
    let few = cases((ProptestConfig::default().cases / 16).max(1));
    let outcome = TestRunner::new(few).run(&histories(), |events| {
        let before = read_as(raw_file(&events).as_bytes(), Format::Heaptrack).unwrap().profile;
        prop_assert_eq!(judge_export(&before), our_conclusion(&before));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Equal sizes at one site leave no other block between a block and its free.
#[test]
fn blocks_without_company_are_not_temporary_in_an_export() {
    let events = "+ 8 1 1\n- 2\n+ 8 1 3\n- 1\n- 3\n".repeat(3);
    let text = format!(
        "v 10400 3\nx 1 x\nm 1 x 1000 0 1000\nt 1010 0\n{events}+ 100 1 9\n+ 0 1 a\n+ 0 1 b\n- a\n- b\nc 1\n"
    );
    let before = read_as(text.as_bytes(), Format::Heaptrack).unwrap().profile;
    assert_eq!((before.totals().temporary, before.totals().allocations), (0, 9));
    assert_eq!(judge_export(&before), our_conclusion(&before));
    let after = read_as(&exported(&before).0, Format::Heaptrack).unwrap();
    assert_eq!((held_by_stack(&after.profile), after.warnings), (held_by_stack(&before), Vec::new()));
}

/// Returns two processes with one stack, as in a recording of mallow's.
fn two_processes() -> Profile {
    let mut builder =
        ProfileBuilder::new(Recording { duration_us: 90_000, ..Recording::default() }, Availability::ALL);
    let module = builder.module(Module { path: "/srv/my demo".into(), build_id: vec![1] });
    let frame = |function: &str, inlined| Frame {
        function: function.into(),
        file: Some("/srv/demo.c".into()),
        line: Some(0x20),
        module: Some("/srv/my demo".into()),
        inlined,
        ..Frame::default()
    };
    let address = |svma| Address::InModule { module, svma };
    let main = builder.location(address(0x1010), vec![frame("main", false)]);
    let work = builder.location(address(0x1020), vec![frame("push\nback", true), frame("work", false)]);
    let stack = builder.stack([main, work]);
    for (pid, peak_us) in [(7, 30_000), (8, 50_000)] {
        let totals = Totals { allocations: 4, bytes: 101, peak_bytes: 90, ..Totals::default() };
        let samples = vec![Sample { time_us: 1000, rss_bytes: 4096 }];
        let process = builder.add_process(Process { pid, peak_us, totals, samples, ..Process::default() });
        // Two blocks were freed at once by their threads, and both were live at the peak.
        let site = SiteTotals {
            allocations: 3,
            bytes: 100,
            temporary: 2,
            peak_bytes: 90,
            peak_blocks: 2,
            leaked_bytes: 10,
            leaked_blocks: 1,
            ..SiteTotals::default()
        };
        builder.add_site(process, stack, &site);
        builder.add_site(process, None, &SiteTotals { allocations: 1, bytes: 1, ..SiteTotals::default() });
    }
    builder.finish()
}

#[test]
fn processes_are_added_up() {
    let profile = two_processes();
    let (text, warnings) = exported(&profile);
    assert_eq!(
        warnings,
        [
            "heaptrack's format has no place for these and they are left out: reallocations and failed calls, own maxima, lifetimes, \
             first and last times, resident memory",
            "a heaptrack file holds one process: the metrics of 2 are added up, their peaks too",
            "the order of events and the sizes of single blocks are made up from the sums: read no timeline and no histogram from the \
             file",
            "of the temporary blocks that were live at the peak only one can be the last there: the file has 1 too few",
        ]
    );
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("export.txt");
    std::fs::write(&file, &text).unwrap();
    let conclusion = judge(&file);
    let work = "main (demo.c);push back (demo.c);work (demo.c);";
    let of = |metrics: &[(&str, u64)]| {
        metrics.iter().map(|(stack, metric)| (String::from(*stack), *metric)).collect()
    };
    assert_eq!((conclusion.calls, conclusion.temporary_calls), (8, 3));
    assert_eq!((conclusion.peak.as_str(), conclusion.leaked.as_str()), ("180B", "20B"));
    assert_eq!(conclusion.allocations, of(&[(work, 6), ("??", 2)]));
    assert_eq!((conclusion.peak_bytes, conclusion.leaked_bytes), (of(&[(work, 180)]), of(&[(work, 20)])));
    let after = read_as(&text, Format::Heaptrack).unwrap().profile;
    assert_eq!((after.processes[0].peak_us, after.recording.duration_us), (50_000, 90_000));
    let site = after.sites.iter().find(|site| site.stack.is_some()).unwrap();
    let line = after.frames(site.stack).map(|frame| (frame.line, frame.inlined)).next();
    assert_eq!(line, Some((Some(0x20), true)));
}

#[test]
fn a_profile_of_live_memory_alone_is_written_as_few_blocks() {
    let mut profile = import(&fixture("by-hand.v2.txt")).profile;
    profile.known = Availability { leaked: true, ..Availability::NOTHING };
    let (text, warnings) = exported(&profile);
    assert_eq!(
        &warnings[..2],
        [
            "the profile does not contain the peak: the one in the file means nothing",
            "the profile has no numbers of blocks: where they are missing, one is written",
        ]
    );
    let after = read_as(&text, Format::Heaptrack).unwrap().profile.totals();
    assert_eq!((after.allocations, after.bytes, after.leaked_blocks, after.leaked_bytes), (2, 16, 2, 16));
}

#[test]
fn more_allocations_than_a_disk_holds_are_refused() {
    let mut profile = import(&fixture("family.zst")).profile;
    profile.sites[0].totals.allocations = u64::MAX;
    let error = write(&profile, ExportFormat::Heaptrack, &OPTIONS, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("heaptrack's files have a line for every allocation"), "{error}");
}
