//! What the trend of a site's live memory says about what it leaked.

use crate::dense::Dense;
use crate::looks::{Appearance, Appearances};
use crate::sites::Wanted;
use crate::{Filter, FrameVisibility, PlaceRow};
use mallow_profile::analysis::{Findings, Trend, TrendSite, Verdict};
use mallow_profile::{Measure, ProcessIndex, Profile, Site, StackId};

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
    by_stack: Dense<Option<Verdict>>,
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
        let mut looks = Appearances::of_all(&profile.stacks, shown);
        let wanted = Wanted::of(&profile.stacks, filter);
        let mut leaks = Gathered::default();
        let leaking = |site: &&Site| Measure::Leaked.concerns(&site.totals);
        let mut sites: Vec<&Site> = profile.sites.iter().filter(leaking).collect();
        sites.sort_by_key(|site| site.process);
        let mut leaked: Dense<(u64, u64)> = Dense::default();
        // By appearance the last process, counted from 1, that has a row which is worth a trend.
        let mut candidates: Dense<u32> = Dense::default();
        for ((&index, findings), turn) in processes.iter().zip(findings).zip(1..) {
            let own = sites_of(&sites, index);
            for site in own {
                *leaked.at(number_of(site.stack)) = (site.totals.leaked_bytes, site.totals.leaked_blocks);
            }
            // Most sites free what they allocate long before the end.
            for site in &findings.trends {
                if leaked.get(number_of(site.stack)) != (0, 0) || was_held(site) {
                    *candidates.at(looks.of_stack(site.stack).0) = turn;
                }
            }
            let mut judged: Vec<(Appearance, &TrendSite)> = Vec::new();
            for site in findings.trends.iter().filter(|site| wanted.includes(site.stack)) {
                let (look, folded) = looks.of_stack(site.stack);
                if candidates.get(look) == turn {
                    judged.push((look, site));
                    leaks.meet(look, site.stack, folded);
                }
            }
            // A trend has a hundred slices: one row after the other is judged, as there may be half a million.
            judged.sort_by_key(|(look, _)| *look);
            let process = &profile.processes[index.0 as usize];
            let mut trend = Trend::new(Trend::slices(process.started_us, process.ended_us));
            for row in judged.chunk_by(|(one, _), (other, _)| one == other) {
                trend.clear();
                let mut sum = (0_u64, 0_u64);
                for (_, site) in row {
                    trend.add(site);
                    let own = leaked.get(number_of(site.stack));
                    sum = (sum.0.saturating_add(own.0), sum.1.saturating_add(own.1));
                }
                leaks.judge(row[0].0, &trend, sum);
            }
            for site in own {
                *leaked.at(number_of(site.stack)) = (0, 0);
            }
        }
        leaks.finish()
    }

    /// The verdict on the site that a leaked stack is part of.
    pub fn conclusion(&self, stack: Option<StackId>) -> Option<Verdict> {
        self.by_stack.get(number_of(stack))
    }
}

fn number_of(stack: Option<StackId>) -> Option<u32> {
    stack.map(|stack| stack.0)
}

/// The sites of a process; they are sorted by it.
fn sites_of<'s, 'p>(sites: &'s [&'p Site], process: ProcessIndex) -> &'s [&'p Site] {
    let begin = sites.partition_point(|site| site.process < process);
    let end = sites.partition_point(|site| site.process <= process);
    &sites[begin..end]
}

/// Returns whether nothing was freed before the end, and then something: a site that may have grown until then.
fn was_held(site: &TrendSite) -> bool {
    site.counts.frees_at_end > 0 && site.counts.frees_before_end == 0
}

/// Rows in the making.
#[derive(Default)]
struct Gathered {
    /// By appearance, counted from 1.
    row_of_look: Dense<u32>,
    rows: Vec<PlaceRow<LeakMetrics>>,
    /// What the deciding process leaked, and whether the row grew until it was freed; by row.
    deciding: Vec<((u64, u64), bool)>,
    /// Counted from 1.
    row_of_stack: Dense<u32>,
}

impl Gathered {
    fn meet(&mut self, look: Appearance, stack: Option<StackId>, folded: usize) {
        let row = self.row_of_look.at(look);
        if *row == 0 {
            self.rows.push(PlaceRow { metrics: LeakMetrics::default(), stack, folded });
            self.deciding.push(((0, 0), false));
            *row = self.rows.len() as u32;
        }
        *self.row_of_stack.at(number_of(stack)) = *row;
    }

    fn judge(&mut self, look: Appearance, trend: &Trend, leaked: (u64, u64)) {
        let row = self.row_of_look.get(look) as usize - 1;
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
        let by_stack = self.row_of_stack.map(|row| {
            let metrics = &self.rows[(row as usize).checked_sub(1)?].metrics;
            metrics.verdict.filter(|_| metrics.leaked_blocks > 0)
        });
        let mut leaks = Leaks { by_stack, ..Leaks::default() };
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
