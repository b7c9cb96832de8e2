//! What a profile must tell for a file of a format to mean anything.
//!
//! Some formats have a place for a metric and no way to leave it empty. A file whose main numbers would be zeros that nobody
//! measured is not written; a lesser metric that is missing is one of the writer's warnings.

use super::ExportFormat;
use mallow_profile::{Measure, Profile};

/// Why a profile cannot be written in a format; none when it can.
pub fn missing(profile: &Profile, format: ExportFormat) -> Option<String> {
    let known = &profile.known;
    let is_timed = profile.processes.iter().any(|process| !process.live_samples.is_empty());
    let (is_met, needed) = match format {
        ExportFormat::Mallow => (true, ""),
        ExportFormat::Dhat => (known.allocations && known.bytes, "numbers of allocations and their bytes"),
        ExportFormat::Massif => (known.peak || known.leaked || is_timed, "live bytes"),
        ExportFormat::JemallocHeap => (known.peak || known.leaked, "live bytes"),
        ExportFormat::Heaptrack | ExportFormat::Firefox => {
            (known.bytes || known.peak || known.leaked, "bytes")
        }
        ExportFormat::Pprof if known.leaked_blocks || known.peak_blocks => (true, ""),
        ExportFormat::Pprof | ExportFormat::Folded | ExportFormat::Speedscope => {
            (Measure::ALL.iter().any(|measure| measure.is_known(known)), "a metric by stack")
        }
    };
    (!is_met)
        .then(|| format!("a {} file needs {needed}, and the profile does not contain that", format.word()))
}
