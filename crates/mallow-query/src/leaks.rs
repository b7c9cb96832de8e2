//! Verdicts on leaks: which processes are worth a pass over their events.

use crate::failure::Failure;
use crate::passes::{Stop, all_processes, passes};
use crate::profile_file::ProfileFile;
use mallow_profile::analysis::{Plan, Trend};
use mallow_profile::{Measure, Process, ProcessIndex};
use mallow_view::SiteOptions;
use mallow_view::leaks::Leaks;

/// The verdicts on a profile's leaks. What leaks is shown without a verdict where there are no events, so this never fails for
/// want of them.
pub(crate) fn leaks(document: &ProfileFile, sites: SiteOptions<'_>) -> Result<Option<Leaks>, Failure> {
    let profile = &document.profile;
    let concerns = |process: ProcessIndex| {
        let mut own = profile.sites.iter().filter(|site| site.process == process);
        own.any(|site| Measure::Leaked.concerns(&site.totals))
    };
    let leaking: Vec<ProcessIndex> = all_processes(profile).filter(|&process| concerns(process)).collect();
    if leaking.is_empty() {
        return Ok(None);
    }
    let plan = |process: &Process| Plan {
        attribution: document.attribution,
        trends: Some(Trend::slices(process.started_us, process.ended_us)),
        ..Plan::default()
    };
    match passes(document, &leaking, plan) {
        Ok(findings) => Ok(Some(Leaks::of(profile, &leaking, &findings, sites.shown, sites.filter))),
        Err(Stop::NoEvents) => Ok(None),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}
