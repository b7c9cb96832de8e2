//! What events tell, as JSON against its schema.

use super::*;
use crate::report::tests::subject;
use crate::schema_tests::assert_fits;
use mallow_profile::ProcessIndex;
use mallow_samples::events::{MIDDLE, everything, leaks, over_time, profile};
use mallow_samples::profile as sample;
use mallow_view::chains::Chains;
use mallow_view::histogram::Histograms;
use mallow_view::threads::Threads;
use mallow_view::window::WindowSites;
use mallow_view::{AppliedSuppressions, Filter, FrameVisibility, Layout, ReportOptions};

fn options(layout: Layout) -> ReportOptions {
    let filter = Filter::default();
    ReportOptions { layout, limit: None, shown: FrameVisibility::WithoutPlumbing, filter, per: None }
}

#[test]
fn json_has_the_published_shape() {
    let schema = serde_json::from_str(include_str!("../../../docs/schema/report.json")).unwrap();
    let (profile, applied, filter) = (profile(), AppliedSuppressions::default(), Filter::default());
    let found = [everything(&profile, MIDDLE)];
    let short_lived = |sites| ShortLived::of(&profile, sites, FrameVisibility::All, &filter);
    let shows = EventReport {
        window: Some(MIDDLE),
        timeline: Some(over_time(&profile, MIDDLE)),
        window_sites: Some(WindowSites::of(&profile, &found, FrameVisibility::All, &filter)),
        histograms: Some(Histograms::of(&found, true)),
        threads: Some(Threads::of(&profile, &[ProcessIndex(0)], &found)),
        chains: Some(Chains::of(&profile, &found, FrameVisibility::All, &filter)),
        temporary: Some((2, short_lived(&found[0].temporary))),
        short_lived: Some((100, short_lived(&found[0].short_lived))),
        ..EventReport::of(&profile)
    };
    let leaks = leaks(&profile);
    for (events, parts) in [
        (EventsJson::of(shows, 2), 7),
        (EventsJson::of_leaks(&profile, &leaks, 2), 1),
        (EventsJson::default(), 0),
    ] {
        let subject = subject(&profile, sample::TRACE, &applied);
        let report = ReportJson::of(&subject, &options(Layout::Tables), false, true, &[]);
        let plain = serde_json::to_value(&report).unwrap();
        let document = serde_json::to_value(WithEvents { report, events }).unwrap();
        assert_fits(&document, &schema);
        let keys = |value: &serde_json::Value| value.as_object().map_or(0, |object| object.len());
        assert_eq!(keys(&document), keys(&plain) + parts);
        if parts == 7 {
            assert_eq!(document["window"]["totals"]["allocations"], 502);
            assert_eq!(document["window"]["sites"].as_array().map(Vec::len), Some(2));
            assert_eq!(document["timeline"]["slices"].as_array().map(Vec::len), Some(70));
        }
        if parts == 1 {
            assert_eq!(document["leaks"]["leaked"][0]["judgement"], "levelled_off");
        }
    }
}
