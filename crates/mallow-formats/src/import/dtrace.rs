//! An aggregation by stack that dtrace printed with `printa(@calls)`, such as `@calls[ustack()] = count()`.
//!
//! An entry consists of the frames, innermost first, each on a line of its own that begins with blanks, then a line
//! with blanks and the count. A frame is ``module`function+0x1c``, ``module`0x1c`` or `0x7fff1c`. Between entries
//! there may be output of the program itself: lines that do not begin with a blank are skipped. A line before the
//! frames that is not a frame, such as the `execname` of `@calls[execname, ustack()]`, names the process. If no line begins with a blank, as in
//! a log from which blanks were removed, lines that can only be frames, and numbers behind them, are taken for the stacks.
//! Source: `printa` and `ustack` in the guide at <https://illumos.org/books/dtrace/>.

use super::text_stacks::{TextStacks, is_address, named, without_offset};
use crate::format::is_bare_frame;
use crate::lines::Lines;
use crate::{ImportError, Imported};
use mallow_base::Frame;
use mallow_profile::{Availability, SiteTotals};

const KNOWN: Availability = Availability { allocations: true, ..Availability::NOTHING };

/// Parses an aggregation.
pub(super) fn read(mut lines: Lines<'_>) -> Result<Imported, ImportError> {
    let mut stacks = TextStacks::new(KNOWN);
    let mut frames: Vec<Frame> = Vec::new();
    let (mut command, mut entries) = (String::new(), 0_u64);
    let mut bare = Bare::default();
    while let Some(line) = lines.next_text()? {
        let text = line.trim();
        if !line.starts_with([' ', '\t']) || text.is_empty() {
            if entries == 0 {
                bare.take(text);
            }
            continue;
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let allocations = text.parse().unwrap_or(u64::MAX);
            let process = stacks.process(0, &command);
            stacks.add(process, frames.drain(..), &SiteTotals { allocations, ..SiteTotals::default() });
            command.clear();
            entries += 1;
        } else if frames.is_empty() && !text.contains('`') && !is_address(text) {
            text.clone_into(&mut command);
        } else {
            frames.push(frame(text));
        }
    }
    let mut warnings = vec![String::from("dtrace's counts are taken as numbers of allocations")];
    if entries == 0 {
        if bare.stacks.is_empty() {
            return Err(lines.expected("a stack that ends with a line of blanks and a count"));
        }
        let process = stacks.process(0, "");
        for (frames, allocations) in bare.stacks {
            stacks.add(process, frames.into_iter(), &SiteTotals { allocations, ..SiteTotals::default() });
        }
        frames = bare.frames;
        warnings.push(String::from(
            "no stack is indented, as dtrace indents them; lines with a module and a function are taken for frames",
        ));
    }
    if !frames.is_empty() {
        warnings.push(format!("the last stack has no count, so its {} frames are left out", frames.len()));
    }
    Ok(stacks.finish(warnings, frames.is_empty()))
}

/// Stacks of lines that begin without blanks.
#[derive(Default)]
struct Bare {
    stacks: Vec<(Vec<Frame>, u64)>,
    /// Those of the next stack.
    frames: Vec<Frame>,
}

impl Bare {
    fn take(&mut self, text: &str) {
        let is_count = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_count && !self.frames.is_empty() {
            self.stacks.push((std::mem::take(&mut self.frames), text.parse().unwrap_or(u64::MAX)));
        } else if is_bare_frame(text) || is_address(text) {
            self.frames.push(frame(text));
        }
    }
}

/// Parses ``libc.so.1`malloc+0x2a``.
fn frame(text: &str) -> Frame {
    let text = without_offset(text);
    match text.split_once('`') {
        Some((module, function)) if !module.is_empty() => {
            Frame { module: Some(module.to_owned()), ..named(function) }
        }
        _ => named(text),
    }
}
