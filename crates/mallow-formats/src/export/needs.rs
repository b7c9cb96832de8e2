//! The metrics that a profile must have to be written in a format.
//!
//! Some formats have a field for a metric that cannot be left empty. A file whose main metrics would be zeros that
//! were not measured is not written; a missing minor metric is only a warning of the writer.

use super::ExportFormat;
use mallow_profile::{Measure, Profile};

/// Returns why a profile cannot be written in a format; `None` if it can.
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
