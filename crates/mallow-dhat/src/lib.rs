//! Writes DHAT's JSON, version 2, for its viewer `dh_view`.
//!
//! The viewer rejects a file in which two program points have the same frames, so sites with equal frames are added up. All
//! processes are merged into one. This crate must never write a metric that the profile does not know without a warning.

pub mod valgrind_frames;

use mallow_profile::{Availability, ByteAccesses, Process, Profile, SiteTotals, TimeUnit, left_out};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use valgrind_frames::FrameTexts;

/// The viewer's number 0 is the root of its tree.
const ROOT: &str = "[root]";

/// One program point.
struct Point {
    frames: Vec<u32>,
    totals: SiteTotals,
    accesses: Option<ByteAccesses>,
}

/// All points, with how many sites had to be added to others.
struct Points {
    list: Vec<Point>,
    merged: u64,
}

/// Writes the file; gives sentences about what it could not hold.
///
/// # Errors
/// What `out` refused.
pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut texts = FrameTexts::new(profile, vec![ROOT.to_owned()]);
    let points = points_of(profile, &mut texts);
    write_head(profile, out)?;
    for (index, point) in points.list.iter().enumerate() {
        let opening = if index == 0 { "[" } else { "," };
        write_point(point, &profile.known, opening, out)?;
    }
    writeln!(out, "{} ]", if points.list.is_empty() { " [" } else { "" })?;
    writeln!(out, ",\"ftbl\":")?;
    for (index, text) in texts.texts().iter().enumerate() {
        let opening = if index == 0 { "[" } else { "," };
        writeln!(out, " {opening}{}", serde_json::to_string(text)?)?;
    }
    writeln!(out, " ]\n}}")?;
    Ok(warnings(profile, points.merged))
}

fn points_of(profile: &Profile, texts: &mut FrameTexts<'_>) -> Points {
    let mut points = Points { list: Vec::new(), merged: 0 };
    let mut numbers: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    for site in profile.sites.iter().filter(|site| says_something(&site.totals)) {
        let frames = texts.stack(site.stack, usize::MAX);
        let accesses = profile.accesses.of(site.process, site.stack);
        match numbers.get(&frames) {
            Some(number) => {
                let point = &mut points.list[*number];
                point.totals.add(&site.totals);
                point.accesses =
                    point.accesses.as_ref().zip(accesses).and_then(|(one, other)| one.and(other));
                points.merged += 1;
            }
            None => {
                numbers.insert(frames.clone(), points.list.len());
                points.list.push(Point { frames, totals: site.totals, accesses: accesses.cloned() });
            }
        }
    }
    points
}

/// A site whose calls all failed has no program point.
fn says_something(totals: &SiteTotals) -> bool {
    totals.allocations > 0
        || totals.bytes > 0
        || totals.peak_bytes > 0
        || totals.leaked_bytes > 0
        || totals.live_bytes_max > 0
}

fn has_lifetimes(known: &Availability) -> bool {
    known.peak || known.leaked || known.own_maximum || known.lifetimes
}

fn write_head(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let recording = &profile.recording;
    // Blocks below `tuth` on average are called short-lived.
    let (unit, million_units, short) = match recording.time_unit {
        TimeUnit::Microseconds => ("\u{b5}s", "s", 10),
        TimeUnit::Instructions => ("instrs", "Minstr", 500),
        TimeUnit::Bytes => ("bytes", "Mbyte", 500),
    };
    let first = profile.processes.first();
    let command = match (&recording.command[..], first) {
        ([], Some(process)) => process.command.clone(),
        (words, _) => words.join(" "),
    };
    let lifetimes = has_lifetimes(&profile.known);
    writeln!(out, "{{\"dhatFileVersion\":2")?;
    writeln!(out, ",\"mode\":\"heap\",\"verb\":\"Allocated\"")?;
    writeln!(out, ",\"bklt\":{lifetimes},\"bkacc\":{}", profile.known.accesses)?;
    writeln!(out, ",\"tu\":\"{unit}\",\"Mtu\":\"{million_units}\"")?;
    if lifetimes {
        writeln!(out, ",\"tuth\":{short}")?;
    }
    writeln!(out, ",\"cmd\":{}", serde_json::to_string(&command)?)?;
    writeln!(out, ",\"pid\":{}", first.map_or(0, |process| process.pid))?;
    let ended = profile.processes.iter().map(|process| process.ended_us).max().unwrap_or(0);
    writeln!(out, ",\"te\":{}", recording.duration_us.max(ended))?;
    if lifetimes {
        writeln!(out, ",\"tg\":{}", highest(profile).map_or(0, |process| process.peak_us))?;
    }
    writeln!(out, ",\"pps\":")
}

/// The process with the highest peak.
fn highest(profile: &Profile) -> Option<&Process> {
    profile.processes.iter().max_by_key(|process| process.totals.peak_bytes)
}

fn write_point(point: &Point, known: &Availability, opening: &str, out: &mut dyn Write) -> io::Result<()> {
    let Point { frames, totals, accesses } = point;
    writeln!(out, " {opening}{{\"tb\":{},\"tbk\":{}", totals.bytes, totals.allocations)?;
    if has_lifetimes(known) {
        writeln!(out, "  ,\"tl\":{}", totals.lifetime_us_sum)?;
        writeln!(out, "  ,\"mb\":{},\"mbk\":{}", totals.live_bytes_max, totals.live_blocks_at_max)?;
        writeln!(out, "  ,\"gb\":{},\"gbk\":{}", totals.peak_bytes, totals.peak_blocks)?;
        writeln!(out, "  ,\"eb\":{},\"ebk\":{}", totals.leaked_bytes, totals.leaked_blocks)?;
    }
    if known.accesses {
        writeln!(out, "  ,\"rb\":{},\"wb\":{}", totals.read_bytes, totals.written_bytes)?;
        if let Some(accesses) = accesses {
            writeln!(out, "  ,\"acc\":[{}]", runs_of(accesses))?;
        }
    }
    let frames: Vec<String> = frames.iter().map(u32::to_string).collect();
    writeln!(out, "  ,\"fs\":[{}]", frames.join(","))?;
    writeln!(out, "  }}")
}

/// Returns counts of bytes as Valgrind spells them: a run of several bytes by their number below zero and their count.
fn runs_of(accesses: &ByteAccesses) -> String {
    let run = |(bytes, count): &(u32, u32)| match bytes {
        1 => count.to_string(),
        _ => format!("-{bytes},{count}"),
    };
    accesses.runs().iter().map(run).collect::<Vec<_>>().join(",")
}

fn warnings(profile: &Profile, merged: u64) -> Vec<String> {
    let known = profile.known;
    let mut warnings = Vec::new();
    if profile.processes.len() > 1 {
        warnings.push(format!(
            "{} processes stand in the file as one: their peaks, which lie at different moments, are added up",
            profile.processes.len()
        ));
    }
    let lifetimes = has_lifetimes(&known);
    let unknown: Vec<&str> = [
        (lifetimes && !known.lifetimes, "lifetimes"),
        (lifetimes && !known.own_maximum, "own maxima"),
        (lifetimes && !known.own_maximum_blocks, "blocks at own maxima"),
        (lifetimes && !known.peak, "bytes at t-gmax"),
        (lifetimes && !known.peak_blocks, "blocks at t-gmax"),
        (lifetimes && !known.leaked, "bytes at t-end"),
        (lifetimes && !known.leaked_blocks, "blocks at t-end"),
    ]
    .into_iter()
    .filter_map(|(is_unknown, name)| is_unknown.then_some(name))
    .collect();
    if !unknown.is_empty() {
        warnings
            .push(format!("what the profile does not know stands as 0 in the file: {}", unknown.join(", ")));
    }
    let held = ["allocations", "peak", "leaked", "own maxima", "lifetimes", "reads and writes"];
    warnings.extend(left_out::sentence(profile, "a DHAT file", &held));
    if merged > 0 && known.own_maximum {
        warnings.push(format!(
            "{merged} sites look like others and were added to them, because DHAT's viewer wants each stack once; their own \
             maxima are upper bounds"
        ));
    }
    warnings
}
