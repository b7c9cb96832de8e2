//! What changed between two aggregations by stack, as SwiftNIO's script `stackdiff-dtrace.py` prints it, byte for byte.
//!
//! Scripts and people of that project read this text, so none of its peculiarities is changed: stacks are equal if
//! their eight innermost frames are equal up to the first `+`; a stack is shown if it has 1,000 allocations in its
//! own file; stacks below that, and unchanged ones, appear only in the totals of the last line. `mallow diff` without
//! `--compat nio` has none of these limits.

use crate::import::bpftrace::{Entries, Printings, counts_allocations};
use crate::source::Source;
use crate::{Format, ImportError, import, open_profile};
use mallow_base::Frame;
use mallow_profile::{Profile, ReallocAttribution};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// The number of innermost frames that are compared.
const KEY_FRAMES: usize = 8;
/// The number of allocations that a key needs to be shown.
const THRESHOLD: u128 = 1000;

/// A stack and its number of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Allocations; saturating.
    pub count: u64,
    /// The frames as printed, innermost first, without blanks around them.
    pub frames: Vec<Vec<u8>>,
}

/// Reads the stacks of a file, with warnings about what is doubtful. dtrace's text is parsed as the script parses it;
/// bpftrace's maps and all other formats by their importers.
///
/// # Errors
/// See [`ImportError`].
pub fn of_file(path: &Path) -> Result<(Vec<Counted>, Vec<String>), ImportError> {
    let source = Source::of_file(path)?;
    let format = Format::of_beginning(source.beginning());
    match format {
        Some(Format::Bpftrace) => of_maps(source),
        // A program's own output before the first stack may be long, and have any form.
        Some(Format::Dtrace | Format::Folded) | None => {
            let looks_like = mallow_trace::looks_like(source.beginning());
            let bytes = source.whole(format.unwrap_or(Format::Dtrace))?;
            let counted = aggregation(&bytes);
            match format {
                _ if !counted.is_empty() => Ok((counted, Vec::new())),
                Some(format) => {
                    let imported = import::read_as(&bytes, format)?;
                    Ok((of_profile(&imported.profile), imported.warnings))
                }
                None => Err(ImportError::Unknown { looks_like }),
            }
        }
        Some(_) => {
            let (_, imported) = open_profile(path, ReallocAttribution::OwnSite)?;
            Ok((of_profile(&imported.profile), imported.warnings))
        }
    }
}

/// Parses the stacks of dtrace's `printa`: lines that begin with a blank, up to one with a number alone. Everything else is skipped.
pub fn aggregation(text: &[u8]) -> Vec<Counted> {
    let mut all = Vec::new();
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b" ")) {
        let word = line.trim_ascii_start();
        if !word.is_empty()
            && word.len() < line.len()
            && word.iter().all(u8::is_ascii_digit)
            && is_blanks(line, word)
        {
            let count = String::from_utf8_lossy(word).parse().unwrap_or(u64::MAX);
            all.push(Counted { count, frames: std::mem::take(&mut frames) });
        } else {
            frames.push(stripped(line).to_vec());
        }
    }
    all
}

/// Returns whether only blanks, and no tabs, precede the word that ends the line.
fn is_blanks(line: &[u8], word: &[u8]) -> bool {
    line[..line.len() - word.len()].iter().all(|byte| *byte == b' ')
}

/// Removes the surrounding white space, which in Python includes the vertical tab.
fn stripped(line: &[u8]) -> &[u8] {
    let is_white = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = line.iter().position(|byte| !is_white(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_white(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

fn of_maps(source: Source<'_>) -> Result<(Vec<Counted>, Vec<String>), ImportError> {
    let mut entries = Entries::new(source.lines(Format::Bpftrace));
    let printings = Printings::of(&mut entries)?;
    let mut all = Vec::new();
    for entry in printings.entries {
        if let Some(count) = counts_allocations(&entry) {
            all.push(Counted { count, frames: entry.frames.into_iter().map(String::into_bytes).collect() });
        }
    }
    if all.is_empty() {
        return Err(entries.expected("a map that counts by stack, such as @malloc_calls[ustack()] = count()"));
    }
    Ok((all, printings.warnings))
}

/// Returns the stacks of any profile, each frame as ``module`function``.
pub fn of_profile(profile: &Profile) -> Vec<Counted> {
    let sites = profile.sites.iter().filter(|site| site.totals.allocations > 0);
    sites
        .map(|site| Counted {
            count: site.totals.allocations,
            frames: profile.frames(site.stack).map(|frame| text(frame).into_bytes()).collect(),
        })
        .collect()
}

fn text(frame: &Frame) -> String {
    let function = frame.function.replace(['\n', '\r'], " ");
    match frame.module.as_deref().and_then(|path| path.rsplit('/').next()) {
        Some(module) => format!("{module}`{function}"),
        None => function,
    }
}

/// The stacks with one key, in the order of the file.
#[derive(Default)]
struct Group<'a> {
    sum: u128,
    stacks: Vec<&'a Counted>,
}

type Groups<'a> = BTreeMap<Vec<u8>, Group<'a>>;

fn groups(all: &[Counted]) -> Groups<'_> {
    let mut groups = Groups::new();
    for counted in all {
        let frames = counted.frames.iter().take(KEY_FRAMES);
        let names: Vec<&[u8]> =
            frames.map(|frame| frame.split(|byte| *byte == b'+').next().unwrap_or_default()).collect();
        let group = groups.entry(names.join(&b'\n')).or_default();
        group.sum = group.sum.saturating_add(u128::from(counted.count));
        group.stacks.push(counted);
    }
    groups
}

/// Returns a group, if it has enough allocations in its file.
fn useful<'g, 'a>(groups: &'g Groups<'a>, key: &[u8]) -> Option<&'g Group<'a>> {
    groups.get(key).filter(|group| group.sum >= THRESHOLD)
}

/// Prints what changed.
///
/// # Errors
/// The errors of `out`.
pub fn nio(before: &[Counted], after: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = (groups(before), groups(after));
    only("AFTER", &after, &before, out)?;
    only("BEFORE", &before, &after, out)?;
    writeln!(out, "\n### different numbers")?;
    for key in before.keys() {
        let (Some(old), Some(new)) = (useful(&before, key), useful(&after, key)) else { continue };
        if old.sum != new.sum {
            writeln!(out, "before: {}, after: {}", old.sum, new.sum)?;
            writeln!(out, "  AFTER")?;
            stacks(new, out)?;
            writeln!(out, "  BEFORE")?;
            stacks(old, out)?;
            writeln!(out)?;
        }
    }
    let total =
        |groups: &Groups<'_>| groups.values().fold(0_u128, |sum, group| sum.saturating_add(group.sum));
    let (before, after) = (total(&before), total(&after));
    let sign = if after < before { "-" } else { "" };
    let difference = after.abs_diff(before);
    writeln!(
        out,
        "Total of _EVERYTHING_ BEFORE:  {before},  AFTER:  {after},  DIFFERENCE:  {sign}{difference}"
    )
}

/// Prints the section of the keys that only one side has.
fn only(name: &str, these: &Groups<'_>, others: &Groups<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### only in {name}")?;
    let mut total = 0_u128;
    for key in these.keys() {
        let (Some(group), None) = (useful(these, key), useful(others, key)) else { continue };
        writeln!(out, "{}", group.sum)?;
        out.write_all(key)?;
        out.write_all(b"\n\n")?;
        stacks(group, out)?;
        writeln!(out)?;
        total = total.saturating_add(group.sum);
    }
    writeln!(out, "Total for only in {name}:  {total}")
}

fn stacks(group: &Group<'_>, out: &mut dyn Write) -> io::Result<()> {
    for stack in &group.stacks {
        writeln!(out, "    {}", stack.count)?;
        // A stack without frames is an empty line, indented.
        for frame in stack.frames.iter().map(Vec::as_slice).chain(stack.frames.is_empty().then_some(&b""[..]))
        {
            out.write_all(b"        ")?;
            out.write_all(frame)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}
