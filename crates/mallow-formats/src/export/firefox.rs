//! The Firefox Profiler's processed profile, with native allocations.
//!
//! Each process has one thread with two samples for a site: what it leaked, and what it allocated and freed again,
//! with the free attributed to the same stack. So the view of retained memory shows what leaked, and those of
//! allocations and deallocations show all bytes. What was live at the peak is a separate process. Single events are
//! not written: a browser could not load a trace of millions. Format:
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>.

mod cpu;
mod stacks;

pub(super) use cpu::write as write_cpu;

use fxprof_processed_profile as fxprof;
use fxprof_processed_profile::{ReferenceTimestamp, SamplingInterval, ThreadHandle, Timestamp};
use mallow_profile::left_out;
use mallow_profile::{Process, Profile, Site, SiteTotals, TimeUnit};
use std::io::{self, Write};
use std::time::Duration;

/// The distance of the addresses of blocks; they only have to differ.
const BLOCK_STEP: u64 = 16;

/// Writes a profile.
pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let product = profile.recording.command.join(" ");
    let product = if product.is_empty() { String::from("mallow") } else { product };
    let started = Duration::from_micros(profile.recording.started_unix_us);
    let reference = ReferenceTimestamp::from_duration_since_unix_epoch(started);
    let mut writer = Writer {
        profile,
        // Shown as the sampling interval; there is none.
        made: fxprof::Profile::new(&product, reference, SamplingInterval::from_millis(1)),
        blocks: 0,
    };
    writer.made.set_os_name("Linux");
    // Names are final: no symbol server has to be asked.
    writer.made.set_symbolicated(true);
    for index in 0..profile.processes.len() {
        writer.process(index);
    }
    serde_json::to_writer(&mut *out, &writer.made)?;
    out.write_all(b"\n")?;
    let mut warnings = vec![String::from(
        "the Firefox Profiler shows bytes; numbers of allocations and source lines are left out",
    )];
    for (is_known, metric, view) in [
        (profile.known.bytes, "bytes allocated", "of allocations and deallocations hold only what leaked"),
        (profile.known.leaked, "what was live at the end", "of retained memory means nothing"),
    ] {
        if !is_known {
            warnings.push(format!("the profile does not contain {metric}: the view {view}"));
        }
    }
    warnings.extend(left_out::sentence(profile, "the Firefox Profiler", &["allocations", "peak", "leaked"]));
    Ok(warnings)
}

struct Writer<'a> {
    profile: &'a Profile,
    made: fxprof::Profile,
    /// The number of blocks so far.
    blocks: u64,
}

impl Writer<'_> {
    /// Writes a process, and what it held at its peak as another process.
    fn process(&mut self, index: usize) {
        let process = &self.profile.processes[index];
        let mut sites: Vec<&Site> =
            self.profile.sites.iter().filter(|site| site.process.0 as usize == index).collect();
        sites.sort_by_key(|site| site.totals.first_us);
        let known = self.profile.known;
        if known.bytes || known.leaked {
            let thread = self.thread(process, "");
            // If only one of the two is known, the other is 0.
            let freed = |site: &SiteTotals| site.bytes.saturating_sub(site.leaked_bytes);
            self.allocations(thread, &sites, |site| site.leaked_bytes);
            let (first, ended) = (self.blocks, self.time(process.ended_us));
            self.allocations(thread, &sites, freed);
            // The frees come last, so that times only increase.
            self.blocks = first;
            for site in sites.iter().filter(|site| freed(&site.totals) > 0) {
                self.sample(thread, site, ended, -signed(freed(&site.totals)));
            }
        }
        if known.peak {
            let thread = self.thread(process, ", live at the peak");
            self.allocations(thread, &sites, |site| site.peak_bytes);
        }
    }

    fn thread(&mut self, process: &Process, what: &str) -> ThreadHandle {
        let command = process.command.split(' ').next().unwrap_or_default();
        let program = command.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("process");
        let name = format!("{program}{what}");
        let (start, end) = (self.time(process.started_us), self.time(process.ended_us));
        let handle = self.made.add_process(&name, process.pid, start);
        self.made.set_process_end_time(handle, end);
        let thread = self.made.add_thread(handle, process.pid, start, true);
        self.made.set_thread_name(thread, &name);
        self.made.set_thread_end_time(thread, end);
        thread
    }

    fn allocations(&mut self, thread: ThreadHandle, sites: &[&Site], size: impl Fn(&SiteTotals) -> u64) {
        for site in sites.iter().filter(|site| size(&site.totals) > 0) {
            let time = self.time(site.totals.first_us);
            self.sample(thread, site, time, signed(size(&site.totals)));
        }
    }

    /// Adds an event of the block with the next address.
    fn sample(&mut self, thread: ThreadHandle, site: &Site, time: Timestamp, size: i64) {
        let stack = stacks::handle(&mut self.made, thread, &self.profile.stacks, site.stack);
        self.blocks += 1;
        self.made.add_allocation_sample(thread, time, stack, self.blocks * BLOCK_STEP, size);
    }

    /// Converts a time. If the unit is not a time, all events are shown at the same moment.
    fn time(&self, us: u64) -> Timestamp {
        let is_time = self.profile.recording.time_unit == TimeUnit::Microseconds;
        Timestamp::from_nanos_since_reference(if is_time { us.saturating_mul(1000) } else { 0 })
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
