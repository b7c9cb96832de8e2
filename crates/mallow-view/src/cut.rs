//! What is shown of a stack that is too long: the frames that its reader wrote, and of the others those nearest to the allocation.
//!
//! Which frames are the program's own is said in [`is_own`]. Where nothing tells, none is.

use crate::{Line, is_own};
use rustc_hash::FxHashSet;

/// A line that is shown, or some that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A call.
    Line(Line<'a>),
    /// So many calls that are left out.
    Gap(usize),
}

/// Shortens a stack, leaf first, to `max` pieces. The innermost and the outermost line are kept, and each line of the
/// program's own code once, if need be beyond `max`; the remaining room goes to the innermost of the others.
pub fn cut<'a>(lines: &[Line<'a>], max: usize) -> Vec<Piece<'a>> {
    let last = lines.len().saturating_sub(1);
    let mut seen = FxHashSet::default();
    let mut kept: Vec<bool> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| at == 0 || at == last || (is_own(line.frame) && seen.insert(line.frame.place())))
        .collect();
    if lines.len() <= max {
        kept.fill(true);
    }
    for at in 0..kept.len() {
        if !kept[at] {
            kept[at] = true;
            if pieces(&kept) > max {
                kept[at] = false;
            }
        }
    }
    let mut out: Vec<Piece<'a>> = Vec::new();
    for (line, is_kept) in lines.iter().zip(kept) {
        match (is_kept, out.last_mut()) {
            (true, _) => out.push(Piece::Line(*line)),
            (false, Some(Piece::Gap(count))) => *count += 1,
            (false, _) => out.push(Piece::Gap(1)),
        }
    }
    out
}

/// Returns how many pieces are shown: the kept lines, and a gap for each run of others.
fn pieces(kept: &[bool]) -> usize {
    kept.chunk_by(|a, b| a == b).map(|run| if run[0] { run.len() } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_base::Frame;

    fn frame(function: &str, file: &str, module: &str) -> Frame {
        Frame {
            function: function.into(),
            file: Some(file.into()).filter(|file: &String| !file.is_empty()),
            line: Some(1),
            module: Some(module.into()),
            ..Frame::default()
        }
    }

    /// The names of what is shown, and numbers of what is not.
    fn shown(frames: &[Frame], max: usize) -> Vec<String> {
        let lines: Vec<Line<'_>> = frames.iter().map(|frame| Line { frame, times: 1 }).collect();
        let text = |piece: &Piece<'_>| match piece {
            Piece::Line(line) => line.frame.function.clone(),
            Piece::Gap(count) => count.to_string(),
        };
        cut(&lines, max).iter().map(text).collect()
    }

    #[test]
    fn own_frames_stay_and_the_outer_ones_of_libraries_go_first() {
        let package = "/home/me/.cargo/registry/src/index.crates.io-1/serde-1.0/src/de.rs";
        let mut frames: Vec<Frame> =
            (0..9).map(|at| frame(&format!("de{at}"), package, "/home/me/app")).collect();
        frames.push(frame("read_rows", "/home/me/src/rows.rs", "/home/me/app"));
        frames.extend((0..4).map(|at| {
            frame(&format!("and_then{at}"), "/rustc/1/library/core/src/result.rs", "/home/me/app")
        }));
        frames.push(frame("main", "/home/me/src/main.rs", "/home/me/app"));
        assert_eq!(shown(&frames, 7), ["de0", "de1", "de2", "6", "read_rows", "4", "main"]);
        assert_eq!(shown(&frames, 3), ["de0", "8", "read_rows", "4", "main"]);
        assert_eq!(shown(&frames, 15).len(), 15);
    }

    #[test]
    fn a_place_that_comes_again_is_kept_once() {
        let frames: Vec<Frame> =
            (0..40).map(|at| frame(["even", "odd"][at % 2], "/src/a.c", "/home/me/app")).collect();
        assert_eq!(shown(&frames, 6), ["even", "odd", "even", "odd", "35", "odd"]);
    }

    #[test]
    fn where_nothing_tells_the_innermost_stay() {
        let frames: Vec<Frame> =
            ('a'..='j').map(|name| Frame { function: name.into(), ..Frame::default() }).collect();
        assert_eq!(shown(&frames, 5), ["a", "b", "c", "6", "j"]);
        assert_eq!(shown(&[], 5), [""; 0]);
    }
}
