//! massif's text, as `ms_print` and massif-visualizer read it.
//!
//! Live memory over time if the profile has it, otherwise its beginning, peak and end; the peak and the end with
//! their trees. massif files have one process: the one with the highest peak is written.

mod tree;

use mallow_dhat::valgrind_frames::FrameTexts;
use mallow_profile::left_out;
use mallow_profile::{LiveSample, Process, ProcessIndex, Profile, SiteTotals, TimeUnit};
use std::io::{self, Write};
use tree::Tree;

/// massif's own limit. Deeper stacks are truncated.
const DEPTH_MAX: usize = 200;

/// What a snapshot contains in addition to its sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Empty,
    Peak,
    End,
}

/// Writes the file; returns warnings about what it cannot hold.
pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let chosen = (0..)
        .zip(&profile.processes)
        .max_by_key(|(index, process)| (process.totals.peak_bytes, std::cmp::Reverse(*index)));
    let no_process = Process::default();
    let (index, process) = chosen.unwrap_or((0u32, &no_process));
    let mut warnings = warnings(profile, process);
    let mut texts = FrameTexts::new(profile, Vec::new());
    let mut cut = false;
    let mut tree = |metric: fn(&SiteTotals) -> u64| {
        let own = profile.sites.iter().filter(|site| site.process == ProcessIndex(index));
        let mut tree = Tree::default();
        for site in own.filter(|site| metric(&site.totals) > 0) {
            let frames = texts.stack(site.stack, DEPTH_MAX + 1);
            cut |= frames.len() > DEPTH_MAX;
            tree.add(&frames[..frames.len().min(DEPTH_MAX)], metric(&site.totals));
        }
        tree
    };
    let peak = tree(|totals| totals.peak_bytes);
    let end = tree(|totals| totals.leaked_bytes);
    if cut {
        warnings.push(format!("stacks of more than {DEPTH_MAX} frames end there, as massif's own do"));
    }

    write_head(profile, process, out)?;
    for (number, (sample, detail)) in snapshots(profile, process, peak == end).into_iter().enumerate() {
        let tree = match detail {
            Detail::Empty => None,
            Detail::Peak => Some(&peak),
            Detail::End => Some(&end),
        };
        // In a damaged profile, a tree may hold more than its process.
        let heap_bytes = sample.live_bytes.max(tree.map_or(0, Tree::bytes));
        writeln!(out, "#-----------\nsnapshot={number}\n#-----------")?;
        writeln!(out, "time={}", time_of(profile.recording.time_unit, sample.time_us))?;
        writeln!(out, "mem_heap_B={heap_bytes}\nmem_heap_extra_B={}", sample.overhead_bytes)?;
        writeln!(out, "mem_stacks_B={}", sample.stack_bytes)?;
        writeln!(
            out,
            "heap_tree={}",
            match detail {
                Detail::Empty => "empty",
                Detail::Peak => "peak",
                Detail::End => "detailed",
            }
        )?;
        if let Some(tree) = tree {
            tree.write(&texts, out)?;
        }
    }
    Ok(warnings)
}

fn write_head(profile: &Profile, process: &Process, out: &mut dyn Write) -> io::Result<()> {
    let command = if process.command.is_empty() {
        profile.recording.command.join(" ")
    } else {
        process.command.clone()
    };
    writeln!(out, "desc: (exported by mallow)")?;
    writeln!(out, "cmd: {}", command.replace(['\n', '\r'], " "))?;
    writeln!(
        out,
        "time_unit: {}",
        match profile.recording.time_unit {
            TimeUnit::Microseconds => "ms",
            TimeUnit::Instructions => "i",
            TimeUnit::Bytes => "B",
        }
    )
}

fn time_of(unit: TimeUnit, time: u64) -> u64 {
    if unit == TimeUnit::Microseconds { time / 1000 } else { time }
}

/// Returns all moments in their order, with the peak and the end among them.
fn snapshots(profile: &Profile, process: &Process, is_peak_the_end: bool) -> Vec<(LiveSample, Detail)> {
    let at = |time_us, live_bytes| LiveSample { time_us, live_bytes, ..LiveSample::default() };
    let totals = &process.totals;
    let mut samples = process.live_samples.clone();
    if samples.is_empty() {
        samples.push(at(process.started_us.min(process.peak_us), 0));
    }
    samples.sort_by_key(|sample| sample.time_us);

    let mut peak = None;
    if profile.known.peak {
        let is_peak =
            |sample: &LiveSample| (sample.time_us, sample.live_bytes) == (process.peak_us, totals.peak_bytes);
        let found = samples.iter().rposition(is_peak).unwrap_or_else(|| {
            let index = samples.partition_point(|sample| sample.time_us <= process.peak_us);
            samples.insert(index, at(process.peak_us, totals.peak_bytes));
            index
        });
        peak = Some(found);
    }
    let mut end = None;
    if profile.known.leaked {
        let last = samples.len() - 1;
        let is_end = samples[last].live_bytes == totals.leaked_bytes
            && samples[last].time_us >= process.ended_us
            && (peak != Some(last) || is_peak_the_end);
        if !is_end {
            let time_us = process.ended_us.max(samples[last].time_us);
            samples.push(at(time_us, totals.leaked_bytes));
        }
        end = Some(samples.len() - 1);
    }
    let detail = |index| match () {
        () if peak == Some(index) => Detail::Peak,
        () if end == Some(index) => Detail::End,
        () => Detail::Empty,
    };
    samples.into_iter().enumerate().map(|(index, sample)| (sample, detail(index))).collect()
}

fn warnings(profile: &Profile, process: &Process) -> Vec<String> {
    let mut warnings = Vec::new();
    let others = profile.processes.len().saturating_sub(1);
    if others > 0 {
        warnings.push(format!(
            "a massif file holds one process: the one with the highest peak is in it, pid {}, and {others} others are not",
            process.pid
        ));
    }
    if !profile.known.peak {
        warnings.push(String::from(
            "the profile does not know what its peak was made of, so the file has no peak",
        ));
    }
    if !profile.known.leaked {
        warnings.push(String::from(
            "the profile does not know what was live at the end, so the file has no tree of it",
        ));
    }
    warnings.extend(left_out::sentence(profile, "a massif file", &["peak", "leaked"]));
    if profile.recording.time_unit == TimeUnit::Microseconds {
        warnings.push(String::from("times are cut to whole milliseconds"));
    }
    warnings
}
