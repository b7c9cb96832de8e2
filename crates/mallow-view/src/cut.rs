//! What is shown of a stack that is too long: the frames that its reader wrote, and of the others those nearest to the allocation. Calls
//! that come again and again in the same order are shown once.
//!
//! Which frames are the program's own is said in [`is_own`]. Where nothing tells, none is.

use crate::{Line, is_own};
use rustc_hash::FxHashSet;

/// So many functions at most call each other in a circle that is shown once.
const CIRCLE_MAX: usize = 16;

/// A line that is shown, or some that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A call.
    Line(Line<'a>),
    /// The lines before it stand on the stack several times, one time after the other.
    Again {
        /// How many lines.
        lines: usize,
        /// How many times in all.
        times: usize,
    },
    /// So many calls that are left out.
    Gap(usize),
}

/// Shortens a stack, leaf first, to `max` pieces. The innermost and the outermost line are kept, and each line of the
/// program's own code once, if need be beyond `max`; the remaining room goes to the innermost of the others.
pub fn cut<'a>(lines: &[Line<'a>], max: usize) -> Vec<Piece<'a>> {
    let pieces = circles_once(lines);
    let last = pieces.len().saturating_sub(1);
    let mut seen = FxHashSet::default();
    let mut is_kept = |at: usize, piece: &Piece<'a>| {
        let Piece::Line(line) = piece else { return false };
        at == 0 || at == last || (is_own(line.frame) && seen.insert(line.frame.place()))
    };
    let mut kept: Vec<bool> = pieces.iter().enumerate().map(|(at, piece)| is_kept(at, piece)).collect();
    if pieces.len() <= max {
        kept.fill(true);
    }
    for at in 0..kept.len() {
        if !kept[at] {
            kept[at] = true;
            if pieces_shown(&kept) > max {
                kept[at] = false;
            }
        }
    }
    let mut out: Vec<Piece<'a>> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        // What is said of lines stands behind all of them, or nowhere.
        let (is_kept, count) = match piece {
            Piece::Again { lines, times } => {
                (kept[at - lines..at].iter().all(|is_kept| *is_kept), lines * (times - 1))
            }
            _ => (kept[at], 1),
        };
        match (is_kept, out.last_mut()) {
            (true, _) => out.push(*piece),
            (false, Some(Piece::Gap(gap))) => *gap += count,
            (false, _) => out.push(Piece::Gap(count)),
        }
    }
    out
}

/// The lines, those that come again and again only once.
fn circles_once<'a>(lines: &[Line<'a>]) -> Vec<Piece<'a>> {
    let mut out = Vec::with_capacity(lines.len());
    let mut rest = lines;
    while let [line, behind @ ..] = rest {
        let Some((length, times)) = circle(rest) else {
            out.push(Piece::Line(*line));
            rest = behind;
            continue;
        };
        out.extend(rest[..length].iter().copied().map(Piece::Line));
        out.push(Piece::Again { lines: length, times });
        rest = &rest[length * times..];
    }
    out
}

/// The shortest circle that lines begin with, and how many times it is gone through.
fn circle(lines: &[Line<'_>]) -> Option<(usize, usize)> {
    let is_same = |(one, other): (&Line<'_>, &Line<'_>)| {
        one.times == other.times && one.frame.place() == other.frame.place()
    };
    (2..=CIRCLE_MAX.min(lines.len() / 2)).find_map(|length| {
        let (circle, behind) = lines.split_at(length);
        let again =
            behind.chunks_exact(length).take_while(|chunk| circle.iter().zip(*chunk).all(is_same)).count();
        (again > 0).then_some((length, again + 1))
    })
}

/// Returns how many pieces are shown: those that are kept, and a gap for each run of others.
fn pieces_shown(kept: &[bool]) -> usize {
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
            Piece::Again { lines, times } => format!("{lines} lines {times} times"),
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
    fn functions_that_call_each_other_are_shown_once() {
        let named = |names: &[&str]| -> Vec<Frame> {
            names.iter().map(|name| frame(name, "/src/a.c", "/home/me/app")).collect()
        };
        let mut frames = named(&["leaf"]);
        (0..20).for_each(|_| frames.extend(named(&["even", "odd"])));
        frames.extend(named(&["even", "main"]));
        assert_eq!(shown(&frames, 12), ["leaf", "even", "odd", "2 lines 20 times", "even", "main"]);
        assert_eq!(shown(&frames, 4), ["leaf", "even", "odd", "2 lines 20 times", "1", "main"]);
        let once = named(&["leaf", "a", "b", "c", "a", "b", "main"]);
        assert_eq!(shown(&once, 12), ["leaf", "a", "b", "c", "a", "b", "main"]);
    }

    /// Of libraries, lines are left out; then nothing is said of them.
    #[test]
    fn a_circle_that_is_cut_counts_as_calls() {
        let mut frames = vec![frame("leaf", "", "/lib/libz.so")];
        for _ in 0..10 {
            frames.extend(["a", "b", "c"].map(|name| frame(name, "", "/lib/libz.so")));
        }
        frames.push(frame("main", "/src/a.c", "/home/me/app"));
        assert_eq!(shown(&frames, 4), ["leaf", "a", "29", "main"]);
        assert_eq!(shown(&frames, 6), ["leaf", "a", "b", "c", "3 lines 10 times", "main"]);
    }

    #[test]
    fn where_nothing_tells_the_innermost_stay() {
        let frames: Vec<Frame> =
            ('a'..='j').map(|name| Frame { function: name.into(), ..Frame::default() }).collect();
        assert_eq!(shown(&frames, 5), ["a", "b", "c", "6", "j"]);
        assert_eq!(shown(&[], 5), [""; 0]);
    }
}
