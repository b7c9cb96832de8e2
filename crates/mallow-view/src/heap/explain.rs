//! Where a process's memory is: managed objects, native blocks, what the allocator keeps, stacks, files, and what nothing explains.
//!
//! Every input tells a part, and no input is needed: what nobody told stays unknown and is never taken for 0. One moment tells
//! where most of it is; only two tell what grows.

use crate::plumbing::leaf_rule;
use mallow_base::{Bytes, Frame, grouped};
use mallow_profile::{AllocatorState, MappedMemory, Profile};
use std::collections::BTreeMap;

/// The data of one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The sums of the snapshot.
    pub managed: Option<ManagedMemory>,
    /// Resident bytes, if there is no table of mappings.
    pub resident_bytes: Option<u64>,
    /// The process's mappings.
    pub mapped: Option<MappedMemory>,
    /// The number of threads.
    pub threads: Option<u64>,
    /// The allocator's statistics.
    pub allocator: Option<AllocatorState>,
    /// The live blocks at the end of a recording.
    pub live: Option<Vec<NativeRow>>,
}

/// Objects of a managed heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedMemory {
    /// Their number.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// There are more: the snapshot holds only a part of the heap, or is damaged.
    pub is_partial: bool,
    /// How many of these bytes are in blocks of `malloc`: contents that do not fit into the runtime's own slots.
    pub malloc_bytes: u64,
}

/// Live blocks of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeRow {
    /// The library or executable whose code allocated them.
    pub module: String,
    /// Whether that is the managed runtime itself, whose blocks are mostly its objects' contents.
    pub is_runtime: bool,
    /// Their bytes.
    pub bytes: u64,
    /// The call that holds most of them.
    pub frame: Option<Frame>,
    /// The bytes of that call.
    pub frame_bytes: u64,
}

/// A part of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Objects of the managed heap, with their contents.
    Managed,
    /// Blocks that native code holds.
    Native,
    /// Memory that the allocator holds and the program does not use.
    Allocator,
    /// Stacks of threads.
    Stacks,
    /// Executables, libraries, files, and memory shared with others.
    Files,
    /// The rest.
    Unexplained,
}

/// A part, then and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// The part.
    pub part: Part,
    /// Its bytes now; `None` if unknown.
    pub bytes: Option<u64>,
    /// Its bytes at the first moment.
    pub before: Option<u64>,
    /// A remark, such as `21,167 objects`.
    pub note: String,
}

/// The page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Resident bytes now.
    pub resident_bytes: Option<u64>,
    /// And at the first moment.
    pub resident_before: Option<u64>,
    /// All parts.
    pub parts: Vec<PartRow>,
    /// The part that has grown most, or the largest if there is only one moment; `None` if it is unknown.
    pub culprit: Option<Part>,
    /// Whether there were two moments.
    pub is_compared: bool,
    /// Advice, sentences without their ends.
    pub sentences: Vec<String>,
    /// Live blocks by module, the most bytes first.
    pub native: Vec<NativeRow>,
}

/// Less than this is not worth a verdict.
const SHARE_MIN: f64 = 0.2;

/// Adds up what is known.
pub fn explain(before: Option<&Moment>, now: &Moment) -> Explanation {
    let (then, parts) = (before.map(parts), parts(now));
    let rows: Vec<PartRow> = parts
        .iter()
        .map(|(part, bytes)| PartRow {
            part: *part,
            bytes: *bytes,
            before: then.as_ref().and_then(|then| then.iter().find(|(other, _)| other == part)?.1),
            note: note(*part, now),
        })
        .collect();
    let (resident, resident_before) = (resident(now), before.and_then(resident));
    let culprit = match before {
        Some(_) => {
            grown_most(&rows, resident.zip(resident_before).map(|(now, then)| now.saturating_sub(then)))
        }
        None => largest(&rows, resident),
    };
    let sentences = sentences(culprit, before.is_some(), &rows, now);
    Explanation {
        resident_bytes: resident,
        resident_before,
        parts: rows,
        culprit,
        is_compared: before.is_some(),
        sentences,
        native: now.live.clone().unwrap_or_default(),
    }
}

fn resident(moment: &Moment) -> Option<u64> {
    moment.mapped.map(|mapped| mapped.resident_bytes).or(moment.resident_bytes)
}

/// Each part's bytes. What is not explained is known only when the rest of the page is.
fn parts(moment: &Moment) -> Vec<(Part, Option<u64>)> {
    let managed = moment.managed.filter(|managed| !managed.is_partial).map(|managed| managed.bytes);
    let in_malloc = moment.managed.map_or(0, |managed| managed.malloc_bytes);
    let totals = moment.allocator.as_ref().map(|state| state.totals);
    let live = moment.live.as_ref().map(|rows| rows.iter().map(|row| row.bytes).sum());
    let used: Option<u64> = live.or(totals.and_then(|totals| totals.allocated));
    // The contents of objects are the runtime's blocks.
    let native = used.map(|used: u64| used.saturating_sub(in_malloc));
    let kept = totals.and_then(|totals| {
        let of_jemalloc = totals
            .resident
            .zip(totals.allocated)
            .map(|(resident, allocated)| resident.saturating_sub(allocated));
        totals.free.or(of_jemalloc)
    });
    let stacks = moment.mapped.map(|mapped| mapped.stack_bytes);
    let files = moment.mapped.map(|mapped| mapped.file_bytes + mapped.shared_bytes);
    let known = [managed, native, kept, stacks, files].into_iter().flatten().sum::<u64>();
    let rest = resident(moment).map(|resident| resident.saturating_sub(known));
    vec![
        (Part::Managed, managed),
        (Part::Native, native),
        (Part::Allocator, kept),
        (Part::Stacks, stacks),
        (Part::Files, files),
        (Part::Unexplained, rest),
    ]
}

fn note(part: Part, now: &Moment) -> String {
    match part {
        Part::Managed => now.managed.map(|managed| match managed.is_partial {
            true => format!("{} or more: the dump is a part", Bytes(managed.bytes)),
            false => format!("{} objects", grouped(managed.objects)),
        }),
        Part::Native => match (&now.live, &now.allocator) {
            (Some(_), _) => Some("live at its end, without objects' contents".to_owned()),
            (None, Some(_)) => Some("allocated, without objects' contents".to_owned()),
            (None, None) => Some("give --trace or --allocator".to_owned()),
        },
        Part::Allocator => match &now.allocator {
            Some(state) => Some(format!("free, kept by {}", state.allocator.name())),
            None => Some("give --allocator".to_owned()),
        },
        Part::Stacks => match (now.mapped, now.threads) {
            (Some(mapped), Some(threads)) => Some(format!("{} stacks of {threads} threads", mapped.stacks)),
            (Some(mapped), None) => Some(format!("{} stacks", mapped.stacks)),
            (None, _) => Some("give --pid or --smaps".to_owned()),
        },
        Part::Files => now.mapped.is_none().then(|| "give --pid or --smaps".to_owned()),
        Part::Unexplained => None,
    }
    .unwrap_or_default()
}

/// The part that has grown most, if it is a fair share of what the process has grown by.
fn grown_most(rows: &[PartRow], growth: Option<u64>) -> Option<Part> {
    let grown = |row: &PartRow| row.bytes.zip(row.before).map(|(now, then)| now.saturating_sub(then));
    let most = rows.iter().filter_map(|row| Some((grown(row)?, row.part))).max_by_key(|(bytes, _)| *bytes)?;
    is_fair_share(most.0, growth).then_some(most.1)
}

fn largest(rows: &[PartRow], resident: Option<u64>) -> Option<Part> {
    let most = rows.iter().filter_map(|row| Some((row.bytes?, row.part))).max_by_key(|(bytes, _)| *bytes)?;
    is_fair_share(most.0, resident).then_some(most.1)
}

fn is_fair_share(part: u64, whole: Option<u64>) -> bool {
    part > 0 && whole.is_none_or(|whole| part as f64 >= SHARE_MIN * whole as f64)
}

fn sentences(culprit: Option<Part>, is_compared: bool, rows: &[PartRow], now: &Moment) -> Vec<String> {
    let mut sentences = Vec::new();
    let has = if is_compared { "What grew is" } else { "The largest part is" };
    sentences.push(match culprit {
        Some(Part::Managed) => format!("{has} managed: look at who retains the objects"),
        Some(Part::Native) => format!("{has} native, outside of the managed heap: look at the calls that allocate it"),
        Some(Part::Allocator) => format!("{has} memory that the allocator keeps and the program does not use: it is no leak; fewer arenas or a trim would give it back"),
        Some(Part::Stacks) => format!("{has} stacks of threads: look for threads that are never joined or detached"),
        Some(Part::Files) => format!("{has} files and shared memory"),
        Some(Part::Unexplained) => format!("{has} told by none of the inputs: mappings of the runtime or of libraries' own"),
        None if is_compared => "Nothing that was told has grown by a fair share of it".to_owned(),
        None => "No part of it is known from the inputs".to_owned(),
    });
    if let (Some(mapped), Some(threads)) = (now.mapped, now.threads)
        && mapped.stacks > threads.saturating_mul(2).saturating_add(8)
    {
        sentences.push(format!(
            "{} stacks are mapped for {threads} threads: threads that ended were neither joined nor detached",
            mapped.stacks
        ));
    }
    if !is_compared {
        sentences.push("One moment does not show what grows: give a later dump with its --rss, --smaps or statistics as well".to_owned());
    }
    if let Some(mapped) = now.mapped.filter(|mapped| mapped.swap_bytes > 0) {
        sentences.push(format!("{} more lie in swap", Bytes(mapped.swap_bytes)));
    }
    let known: u64 =
        rows.iter().filter(|row| row.part != Part::Unexplained).filter_map(|row| row.bytes).sum();
    // A few pages that were never touched are nothing to speak of.
    if resident(now).is_some_and(|resident| known > resident + resident / 20) {
        sentences.push(
            "The parts come to more than is resident: they were taken at different moments, or some of it was never touched or is swapped"
                .to_owned(),
        );
    }
    sentences
}

/// Modules that only hand memory on.
const CARRIERS: [&str; 5] = ["libc.so", "libc-", "libstdc++", "ld-linux", "libpthread"];
/// Modules that are a managed runtime.
const RUNTIMES: [&str; 7] = ["libruby", "ruby", "libjvm", "libpython", "python", "node", "libnode"];

/// Live blocks of a profile by the module whose code allocated them.
pub fn native_rows(profile: &Profile) -> Vec<NativeRow> {
    let mut modules = BTreeMap::<&str, NativeRow>::new();
    let mut calls = BTreeMap::<(&str, &str, Option<&str>, Option<u32>), (u64, &Frame)>::new();
    for site in &profile.sites {
        let bytes = site.totals.leaked_bytes;
        if bytes == 0 {
            continue;
        }
        let is_somebody = |frame: &&Frame| {
            leaf_rule(frame).is_none() && !base(frame).is_some_and(|name| starts(name, &CARRIERS))
        };
        let frame = profile.frames(site.stack).find(is_somebody);
        let module = frame.and_then(base).unwrap_or("(unknown)");
        let new = NativeRow {
            module: module.to_owned(),
            is_runtime: starts(module, &RUNTIMES),
            bytes: 0,
            frame: None,
            frame_bytes: 0,
        };
        let row = modules.entry(module).or_insert(new);
        row.bytes = row.bytes.saturating_add(bytes);
        if let Some(frame) = frame {
            let key = (module, &frame.function[..], frame.file.as_deref(), frame.line);
            calls.entry(key).or_insert((0, frame)).0 += bytes;
        }
    }
    for ((module, ..), (bytes, frame)) in calls {
        if let Some(row) = modules.get_mut(module).filter(|row| bytes > row.frame_bytes) {
            (row.frame, row.frame_bytes) = (Some(frame.clone()), bytes);
        }
    }
    let mut rows: Vec<NativeRow> = modules.into_values().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.module.cmp(&b.module)));
    rows
}

fn base(frame: &Frame) -> Option<&str> {
    frame.module.as_deref().map(|module| module.rsplit('/').next().unwrap_or(module))
}

fn starts(name: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
