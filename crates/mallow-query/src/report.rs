//! What a report is made of.

use crate::events::{EventOptions, event_report};
use crate::failure::Failure;
use crate::leaks::leaks;
use crate::part::PartRequest;
use crate::processes::ProcessChoice;
use crate::profile_file::ProfileFile;
use crate::suppressions::{SuppressionRequest, apply};
use mallow_profile::ReallocAttribution;
use mallow_view::leaks::Leaks;
use mallow_view::{
    AppliedSuppressions, EventReport, FrameVisibility, Measure, ReportOptions, ScriptFrames, SiteOptions,
    SortKey, Subject,
};
use std::path::PathBuf;

/// What is asked of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// The file.
    pub file: PathBuf,
    /// Which of its processes; none for all.
    pub process: Option<ProcessChoice>,
    /// Where `realloc`'s blocks count.
    pub attribution: ReallocAttribution,
    /// Who reads it.
    pub detail: Detail,
    /// Which leaks are known.
    pub suppressions: SuppressionRequest,
    /// Which part of it.
    pub part: PartRequest,
    /// Whether lines of scripts are shown, and the interpreter around them.
    pub scripts: ScriptFrames,
    /// Which part is shown.
    pub options: ReportOptions,
    /// What only events tell.
    pub events: EventOptions,
}

/// Who reads a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// People: stacks without plumbing, and verdicts in every table of leaks.
    Page,
    /// Scripts: whole stacks, and verdicts only where leaks were asked for.
    Document,
}

/// A profile, and what a report says of it beside its sums.
#[derive(Debug)]
pub struct Report<'a> {
    request: &'a ReportRequest,
    /// The file, without what was suppressed.
    pub document: ProfileFile,
    /// What was suppressed.
    pub suppressions: AppliedSuppressions,
    /// Verdicts on leaks, where they are shown and events tell.
    pub leaks: Option<Leaks>,
}

impl<'a> Report<'a> {
    /// Reads what the request needs beside the file. Warnings go to the document's.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(request: &'a ReportRequest, mut document: ProfileFile) -> Result<Report<'a>, Failure> {
        let suppressions = apply(&mut document.profile, &request.suppressions, &mut document.warnings)?;
        request.scripts.keep_in(&mut document.profile.stacks);
        let mut report = Report { request, document, suppressions, leaks: None };
        if report.has_verdicts() {
            report.leaks = leaks(&report.document, report.sites())?;
        }
        Ok(report)
    }

    /// The measure that rows are to be sorted by, if one was asked for.
    pub fn asked_measure(&self) -> Option<Measure> {
        self.request.options.layout.key().map(SortKey::weight)
    }

    /// What it is about.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            profile: &self.document.profile,
            origin: self.document.origin(),
            suppressions: &self.suppressions,
            leaks: self.leaks.as_ref(),
            part: self.document.part.as_ref(),
        }
    }

    /// What is shown of sites in windows and of leaks.
    pub fn sites(&self) -> SiteOptions<'a> {
        let options = &self.request.options;
        let shown = match self.request.detail {
            Detail::Page => options.shown,
            Detail::Document => FrameVisibility::All,
        };
        SiteOptions { shown, filter: &options.filter, limit: options.limit }
    }

    /// What events tell. A time line has so many slices.
    ///
    /// # Errors
    /// There are no events, or a window or a process is asked for that there is not.
    pub fn events(&self, slices: usize) -> Result<EventReport<'_>, Failure> {
        event_report(&self.document, &self.request.events, self.sites(), slices)
    }

    fn has_verdicts(&self) -> bool {
        let ReportRequest { options, detail, events, .. } = self.request;
        let is_wanted = *detail == Detail::Page || options.layout.key().is_some();
        is_wanted && options.layout.has_leak_table() && !events.is_asked()
    }
}
