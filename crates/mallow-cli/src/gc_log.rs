//! `mallow gc-log`: whether a Ruby program's objects or its native memory grow, from a log of its collector.

mod course;
mod drawing;
mod json;
mod text;

use crate::args::{LowGcLog, LowRssUnit};
use crate::failure::Failure;
use crate::{exit_code, output};
use course::Course;
use mallow_formats::gc_log::{self, Choice, ResidentUnit};
use mallow_growth::Verdict;

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
    let named = |error: gc_log::GcLogError| Failure::new(format!("{}: {error}.", low.file.display()));
    let log = gc_log::read_file(&low.file, &choice).map_err(named)?;
    output::warn(&log.warnings);
    let course = Course::of(&low.file.display().to_string(), &log);
    if let Some(path) = &low.svg {
        let mut file = output::create(path, low.force)?;
        output::to_file(path, &mut file, &drawing::svg(&course))?;
    }
    if low.json {
        let document = json::document(&course);
        output::to_stdout(|out| {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            out.write_all(b"\n")
        })?;
    } else {
        let text = text::text(&course);
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(exit_code_of(course.judgement.verdict))
}

fn exit_code_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Leaking | Verdict::Mappings | Verdict::GrowsWhenIdle => exit_code::FAILED,
        Verdict::Inconclusive | Verdict::Invalid => exit_code::INCONCLUSIVE,
        Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation => exit_code::FINE,
    }
}

#[cfg(test)]
#[path = "gc_log/tests.rs"]
mod tests;
