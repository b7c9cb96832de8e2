//! The text of `perf script`: for each sample a line with the thread, the time and the event, then one line per frame, innermost first.
//!
//! ```text
//! app 26293/26294 [001] 36928.600015:     250000 cpu-clock:ppp:
//!             1469e parse+0x7e (/usr/bin/app)
//!             16169 field+0xad9 (inlined)
//!             1bccb main (/usr/bin/app)
//! ```
//!
//! The format is that of `perf-script(1)` with its default fields; the processor, the thread beside the process and
//! the period may be missing.

use super::text_stacks::without_offset;
use crate::lines::Lines;
use crate::perf_script_head::{Head, head};
use crate::{ImportError, ImportedCpu};
use mallow_base::Frame;
use mallow_cpu::{CpuAvailability, CpuProcess, CpuProfile, CpuSample, CpuThread, CpuTotals, ThreadIndex};
use mallow_stacks::{Address, LocationId, ProcessIndex, StacksBuilder};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Parses a text.
pub(super) fn read(mut lines: Lines<'_>) -> Result<ImportedCpu, ImportError> {
    let mut reading = Reading::default();
    let mut current: Option<(Head, Vec<Frame>)> = None;
    while let Some(line) = lines.next_text()? {
        if line.trim().is_empty() {
            reading.take(current.take());
        } else if let Some(head) = head(&line) {
            reading.take(current.replace((head, Vec::new())));
        } else if let Some((_, frames)) = &mut current {
            // Anything else below a frame is its source line, or another requested field.
            match frame(&line) {
                Some(frame) => frames.push(frame),
                None => with_line(frames, line.trim()),
            }
        }
    }
    reading.take(current);
    if reading.profile.samples.is_empty() {
        return Err(lines.expected("a line with a thread, a time and an event"));
    }
    Ok(reading.finish())
}

/// Parses `1469e parse+0x7e (/usr/bin/app)`.
fn frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (name, module) = match rest.trim().rsplit_once(" (") {
        Some((name, module)) => (name, module.strip_suffix(')')?),
        None => (rest.trim(), ""),
    };
    let name = without_offset(name.trim());
    let is_known = !matches!(name, "[unknown]" | "");
    Some(Frame {
        function: if is_known { name.to_owned() } else { format!("{address:#x}") },
        module: match module {
            "[unknown]" | "inlined" | "" => None,
            _ if module.starts_with("[kernel") => Some("[kernel]".to_owned()),
            _ => Some(module.to_owned()),
        },
        inlined: module == "inlined",
        ..Frame::default()
    })
}

/// Sets the last frame's source line: `spin.c:12`.
fn with_line(frames: &mut [Frame], text: &str) {
    let found = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    if let (Some(frame), Some((file, line))) = (frames.last_mut(), found) {
        (frame.file, frame.line) = (Some(file.to_owned()), Some(line));
    }
}

#[derive(Default)]
struct Reading {
    profile: CpuProfile,
    builder: StacksBuilder,
    threads: FxHashMap<(u32, u32, String), ThreadIndex>,
    processes: FxHashMap<u32, ProcessIndex>,
    others: BTreeSet<String>,
    has_periods: bool,
    is_time: bool,
    start_ns: u64,
}

impl Reading {
    fn take(&mut self, sample: Option<(Head, Vec<Frame>)>) {
        let Some((head, frames)) = sample else { return };
        if self.profile.samples.is_empty() {
            self.is_time = matches!(head.event.as_str(), "cpu-clock" | "task-clock");
            self.has_periods = head.period.is_some();
            self.profile.recording.event = head.event.clone();
            self.start_ns = head.time_ns;
        } else if head.event != self.profile.recording.event {
            self.others.insert(head.event);
            return;
        }
        let thread = self.thread(&head);
        let locations = self.locations(frames);
        let stack = self.builder.stack(locations);
        let period = head.period.unwrap_or(0);
        let totals = CpuTotals {
            samples: 1,
            time_ns: if self.is_time { period } else { 0 },
            events: if self.is_time { 0 } else { period },
            ..CpuTotals::default()
        };
        let time_ns = head.time_ns.saturating_sub(self.start_ns);
        self.profile.samples.push(CpuSample { time_ns, thread, stack, totals });
    }

    fn thread(&mut self, head: &Head) -> ThreadIndex {
        let pid = head.pid.unwrap_or(head.tid);
        let profile = &mut self.profile;
        let process = *self.processes.entry(pid).or_insert_with(|| {
            profile.processes.push(CpuProcess { pid, name: head.name.clone(), program: String::new() });
            ProcessIndex(profile.processes.len() as u32 - 1)
        });
        *self.threads.entry((pid, head.tid, head.name.clone())).or_insert_with(|| {
            profile.threads.push(CpuThread { process, tid: head.tid, name: head.name.clone() });
            ThreadIndex(profile.threads.len() as u32 - 1)
        })
    }

    /// Returns locations, outermost first; inlined calls are in the location of the call that they are inlined into, which follows them.
    fn locations(&mut self, frames: Vec<Frame>) -> Vec<LocationId> {
        let (mut locations, mut inlined) = (Vec::new(), Vec::new());
        for frame in frames {
            let is_inlined = frame.inlined;
            inlined.push(frame);
            if !is_inlined {
                locations.push(self.location(std::mem::take(&mut inlined)));
            }
        }
        if !inlined.is_empty() {
            locations.push(self.location(inlined));
        }
        locations.reverse();
        locations
    }

    fn location(&mut self, mut frames: Vec<Frame>) -> LocationId {
        let module = frames.last().and_then(|frame| frame.module.clone());
        frames.iter_mut().for_each(|frame| frame.module = module.clone());
        self.builder.location(Address::Unknown, frames)
    }

    fn finish(mut self) -> ImportedCpu {
        let known = CpuAvailability {
            samples: true,
            time: self.is_time && self.has_periods,
            events: !self.is_time && self.has_periods,
            ..CpuAvailability::default()
        };
        let mut profile = self.profile;
        profile.known = known;
        profile.stacks = self.builder.finish();
        profile.samples.sort_by_key(|sample| sample.time_ns);
        profile.recording.duration_ns = profile.samples.last().map_or(0, |sample| sample.time_ns);
        profile.sites = profile.sums(profile.samples.iter());
        let mut warnings = Vec::new();
        if !self.has_periods {
            warnings.push("the text has no weights of samples (-F +period); samples are counted".to_owned());
        }
        if !self.others.is_empty() {
            let names: Vec<String> = std::mem::take(&mut self.others).into_iter().collect();
            warnings.push(format!("samples of these events are left out: {}", names.join(", ")));
        }
        ImportedCpu { profile, warnings, complete: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_names_without_offsets() {
        let of = |line: &str| frame(line).map(|frame| (frame.function, frame.module, frame.inlined));
        let some = |name: &str, module: Option<&str>, inlined| {
            Some((name.to_owned(), module.map(str::to_owned), inlined))
        };
        assert_eq!(
            of("\t  1469e a::b(int)+0x7e (/usr/bin/a b)"),
            some("a::b(int)", Some("/usr/bin/a b"), false)
        );
        assert_eq!(of("\t  16169 field+0xad9 (inlined)"), some("field", None, true));
        assert_eq!(of("\tffffffff81 do_it ([kernel.kallsyms])"), some("do_it", Some("[kernel]"), false));
        assert_eq!(of("\t  16169 [unknown] ([unknown])"), some("0x16169", None, false));
        assert_eq!(of("\t  spin.c:7"), None);
    }
}
