//! Each analysis against a naive twin that keeps every event and works its figures out from the whole list.

use crate::analysis_twin::{OverTime, Twin, program};
use mallow_profile::analysis::{Findings, Pass, Plan, Slices, TimelineSite, Trend, Window};
use mallow_profile::{ReallocAttribution, StackId, ThreadIndex};
use proptest::prelude::*;

/// A window that need not hold anything.
fn window() -> impl Strategy<Value = Window> {
    let bound = 0u64..1_500;
    prop_oneof![
        Just(Window::ALL),
        (bound.clone(), bound).prop_map(|(a, b)| Window { from_us: a.min(b), to_us: a.max(b) }),
        (0u64..1_500).prop_map(|from_us| Window { from_us, to_us: u64::MAX }),
    ]
}

fn found(twin: &Twin, plan: Plan) -> Findings {
    let mut pass = Pass::new(plan);
    twin.feed(&mut pass);
    pass.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn windows(twin in program(), window in window()) {
        let plan = Plan { window, window_sites: true, ..Plan::default() };
        prop_assert_eq!(found(&twin, plan).window_sites, twin.window_sites(window));
    }

    #[test]
    fn parts(twin in program(), window in window(), choice in 0usize..4) {
        const CHOICES: [fn(ThreadIndex, StackId, u64) -> bool; 4] = [
            |_, _, _| true,
            |thread, _, _| thread == ThreadIndex(1),
            |_, stack, size| stack.0 == 2 || size >= 64,
            |_, _, _| false,
        ];
        let plan = Plan { window, part_until_us: Some(twin.end_us()), ..Plan::default() };
        let mut pass = Pass::of(plan, Some(Box::new(CHOICES[choice])));
        twin.feed(&mut pass);
        prop_assert_eq!(pass.finish().part, Some(twin.part(window, CHOICES[choice])));
    }

    /// A part that is the whole has the sums of the whole.
    #[test]
    fn a_part_that_is_the_whole(twin in program()) {
        let part = found(&twin, Plan { part_until_us: Some(twin.end_us()), ..Plan::default() }).part.unwrap();
        let whole = twin.summary();
        prop_assert_eq!((part.totals, part.peak_us), (whole.totals, whole.peak_us));
        let sites: Vec<_> = whole.sites.iter().map(|site| (Some(site.stack), site.totals)).collect();
        prop_assert_eq!(part.sites, sites);
    }

    /// What is wanted and what is not add up, whatever the analysis.
    #[test]
    fn two_choices_are_the_whole(twin in program(), window in window(), size in 0u64..100) {
        let plan = Plan { window, histogram: true, part_until_us: Some(9_999), threads: true, ..Plan::default() };
        let of = |choice: Option<mallow_profile::analysis::BlockChoice>| {
            let mut pass = Pass::of(plan, choice);
            twin.feed(&mut pass);
            pass.finish()
        };
        let (small, large) = (of(Some(Box::new(move |_, _, it| it < size))), of(Some(Box::new(move |_, _, it| it >= size))));
        let whole = of(None);
        let part = |findings: &Findings| findings.part.clone().unwrap().totals;
        let mut sum = part(&small);
        sum.add(&part(&large));
        prop_assert_eq!(sum, part(&whole));
        let blocks = |findings: &Findings| {
            let histogram = findings.histogram.clone().unwrap();
            histogram.sizes.iter().map(|bucket| bucket.blocks).sum::<u64>()
        };
        prop_assert_eq!(blocks(&small) + blocks(&large), blocks(&whole));
    }

    #[test]
    fn windows_side_by_side_add_up(twin in program(), cut_us in 0u64..1_500) {
        let of = |window| found(&twin, Plan { window, window_sites: true, ..Plan::default() }).window_sites;
        let sum = |sites: &[mallow_profile::analysis::WindowSite]| {
            let metrics = sites.iter().map(|site| site.metrics);
            metrics.fold((0, 0), |sum, metrics| (sum.0 + metrics.allocations, sum.1 + metrics.frees))
        };
        let before = sum(&of(Window { from_us: 0, to_us: cut_us }));
        let after = sum(&of(Window { from_us: cut_us, to_us: u64::MAX }));
        prop_assert_eq!((before.0 + after.0, before.1 + after.1), sum(&of(Window::ALL)));
    }

    #[test]
    fn timelines(twin in program(), window in window(), count in 1usize..9) {
        let time = Slices::new(window.from_us, window.to_us.min(1_500), count);
        let plan = Plan { window, timeline: Some(time), ..Plan::default() };
        let Some(timeline) = found(&twin, plan).timeline else { panic!("no time line") };
        let live = |site: &TimelineSite| site.series.levels(&time).iter().map(|level| level.live).collect();
        let sites = timeline.sites.iter().map(|site| {
            (site.stack.unwrap_or(StackId(u32::MAX)), site.peak_bytes, live(site))
        });
        let found = OverTime {
            sites: sites.collect(),
            slices: timeline.slices,
            peak_us: timeline.peak_us,
            peak_bytes: timeline.peak_bytes,
        };
        prop_assert_eq!(found, twin.timeline(window, time));
    }

    #[test]
    fn histograms(twin in program(), window in window()) {
        let plan = Plan { window, histogram: true, ..Plan::default() };
        prop_assert_eq!(found(&twin, plan).histogram, Some(twin.histogram(window)));
    }

    #[test]
    fn threads(twin in program(), window in window()) {
        let plan = Plan { window, threads: true, ..Plan::default() };
        let metrics = found(&twin, plan).threads;
        for (thread, expected) in twin.threads(window).into_iter().enumerate() {
            prop_assert_eq!(metrics.get(thread).copied().unwrap_or_default(), expected, "thread {}", thread);
        }
    }

    #[test]
    fn chains(twin in program(), window in window()) {
        let findings = found(&twin, Plan { window, chains: true, ..Plan::default() });
        let (totals, sites) = twin.chains(window);
        prop_assert_eq!(findings.chains, totals);
        prop_assert_eq!(findings.chain_sites, sites);
    }

    #[test]
    fn short_lived_blocks(twin in program(), window in window(), within in 1u64..6, us in 0u64..300) {
        let plan = Plan {
            window,
            temporary_within: Some(within),
            shorter_than_us: Some(us),
            ..Plan::default()
        };
        let findings = found(&twin, plan);
        prop_assert_eq!(findings.temporary, twin.temporary(window, within));
        prop_assert_eq!(findings.short_lived, twin.short_lived(window, us));
    }

    #[test]
    fn temporary_within_one_is_what_the_counting_rules_call_temporary(twin in program()) {
        let findings = found(&twin, Plan { temporary_within: Some(1), threads: true, ..Plan::default() });
        let summary = twin.summary();
        let blocks: u64 = findings.temporary.iter().map(|site| site.blocks).sum();
        prop_assert_eq!(blocks, summary.totals.temporary);
        prop_assert_eq!(findings.threads.iter().map(|thread| thread.temporary).sum::<u64>(), blocks);
        for site in &summary.sites {
            let own = findings.temporary.iter().find(|found| found.stack == Some(site.stack));
            prop_assert_eq!(own.map_or(0, |own| own.blocks), site.totals.temporary);
        }
    }

    #[test]
    fn trends(twin in program()) {
        let run = Trend::slices(0, twin.end_us());
        let trends = found(&twin, Plan { trends: Some(run), ..Plan::default() }).trends;
        let expected = twin.trends(run);
        prop_assert_eq!(trends.len(), expected.len());
        for (found, (stack, levels, counts)) in trends.iter().zip(expected) {
            prop_assert_eq!(found.stack, Some(stack));
            prop_assert_eq!(found.series.levels(&run), levels);
            prop_assert_eq!(found.counts, counts);
        }
    }

    #[test]
    fn all_at_once_is_each_alone(twin in program(), window in window()) {
        let time = Slices::new(0, 1_500, 7);
        let each = [
            Plan { window_sites: true, ..Plan::default() },
            Plan { timeline: Some(time), ..Plan::default() },
            Plan { histogram: true, ..Plan::default() },
            Plan { chains: true, ..Plan::default() },
            Plan { threads: true, ..Plan::default() },
        ];
        let all = Plan {
            window,
            window_sites: true,
            timeline: Some(time),
            histogram: true,
            chains: true,
            threads: true,
            ..Plan::default()
        };
        let [sites, timeline, histogram, chains, threads] =
            each.map(|plan| found(&twin, Plan { window, ..plan }));
        let expected = Findings {
            timeline: timeline.timeline,
            histogram: histogram.histogram,
            chains: chains.chains,
            chain_sites: chains.chain_sites,
            threads: threads.threads,
            ..sites
        };
        prop_assert_eq!(found(&twin, all), expected);
    }
}

#[test]
fn a_block_that_realloc_made_can_count_where_it_began() {
    let plan = Plan { attribution: ReallocAttribution::Origin, window_sites: true, ..Plan::default() };
    let mut pass = Pass::new(plan);
    let block = pass.alloc(ThreadIndex(0), StackId(3), 10, 5);
    let block = pass.realloc(ThreadIndex(0), block, StackId(4), 30, 6);
    assert!(pass.is_live(block));
    let sites = pass.finish().window_sites;
    assert_eq!(sites.len(), 1);
    let metrics = sites[0].metrics;
    assert_eq!((sites[0].stack, metrics.allocations, metrics.live_bytes), (Some(StackId(3)), 2, 30));
}

#[test]
fn what_a_process_left_behind_is_not_live_after_it() {
    let window = Window { from_us: 0, to_us: 100 };
    let mut pass = Pass::new(Plan { window, window_sites: true, threads: true, ..Plan::default() });
    pass.alloc(ThreadIndex(0), StackId(3), 10, 5);
    let mut findings = pass.finish();
    findings.end_before_window();
    let metrics = findings.window_sites[0].metrics;
    assert_eq!((metrics.allocations, metrics.bytes, metrics.live_blocks, metrics.kept_bytes), (1, 10, 0, 0));
    assert_eq!((findings.threads[0].allocations, findings.threads[0].live_bytes), (1, 0));
}

#[test]
fn events_that_contradict_each_other_are_left_out() {
    let plan = Plan { window_sites: true, threads: true, chains: true, histogram: true, ..Plan::default() };
    let mut pass = Pass::new(plan);
    let block = pass.alloc(ThreadIndex(0), StackId(0), 10, 5);
    pass.free(ThreadIndex(0), block, 6);
    pass.free(ThreadIndex(0), block, 7);
    pass.free(ThreadIndex(9), mallow_profile::BlockId(77), 8);
    pass.realloc(ThreadIndex(0), block, StackId(1), 4, 9);
    let findings = pass.finish();
    assert_eq!(findings.chains, Default::default());
    assert_eq!(
        (findings.threads.len(), findings.threads[0].frees, findings.threads[0].allocations),
        (1, 1, 2)
    );
}
