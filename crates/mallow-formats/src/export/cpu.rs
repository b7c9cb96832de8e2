//! Profiles of a processor's time as other tools' files.

use super::{ExportFormat, Packing, firefox, folded, packing, pprof, speedscope};
use mallow_cpu::{CpuMetric, CpuProfile};
use std::io::{self, Write};

/// The formats that hold such a profile.
const FORMATS: [ExportFormat; 4] =
    [ExportFormat::Pprof, ExportFormat::Folded, ExportFormat::Speedscope, ExportFormat::Firefox];

/// Why a profile of a processor's time cannot be written in a format; none when it can.
pub fn missing_of_cpu(format: ExportFormat) -> Option<String> {
    let words: Vec<&str> = FORMATS.iter().map(|format| format.word()).collect();
    (!FORMATS.contains(&format)).then(|| {
        format!(
            "a {} file is a heap profile, and this is a CPU profile; use one of {}",
            format.word(),
            words.join(", ")
        )
    })
}

/// Writes a profile of a processor's time; gives sentences about what the format could not hold. `metric` is that of a format that holds
/// only one, or what is shown first.
///
/// # Errors
/// What `out` refused, and what [`missing_of_cpu`] says.
pub fn write_cpu(
    profile: &CpuProfile,
    format: ExportFormat,
    metric: CpuMetric,
    packing: Packing,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    packing::packed(format, packing, out, |out| match format {
        ExportFormat::Pprof => pprof::write_cpu(profile, metric, out),
        ExportFormat::Folded => folded::write(profile, metric, out),
        ExportFormat::Speedscope => speedscope::write_cpu(profile, metric, out),
        ExportFormat::Firefox => firefox::write_cpu(profile, out),
        other => Err(io::Error::new(io::ErrorKind::InvalidInput, missing_of_cpu(other).unwrap_or_default())),
    })
}
