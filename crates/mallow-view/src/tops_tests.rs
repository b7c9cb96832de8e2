//! The short way to the top sites, held against the long one over all of them.

use super::*;
use crate::example;
use crate::{Filter, FrameVisibility, Measure, SiteRow, Sites};
use mallow_base::Place;
use mallow_profile::{Address, Availability, Process, Profile, ProfileBuilder, Recording};
use proptest::collection::vec;
use proptest::prelude::*;

/// Merges all sites by their visible frames, sorts them, merges those by their naming frames, and sorts again.
fn naive(profile: &Profile) -> Vec<Top<'_>> {
    let mut sites = Sites::of(profile, FrameVisibility::WithoutPlumbing, &Filter::default());
    let top = |measure: &Measure| {
        sites.sort(*measure);
        let mut named = sites.by_naming_frame();
        named.sort(*measure);
        let row = |row: &SiteRow| {
            let frame = named.frames(row).next();
            let is_lined = frame.is_some_and(has_line);
            let caller = named.frames(row).find(|frame| !is_lined && has_line(frame));
            TopRow { value: measure.of_site(&row.totals), frame, caller }
        };
        let concerned = named.rows.iter().filter(|row| measure.concerns(&row.totals));
        let rows: Vec<TopRow<'_>> = concerned.take(ROWS_MAX).map(row).collect();
        (!rows.is_empty()).then_some(Top { measure: *measure, rows })
    };
    Measure::ALL.iter().filter_map(top).collect()
}

/// Few names, so that stacks are often alike: some of them plumbing, some with lines, some at a program's start.
fn frame() -> impl Strategy<Value = Frame> {
    let names = [
        "malloc",
        "operator new(unsigned long)",
        "main",
        "_start",
        "load",
        "io::load",
        "load<u8>",
        "parse",
        "0x1f",
    ];
    (prop::sample::select(names.to_vec()), 0..3u32, any::<bool>()).prop_map(|(function, line, inlined)| {
        Frame {
            inlined,
            file: (line > 0).then(|| "a.c".to_owned()),
            line: (line > 0).then_some(line),
            ..example::frame(function, "app")
        }
    })
}

/// What a reader sees of it: not whether a call was inlined.
fn seen<'a>(tops: &'a [Top<'_>]) -> Vec<(Measure, u64, Option<Place<'a>>, Option<Place<'a>>)> {
    let rows = tops.iter().flat_map(|top| top.rows.iter().map(|row| (top.measure, row)));
    rows.map(|(measure, row)| (measure, row.value, row.frame.map(Frame::place), row.caller.map(Frame::place)))
        .collect()
}

fn totals() -> impl Strategy<Value = SiteTotals> {
    (0..3u64, 0..3u64, 0..3u64, 0..3u64, 0..2u64).prop_map(|(allocations, bytes, peak, leaked, temporary)| {
        SiteTotals {
            allocations,
            bytes,
            peak_bytes: peak,
            leaked_bytes: leaked,
            temporary,
            ..SiteTotals::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_is_what_sorting_all_sites_shows(
        sites in vec((0..2u32, vec(vec(frame(), 1..3), 0..5), totals()), 0..40),
    ) {
        // Equal addresses are one location, and equal stacks one node, as in a recording.
        let mut builder = ProfileBuilder::new(Recording::default(), Availability::ALL);
        let processes = [(); 2].map(|()| builder.add_process(Process::default()));
        for (process, stack, totals) in &sites {
            let calls: Vec<_> =
                stack.iter().map(|frames| builder.location(Address::Unknown, frames.clone())).collect();
            let stack = builder.stack(calls);
            builder.add_site(processes[*process as usize], stack, totals);
        }
        let profile = builder.finish();
        let (short, long) = (tops(&profile.stacks, profile.sites.as_slice()).0, naive(&profile));
        prop_assert_eq!(seen(&short), seen(&long));
    }
}
