//! pprof's protobuf, packed with gzip, as `go tool pprof` reads it.
//!
//! The four types of samples are those of Go's heap profiles, as far as they are known; what was live at the peak and what was temporary
//! come as types of their own behind them. Sites of several processes keep apart by a label. There is no label `bytes`: it says how
//! large each block of a sample is, and a site's blocks differ.

use super::layout::{Layout, is_named};
use super::left_out;
use crate::import::NO_STACK;
use crate::pprof_proto::{self as proto, COMMAND_COMMENT, value};
use flate2::Compression;
use flate2::write::GzEncoder;
use mallow_base::Frame;
use mallow_profile::{Address, Location, Measure, Profile, Site, SiteTotals, StackId, TimeUnit};
use prost::Message;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Writes a profile.
pub(super) fn write(profile: &Profile, measure: Measure, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let message = Writer::default().message(profile, measure);
    let mut packed = GzEncoder::new(out, Compression::default());
    packed.write_all(&message.encode_to_vec())?;
    packed.finish()?;
    let held = ["allocations", "temporary", "peak", "leaked"];
    Ok(left_out::sentence(profile, "a pprof file", &held).into_iter().collect())
}

type OfSite = fn(&SiteTotals) -> u64;

/// A type of samples: its name and unit, the metric, and the measure that asks for it.
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

/// Builds the message: tables without doubles.
#[derive(Default)]
struct Writer {
    message: proto::Profile,
    strings: FxHashMap<String, i64>,
    functions: FxHashMap<(i64, i64), u64>,
}

impl Writer {
    fn message(mut self, profile: &Profile, measure: Measure) -> proto::Profile {
        self.text("");
        let columns = columns(profile);
        for (kind, unit, ..) in &columns {
            let value_type = self.value_type(kind, unit);
            self.message.sample_type.push(value_type);
        }
        // Of blocks and bytes, bytes are what is shown first.
        if let Some((kind, ..)) = columns.iter().rev().find(|(.., asked_by)| *asked_by == measure) {
            self.message.default_sample_type = self.text(kind);
        }
        // Every allocation was seen: a sample in each byte.
        self.message.period_type = Some(self.value_type("space", "bytes"));
        self.message.period = 1;
        self.add_recording(profile);
        let layout = Layout::of(&profile.stacks);
        self.add_mappings(profile, &layout);
        self.add_locations(profile, &layout);
        for site in &profile.sites {
            self.add_sample(profile, site, &columns);
        }
        self.message
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = self.message.string_table.len() as i64;
        self.message.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> proto::ValueType {
        proto::ValueType { kind: self.text(kind), unit: self.text(unit) }
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

    /// One mapping for each module; its id is the module's plus 1.
    fn add_mappings(&mut self, profile: &Profile, layout: &Layout) {
        let mut named = vec![false; profile.stacks.modules.len()];
        for location in &profile.stacks.locations {
            if let Address::InModule { module, .. } = location.address {
                named[module.0 as usize] |= is_named(location);
            }
        }
        for (index, module) in profile.stacks.modules.iter().enumerate() {
            let place = layout.place(mallow_profile::ModuleId(index as u32)).unwrap_or_default();
            let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let mapping = proto::Mapping {
                id: index as u64 + 1,
                memory_start: place.0,
                memory_limit: place.1,
                file_offset: 0,
                filename: self.text(&module.path),
                build_id: self.text(&build_id),
                has_functions: named[index],
                has_filenames: named[index],
                has_line_numbers: named[index],
                has_inline_frames: named[index],
            };
            self.message.mapping.push(mapping);
        }
    }

    /// One location for each of the profile's; its id is the location's plus 1.
    fn add_locations(&mut self, profile: &Profile, layout: &Layout) {
        let modules: FxHashMap<&str, u64> =
            profile.stacks.modules.iter().zip(1..).map(|(module, id)| (module.path.as_str(), id)).collect();
        for (index, location) in profile.stacks.locations.iter().enumerate() {
            let address = layout.address(location);
            // Without an address the frames still tell the file.
            let file = location.frames.last().and_then(|frame| frame.module.as_deref());
            let mapping_id = match location.address {
                Address::InModule { module, .. } => u64::from(module.0) + 1,
                _ if address.is_some() => 0,
                _ => file.and_then(|file| modules.get(file).copied()).unwrap_or(0),
            };
            let location = proto::Location {
                id: index as u64 + 1,
                mapping_id,
                // Theirs is the call's address, ours the one behind it.
                address: address.map_or(0, |address| address.saturating_sub(1)),
                line: self.lines_of(location),
            };
            self.message.location.push(location);
        }
    }

    fn lines_of(&mut self, location: &Location) -> Vec<proto::Line> {
        // Where the binary is known, pprof may find the name in it.
        if matches!(location.address, Address::InModule { .. }) && !is_named(location) {
            return Vec::new();
        }
        let line = |frame: &Frame| proto::Line {
            function_id: self.function(&frame.function, frame.file.as_deref().unwrap_or_default()),
            line: frame.line.map_or(0, i64::from),
        };
        location.frames.iter().map(line).collect()
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.text(name), self.text(file));
        let next = self.message.function.len() as u64 + 1;
        let id = *self.functions.entry((name, filename)).or_insert(next);
        if id == next {
            self.message.function.push(proto::Function { id, name, system_name: name, filename });
        }
        id
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
            Some(stack) => locations(profile, stack),
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

    /// The location of sites without a stack: pprof passes over samples that have none.
    fn no_stack(&mut self) -> u64 {
        let function_id = self.function(NO_STACK, "");
        let is_it = |location: &&proto::Location| {
            location.line.first().is_some_and(|line| line.function_id == function_id)
        };
        if let Some(location) = self.message.location.last().filter(is_it) {
            return location.id;
        }
        let id = self.message.location.len() as u64 + 1;
        let line = vec![proto::Line { function_id, line: 0 }];
        self.message.location.push(proto::Location { id, mapping_id: 0, address: 0, line });
        id
    }
}

/// The locations of a stack, innermost first.
fn locations(profile: &Profile, stack: StackId) -> Vec<u64> {
    profile.stacks.chain(Some(stack)).map(|id| u64::from(profile.stacks.node(id).location.0) + 1).collect()
}
