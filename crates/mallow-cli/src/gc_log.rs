//! `mallow gc-log`: whether a Ruby program's objects or its native memory grow, from a log of its collector.

use crate::args::{LowGcLog, LowRssUnit};
use crate::output;
use mallow_formats::gc_log::{Choice, ResidentUnit};
use mallow_query::{Failure, gc_log};
use mallow_text::gc_log::{svg, text};

/// Reads, judges, shows.
pub(crate) fn run(low: &LowGcLog) -> Result<u8, Failure> {
    let choice = Choice {
        resident: low.rss.clone(),
        resident_unit: low.rss_unit.map(|unit| match unit {
            LowRssUnit::Kib => ResidentUnit::Kibibytes,
            LowRssUnit::Bytes => ResidentUnit::Bytes,
        }),
        requests: low.requests.clone(),
    };
    let report = gc_log::judge(&low.file, &choice)?;
    output::warn(&report.warnings);
    if let Some(path) = &low.svg {
        let mut file = output::create(path, low.force)?;
        output::to_file(path, &mut file, &svg(&report))?;
    }
    if low.json {
        let document = mallow_json::gc_log::document(&report);
        output::to_stdout(|out| {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            out.write_all(b"\n")
        })?;
    } else {
        let text = text(&report);
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(report.weight().exit_code())
}
