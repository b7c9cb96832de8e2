//! Sites as they are compared: frames as small numbers, equal where two builds have the same.
//!
//! A name is normalised once for each frame of the profile, not once for each stack that it stands on.

use super::{DiffSite, name, place};
use crate::{Metric, Weights};
use mallow_base::Frame;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// The number of a normalised function name; the same on both sides.
pub(super) type NameId = u32;

/// A frame of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Token {
    /// The function.
    pub(super) name: NameId,
    /// The function with its source file, or with its library where no file is known.
    pub(super) place: u32,
    /// The line, or the address where there is only that; 0 for none.
    pub(super) line: u64,
    /// Whether the compiler inlined it into the next one.
    pub(super) is_inlined: bool,
}

/// Sites of one side that are the same to the last line.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Leaf first.
    pub(super) frames: Vec<Token>,
    /// Indices into the side's sites.
    pub(super) sites: Vec<usize>,
    /// The two metrics by which similarity is judged.
    pub(super) metrics: [u64; 2],
}

/// Both sides.
pub(super) struct Sides {
    pub(super) before: Vec<Node>,
    pub(super) after: Vec<Node>,
    /// The text of each name.
    pub(super) names: Vec<String>,
}

impl Node {
    /// Compares by lines, outermost call first: the order of the calls in the source, which does not change when
    /// lines move.
    pub(super) fn compare_lines(&self, other: &Node) -> Ordering {
        let lines = |node: &Node| node.frames.iter().rev().map(|frame| frame.line).collect::<Vec<_>>();
        lines(self).cmp(&lines(other))
    }

    /// Returns whether the lines are the same; the functions are known to be.
    pub(super) fn has_lines_of(&self, other: &Node) -> bool {
        self.frames.len() == other.frames.len()
            && self
                .frames
                .iter()
                .zip(&other.frames)
                .all(|(a, b)| a.line == b.line && a.is_inlined == b.is_inlined)
    }
}

impl Sides {
    /// Numbers all frames of both sides.
    pub(super) fn of<W: Weights>(
        before: &[DiffSite<'_, W>],
        after: &[DiffSite<'_, W>],
        known: impl Fn(W::Metric) -> bool,
        same_modules: &[&str],
    ) -> Self {
        let metrics = metrics(known);
        let (files_before, files_after) = (paths(before), paths(after));
        let files = place::Files::of(&files_before, &files_after);
        let mut tokens = Tokens {
            names: Texts::default(),
            places: Texts::default(),
            same_modules: same_modules.iter().copied().collect(),
        };
        let before = tokens.nodes(before, |path| files.before(path), metrics);
        let after = tokens.nodes(after, |path| files.after(path), metrics);
        Self { before, after, names: tokens.names.texts }
    }
}

/// The source files of a side, in the order of first sight.
fn paths<'a, W>(sites: &[DiffSite<'a, W>]) -> Vec<&'a str> {
    let mut frames = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut paths = Vec::new();
    for frame in sites.iter().flat_map(|site| &site.frames) {
        if frames.insert(std::ptr::from_ref::<Frame>(frame))
            && let Some(path) = frame.file.as_deref()
            && seen.insert(path)
        {
            paths.push(path);
        }
    }
    paths
}

/// Returns the two most informative metrics that both sides have.
fn metrics<M: Metric>(known: impl Fn(M) -> bool) -> [M; 2] {
    let mut telling = M::TELLING.iter().copied().filter(|metric| known(*metric));
    let first = telling.next().unwrap_or(M::TELLING[0]);
    [first, telling.next().unwrap_or(first)]
}

#[derive(Default)]
struct Texts {
    ids: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Texts {
    fn id(&mut self, text: String) -> u32 {
        let (texts, next) = (&mut self.texts, self.ids.len() as u32);
        *self.ids.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            next
        })
    }
}

struct Tokens<'a> {
    names: Texts,
    places: Texts,
    same_modules: FxHashSet<&'a str>,
}

impl Tokens<'_> {
    fn nodes<'f, W: Weights>(
        &mut self,
        sites: &[DiffSite<'_, W>],
        file: impl Fn(&str) -> &'f str,
        metrics: [W::Metric; 2],
    ) -> Vec<Node> {
        let mut by_frame: FxHashMap<*const Frame, Token> = FxHashMap::default();
        let mut by_frames: FxHashMap<Vec<Token>, usize> = FxHashMap::default();
        let mut nodes: Vec<Node> = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            let frames: Vec<Token> = site
                .frames
                .iter()
                .map(|frame| {
                    *by_frame.entry(std::ptr::from_ref(*frame)).or_insert_with(|| self.token(frame, &file))
                })
                .collect();
            let at = *by_frames.entry(frames).or_insert_with_key(|frames| {
                nodes.push(Node { frames: frames.clone(), sites: Vec::new(), metrics: [0; 2] });
                nodes.len() - 1
            });
            nodes[at].sites.push(index);
            for (sum, metric) in nodes[at].metrics.iter_mut().zip(metrics) {
                *sum = sum.saturating_add(metric.of_site(&site.totals));
            }
        }
        nodes
    }

    fn token<'f>(&mut self, frame: &Frame, file: &impl Fn(&str) -> &'f str) -> Token {
        let module = frame.module.as_deref().map(place::module);
        let library = module.as_deref().unwrap_or("");
        let is_same = frame.module.as_deref().is_some_and(|path| self.same_modules.contains(path));
        // An address without a name belongs to its library; like a line, it distinguishes calls but changes with each
        // build.
        let (name, address) = match name::address(&frame.function) {
            Some(address) if is_same => (format!("{address:#x} in {library}"), None),
            Some(address) => (format!("code without a name in {library}"), Some(address)),
            None => (name::normalised(&frame.function), None),
        };
        let place = match frame.file.as_deref() {
            Some(path) => format!("{name} ({})", file(path)),
            None => format!("{name} [{library}]"),
        };
        Token {
            name: self.names.id(name),
            place: self.places.id(place),
            line: address.or(frame.line.map(u64::from)).unwrap_or(0),
            is_inlined: frame.inlined,
        }
    }
}
