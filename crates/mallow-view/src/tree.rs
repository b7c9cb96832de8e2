//! Sites as a tree of calls: from the leaf outwards, or from the program's start inwards.
//!
//! A node's metrics are the sums over all sites whose stacks begin with its path, so at every node the sites that end
//! there, the children and the rest that is not shown add up to the node. Calls without a branch are one node. Recursion
//! is one call with its number, and sites that differ only in that number are together. The tree is never deeper than
//! asked, so walking it by recursion is safe.

use crate::{FrameVisibility, Key, Line, SiteRow, Sites, SortKey, plumbing};
use mallow_base::{Frame, Place, words};
use mallow_profile::SiteTotals;
use mallow_stacks::Weights;
use rustc_hash::FxHashMap;

/// The direction of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the innermost calls to their callers.
    Callers,
    /// From the program's start to what it called.
    Callees,
}

words! { Direction { Callers = "callers", Callees = "callees" } }

/// Options of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions<K = SortKey> {
    /// Its direction.
    pub direction: Direction,
    /// By what children are sorted. Sites that it does not concern are not in the tree.
    pub key: K,
    /// Children whose [`Key::weigh`] is below this part of the whole tree's, in millionths, are folded together.
    pub threshold_ppm: u32,
    /// The maximal number of levels, the root not counted.
    pub depth: usize,
    /// The maximal number of children per node.
    pub limit: usize,
    /// Whether the runtime's frames before the program's start are hidden, as in [`crate::lines`].
    pub shown: FrameVisibility,
}

/// A call, or several without a branch between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode<'a, W = SiteTotals> {
    /// The calls, in the direction in which the tree grows. Empty in the root.
    pub frames: Vec<Line<'a>>,
    /// The metrics of all sites through here.
    pub under: Under<W>,
    /// The sites whose stack ends here, when there are others that go on.
    pub own: Option<Under<W>>,
    /// The calls that follow, highest first.
    pub children: Vec<TreeNode<'a, W>>,
    /// The rest that is not shown.
    pub rest: Option<Rest<W>>,
}

/// Metrics of several sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Under<W = SiteTotals> {
    /// The number of sites.
    pub sites: usize,
    /// Their metrics together.
    pub totals: W,
}

/// The children of a node that are not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest<W = SiteTotals> {
    /// Their number.
    pub nodes: usize,
    /// Their metrics.
    pub under: Under<W>,
    /// Whether they are hidden by the maximal depth; otherwise their weight is too small or there are too many.
    pub is_deeper: bool,
}

impl<W: Weights> Under<W> {
    fn add(&mut self, other: &Self) {
        self.sites += other.sites;
        self.totals.add(&other.totals);
    }
}

/// Builds the tree of sites; returns its root, which contains all of them.
pub fn tree<'a, K: Key>(sites: &Sites<'a, K::Weights>, options: &TreeOptions<K>) -> TreeNode<'a, K::Weights> {
    let rows: Vec<&SiteRow<K::Weights>> =
        sites.rows.iter().filter(|row| options.key.concerns(&row.totals)).collect();
    let paths = Paths::of(sites, &rows, options);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| paths.calls(*a).map(|call| call.frame).cmp(paths.calls(*b).map(|call| call.frame)));
    let mut builder = Builder { rows: &rows, paths: &paths, options, whole: 0 };
    let under = builder.under(&order);
    builder.whole = options.key.weigh(&under.totals);
    let mut root = TreeNode { frames: Vec::new(), under, own: None, children: Vec::new(), rest: None };
    builder.grow(&mut root, &order, 0, options.depth);
    root
}

/// A frame's number and how many times in a row it is called.
#[derive(Clone, Copy)]
struct Call {
    frame: u32,
    times: u32,
}

/// The stacks of all rows as numbers of frames, leaf first.
struct Paths<'a> {
    direction: Direction,
    calls: Vec<Call>,
    /// For each row, where its calls end.
    ends: Vec<usize>,
    frames: Vec<&'a Frame>,
}

impl<'a> Paths<'a> {
    fn of<K: Key>(
        sites: &Sites<'a, K::Weights>,
        rows: &[&SiteRow<K::Weights>],
        options: &TreeOptions<K>,
    ) -> Self {
        let mut numbers = Numbers::default();
        let mut paths =
            Paths { direction: options.direction, calls: Vec::new(), ends: Vec::new(), frames: Vec::new() };
        for row in rows {
            let start = paths.calls.len();
            for frame in sites.frames(row).map(|frame| numbers.of(frame)) {
                match paths.calls[start..].last_mut() {
                    Some(last) if last.frame == frame => last.times = last.times.saturating_add(1),
                    _ => paths.calls.push(Call { frame, times: 1 }),
                }
            }
            if options.shown != FrameVisibility::All {
                paths.calls.truncate(start + numbers.without_start(&paths.calls[start..]));
            }
            paths.ends.push(paths.calls.len());
        }
        paths.frames = numbers.frames;
        paths
    }

    /// A row's calls in the direction in which the tree grows.
    fn calls(&self, row: usize) -> impl Iterator<Item = Call> {
        (0..self.length(row)).filter_map(move |at| self.call(row, at))
    }

    fn length(&self, row: usize) -> usize {
        self.ends[row] - self.start(row)
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn call(&self, row: usize, at: usize) -> Option<Call> {
        let calls = &self.calls[self.start(row)..self.ends[row]];
        match self.direction {
            Direction::Callers => calls.get(at),
            Direction::Callees => calls.len().checked_sub(at + 1).map(|at| &calls[at]),
        }
        .copied()
    }
}

/// Numbers of frames, equal if their lines of code are. Most frames come from a location that was seen before, so
/// comparing their texts is avoided.
#[derive(Default)]
struct Numbers<'a> {
    by_address: FxHashMap<*const Frame, u32>,
    by_place: FxHashMap<Place<'a>, u32>,
    frames: Vec<&'a Frame>,
    starts: Vec<Start>,
}

/// A frame's role in the program's start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    No,
    /// C's `main`, which only calls Rust's runtime in a Rust program.
    Main,
    Runtime,
    RustRuntime,
}

impl<'a> Numbers<'a> {
    fn of(&mut self, frame: &'a Frame) -> u32 {
        if let Some(&number) = self.by_address.get(&std::ptr::from_ref(frame)) {
            return number;
        }
        let number = *self.by_place.entry(frame.place()).or_insert_with(|| {
            self.frames.push(frame);
            self.starts.push(match plumbing::root_rule(frame) {
                Some(rule) if rule.language == "Rust" => Start::RustRuntime,
                Some(_) => Start::Runtime,
                None if frame.function == "main" => Start::Main,
                None => Start::No,
            });
            self.frames.len() as u32 - 1
        });
        self.by_address.insert(std::ptr::from_ref(frame), number);
        number
    }

    /// Returns how many calls remain without those that only start the program; the same that [`crate::lines`] hides.
    fn without_start(&self, calls: &[Call]) -> usize {
        let start = |at: usize| self.starts[calls[at].frame as usize];
        let mut length = calls.len();
        while length > 1 {
            match start(length - 1) {
                Start::Runtime | Start::RustRuntime => {}
                Start::Main if start(length - 2) == Start::RustRuntime => {}
                _ => break,
            }
            length -= 1;
        }
        length
    }
}

/// Rows are slices of one order in which rows of the same path are adjacent, shorter paths first.
struct Builder<'b, 'a, K: Key> {
    rows: &'b [&'b SiteRow<K::Weights>],
    paths: &'b Paths<'a>,
    options: &'b TreeOptions<K>,
    whole: u64,
}

impl<'a, K: Key> Builder<'_, 'a, K> {
    fn under(&self, order: &[usize]) -> Under<K::Weights> {
        let mut under = Under { sites: order.len(), totals: K::Weights::default() };
        for row in order {
            under.totals.add(&self.rows[*row].totals);
        }
        under
    }

    /// A node of rows that have the call at `at` in common.
    fn node(&self, order: &[usize], mut at: usize, depth: usize) -> TreeNode<'a, K::Weights> {
        let under = self.under(order);
        let mut node = TreeNode { frames: Vec::new(), under, own: None, children: Vec::new(), rest: None };
        while let Some(frame) = self.common(order, at) {
            let times = order.iter().filter_map(|row| self.paths.call(*row, at)).map(|call| call.times).max();
            let times = times.unwrap_or(1) as usize;
            node.frames.push(Line { frame: self.paths.frames[frame as usize], times });
            at += 1;
        }
        self.grow(&mut node, order, at, depth);
        node
    }

    /// The frame at `at`, if all rows have the same. The first and the last of the order differ if any two do.
    fn common(&self, order: &[usize], at: usize) -> Option<u32> {
        let first = self.paths.call(*order.first()?, at)?.frame;
        let last = self.paths.call(*order.last()?, at)?.frame;
        (first == last).then_some(first)
    }

    /// Adds what is below a node whose path ends before `at`.
    fn grow(&self, node: &mut TreeNode<'a, K::Weights>, order: &[usize], at: usize, depth: usize) {
        let ended = order.partition_point(|row| self.paths.length(*row) <= at);
        let (own, going_on) = order.split_at(ended);
        if going_on.is_empty() && at > 0 {
            return;
        }
        let mut rest: Rest<K::Weights> = Rest::default();
        if !own.is_empty() {
            let own = self.under(own);
            if depth > 0 && self.is_light(&own) {
                rest = Rest { nodes: 1, under: own, is_deeper: false };
            } else {
                node.own = Some(own);
            }
        }
        let same = |a: &usize, b: &usize| {
            self.paths.call(*a, at).map(|call| call.frame) == self.paths.call(*b, at).map(|call| call.frame)
        };
        let mut groups: Vec<(Under<K::Weights>, &[usize])> =
            going_on.chunk_by(same).map(|group| (self.under(group), group)).collect();
        groups.sort_by_key(|(under, _)| {
            std::cmp::Reverse((self.options.key.rank(&under.totals), under.totals.tie()))
        });
        for (under, group) in groups {
            if depth == 0 || self.is_light(&under) || node.children.len() >= self.options.limit {
                rest.nodes += 1;
                rest.is_deeper = depth == 0;
                rest.under.add(&under);
            } else {
                node.children.push(self.node(group, at, depth - 1));
            }
        }
        node.rest = (rest.nodes > 0).then_some(rest);
    }

    fn is_light(&self, under: &Under<K::Weights>) -> bool {
        let weight = u128::from(self.options.key.weigh(&under.totals)) * 1_000_000;
        weight < u128::from(self.options.threshold_ppm) * u128::from(self.whole)
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
