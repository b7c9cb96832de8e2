//! Which leaks nobody wants to hear of, as LeakSanitizer's suppressions say it.
//!
//! The format is that of <https://github.com/google/sanitizers/wiki/AddressSanitizerLeakSanitizer>: lines of
//! `leak:PATTERN`, comments behind `#`. A pattern is a part of a function's name, of a source file's path or of a
//! module's path; `*` stands for anything, `^` at its beginning and `$` at its end tie it there. One frame that fits
//! suppresses the whole stack. This module must never read a file, and never change a total.

mod known;

pub use known::{KNOWN_LEAKS, LibraryLeak, known_leaks};

use crate::{Profile, Site, SiteTotals};
use mallow_base::Frame;
use std::borrow::Cow;
use std::fmt;

/// One `leak:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The text after `leak:`.
    pub pattern: Cow<'static, str>,
    /// Its line, counted from 1.
    pub line: usize,
    /// Whether a name must begin with the first piece.
    from_start: bool,
    /// Whether a name must end with the last piece.
    to_end: bool,
    /// The pieces between the asterisks.
    pieces: Vec<Cow<'static, str>>,
    /// The rule that it is of, if it is one of those that are built in.
    pub known: Option<&'static LibraryLeak>,
}

/// A line that is no suppression of leaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressionError {
    /// The line, counted from 1.
    pub line: usize,
    /// The error.
    pub reason: &'static str,
}

impl fmt::Display for SuppressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} {}", self.line, self.reason)
    }
}

impl std::error::Error for SuppressionError {}

/// A site whose leaked blocks were suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuppressedSite {
    /// The index of the suppression.
    pub by: usize,
    /// The site, with nothing but its leaked metrics.
    pub site: Site,
}

impl Suppression {
    /// Reads `leak:` lines, in their order.
    ///
    /// # Errors
    /// The first line that is neither a suppression nor a comment nor empty.
    pub fn parse(text: &str) -> Result<Vec<Suppression>, SuppressionError> {
        let (found, wrong) = Suppression::parse_lines(text);
        wrong.into_iter().next().map_or(Ok(found), Err)
    }

    /// The same, with the lines that are neither a suppression nor a comment nor empty beside those that are.
    pub fn parse_lines(text: &str) -> (Vec<Suppression>, Vec<SuppressionError>) {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), index + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |reason| SuppressionError { line: number, reason };
            match line.strip_prefix("leak:").map(str::trim) {
                None => errors.push(wrong(what_else(line))),
                Some("") => {
                    errors.push(wrong("has no pattern behind `leak:`; `leak:*` would suppress everything"));
                }
                Some(pattern) => found.push(Suppression::new(pattern, number)),
            }
        }
        (found, errors)
    }

    fn new(pattern: &str, line: usize) -> Suppression {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        Suppression::of_pieces(owned(pattern), line, untied(pattern).split('*').map(owned).collect())
    }

    /// One of a rule, of which nothing has to be copied.
    fn of_rule(known: &'static LibraryLeak, pattern: &'static str, line: usize) -> Suppression {
        let pieces = untied(pattern).split('*').map(Cow::Borrowed).collect();
        Suppression { known: Some(known), ..Suppression::of_pieces(Cow::Borrowed(pattern), line, pieces) }
    }

    fn of_pieces(pattern: Cow<'static, str>, line: usize, pieces: Vec<Cow<'static, str>>) -> Suppression {
        let (from_start, to_end) = (pattern.starts_with('^'), without_start(&pattern).ends_with('$'));
        Suppression { pattern, line, from_start, to_end, pieces, known: None }
    }

    /// Returns whether the pattern fits a name or a path. An empty one never fits.
    pub fn fits(&self, text: &str) -> bool {
        let (Some((first, pieces)), false) = (self.pieces.split_first(), text.is_empty()) else {
            return false;
        };
        let Some(mut rest) =
            (if self.from_start { text.strip_prefix(&**first) } else { behind(text, first) })
        else {
            return false;
        };
        let Some((last, middle)) = pieces.split_last() else {
            return !self.to_end || if self.from_start { rest.is_empty() } else { text.ends_with(&**first) };
        };
        for piece in middle {
            let Some(next) = behind(rest, piece) else { return false };
            rest = next;
        }
        if self.to_end { rest.ends_with(&**last) } else { rest.contains(&**last) }
    }

    fn fits_frame(&self, frame: &Frame) -> bool {
        let paths = [frame.module.as_deref(), frame.file.as_deref()];
        self.fits(&frame.function) || paths.into_iter().flatten().any(|path| self.fits(path))
    }
}

fn without_start(pattern: &str) -> &str {
    pattern.strip_prefix('^').unwrap_or(pattern)
}

/// A pattern without what ties it to a name's ends.
fn untied(pattern: &str) -> &str {
    let inner = without_start(pattern);
    inner.strip_suffix('$').unwrap_or(inner)
}

/// Returns the rest after the first occurrence. Matching the first occurrence leaves most text for the following
/// pieces.
fn behind<'t>(text: &'t str, piece: &str) -> Option<&'t str> {
    text.find(piece).map(|at| &text[at + piece.len()..])
}

fn what_else(line: &str) -> &'static str {
    const OTHERS: [&str; 12] = [
        "race",
        "race_top",
        "mutex",
        "thread",
        "signal",
        "deadlock",
        "called_from_lib",
        "interceptor_name",
        "interceptor_via_fun",
        "interceptor_via_lib",
        "odr_violation",
        "vptr_check",
    ];
    match line.split_once(':') {
        _ if line.starts_with('{') => {
            "belongs to valgrind's suppressions; LeakSanitizer's are lines of `leak:PATTERN`"
        }
        Some((kind, _)) if OTHERS.contains(&kind) => {
            "suppresses what another sanitizer finds; only lines of `leak:PATTERN` suppress leaks"
        }
        _ => "does not begin with `leak:`",
    }
}

/// Removes the leaked metrics of the sites that a suppression matches, and returns them, in the order of the sites.
/// The innermost frame decides which suppression, then the order of the suppressions; those that are built in come after all others. Totals of
/// processes are not changed.
pub fn suppress_leaks(profile: &mut Profile, suppressions: &[Suppression]) -> Vec<SuppressedSite> {
    let leaks = |site: &Site| site.totals.leaked_bytes > 0 || site.totals.leaked_blocks > 0;
    if suppressions.is_empty() || !profile.sites.iter().any(leaks) {
        return Vec::new();
    }
    let known = known::of_stacks(profile, suppressions);
    let is_fitting = |one: &Suppression, frame: &Frame| one.known.is_none() && one.fits_frame(frame);
    let of_frame = |frame: &Frame| suppressions.iter().position(|one| is_fitting(one, frame));
    let locations: Vec<Option<usize>> =
        profile.stacks.locations.iter().map(|location| location.frames.iter().find_map(of_frame)).collect();
    let mut stacks: Vec<Option<usize>> = Vec::with_capacity(profile.stacks.nodes.len());
    for node in &profile.stacks.nodes {
        let outer = || node.parent.and_then(|parent| stacks[parent.0 as usize]);
        stacks.push(locations[node.location.0 as usize].or_else(outer));
    }
    let mut suppressed = Vec::new();
    for index in 0..profile.sites.len() {
        let site = &profile.sites[index];
        let (Some(stack), true, totals) = (site.stack, leaks(site), site.totals) else { continue };
        let known = || {
            let rule = *known.as_ref()?.get(stack.0 as usize)? as usize;
            let known = suppressions.get(rule)?.known?;
            known.explains(profile, stack, totals.leaked_blocks).then_some(rule)
        };
        let Some(by) = stacks[stack.0 as usize].or_else(known) else { continue };
        let site = &mut profile.sites[index];
        let leaked = SiteTotals {
            leaked_bytes: std::mem::take(&mut site.totals.leaked_bytes),
            leaked_blocks: std::mem::take(&mut site.totals.leaked_blocks),
            ..SiteTotals::default()
        };
        suppressed.push(SuppressedSite { by, site: Site { totals: leaked, ..*site } });
    }
    suppressed
}

#[cfg(test)]
#[path = "suppressions_tests.rs"]
mod tests;
