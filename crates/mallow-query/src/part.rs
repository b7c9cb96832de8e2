//! A part of a profile in the place of the whole: a window of its time, and what a filter wants.
//!
//! Sums by stack tell which functions, files, modules, languages and processes are wanted. For a window, for threads and for sizes of blocks the
//! events are gone through, once.

use crate::events::{EventOptions, Moment, without_events};
use crate::failure::Failure;
use crate::filtered::Filtered;
use crate::passes::{Stop, all_processes, passes};
use crate::profile_file::ProfileFile;
use crate::proportion::keep_in_proportion;
use mallow_cpu::CpuProfile;
use mallow_formats::Format;
use mallow_profile::analysis::{Plan, Window};
use mallow_profile::{Process, ProcessIndex, Profile, Site, SiteTotals, Totals};
use mallow_stacks::StackProfile;
use mallow_view::filter::{Expression, Matching, ProcessName, ThreadName};
use mallow_view::{PartOf, PartWindow};
use std::path::Path;

/// The requested part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartRequest {
    /// From here on.
    pub from: Option<Moment>,
    /// Up to here.
    pub to: Option<Moment>,
    /// What was live at this moment, and what happened before.
    pub at: Option<Moment>,
    /// The filter.
    pub filter: Option<Expression>,
}

impl PartRequest {
    /// Returns whether a part of the time is requested.
    pub fn is_windowed(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.at.is_some()
    }

    fn window(&self, profile: &Profile) -> Result<Window, Failure> {
        let (from, to, at) = (self.from, self.to, self.at);
        EventOptions { from, to, at, ..EventOptions::default() }.window(profile)
    }
}

impl ProfileFile {
    /// Keeps only a part.
    ///
    /// # Errors
    /// The file does not contain the requested data.
    pub fn keep_part(&mut self, asked: &PartRequest) -> Result<(), Failure> {
        if *asked == PartRequest::default() {
            return Ok(());
        }
        if let Some(expression) = &asked.filter {
            self.filtered = Some(self.filtered(expression)?);
        }
        let whole = self.profile.beyond(&SiteTotals::default());
        let mut shown = None;
        let needs_events = asked.filter.as_ref().is_some_and(Expression::needs_events);
        if asked.is_windowed() || needs_events {
            let window = asked.window(&self.profile)?;
            self.replay(window)?;
            let ProfileFile { path, profile, warnings, .. } = self;
            keep_in_proportion(path, &mut profile.stacks, &profile.sites, warnings);
            let of_us = self.profile.recording.duration_us;
            let part = PartWindow { from_us: window.from_us, to_us: window.to_us.min(of_us), of_us };
            shown = asked.is_windowed().then_some(part);
        } else if let Some(Filtered { matching, .. }) = &self.filtered {
            keep_wanted(&mut self.profile, matching);
        }
        if asked.filter.is_some() {
            self.drop_empty_processes();
        }
        let filter = asked.filter.as_ref().map(ToString::to_string);
        self.part = Some(PartOf { window: shown, filter, whole });
        Ok(())
    }

    fn filtered(&self, expression: &Expression) -> Result<Filtered, Failure> {
        let has_threads = self.profile.processes.iter().any(|process| !process.threads.is_empty());
        if expression.asks_for_threads() && !has_threads {
            return Err(Failure::new(format!(
                "{} has no threads, which --filter requires.",
                self.path.display()
            )));
        }
        if expression.asks_for_requests() && !self.profile.knows_requests() {
            return Err(Failure::new(format!(
                "{} does not tell how blocks were requested, which --filter requires.",
                self.path.display()
            )));
        }
        let processes = self
            .profile
            .processes
            .iter()
            .map(|process| ProcessName { pid: process.pid, command: &process.command });
        let matching = Matching::of(expression, &self.profile.stacks, processes);
        let matching = matching.with_requests(&self.profile.requests);
        Ok(Filtered::new(matching, self.profile.processes.len()))
    }

    /// Takes the sums of a window and of what is wanted from the events.
    fn replay(&mut self, window: Window) -> Result<(), Failure> {
        let processes: Vec<ProcessIndex> = all_processes(&self.profile).collect();
        let plan = |process: &Process| Plan {
            attribution: self.attribution,
            window,
            part_until_us: Some(process.ended_us),
            ..Plan::default()
        };
        let found = passes(self, &processes, plan).map_err(|stop| match stop {
            Stop::NoEvents => without_events(self),
            Stop::Failed(failure) => failure,
        })?;
        self.profile.sites.clear();
        // Events do not say it.
        self.profile.requests.forget();
        for (index, mut findings) in processes.into_iter().zip(found) {
            let process = &mut self.profile.processes[index.0 as usize];
            if window.to_us < u64::MAX && process.ended_us < window.to_us {
                findings.end_before_window();
            }
            let Some(part) = findings.part else { continue };
            (process.totals, process.peak_us, process.frees_unmatched) = (part.totals, part.peak_us, 0);
            let sites = part.sites.into_iter();
            self.profile.sites.extend(sites.map(|(stack, totals)| Site { process: index, stack, totals }));
        }
        if self.format != Format::Mallow {
            // The rule of another tool, by what its file says of its events.
            self.profile.known.temporary = false;
        }
        Ok(())
    }

    /// Leaves out processes of which nothing is wanted.
    fn drop_empty_processes(&mut self) {
        let has_any = |index: &ProcessIndex| self.profile.sites.iter().any(|site| site.process == *index);
        let kept: Vec<ProcessIndex> = all_processes(&self.profile).filter(has_any).collect();
        if !kept.is_empty() {
            self.keep_indices(&kept);
        }
    }
}

/// Keeps only matching sites, and makes their sums the totals. Metrics that no site has become unavailable.
fn keep_wanted(profile: &mut Profile, matching: &Matching) {
    profile.sites.retain(|site| matching.wants(site.process, site.stack, 0, 0));
    let mut sums = vec![SiteTotals::default(); profile.processes.len()];
    for site in &profile.sites {
        sums[site.process.0 as usize].add(&site.totals);
    }
    for (process, sum) in profile.processes.iter_mut().zip(sums) {
        process.frees_unmatched = 0;
        process.totals = Totals {
            allocations: sum.allocations,
            bytes: sum.bytes,
            frees: 0,
            reallocations: sum.reallocations,
            temporary: sum.temporary,
            failed: sum.failed,
            peak_bytes: sum.peak_bytes,
            peak_blocks: sum.peak_blocks,
            leaked_bytes: sum.leaked_bytes,
            leaked_blocks: sum.leaked_blocks,
        };
    }
    profile.known.calls = false;
}

/// Keeps only the part of a CPU profile that a filter selects.
///
/// # Errors
/// The file does not contain the requested data.
pub(crate) fn keep_wanted_time(
    profile: &mut CpuProfile,
    path: &Path,
    expression: &Expression,
) -> Result<(), Failure> {
    let path = path.display();
    if expression.asks_for_sizes() {
        return Err(Failure::new(format!("{path} is a CPU profile, which has no sizes for --filter.")));
    }
    if expression.asks_for_requests() {
        return Err(Failure::new(format!("{path} is a CPU profile, which has no requests for --filter.")));
    }
    if expression.asks_for_threads() && profile.samples.is_empty() {
        return Err(Failure::new(format!("{path} has no threads, which --filter requires.")));
    }
    let CpuProfile { stacks, processes, threads, samples, sites, .. } = &mut *profile;
    let names = processes.iter().map(|process| {
        let command = if process.program.is_empty() { &process.name } else { &process.program };
        ProcessName { pid: process.pid, command }
    });
    let matching = Matching::of(expression, stacks, names);
    if samples.is_empty() {
        sites.retain(|site| matching.wants(site.process, site.stack, 0, 0));
        return Ok(());
    }
    let of_threads: Vec<u64> = threads
        .iter()
        .map(|thread| matching.thread(ThreadName { tid: thread.tid, name: &thread.name }))
        .collect();
    samples.retain(|sample| {
        let at = sample.thread.0 as usize;
        let process = threads.get(at).map_or(ProcessIndex(0), |thread| thread.process);
        matching.wants(process, sample.stack, of_threads.get(at).copied().unwrap_or(0), 0)
    });
    profile.sites = profile.sums(profile.samples.iter());
    Ok(())
}
