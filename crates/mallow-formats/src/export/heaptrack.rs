//! heaptrack's interpreted text, version 3, as `heaptrack_print` and `heaptrack_gui` read it.
//!
//! Source: heaptrack's reader `accumulatedtracedata.cpp`; the records are described in our importer of the same name.
//!
//! heaptrack stores events. Those of a file that has them are written as they were ([`EventLog`]). Otherwise a profile has sums, so the writer generates synthetic events that add up to the sums.
//! By site, these equal the profile: allocations and their bytes, what was live at the peak, what was live at the
//! end, and temporaries. So do the totals, with the peaks of several processes summed. Synthetic, and not to be
//! interpreted, are the order and the times of allocations, the sizes of single blocks (as equal as a site's sums
//! allow), and each site's own maximum. A comment in the file says so, and our importer respects it.
//!
//! The format has no place for separate processes, threads, lifetimes, reallocations, failed calls, and frees of
//! foreign blocks.

mod blocks;
mod log;
mod schedule;
mod tables;

use log::EventLog;
use mallow_profile::left_out;
use mallow_profile::{Profile, Sample, TimeUnit};
use schedule::Schedule;
use std::io::{self, Write};
use tables::{Pairs, one_line};

/// Written after the version.
pub(crate) const MADE_UP_COMMENT: &str = "# mallow export: the sums are real, the order of events is made up";
/// `I`: the unit of resident memory in `R` lines.
const PAGE_BYTES: u64 = 4096;
/// More events than any program makes: a damaged profile would fill the disk.
const ALLOCATIONS_MAX: u64 = 1 << 33;

/// Writes a profile; returns warnings about what the format cannot hold.
///
/// # Errors
/// The errors of `out`, and a profile whose metrics need more events than a disk can hold.
pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut pairs = Pairs::default();
    let mut warnings = beforehand(profile);
    let schedule = Schedule::of(profile, &mut pairs);
    if schedule.allocations() > ALLOCATIONS_MAX {
        let reason = format!(
            "heaptrack's files have a line for every allocation, and this profile has {} of them; pprof and DHAT hold sums",
            schedule.allocations()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    writeln!(out, "v 10400 3\n{MADE_UP_COMMENT}")?;
    writeln!(out, "X {}", one_line(&profile.recording.command.join(" ")))?;
    writeln!(out, "I {PAGE_BYTES:x} 0")?;
    write_suppressions(profile, out)?;
    let counts = tables::write(profile, out)?;
    pairs.write(out)?;
    let clock = Clock::of(profile);
    schedule.write_before_peak(out)?;
    clock.write_up_to_peak(out)?;
    schedule.write_from_peak(out)?;
    clock.write_from_peak(out)?;
    writeln!(out, "# strings: {:x}\n# ips: {:x}", counts.strings, counts.instructions)?;
    warnings.extend(schedule.warnings());
    Ok(warnings)
}

/// Writes the events of the profile's one process, which `feed` passes to what it is given; returns warnings about what the format cannot hold.
///
/// # Errors
/// The errors of `out` and of `feed`.
pub(super) fn write_events(
    profile: &Profile,
    feed: impl FnOnce(&mut EventLog<'_>) -> io::Result<()>,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    writeln!(out, "v 10400 3\nX {}", one_line(&profile.recording.command.join(" ")))?;
    writeln!(out, "I {PAGE_BYTES:x} 0")?;
    write_suppressions(profile, out)?;
    let counts = tables::write(profile, out)?;
    let samples = profile.processes.first().map_or(&[][..], |process| &process.samples);
    let mut log = EventLog::new(samples, out);
    feed(&mut log)?;
    log.finish(profile.recording.duration_us)?;
    writeln!(out, "# strings: {:x}\n# ips: {:x}", counts.strings, counts.instructions)?;
    let held = [
        "allocations",
        "temporary",
        "peak",
        "leaked",
        "own maxima",
        "lifetimes",
        "first and last times",
        "resident memory",
    ];
    let mut warnings = Vec::from_iter(left_out::sentence(profile, "heaptrack's format", &held));
    warnings.push(String::from(
        "heaptrack calls a block temporary if it is freed by the very next event of all threads; times are cut to whole milliseconds",
    ));
    Ok(warnings)
}

fn write_suppressions(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    profile.recording.suppressions.iter().try_for_each(|line| writeln!(out, "S {}", one_line(line)))
}

/// Returns the warnings that are known before anything is written.
fn beforehand(profile: &Profile) -> Vec<String> {
    let mut held = vec!["allocations", "temporary", "peak", "leaked"];
    if profile.processes.len() <= 1 {
        held.push("resident memory");
    }
    let mut warnings = Vec::from_iter(left_out::sentence(profile, "heaptrack's format", &held));
    if profile.processes.len() > 1 {
        warnings.push(format!(
            "a heaptrack file holds one process: the metrics of {} are added up, their peaks too",
            profile.processes.len()
        ));
    }
    if !profile.known.peak {
        warnings
            .push(String::from("the profile does not contain the peak: the one in the file means nothing"));
    }
    let known = &profile.known;
    if !known.allocations || (known.peak && !known.peak_blocks) || (known.leaked && !known.leaked_blocks) {
        warnings.push(String::from(
            "the profile has no numbers of blocks: where they are missing, one is written",
        ));
    }
    warnings.push(String::from(
        "the order of events and the sizes of single blocks are made up from the sums: read no timeline and no histogram from the file",
    ));
    warnings
}

/// The time axis. Times in between are not known, so `c` lines have the time of the peak, of the end, and of `R` lines.
struct Clock<'a> {
    samples: &'a [Sample],
    peak_us: u64,
    end_us: u64,
}

impl Clock<'_> {
    fn of(profile: &Profile) -> Clock<'_> {
        let highest = profile.processes.iter().max_by_key(|process| process.totals.peak_bytes);
        let samples = match &profile.processes[..] {
            [process] => &process.samples[..],
            _ => &[],
        };
        if profile.recording.time_unit != TimeUnit::Microseconds {
            return Clock { samples: &[], peak_us: 0, end_us: 0 };
        }
        let end_us = profile.recording.duration_us;
        Clock { samples, peak_us: highest.map_or(0, |process| process.peak_us).min(end_us), end_us }
    }

    fn split(&self) -> (&[Sample], &[Sample]) {
        self.samples.split_at(self.samples.partition_point(|sample| sample.time_us <= self.peak_us))
    }

    fn write_up_to_peak(&self, out: &mut dyn Write) -> io::Result<()> {
        write_samples(self.split().0, out)?;
        writeln!(out, "c {:x}", self.peak_us / 1000)
    }

    fn write_from_peak(&self, out: &mut dyn Write) -> io::Result<()> {
        write_samples(self.split().1, out)?;
        writeln!(out, "c {:x}", self.end_us / 1000)
    }
}

fn write_samples(samples: &[Sample], out: &mut dyn Write) -> io::Result<()> {
    for sample in samples {
        writeln!(out, "c {:x}\nR {:x}", sample.time_us / 1000, sample.rss_bytes.div_ceil(PAGE_BYTES))?;
    }
    Ok(())
}
