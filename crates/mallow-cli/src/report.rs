//! `mallow report`: shows a profile as tables, trees or JSON.

mod cpu;
mod request;

pub(crate) use request::ReportCommand;

use crate::args::ReportForm;
use crate::busy::busy;
use crate::destination::Destination;
use crate::{exit_code, opening, output};
use mallow_base::grouped;
use mallow_json::events::{EventsJson, WithEvents};
use mallow_json::report::ReportJson;
use mallow_query::{AnyFile, Detail, Failure, Report, ReportRequest, choose, with_source};
use mallow_text::report::known_leaks;
use mallow_text::report::leaks::freed_at_end;
use mallow_text::{Style, events, report};
use mallow_view::{Measure, annotated};

/// The number of slices of a time line in JSON.
const JSON_SLICES: usize = 100;

/// Frames of a document whose size nobody minds: some 40 MB.
const FRAMES_FEW: u64 = 250_000;

/// Shows a profile.
pub(crate) fn run(command: &ReportCommand) -> Result<u8, Failure> {
    if command.lists_known_leaks {
        command.output.page(&known_leaks(command.output.style()))?;
        return Ok(exit_code::FINE);
    }
    let request = &command.heap;
    let mut file = opening::profile(&request.file, request.attribution)?;
    if let AnyFile::Cpu(file) = file {
        return cpu::run(&command.cpu, command.compact, *file, &command.output);
    }
    file.keep(request.process.as_ref())?;
    let AnyFile::Heap(file) = file else { return Ok(exit_code::FINE) };
    if let Some(asked) = &command.only_cpu {
        return Err(Failure::new(format!(
            "{} is a heap profile, and {asked} is for profiles of mallow cpu.",
            request.file.display()
        )));
    }
    let mut file = file;
    let analysing = busy(format!("analysing {}", request.file.display()));
    file.keep_part(&request.part)?;
    let report = Report::of(request, *file)?;
    drop(analysing);
    if let Some(wanted) = &command.cpu.annotate {
        return annotate(&report, wanted, &command.output);
    }
    output::warn(&report.document.warnings);
    let output = &command.output;
    match request.detail {
        Detail::Page => output.page(&text(request, &report, output.style())?)?,
        Detail::Document => {
            let mut document = json(command, &report)?;
            say_if_huge(document.report.frames_written());
            match command.cpu.form {
                ReportForm::Ndjson => {
                    let sites = document.report.take_sites();
                    output.ndjson(&document, "sites", sites.each())?;
                }
                _ => output.write(|out| document.write_line(out))?,
            }
        }
    }
    Ok(exit_code::FINE)
}

/// Shows the lines of a function with what they allocated.
fn annotate(report: &Report<'_>, wanted: &str, output: &Destination) -> Result<u8, Failure> {
    crate::output::warn(&report.document.warnings);
    let document = &report.document;
    let preferred = [Measure::Bytes].into_iter().chain(Measure::ALL);
    let by = choose(report.asked_measure(), preferred, &[(&document.path, &document.profile)])?;
    let functions = with_source(annotated(&document.profile, wanted, by));
    let whole = by.of_totals(&document.profile.totals());
    output.page(&mallow_text::cpu::annotated(&functions, by, whole, wanted, output.style()))?;
    Ok(exit_code::FINE)
}

fn text(request: &ReportRequest, report: &Report<'_>, style: Style) -> Result<String, Failure> {
    if request.events.is_asked() {
        let _analysing = busy(format!("analysing {}", request.file.display()));
        let rows = report.events(style.width.saturating_sub(events::GUTTER))?;
        return Ok(events::text(&rows, report.sites(), style));
    }
    let options = &request.options;
    let mut text = report::report(&report.subject(), options, style);
    if let Some(leaks) = report.leaks.as_ref().filter(|_| options.layout.key().is_some()) {
        text += &freed_at_end(&report.document.profile, leaks, options.limit, style);
    }
    Ok(text)
}

/// Says how a document becomes smaller in which stacks repeat frames many times, as those of scripts do.
fn say_if_huge(frames: u64) {
    if frames > FRAMES_FEW {
        output::note(&[format!(
            "the stacks of this document repeat their frames, {} in all; --compact writes each frame once",
            grouped(frames)
        )]);
    }
}

fn json<'a>(command: &ReportCommand, report: &'a Report<'_>) -> Result<WithEvents<'a>, Failure> {
    let request = &command.heap;
    let document = &report.document;
    let limit = request.options.limit.unwrap_or(usize::MAX);
    let events = match &report.leaks {
        _ if request.events.is_asked() => EventsJson::of(report.events(JSON_SLICES)?, limit),
        Some(leaks) => EventsJson::of_leaks(&document.profile, leaks, limit),
        None => EventsJson::default(),
    };
    let (complete, warnings) = (document.complete, &document.warnings);
    let report = ReportJson::of(&report.subject(), &request.options, command.compact, complete, warnings);
    Ok(WithEvents { report, events })
}
