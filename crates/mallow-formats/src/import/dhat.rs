//! DHAT's JSON, of Valgrind or of the crate dhat, versions 1 and 2.
//!
//! The format is described in the notes of Valgrind's `dhat/dh_main.c`. A file's program points become sites, without
//! the allocating function at their leaf. Where DHAT's counting differs from the counting rules, its counts are kept:
//! a `realloc` is attributed to the place where the block was first allocated, a request of no bytes counts as 1
//! byte, and what Valgrind lets libc free at the very end is not leaked. It must never allocate memory according to a
//! number in the file.

mod cut;
mod header;
mod points;

use crate::source::Source;
use crate::{Format, ImportError, Imported, Position};
use header::{Header, Version};
use mallow_profile::{Availability, Process, ProfileBuilder, Recording, TimeUnit};
use points::Points;
use serde::de::DeserializeSeed;
use serde_json::error::Category;

/// Parses a file.
pub(crate) fn read(source: Source<'_>) -> Result<Imported, ImportError> {
    let bytes = source.whole(Format::Dhat)?;
    let mut warnings = Vec::new();
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            warnings.push(String::from("bytes of the file that are not UTF-8 were replaced"));
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
    };
    let mut version = serde_json::from_str::<Version>(&text);
    let is_cut = version.as_ref().is_err_and(|error| ends_early(error, &text)) && cut::close(&mut text);
    if is_cut {
        version = serde_json::from_str(&text);
    }
    let damaged = |error: serde_json::Error| damaged(&error, &text);
    version.map_err(damaged)?.check()?;
    let header: Header = serde_json::from_str(&text).map_err(damaged)?;
    header.check()?;

    let (time_unit, times_known) = header.time_unit(&mut warnings);
    let time = |time: Option<u64>| if times_known { time.unwrap_or_default() } else { 0 };
    let known = Availability {
        allocations: true,
        bytes: true,
        peak: header.has_lifetimes(),
        peak_blocks: header.has_lifetimes(),
        leaked: header.has_lifetimes(),
        leaked_blocks: header.has_lifetimes(),
        own_maximum: header.has_lifetimes(),
        own_maximum_blocks: header.has_lifetimes(),
        lifetimes: header.has_lifetimes() && times_known,
        accesses: header.has_accesses(),
        ..Availability::NOTHING
    };
    let mut builder = ProfileBuilder::new(header.recording(time_unit, time(header.ended)), known);
    let process = builder.add_process(Process {
        pid: header.pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default(),
        command: header.command(),
        ended_us: time(header.ended),
        peak_us: time(header.peak),
        ..Process::default()
    });

    let mut points = Points::new(&header, &mut builder, process, times_known, text.len() as u64);
    points.may_lack_frames(is_cut);
    let mut reader = serde_json::Deserializer::from_str(&text);
    (&mut points).deserialize(&mut reader).and_then(|()| reader.end()).map_err(damaged)?;
    let found = points.finish(known);
    builder.process(process).totals = found.totals;
    warnings.extend(found.warnings);
    Ok(Imported { profile: builder.finish(), warnings, complete: !is_cut })
}

/// Returns whether the rest of a text is missing, be it the digits of its last number.
fn ends_early(error: &serde_json::Error, text: &str) -> bool {
    error.is_eof() || (error.is_syntax() && text.trim_end().ends_with('-'))
}

impl Header {
    fn recording(&self, time_unit: TimeUnit, duration: u64) -> Recording {
        let command = self.command();
        Recording {
            command: command.split_ascii_whitespace().map(str::to_owned).collect(),
            duration_us: duration,
            time_unit,
            ..Recording::default()
        }
    }
}

/// Returns the position and the message of a JSON error.
fn damaged(error: &serde_json::Error, text: &str) -> ImportError {
    let position = match error.line() {
        // A file may be a single line, which would say nothing.
        0 | 1 => Position::Byte((error.column().max(1) - 1).min(text.len()) as u64),
        line => Position::Line(line as u64),
    };
    let expected = match error.classify() {
        Category::Eof => String::from("the rest of the file"),
        Category::Syntax | Category::Io => String::from("JSON"),
        Category::Data => expected_by(&error.to_string()),
    };
    ImportError::Damaged { format: Format::Dhat, position, expected }
}

/// Returns what was expected, in the words of the JSON library or in ours.
fn expected_by(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("the field {field}");
    }
    if let Some(field) = message.strip_prefix("duplicate field ") {
        return format!("one field {field} and not two");
    }
    match message.rsplit_once(", expected ") {
        Some((_, "u64")) => String::from("a whole number below 2^64"),
        Some((_, "u32")) => String::from("a whole number below 2^32"),
        Some((_, "a sequence")) => String::from("a list"),
        Some((_, expected)) => expected.to_owned(),
        None => message.to_owned(),
    }
}
