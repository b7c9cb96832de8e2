//! `perf.data`, which `perf record` writes, with compressed records or not.
//!
//! Copied stacks (`--call-graph dwarf`) are unwound here, with the files that the records name, as they are on this
//! machine now; call chains of the kernel (`-g`) are used as they are. The format is that of
//! `perf.data-file-format.txt` in Linux's `tools/perf/Documentation`.

mod container;

use crate::{Format, ImportError, ImportedCpu};
use container::{Container, Event, Record};
use linux_perf_event_reader::{
    AttrFlags, Endianness, EventRecord, PerfEventType, RawData, RawEventRecord, RecordParseInfo, RecordType,
    SampleFormat, SamplingPolicy, SoftwareCounterType,
};
use mallow_cpu::CpuProfile;
use mallow_perf::{Folder, Origin, machine};
use std::collections::BTreeSet;

/// A mapping whose file is identified by its build id.
const MMAP2: u32 = 10;
const HAS_BUILD_ID: u16 = 1 << 14;
/// The offset of the build id's size in such a record, and its maximum.
const BUILD_ID_SIZE_AT: usize = 32;
const BUILD_ID_BYTES_MAX: u8 = 20;

/// The fields of a sample before its call chain.
const BEFORE_CHAIN: SampleFormat = SampleFormat::IDENTIFIER
    .union(SampleFormat::IP)
    .union(SampleFormat::TID)
    .union(SampleFormat::TIME)
    .union(SampleFormat::ADDR)
    .union(SampleFormat::ID)
    .union(SampleFormat::STREAM_ID)
    .union(SampleFormat::CPU)
    .union(SampleFormat::PERIOD);

/// Parses a whole file.
pub(super) fn read(bytes: &[u8]) -> Result<ImportedCpu, ImportError> {
    let file = Container::of(bytes).map_err(unsupported)?;
    let arch = file.arch().unwrap_or_else(|| "x86_64".to_owned());
    if arch != "x86_64" {
        return Err(unsupported(format!(
            "it was recorded on {arch}, and only stacks of x86_64 are unwound; `perf script` on that machine prints a text that is read"
        )));
    }
    if file.events.iter().any(|event| event.attr.sample_format.contains(SampleFormat::READ)) {
        return Err(unsupported(
            "its samples hold the counts of groups of events; record with events that are not grouped"
                .to_owned(),
        ));
    }
    let parse: Vec<RecordParseInfo> =
        file.events.iter().map(|event| RecordParseInfo::new(&event.attr, Endianness::LittleEndian)).collect();
    let raw = |record: &Record, event: usize| {
        let body = RawData::from(file.body(record));
        RawEventRecord::new(RecordType(record.kind), record.flags, body, parse[event])
    };
    let event_of = |record: &Record| {
        let id = raw(record, 0).id().filter(|_| file.events.len() > 1);
        id.and_then(|id| file.events.iter().position(|event| event.ids.contains(&id))).unwrap_or(0)
    };
    // Each processor's records are in order; all together are not.
    let mut order: Vec<(u64, usize)> = file
        .records
        .iter()
        .enumerate()
        .map(|(at, record)| (raw(record, event_of(record)).timestamp().unwrap_or(0), at))
        .collect();
    order.sort_unstable();
    let mut folder = Folder::new(origin(&file));
    let has_switches = has_switches(&file);
    let (mut left_out, mut lost, mut damaged) = (BTreeSet::new(), 0_u64, 0_u64);
    let end_ns = order.last().map_or(0, |(time_ns, _)| *time_ns);
    for (time_ns, at) in order {
        let record = &file.records[at];
        let event = event_of(record);
        if !is_sound(record, file.body(record), &parse[event]) {
            damaged += 1;
            continue;
        }
        match raw(record, event).parse() {
            Ok(EventRecord::Sample(sample))
                if event > 0 && has_switches && is_each_switch(&file.events[event]) =>
            {
                folder.waits(&sample, time_ns);
            }
            Ok(EventRecord::ContextSwitch(switch)) => {
                let known =
                    raw(record, event).common_data().ok().and_then(|data| Some((data.pid?, data.tid?)));
                if let Some((pid, tid)) = known.filter(|(pid, _)| *pid > 0) {
                    folder.switched(&switch, pid as u32, tid as u32, time_ns);
                }
            }
            Ok(EventRecord::Sample(_)) if event > 0 => {
                left_out.insert(event);
            }
            Ok(EventRecord::Lost(record)) => lost = lost.saturating_add(record.count),
            Ok(parsed) => folder.record(&parsed, Some(time_ns)),
            Err(_) => damaged += 1,
        }
    }
    folder.lost(lost);
    folder.end(end_ns);
    let profile = folder.finish(command_of(&file.command()), 0, None).profile;
    let complete = damaged == 0 && file.is_whole;
    let mut warnings = Vec::new();
    if profile.samples.is_empty() {
        warnings.push("the file holds no samples".to_owned());
    }
    warnings.extend(without(&file, &left_out));
    if !complete {
        warnings.push("the file is torn or damaged; what could be read is shown".to_owned());
    }
    warnings.extend(changed_files(&file, &profile));
    Ok(ImportedCpu { profile, warnings, complete })
}

/// Returns whether a record may be passed to the parser of records, which does not check the size of a build id and the length of a call chain.
fn is_sound(record: &Record, body: &[u8], parse: &RecordParseInfo) -> bool {
    if record.kind == MMAP2 {
        let size = body.get(BUILD_ID_SIZE_AT).copied().unwrap_or(0);
        return record.flags & HAS_BUILD_ID == 0 || size <= BUILD_ID_BYTES_MAX;
    }
    if RecordType(record.kind) != RecordType::SAMPLE || !parse.sample_format.contains(SampleFormat::CALLCHAIN)
    {
        return true;
    }
    // Before it there is a word for each of these that is present.
    let before = parse.sample_format & BEFORE_CHAIN;
    let words = body.chunks_exact(8).nth(before.bits().count_ones() as usize);
    let length = words.and_then(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    length.is_some_and(|length| length <= body.len() as u64 / 8)
}

fn unsupported(reason: String) -> ImportError {
    ImportError::Unsupported { format: Format::PerfData, reason }
}

/// Returns a sentence about events whose samples are not shown.
fn without(file: &Container<'_>, left_out: &BTreeSet<usize>) -> Option<String> {
    let names: Vec<&str> = left_out.iter().map(|at| file.events[*at].name.as_str()).collect();
    (!names.is_empty()).then(|| format!("samples of these events are left out: {}", names.join(", ")))
}

/// Returns whether it has context switches of threads: `perf record --switch-events`.
fn has_switches(file: &Container<'_>) -> bool {
    file.events.iter().any(|event| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH))
}

/// Returns whether it has a sample at each context switch: `-e context-switches/period=1/`.
fn is_each_switch(event: &Event) -> bool {
    matches!(event.attr.type_, PerfEventType::Software(SoftwareCounterType::ContextSwitches))
        && matches!(event.attr.sampling_policy, SamplingPolicy::Period(period) if period.get() == 1)
}

fn origin(file: &Container<'_>) -> Origin {
    let Event { attr, name, .. } = &file.events[0];
    let is_time = matches!(
        attr.type_,
        PerfEventType::Software(SoftwareCounterType::CpuClock | SoftwareCounterType::TaskClock)
    );
    let name = if name.is_empty() { "events" } else { name };
    Origin {
        // perf appends how exact the address is, and where it counts: `cycles:ppp`.
        event: name.split(':').next().unwrap_or(name).to_owned(),
        is_time,
        frequency_hz: match attr.sampling_policy {
            SamplingPolicy::Frequency(hz) => Some(hz),
            _ => None,
        },
        stack_bytes: attr.sample_stack_user as usize,
        kernel_seen: !attr.flags.contains(AttrFlags::EXCLUDE_KERNEL),
        off_cpu: has_switches(file),
        summary_only: false,
        is_our_kernel: false,
        is_our_machine: machine()
            .is_some_and(|(host, release)| file.host() == Some(host) && file.release() == Some(release)),
        is_now: false,
    }
}

/// Returns the command that perf ran, if perf's own command line separates it with `--`.
fn command_of(words: &[String]) -> Vec<String> {
    let behind = words.iter().position(|word| word == "--").map_or(words.len(), |at| at + 1);
    words[behind..].to_vec()
}

/// Returns a sentence about files that have changed since the recording.
fn changed_files(file: &Container<'_>, profile: &CpuProfile) -> Option<String> {
    let recorded = file.build_ids();
    let is_changed = |path: &str, now: &[u8]| {
        recorded.iter().find(|(known, _)| known == path).is_some_and(|(_, id)| {
            let length = id.len().min(now.len());
            length > 0 && id[..length] != now[..length]
        })
    };
    let modules = profile.stacks.modules.iter().filter(|module| is_changed(&module.path, &module.build_id));
    let changed: Vec<&str> = modules.map(|module| module.path.as_str()).collect();
    (!changed.is_empty()).then(|| {
        format!(
            "these files have changed since they were recorded, so their stacks and names may be wrong: {}",
            changed.join(", ")
        )
    })
}
