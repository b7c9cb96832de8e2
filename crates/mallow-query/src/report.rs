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

/// A request for a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// The file.
    pub file: PathBuf,
    /// Which of its processes; `None` for all.
    pub process: Option<ProcessChoice>,
    /// To which stack `realloc`'s blocks are attributed.
    pub attribution: ReallocAttribution,
    /// The kind of reader.
    pub detail: Detail,
    /// The suppressions.
    pub suppressions: SuppressionRequest,
    /// Which part of it.
    pub part: PartRequest,
    /// Whether lines of scripts are shown, and the interpreter's frames around them.
    pub scripts: ScriptFrames,
    /// Which part is shown.
    pub options: ReportOptions,
    /// The analyses that need events.
    pub events: EventOptions,
}

/// The kind of reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// People: stacks without plumbing, and verdicts in every table of leaks.
    Page,
    /// Scripts: whole stacks, and verdicts only if leaks were requested.
    Document,
}

/// A profile, and the contents of its report beside its sums.
#[derive(Debug)]
pub struct Report<'a> {
    request: &'a ReportRequest,
    /// The file, without what was suppressed.
    pub document: ProfileFile,
    /// What was suppressed.
    pub suppressions: AppliedSuppressions,
    /// Verdicts on leaks, if they are shown and there are events.
    pub leaks: Option<Leaks>,
}

impl<'a> Report<'a> {
    /// Reads what the request needs beside the file. Warnings go to the document's.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(request: &'a ReportRequest, mut document: ProfileFile) -> Result<Report<'a>, Failure> {
        let ProfileFile { path, profile, warnings, .. } = &mut document;
        let suppressions = apply(profile, path, &request.suppressions, warnings)?;
        request.scripts.keep_in(&mut document.profile.stacks);
        let mut report = Report { request, document, suppressions, leaks: None };
        if report.has_verdicts() {
            report.leaks = leaks(&report.document, report.sites())?;
        }
        Ok(report)
    }

    /// Returns the measure by which rows are sorted, if one was requested.
    pub fn asked_measure(&self) -> Option<Measure> {
        self.request.options.layout.key().map(SortKey::weight)
    }

    /// Returns its subject.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            profile: &self.document.profile,
            file: &self.document.path,
            origin: self.document.origin(),
            suppressions: &self.suppressions,
            leaks: self.leaks.as_ref(),
            part: self.document.part.as_ref(),
        }
    }

    /// Returns how sites in windows and leaks are shown.
    pub fn sites(&self) -> SiteOptions<'a> {
        let options = &self.request.options;
        let shown = match self.request.detail {
            Detail::Page => options.shown,
            Detail::Document => FrameVisibility::All,
        };
        SiteOptions { shown, filter: &options.filter, limit: options.limit }
    }

    /// Returns the analyses of events. A time line has this number of slices.
    ///
    /// # Errors
    /// There are no events, or the requested window or process does not exist.
    pub fn events(&self, slices: usize) -> Result<EventReport<'_>, Failure> {
        event_report(&self.document, &self.request.events, self.sites(), slices)
    }

    fn has_verdicts(&self) -> bool {
        let ReportRequest { options, detail, events, .. } = self.request;
        let is_wanted = *detail == Detail::Page || options.layout.key().is_some();
        is_wanted && options.layout.has_leak_table() && !events.is_asked()
    }
}
