//! Writes CPU profiles in the formats of other tools.

use super::{ExportFormat, Packing, firefox, folded, packing, pprof, speedscope};
use mallow_cpu::{CpuMetric, CpuProfile};
use std::io::{self, Write};

/// The formats that can hold a CPU profile.
const FORMATS: [ExportFormat; 4] =
    [ExportFormat::Pprof, ExportFormat::Folded, ExportFormat::Speedscope, ExportFormat::Firefox];

/// Returns why a CPU profile cannot be written in a format; `None` if it can.
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

/// Writes a CPU profile; returns warnings about what the format cannot hold. `metric` is that of a format that holds
/// only one, or the one that is shown first.
///
/// # Errors
/// The errors of `out`, and the reasons of [`missing_of_cpu`].
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
