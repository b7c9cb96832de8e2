//! A recorded run with its events.

use crate::profile as sample;
use mallow_profile::analysis::{Findings, Pass, Plan, Slices, Trend, Window};
use mallow_profile::{ProcessIndex, Profile, Sample, StackId, Thread, ThreadIndex};
use mallow_view::leaks::Leaks;
use mallow_view::timeline::OverTime;
use mallow_view::{Filter, FrameVisibility, ProcessTimeline, TimelineRows};

/// When it ended.
pub const END_US: u64 = 1_230_000;

/// The leaky program with times: it loads rows for a second, then prints.
pub fn profile() -> Profile {
    let mut profile = sample::leaky_c();
    let process = &mut profile.processes[0];
    process.ended_us = END_US;
    let thread = |tid, name: &str| Thread { tid, name: name.into(), ..Thread::default() };
    process.threads = vec![thread(4242, "app"), thread(4243, "freeing in the background")];
    process.samples = (0..12).map(|i| Sample { time_us: i * 100_000, rss_bytes: (3 + i) << 20 }).collect();
    profile
}

/// Rows are forgotten, fields are freed at once or by the other thread, a buffer is resized, printing takes a buffer.
pub fn findings(profile: &Profile, plan: Plan) -> Findings {
    let stacks: Vec<StackId> = profile.sites.iter().filter_map(|site| site.stack).collect();
    let [rows, fields, buffer, print] = stacks[..] else { panic!("four sites") };
    let [main, other] = [ThreadIndex(0), ThreadIndex(1)];
    let mut pass = Pass::new(plan);
    let mut block = pass.alloc(main, buffer, 120, 900);
    for i in 0..1_000 {
        let time_us = 1_000 + i * 1_000;
        pass.alloc(main, rows, 300 + i % 100, time_us);
        let field = pass.alloc(main, fields, 16 + i % 5, time_us + 10);
        let by = if i % 10 == 0 { other } else { main };
        pass.free(by, field, time_us + 11 + i % 700);
        if i % 100 == 99 {
            block = pass.realloc(main, block, buffer, 120 << (i / 100), time_us + 20);
        }
    }
    pass.free(main, block, 1_005_000);
    pass.alloc(main, print, 1_024, 1_100_000);
    pass.finish()
}

/// All that can be found in a window.
pub fn everything(profile: &Profile, window: Window) -> Findings {
    let plan = Plan {
        window,
        window_sites: true,
        timeline: Some(Slices::new(window.from_us, window.to_us.min(END_US + 1), 70)),
        histogram: true,
        threads: true,
        chains: true,
        temporary_within: Some(2),
        shorter_than_us: Some(100),
        trends: Some(Trend::slices(0, END_US)),
        ..Plan::default()
    };
    findings(profile, plan)
}

/// Its time line in a window.
pub fn over_time<'a>(profile: &'a Profile, window: Window) -> ProcessTimeline<'a> {
    let (process, filter) = (&profile.processes[0], Filter::default());
    let Some(timeline) = everything(profile, window).timeline else { panic!("no time line") };
    let lines = OverTime::of(profile, process, timeline, FrameVisibility::WithoutPlumbing, &filter);
    ProcessTimeline { process, rows: TimelineRows::Events(lines) }
}

/// A window in the middle.
pub const MIDDLE: Window = Window { from_us: 250_000, to_us: 500_000 };

/// The verdicts on its leaks.
pub fn leaks(profile: &Profile) -> Leaks {
    let found = [everything(profile, Window::ALL)];
    Leaks::of(profile, &[ProcessIndex(0)], &found, FrameVisibility::WithoutPlumbing, &Filter::default())
}
