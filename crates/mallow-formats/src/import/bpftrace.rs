//! Aggregations by stack that bpftrace prints when it ends, such as `@malloc_calls[ustack()] = count()`.
//!
//! An entry of a map begins with `@name[` and ends with `]: ` and its value. In between are the keys, separated by
//! commas. A stack is a key that begins after a line break and has one frame per line, innermost first: `malloc+12`,
//! `0x7f1c`, and with `ustack(perf)` also `7f1c malloc+12 (/usr/lib/libc.so.6)`. A key that is a number is
//! interpreted as a process id, any other as a program's name. Lines outside of maps are the program's own output.
//! Source: the output of bpftrace 0.17 itself, see `fixtures/bpftrace`.

mod entries;
mod printings;

pub(crate) use entries::{Entries, Entry, Value};
pub(crate) use printings::Printings;

use super::text_stacks::{TextStacks, named, without_offset};
use crate::lines::Lines;
use crate::{ImportError, Imported};
use mallow_base::Frame;
use mallow_profile::{Availability, SiteTotals};
use std::collections::BTreeMap;

/// What the values of a map mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Numbers of allocations.
    Allocations,
    /// Their bytes.
    Bytes,
    /// Both: the counts and totals of `stats()`.
    Stats,
    /// No metric of a profile.
    Other,
}

/// Parses maps.
pub(super) fn read(lines: Lines<'_>) -> Result<Imported, ImportError> {
    let mut stacks = TextStacks::new(Availability::NOTHING);
    let mut maps: BTreeMap<String, (Role, u64)> = BTreeMap::new();
    let mut entries = Entries::new(lines);
    let printings = Printings::of(&mut entries)?;
    for entry in printings.entries {
        let role = role(&entry);
        let seen = maps.entry(entry.map.clone()).or_insert((role, 0));
        *seen = (seen.0.max(role), seen.1 + 1);
        let Some(totals) = totals(role, entry.value) else { continue };
        let (pid, command) = process(&entry.keys);
        let process = stacks.process(pid, &command);
        stacks.add(process, entry.frames.iter().map(|frame| self::frame(frame)), &totals);
    }
    let has = |wanted: Role| maps.values().any(|(role, _)| *role == wanted);
    if !(has(Role::Allocations) || has(Role::Bytes) || has(Role::Stats)) {
        return Err(entries.expected("a map of numbers by stack, such as @malloc_calls[ustack()] = count()"));
    }
    *stacks.builder().known() = Availability {
        allocations: has(Role::Stats) || has(Role::Allocations),
        bytes: has(Role::Stats) || has(Role::Bytes),
        ..Availability::NOTHING
    };
    let mut warnings = warnings(&maps, entries.is_cut());
    warnings.extend(printings.warnings);
    Ok(stacks.finish(warnings, !entries.is_cut()))
}

/// Returns the count of an entry, if it counts allocations by stack; also used to compare counts.
pub(crate) fn counts_allocations(entry: &Entry) -> Option<u64> {
    totals(role(entry), entry.value).map(|totals| totals.allocations).filter(|count| *count > 0)
}

fn role(entry: &Entry) -> Role {
    let name = entry.map.to_ascii_lowercase();
    let is_named = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match entry.value {
        _ if !entry.has_stack || is_named(&["free", "munmap"]) => Role::Other,
        Value::Number(_) if is_named(&["byte", "size", "sum"]) => Role::Bytes,
        Value::Number(_) => Role::Allocations,
        Value::Stats { .. } => Role::Stats,
        Value::Other => Role::Other,
    }
}

fn totals(role: Role, value: Value) -> Option<SiteTotals> {
    let (allocations, bytes) = match (role, value) {
        (Role::Allocations, Value::Number(allocations)) => (allocations, 0),
        (Role::Bytes, Value::Number(bytes)) => (0, bytes),
        (Role::Stats, Value::Stats { count, total }) => (count, total),
        _ => return None,
    };
    Some(SiteTotals { allocations, bytes, ..SiteTotals::default() })
}

fn process(keys: &[String]) -> (u32, String) {
    let pid = keys.iter().find_map(|key| key.parse().ok());
    let command = keys.iter().find(|key| key.parse::<i64>().is_err());
    (pid.unwrap_or(0), command.cloned().unwrap_or_default())
}

/// Parses `malloc+12`, or `7f1c malloc+12 (/usr/lib/libc.so.6)`.
fn frame(text: &str) -> Frame {
    let Some((rest, module)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) else {
        return named(without_offset(text));
    };
    let is_module = module.starts_with('/') || module.starts_with('[');
    match rest.split_once(' ') {
        Some((address, function)) if is_module && address.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            let module = Some(module).filter(|module| *module != "[unknown]").map(str::to_owned);
            Frame { module, ..named(without_offset(function)) }
        }
        _ => named(without_offset(text)),
    }
}

fn warnings(maps: &BTreeMap<String, (Role, u64)>, is_cut: bool) -> Vec<String> {
    let of = |wanted: &[Role]| {
        let names =
            maps.iter().filter(|(_, (role, _))| wanted.contains(role)).map(|(name, _)| format!("@{name}"));
        names.collect::<Vec<String>>()
    };
    let mut warnings = Vec::new();
    let (counts, bytes, others) =
        (of(&[Role::Allocations, Role::Stats]), of(&[Role::Bytes, Role::Stats]), of(&[Role::Other]));
    for (names, what) in [(&counts, "numbers of allocations"), (&bytes, "bytes allocated")] {
        match names.as_slice() {
            [] => {}
            [name] => warnings.push(format!("{name} is taken as {what}")),
            names => warnings.push(format!(
                "{} are taken as {what} and added up; if they count the same calls, keep one of them",
                names.join(" and ")
            )),
        }
    }
    if !others.is_empty() {
        let reason = "no numbers of allocations or bytes by stack";
        warnings.push(format!("{} left out: {reason}", others.join(" and ")));
    }
    if is_cut {
        warnings.push(String::from("the last entry is cut short and left out"));
    }
    warnings
}
