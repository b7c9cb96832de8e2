//! Frames and sites as a baseline keeps them: without what differs between two machines that build the same source.

use super::{LeftOut, SITES_MAX};
use crate::measurement::{Figures, Site};
use mallow_base::Frame;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

/// The innermost frames that are kept of a stack that is too deep.
const INNERMOST: usize = 192;

/// The outermost frames of it.
const OUTERMOST: usize = 64;

/// The deepest stack that is kept.
pub(super) const DEPTH_MAX: usize = INNERMOST + OUTERMOST;

/// A frame without folders but the last of its source file, without its module's folder and without an offset.
pub fn as_kept(frame: &Frame) -> Frame {
    let function = match frame.function.rsplit_once("+0x") {
        Some((name, hex)) if !name.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => frame.function.clone(),
    };
    Frame {
        function,
        file: frame.file.as_deref().map(|path| ending(path, 2).to_owned()),
        line: frame.line,
        module: frame.module.as_deref().map(|path| ending(path, 1).to_owned()),
        inlined: frame.inlined,
    }
}

/// A stack of kept frames: of one that is very deep its two ends.
pub fn kept_stack(frames: &[Frame]) -> Vec<Frame> {
    if frames.len() <= DEPTH_MAX {
        return frames.iter().map(as_kept).collect();
    }
    let outermost = &frames[frames.len() - OUTERMOST..];
    frames[..INNERMOST].iter().chain(outermost).map(as_kept).collect()
}

/// The last components of a path.
fn ending(path: &str, components: usize) -> &str {
    match path.rmatch_indices('/').nth(components - 1) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}

/// The sites that are kept, and the sum of the others. First what left something behind, then by allocations.
pub(super) fn table(sites: &[Site]) -> (Vec<Site>, LeftOut) {
    let mut merged: BTreeMap<Vec<Frame>, Figures> = BTreeMap::new();
    for site in sites {
        let figures = merged.entry(kept_stack(&site.frames)).or_default();
        *figures = figures.plus(&Figures { peak_bytes: 0, ..site.figures });
    }
    let mut kept: Vec<Site> = merged.into_iter().map(|(frames, figures)| Site { frames, figures }).collect();
    kept.sort_by_key(|site| {
        let figures = &site.figures;
        let has_left = figures.remaining_blocks > 0 || figures.descriptors > 0;
        Reverse((has_left, figures.allocations, figures.bytes))
    });
    let rest = kept.split_off(kept.len().min(SITES_MAX));
    let mut left_out = LeftOut { sites: rest.len() as u64, allocations: 0 };
    for site in &rest {
        left_out.allocations = left_out.allocations.saturating_add(site.figures.allocations);
    }
    kept.sort_by(|a, b| by_stack(&a.frames, &b.frames));
    (kept, left_out)
}

/// From the outermost frame: what has callers in common stands together.
fn by_stack(a: &[Frame], b: &[Frame]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}
