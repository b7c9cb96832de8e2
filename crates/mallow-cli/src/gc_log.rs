//! `mallow gc-log`: whether a Ruby program's objects or its native memory grow, from a log of its collector.

use crate::args::{LowGcLog, LowRssUnit, TextOrJson};
use crate::destination::Destination;
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
    let output = low.form.output.clone();
    if low.svg.is_some() {
        Destination::of(low.svg.clone(), output.force).text(&svg(&report))?;
    }
    let output = Destination::from(output);
    match low.form.form() {
        TextOrJson::Json => output.pretty_json(&mallow_json::gc_log::document(&report))?,
        TextOrJson::Text => output.text(&text(&report))?,
    }
    Ok(report.weight().exit_code())
}
