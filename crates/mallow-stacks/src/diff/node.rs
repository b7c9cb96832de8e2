//! Sites as they are compared: frames as small numbers, equal where two builds have the same.
//!
//! A name is normalised once for each frame of the profile, not once for each stack that it stands on.

use super::sequences::Sequences;
use super::{DiffSites, MetricOf, SiteIndices, name, place};
use crate::Metric;
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
    /// Its index among [`Sides::stacks`].
    stack: u32,
    is_stackless: bool,
    /// Indices into the side's sites.
    pub(super) sites: SiteIndices,
    /// The two metrics by which similarity is judged.
    pub(super) metrics: [u64; 2],
}

/// Both sides.
pub(super) struct Sides {
    pub(super) before: Vec<Node>,
    pub(super) after: Vec<Node>,
    /// Every frame once, and the stacks of all nodes as indices into them: a stack has tens of frames, a program some thousands.
    tokens: Vec<Token>,
    stacks: Sequences,
    /// The text of each name.
    pub(super) names: Vec<String>,
    /// For each name whether all its functions are in files that are the very same on both sides, where nothing was renamed.
    is_fixed: Vec<bool>,
}

impl Node {
    /// Returns whether no stack was taken.
    pub(super) fn is_stackless(&self) -> bool {
        self.is_stackless
    }
}

impl Sides {
    /// Returns whether a function can have no other name on the other side: its file is the very same there.
    pub(super) fn is_fixed(&self, name: NameId) -> bool {
        self.is_fixed.get(name as usize).copied().unwrap_or(false)
    }

    /// The frames of a node, leaf first.
    pub(super) fn frames(
        &self,
        node: &Node,
    ) -> impl DoubleEndedIterator<Item = &Token> + ExactSizeIterator + Clone {
        let stack = self.stacks.get(node.stack);
        stack.iter().map(|token| &self.tokens[*token as usize])
    }

    /// Compares two nodes by lines, outermost call first: the order of the calls in the source, which does not change when
    /// lines move.
    pub(super) fn compare_lines(&self, one: &Node, other: &Node) -> Ordering {
        let lines = |node| self.frames(node).rev().map(|frame| frame.line);
        lines(one).cmp(lines(other))
    }

    /// Returns whether the lines of two nodes are the same; the functions are known to be.
    pub(super) fn have_same_lines(&self, one: &Node, other: &Node) -> bool {
        let lines = |node| self.frames(node).map(|frame| (frame.line, frame.is_inlined));
        one.stack == other.stack || lines(one).eq(lines(other))
    }

    /// Numbers all frames of both sides.
    pub(super) fn of<S: DiffSites>(
        before: &S,
        after: &S,
        known: impl Fn(MetricOf<S>) -> bool,
        same_modules: &[&str],
    ) -> Self {
        let metrics = metrics(known);
        let (files_before, files_after) = (paths(before), paths(after));
        let files = place::Files::of(&files_before, &files_after);
        let mut tokens = Tokens {
            names: Texts::default(),
            is_fixed: Vec::new(),
            places: Texts::default(),
            same_modules: same_modules.iter().copied().collect(),
            ids: FxHashMap::default(),
            tokens: Vec::new(),
            stacks: Sequences::default(),
        };
        let before = tokens.nodes(before, |path| files.before(path), metrics);
        let after = tokens.nodes(after, |path| files.after(path), metrics);
        let Tokens { names, is_fixed, tokens, stacks, .. } = tokens;
        Self { before, after, tokens, stacks, names: names.texts, is_fixed }
    }
}

/// The source files of a side, in the order of first sight.
fn paths<S: DiffSites>(sites: &S) -> Vec<&str> {
    let mut frames = FxHashSet::default();
    let mut seen = FxHashSet::default();
    let mut paths = Vec::new();
    for frame in (0..sites.count()).flat_map(|site| sites.frames(site)) {
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
    is_fixed: Vec<bool>,
    places: Texts,
    same_modules: FxHashSet<&'a str>,
    ids: FxHashMap<Token, u32>,
    tokens: Vec<Token>,
    stacks: Sequences,
}

impl Tokens<'_> {
    fn nodes<'f, S: DiffSites>(
        &mut self,
        sites: &S,
        file: impl Fn(&str) -> &'f str,
        metrics: [MetricOf<S>; 2],
    ) -> Vec<Node> {
        let mut by_frame: FxHashMap<*const Frame, u32> = FxHashMap::default();
        // Counted from 1.
        let mut by_stack: Vec<u32> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut tokens = Vec::new();
        for site in 0..sites.count() {
            tokens.clear();
            tokens.extend(sites.frames(site).map(|frame| {
                let known = by_frame.entry(std::ptr::from_ref(frame));
                *known.or_insert_with(|| self.id(frame, &file))
            }));
            let stack = self.stacks.add(&tokens);
            by_stack.resize(by_stack.len().max(stack as usize + 1), 0);
            let node = &mut by_stack[stack as usize];
            if *node == 0 {
                let is_stackless = tokens.is_empty();
                nodes.push(Node { stack, is_stackless, sites: SiteIndices::new(), metrics: [0; 2] });
                *node = nodes.len() as u32;
            }
            let at = *node as usize - 1;
            nodes[at].sites.push(site);
            for (sum, metric) in nodes[at].metrics.iter_mut().zip(metrics) {
                *sum = sum.saturating_add(metric.of_site(sites.totals(site)));
            }
        }
        nodes
    }

    /// The number of a frame's token.
    fn id<'f>(&mut self, frame: &Frame, file: &impl Fn(&str) -> &'f str) -> u32 {
        let token = self.token(frame, file);
        let (tokens, next) = (&mut self.tokens, self.ids.len() as u32);
        *self.ids.entry(token).or_insert_with(|| {
            tokens.push(token);
            next
        })
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
        let name = self.names.id(name);
        self.is_fixed.resize(self.names.texts.len(), true);
        // A script's functions are none of its interpreter.
        self.is_fixed[name as usize] &= is_same && !frame.is_script();
        Token {
            name,
            place: self.places.id(place),
            line: address.or(frame.line.map(u64::from)).unwrap_or(0),
            is_inlined: frame.inlined,
        }
    }
}

/// For tests: a node's frames and metrics.
#[cfg(test)]
pub(super) type Made = (Vec<Token>, [u64; 2]);

#[cfg(test)]
impl Sides {
    /// Sides of these nodes, each of one site.
    pub(super) fn made(before: &[Made], after: &[Made]) -> Self {
        let (mut tokens, mut stacks) = (Vec::new(), Sequences::default());
        let mut side = |made: &[Made]| -> Vec<Node> {
            let mut node = |(site, (frames, metrics)): (usize, &Made)| {
                let numbers: Vec<u32> = (tokens.len() as u32..).take(frames.len()).collect();
                tokens.extend(frames);
                Node {
                    stack: stacks.add(&numbers),
                    is_stackless: frames.is_empty(),
                    sites: SiteIndices::from_slice(&[site]),
                    metrics: *metrics,
                }
            };
            made.iter().enumerate().map(&mut node).collect()
        };
        let (before, after) = (side(before), side(after));
        Self { before, after, tokens, stacks, names: Vec::new(), is_fixed: Vec::new() }
    }
}
