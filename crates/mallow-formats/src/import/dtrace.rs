//! An aggregation by stack that dtrace printed with `printa(@calls)`, such as `@calls[ustack()] = count()`.
//!
//! An entry consists of the frames, innermost first, each on a line of its own that begins with blanks, then a line
//! with blanks and the count. A frame is ``module`function+0x1c``, ``module`0x1c`` or `0x7fff1c`. Between entries
//! there may be output of the program itself: lines that do not begin with a blank are skipped. A line before the
//! frames that is not a frame, such as the `execname` of `@calls[execname, ustack()]`, names the process.
//! Source: `printa` and `ustack` in the guide at <https://illumos.org/books/dtrace/>.

use super::text_stacks::{TextStacks, is_address, named, without_offset};
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
    while let Some(line) = lines.next_text()? {
        let text = line.trim();
        if !line.starts_with([' ', '\t']) || text.is_empty() {
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
    if entries == 0 {
        return Err(lines.expected("a stack that ends with a line of blanks and a count"));
    }
    let mut warnings = vec![String::from("dtrace's counts are taken as numbers of allocations")];
    if !frames.is_empty() {
        warnings.push(format!("the last stack has no count, so its {} frames are left out", frames.len()));
    }
    Ok(stacks.finish(warnings, frames.is_empty()))
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
