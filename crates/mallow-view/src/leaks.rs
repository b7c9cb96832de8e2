//! What the trend of a site's live memory says about what it leaked.

use crate::looks::{Appearance, Appearances};
use crate::sites::Wanted;
use crate::{Filter, FrameVisibility, PlaceRow};
use mallow_profile::analysis::{Findings, Trend, TrendSite, Verdict};
use mallow_profile::{Measure, ProcessIndex, Profile, SiteTotals, StackId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A site that leaked, or would have leaked if the program had been killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeakMetrics {
    /// Bytes live at the end, over all processes, without suppressed ones.
    pub leaked_bytes: u64,
    /// Blocks live at the end.
    pub leaked_blocks: u64,
    /// Bytes that were freed in the last 2 % of the run.
    pub freed_at_end_bytes: u64,
    /// Its first allocation.
    pub first_us: u64,
    /// Its last allocation.
    pub last_us: u64,
    /// The trend of its live memory, in the process where it leaked most.
    pub verdict: Option<Verdict>,
}

/// Verdicts on the sites of a recording.
#[derive(Clone, Debug, Default)]
pub struct Leaks {
    by_stack: FxHashMap<Option<StackId>, Verdict>,
    /// Sites that leaked, most bytes first.
    pub leaked: Vec<PlaceRow<LeakMetrics>>,
    /// Sites that grew steadily and were freed only in the last 2 % of the run, most bytes first. They leaked nothing.
    pub freed_at_end: Vec<PlaceRow<LeakMetrics>>,
}

impl Leaks {
    /// Judges sites that look the same together, each process separately. `processes` are the processes of
    /// `findings`.
    pub fn of(
        profile: &Profile,
        processes: &[ProcessIndex],
        findings: &[Findings],
        shown: FrameVisibility,
        filter: &Filter,
    ) -> Leaks {
        let mut looks = Appearances::of(&profile.stacks, shown);
        let wanted = Wanted::of(&profile.stacks, filter);
        let mut leaks = Gathered::default();
        let leaked: FxHashMap<(ProcessIndex, Option<StackId>), &SiteTotals> = profile
            .sites
            .iter()
            .filter(|site| Measure::Leaked.concerns(&site.totals))
            .map(|site| ((site.process, site.stack), &site.totals))
            .collect();
        for (&index, findings) in processes.iter().zip(findings) {
            let process = &profile.processes[index.0 as usize];
            let run = Trend::slices(process.started_us, process.ended_us);
            let leaked_at = |site: &TrendSite| leaked.get(&(index, site.stack)).copied();
            // Which rows are worth a trend: most sites free what they allocate long before the end.
            let worth = findings.trends.iter().filter(|site| leaked_at(site).is_some() || was_held(site));
            let candidates: FxHashSet<Appearance> = worth.map(|site| looks.of_stack(site.stack).0).collect();
            let mut judged: Vec<(Appearance, &TrendSite)> = Vec::new();
            for site in findings.trends.iter().filter(|site| wanted.includes(site.stack)) {
                let (look, folded) = looks.of_stack(site.stack);
                if candidates.contains(&look) {
                    judged.push((look, site));
                    leaks.meet(look, site.stack, folded);
                }
            }
            // A trend has a hundred slices: one row after the other is judged, as there may be half a million.
            judged.sort_by_key(|(look, _)| *look);
            let mut trend = Trend::new(run);
            for row in judged.chunk_by(|(one, _), (other, _)| one == other) {
                trend.clear();
                let mut sum = (0_u64, 0_u64);
                for (_, site) in row {
                    trend.add(site);
                    let own = leaked_at(site).map_or((0, 0), |own| (own.leaked_bytes, own.leaked_blocks));
                    sum = (sum.0.saturating_add(own.0), sum.1.saturating_add(own.1));
                }
                leaks.judge(row[0].0, &trend, sum);
            }
        }
        leaks.finish()
    }

    /// The verdict on the site that a leaked stack is part of.
    pub fn conclusion(&self, stack: Option<StackId>) -> Option<Verdict> {
        self.by_stack.get(&stack).copied()
    }
}

/// Returns whether nothing was freed before the end, and then something: a site that may have grown until then.
fn was_held(site: &TrendSite) -> bool {
    site.counts.frees_at_end > 0 && site.counts.frees_before_end == 0
}

/// Rows in the making.
#[derive(Default)]
struct Gathered {
    by_look: FxHashMap<Appearance, usize>,
    rows: Vec<PlaceRow<LeakMetrics>>,
    /// What the deciding process leaked, and whether the row grew until it was freed; by row.
    deciding: Vec<((u64, u64), bool)>,
    row_of_stack: FxHashMap<Option<StackId>, usize>,
}

impl Gathered {
    fn meet(&mut self, look: Appearance, stack: Option<StackId>, folded: usize) {
        let row = *self.by_look.entry(look).or_insert_with(|| {
            self.rows.push(PlaceRow { metrics: LeakMetrics::default(), stack, folded });
            self.deciding.push(((0, 0), false));
            self.rows.len() - 1
        });
        self.row_of_stack.insert(stack, row);
    }

    fn judge(&mut self, look: Appearance, trend: &Trend, leaked: (u64, u64)) {
        let row = self.by_look[&look];
        let (metrics, deciding) = (&mut self.rows[row].metrics, &mut self.deciding[row]);
        let counts = trend.counts();
        metrics.first_us = match metrics.verdict {
            None => counts.first_us,
            Some(_) => metrics.first_us.min(counts.first_us),
        };
        metrics.last_us = metrics.last_us.max(counts.last_us);
        metrics.freed_at_end_bytes = metrics.freed_at_end_bytes.saturating_add(counts.freed_bytes_at_end);
        if metrics.verdict.is_none() || leaked > deciding.0 {
            metrics.verdict = Some(trend.verdict());
            *deciding = (leaked, trend.grew_until_freed_at_end());
        }
        metrics.leaked_bytes = metrics.leaked_bytes.saturating_add(leaked.0);
        metrics.leaked_blocks = metrics.leaked_blocks.saturating_add(leaked.1);
    }

    fn finish(self) -> Leaks {
        let mut leaks = Leaks::default();
        for (stack, row) in self.row_of_stack {
            let metrics = &self.rows[row].metrics;
            if let Some(verdict) = metrics.verdict.filter(|_| metrics.leaked_blocks > 0) {
                leaks.by_stack.insert(stack, verdict);
            }
        }
        for (row, (_, grew)) in self.rows.into_iter().zip(self.deciding) {
            match row.metrics.leaked_blocks {
                0 if grew => leaks.freed_at_end.push(row),
                0 => {}
                _ => leaks.leaked.push(row),
            }
        }
        leaks.leaked.sort_by_key(|row| std::cmp::Reverse(row.metrics.leaked_bytes));
        leaks.freed_at_end.sort_by_key(|row| std::cmp::Reverse(row.metrics.freed_at_end_bytes));
        leaks
    }
}
