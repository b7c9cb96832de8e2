//! pprof's protobuf, compressed with gzip, as `go tool pprof` reads it.
//!
//! The four types of samples are those of Go's heap profiles, as far as they are known; what was live at the peak and
//! what was temporary follow as additional types. Sites of several processes are distinguished by a label. There is
//! no label `bytes`: it would be the size of each block of a sample, and a site's blocks differ.

mod cpu;
mod tables;

pub(super) use cpu::write as write_cpu;

use crate::pprof_proto::{self as proto, COMMAND_COMMENT, value};
use flate2::Compression;
use flate2::write::GzEncoder;
use mallow_profile::left_out;
use mallow_profile::{Measure, Profile, Site, SiteTotals, TimeUnit};
use prost::Message;
use std::io::{self, Write};
use tables::{Tables, locations};

/// Writes a profile.
pub(super) fn write(profile: &Profile, measure: Measure, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let message = Tables::new().message(profile, measure);
    let mut packed = GzEncoder::new(out, Compression::default());
    packed.write_all(&message.encode_to_vec())?;
    packed.finish()?;
    let held = ["allocations", "temporary", "peak", "leaked"];
    Ok(left_out::sentence(profile, "a pprof file", &held).into_iter().collect())
}

type OfSite = fn(&SiteTotals) -> u64;

/// A type of samples: its name and unit, the metric, and the measure that selects it.
type Column = (&'static str, &'static str, OfSite, Measure);

fn columns(profile: &Profile) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let known = &profile.known;
    let (count, bytes) = ("count", "bytes");
    if known.allocations {
        columns.push((value::ALLOC_OBJECTS, count, |totals| totals.allocations, Measure::Allocations));
    }
    if known.bytes {
        columns.push((value::ALLOC_SPACE, bytes, |totals| totals.bytes, Measure::Bytes));
    }
    if known.leaked_blocks {
        columns.push((value::INUSE_OBJECTS, count, |totals| totals.leaked_blocks, Measure::Leaked));
    }
    if known.leaked {
        columns.push((value::INUSE_SPACE, bytes, |totals| totals.leaked_bytes, Measure::Leaked));
    }
    if known.peak_blocks {
        columns.push((value::PEAK_OBJECTS, count, |totals| totals.peak_blocks, Measure::Peak));
    }
    if known.peak {
        columns.push((value::PEAK_SPACE, bytes, |totals| totals.peak_bytes, Measure::Peak));
    }
    if known.temporary {
        columns.push((value::TEMPORARY_OBJECTS, count, |totals| totals.temporary, Measure::Temporary));
    }
    columns
}

impl Tables {
    fn message(mut self, profile: &Profile, measure: Measure) -> proto::Profile {
        let columns = columns(profile);
        for (kind, unit, ..) in &columns {
            let value_type = self.value_type(kind, unit);
            self.message.sample_type.push(value_type);
        }
        // Of blocks and bytes, bytes are shown first.
        if let Some((kind, ..)) = columns.iter().rev().find(|(.., asked_by)| *asked_by == measure) {
            self.message.default_sample_type = self.text(kind);
        }
        // Every allocation was recorded: the sampling period is one byte.
        self.message.period_type = Some(self.value_type("space", "bytes"));
        self.message.period = 1;
        self.add_recording(profile);
        self.add_stacks(&profile.stacks, &profile.recording.mapped);
        for site in &profile.sites {
            self.add_sample(profile, site, &columns);
        }
        self.message
    }

    fn add_recording(&mut self, profile: &Profile) {
        let recording = &profile.recording;
        let nanos = |micros: u64| i64::try_from(micros.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.message.time_nanos = nanos(recording.started_unix_us);
        if recording.time_unit == TimeUnit::Microseconds {
            self.message.duration_nanos = nanos(recording.duration_us);
        }
        if !recording.command.is_empty() {
            let comment = self.text(&format!("{COMMAND_COMMENT}{}", recording.command.join(" ")));
            self.message.comment.push(comment);
        }
    }

    fn add_sample(&mut self, profile: &Profile, site: &Site, columns: &[Column]) {
        let values: Vec<i64> = columns
            .iter()
            .map(|(_, _, of_site, _)| i64::try_from(of_site(&site.totals)).unwrap_or(i64::MAX))
            .collect();
        if values.iter().all(|&value| value == 0) {
            return;
        }
        let location_id = match site.stack {
            Some(stack) => locations(&profile.stacks, stack),
            None => vec![self.no_stack()],
        };
        let mut label = Vec::new();
        if profile.processes.len() > 1 {
            let process = &profile.processes[site.process.0 as usize];
            let text = self.text(&format!("{} {}", process.pid, process.command));
            label.push(proto::Label { key: self.text("process"), text, ..proto::Label::default() });
        }
        self.message.sample.push(proto::Sample { location_id, value: values, label });
    }
}
