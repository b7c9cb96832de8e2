//! Call trees: metrics in fixed columns on the left, so that they can be compared down the page; the lines of the
//! tree are drawn between them and the names.

use super::Page;
use crate::columns::Columns;
use crate::{cut_end, plural};
use mallow_base::Percent;
use mallow_view::TreeLayout;
use mallow_view::{Direction, Rest, Sites, SortKey, TreeNode, Under, tree};

/// Columns of a metric and its share.
const METRICS_WIDTH: usize = 20;

/// A line below a node: one of its children, or a summary of several.
enum Item<'t, 'a> {
    Own(&'t Under),
    Child(&'t TreeNode<'a>),
    Rest(&'t Rest),
}

/// The prefixes of the lines below a node.
struct Branch<'p> {
    prefix: &'p str,
    is_last: bool,
}

impl Branch<'_> {
    fn first(&self) -> String {
        format!("{}{}", self.prefix, if self.is_last { "└─ " } else { "├─ " })
    }

    fn next(&self) -> String {
        format!("{}{}", self.prefix, if self.is_last { "   " } else { "│  " })
    }
}

impl Page<'_> {
    /// Returns a call tree.
    pub(super) fn tree(&self, sites: &Sites<'_>, view: TreeLayout) -> Vec<String> {
        let root = tree(sites, &self.view.tree_options(view));
        if root.under.sites == 0 {
            return self.nothing(view.key);
        }
        let way = match view.direction {
            Direction::Callers => "from the allocation outwards",
            Direction::Callees => "from the start inwards",
        };
        let mut out = self.heading(sites, view.key);
        out[0] = format!("{}, {way}", out[0]);
        let all = format!("all {}", plural(root.under.sites as u64, "site"));
        out.extend([String::new(), self.node_line(&root.under, view.key, &all)]);
        let short = self.metrics_in_short(&root.under.totals, view.key, self.room("  "));
        out.push(self.below("  ", &self.style.dim(&short)));
        self.branches(&root, view, "", &mut out);
        out
    }

    /// Appends the subtree of a node. A single branch continues in the same column, so that only real branches are indented.
    fn branches(&self, node: &TreeNode<'_>, view: TreeLayout, prefix: &str, out: &mut Vec<String>) {
        if let ([child], None) = (node.children.as_slice(), node.own) {
            let rest = node.rest.iter().filter(|rest| self.is_visible(&rest.under, view.key));
            out.extend(rest.map(|rest| {
                self.node_line(&rest.under, view.key, &format!("{prefix}├─ {}", self.rest_text(rest, view)))
            }));
            return self.goes_on(child, view, prefix, out);
        }
        let own = node.own.iter().map(Item::Own);
        let items: Vec<Item<'_, '_>> = own
            .chain(node.children.iter().map(Item::Child))
            .chain(node.rest.iter().map(Item::Rest))
            .collect();
        let last = items.len().saturating_sub(1);
        for (at, item) in items.iter().enumerate() {
            let branch = Branch { prefix, is_last: at == last };
            match item {
                Item::Child(child) => self.child(child, view, &branch, out),
                Item::Own(own) => {
                    let text = match view.direction {
                        _ if node.frames.is_empty() => "(no stack was taken)",
                        Direction::Callers => "(the stack ends here)",
                        Direction::Callees => "(allocated here)",
                    };
                    out.push(self.node_line(own, view.key, &format!("{}{text}", branch.first())));
                }
                Item::Rest(rest) => {
                    let text = format!("{}{}", branch.first(), self.rest_text(rest, view));
                    out.push(self.node_line(&rest.under, view.key, &text));
                }
            }
        }
    }

    /// Appends a branch among others: its calls, and its other metrics below them.
    fn child(&self, node: &TreeNode<'_>, view: TreeLayout, branch: &Branch<'_>, out: &mut Vec<String>) {
        let next = branch.next();
        let mut calls = self.calls(&node.frames, self.room(&next)).into_iter();
        let name = calls.next().unwrap_or_default();
        out.push(self.node_line(&node.under, view.key, &format!("{}{name}", branch.first())));
        out.extend(calls.map(|call| self.below(&next, &call)));
        let short = self.metrics_in_short(&node.under.totals, view.key, self.room(&next).saturating_sub(2));
        if !short.is_empty() {
            let is_forked = node.own.is_some() || node.children.len() > 1;
            let line = if is_forked { "│ " } else { "  " };
            out.push(self.below(&format!("{next}{line}"), &self.style.dim(&short)));
        }
        self.branches(node, view, &next, out);
    }

    /// Appends the only branch: its metrics show what was not allocated through it.
    fn goes_on(&self, node: &TreeNode<'_>, view: TreeLayout, prefix: &str, out: &mut Vec<String>) {
        let mut calls = self.calls(&node.frames, self.room(prefix)).into_iter();
        let name = calls.next().unwrap_or_default();
        out.push(self.node_line(&node.under, view.key, &format!("{prefix}{name}")));
        out.extend(calls.map(|call| self.below(prefix, &call)));
        self.branches(node, view, prefix, out);
    }

    /// Returns whether the share would be formatted as more than 0.0%.
    fn is_visible(&self, under: &Under, key: SortKey) -> bool {
        let measure = key.weight();
        let (part, whole) = (measure.of_site(&under.totals), measure.of_totals(&self.totals));
        u128::from(part) * 2_000 >= u128::from(whole)
    }

    /// Returns the number of columns that a prefix leaves for text.
    fn room(&self, prefix: &str) -> usize {
        self.style.width.saturating_sub(METRICS_WIDTH + prefix.columns())
    }

    /// Formats a line without metrics.
    fn below(&self, prefix: &str, text: &str) -> String {
        format!("{:METRICS_WIDTH$}{prefix}{text}", "").trim_end().to_owned()
    }

    /// Formats a node's metric, its share, and its name.
    fn node_line(&self, under: &Under, key: SortKey, text: &str) -> String {
        let measure = key.weight();
        let part = measure.of_site(&under.totals);
        let share = Percent { part, whole: measure.of_totals(&self.totals) }.to_string();
        let metrics = format!("{:>10}  {share:>6}", self.key_value(key, &under.totals));
        let text = cut_end(text, self.style.width.saturating_sub(METRICS_WIDTH).max(METRICS_WIDTH));
        format!("{}  {text}", self.style.bold(&metrics))
    }

    fn rest_text(&self, rest: &Rest, view: TreeLayout) -> String {
        let count = rest.nodes;
        if rest.is_deeper {
            return format!("{} deeper; use --depth to see more", plural(count as u64, "call"));
        }
        match self.view.limit {
            Some(_) => format!("{count} more"),
            None => format!("{count} more below {}%", f64::from(view.threshold_ppm) / 10_000.0),
        }
    }
}
