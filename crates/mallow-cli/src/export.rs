//! `mallow export`: writes a profile in another tool's format.

use crate::args::AnyMeasure;
use crate::request::Export;
use crate::{exit_code, opening, output};
use mallow_formats::export::{self, ExportFormat, ExportOptions, Packing};
use mallow_profile::{Profile, ReallocAttribution};
use mallow_query::{AnyFile, CpuFile, Failure, ProfileFile, choose, no_time};
use mallow_stacks::Stacks;
use mallow_view::{Measure, ScriptFrames};
use std::io::{IsTerminal, Write};

/// Reads the profile and writes it.
pub(crate) fn run(request: &Export) -> Result<u8, Failure> {
    if request.output.file().is_none() && request.format.is_packed() && std::io::stdout().is_terminal() {
        let word = request.format.word();
        return Err(Failure::new(format!(
            "a {word} file is not for a terminal; write it to a file with -o."
        )));
    }
    let mut file = opening::profile(&request.file, ReallocAttribution::OwnSite)?;
    file.keep(request.process.as_ref())?;
    file.keep_part(&request.part)?;
    match file {
        AnyFile::Heap(mut document) => {
            keep_frames(request, &mut document.profile.stacks);
            if request.is_redacted {
                document.profile.redact();
            }
            of_heap(request, &mut document)
        }
        AnyFile::Cpu(mut document) => {
            keep_frames(request, &mut document.profile.stacks);
            if request.is_redacted {
                document.profile.redact();
            }
            of_cpu(request, &document)
        }
    }
}

/// Removes the frames that are not requested.
fn keep_frames(request: &Export, stacks: &mut Stacks) {
    let scripts = if request.is_native { ScriptFrames::LeftOut } else { ScriptFrames::All };
    scripts.keep_in(stacks);
    if !request.has_inlined {
        stacks.leave_out_inlined();
    }
}

fn of_heap(request: &Export, document: &mut ProfileFile) -> Result<u8, Failure> {
    output::warn(&document.warnings);
    if request.format == ExportFormat::Massif {
        document.add_live_samples()?;
    }
    let profile = &document.profile;
    if let Some(reason) = export::missing(profile, request.format) {
        return Err(Failure::new(format!("cannot export {}: {reason}.", request.file.display())));
    }
    if let Some(events) = document.exported_events(request.format)? {
        return written(request, |packing, out| {
            export::write_with_events(profile, request.format, events, packing, out)
        });
    }
    let options = ExportOptions { measure: measure(request, profile)? };
    written(request, |packing, out| export::write_packed(profile, request.format, &options, packing, out))
}

fn of_cpu(request: &Export, document: &CpuFile) -> Result<u8, Failure> {
    output::warn(&document.warnings);
    if let Some(reason) = export::missing_of_cpu(request.format) {
        return Err(Failure::new(format!("cannot export {}: {reason}.", request.file.display())));
    }
    let asked = match request.measure {
        Some(AnyMeasure::Heap(measure)) => {
            return Err(document.has_no_heap_metrics(&format!("--metric {}", measure.word())));
        }
        Some(AnyMeasure::Cpu(metric)) => Some(metric),
        None => None,
    };
    let metric = document.choose(asked)?;
    written(request, |packing, out| {
        export::write_cpu(&document.profile, request.format, metric, packing, out)
    })
}

/// Writes to the requested destination.
fn written(
    request: &Export,
    write: impl FnOnce(Packing, &mut dyn Write) -> std::io::Result<Vec<String>>,
) -> Result<u8, Failure> {
    let mut warnings = Vec::new();
    let packing = request.output.file().map_or(Packing::Plain, |new| Packing::of_path(&new.path));
    request.output.write(|out| {
        warnings = write(packing, out)?;
        Ok(())
    })?;
    output::warn(&warnings);
    Ok(exit_code::FINE)
}

/// Returns the metric of a format that holds only one, or that it shows first; other formats ignore it.
fn measure(request: &Export, profile: &Profile) -> Result<Measure, Failure> {
    if request.format == ExportFormat::Mallow {
        return Ok(Measure::Bytes);
    }
    let order = std::iter::once(Measure::Bytes).chain(Measure::ALL);
    let asked = match request.measure {
        Some(AnyMeasure::Cpu(metric)) => return Err(no_time(&request.file, metric.word())),
        Some(AnyMeasure::Heap(measure)) => Some(measure),
        None => None,
    };
    choose(asked, order, &[(&request.file, profile)])
}
