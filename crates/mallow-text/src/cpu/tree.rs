//! Call trees: the weight of a node with its callees (total) and without (self), on the left, so that both can be compared down the page.

use crate::columns::Columns;
use crate::{Style, cut_end, frame_text, metric, plural};
use mallow_base::Percent;
use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals};
use mallow_stacks::Metric;
use mallow_view::{
    CpuLayout, CpuOptions, Direction, Rest, Sites, TreeNode, TreeOptions, Under, tree as grown,
};

/// Columns before a name.
const LEFT_COLUMNS: usize = 28;

struct Drawing {
    by: CpuMetric,
    whole: u64,
    direction: Direction,
    threshold_ppm: u32,
    style: Style,
    out: Vec<String>,
}

/// Returns the tree, from the innermost calls outwards or from `main` inwards.
pub(super) fn tree(profile: &CpuProfile, options: &CpuOptions, style: Style) -> Vec<String> {
    let CpuLayout::Tree { direction, threshold_ppm, depth } = options.layout else { return Vec::new() };
    let by = options.by;
    let sites = Sites::of(profile, options.shown, &options.filter);
    let root = grown(
        &sites,
        &TreeOptions {
            direction,
            key: by,
            threshold_ppm,
            depth,
            limit: options.limit.unwrap_or(usize::MAX),
            shown: options.shown,
        },
    );
    let whole = by.of_site(&profile.totals());
    let mut drawing = Drawing { by, whole, direction, threshold_ppm, style, out: Vec::new() };
    let heading = match direction {
        Direction::Callers => format!("{:>18} {:>8}  from the innermost call outwards", by.word(), ""),
        Direction::Callees => format!("{:>18} {:>8}  from the start inwards", "children", "self"),
    };
    drawing.out.push(style.dim(&heading));
    if root.under.sites == 0 {
        drawing.out.push("nothing".to_owned());
        return drawing.out;
    }
    let all = format!("all {}", plural(root.under.sites as u64, "stack"));
    drawing.line(&root.under.totals, None, &all);
    drawing.branches(&root, "");
    drawing.out
}

impl Drawing {
    /// Formats a line: the total, and the part without callees.
    fn line(&mut self, under: &CpuTotals, own: Option<&CpuTotals>, text: &str) {
        let value = self.by.of_site(under);
        let share = |part| Percent { part, whole: self.whole }.to_string();
        let own = own.map(|own| share(self.by.of_site(own))).unwrap_or_default();
        let values = format!("{:>10} {:>7} {own:>8}", metric(self.by, value), share(value));
        let room = self.style.width.saturating_sub(LEFT_COLUMNS + 1).max(20);
        self.out.push(format!("{}  {}", self.style.bold(&values), cut_end(text, room)).trim_end().to_owned());
    }

    fn branches(&mut self, node: &TreeNode<'_, CpuTotals>, prefix: &str) {
        // In a tree of callees, a node's own weight is in its column; in a tree of callers, it is where stacks begin.
        let own = node.own.filter(|_| self.direction == Direction::Callers);
        let last = node.children.len() + usize::from(own.is_some()) + usize::from(node.rest.is_some());
        let is_single = last == 1 && node.children.len() == 1;
        let mut at = 0;
        let mut branch = || {
            at += 1;
            match (is_single, at == last) {
                (true, _) => (prefix.to_owned(), prefix.to_owned()),
                (false, true) => (format!("{prefix}└─ "), format!("{prefix}   ")),
                (false, false) => (format!("{prefix}├─ "), format!("{prefix}│  ")),
            }
        };
        if let Some(Under { totals, .. }) = &own {
            let (first, _) = branch();
            self.line(totals, None, &format!("{first}(the stack ends here)"));
        }
        for child in &node.children {
            let (first, next) = branch();
            self.child(child, &first, &next);
        }
        if let Some(rest) = &node.rest {
            let (first, _) = branch();
            let text = format!("{first}{}", self.rest_text(rest));
            self.line(&rest.under.totals, None, &text);
        }
    }

    fn child(&mut self, node: &TreeNode<'_, CpuTotals>, first: &str, next: &str) {
        let own = match node.own {
            _ if self.direction == Direction::Callers => None,
            Some(own) => Some(own.totals),
            // Without children all of the weight is its own; with children, none.
            None if node.children.is_empty() && node.rest.is_none() => Some(node.under.totals),
            None => None,
        };
        let calls: Vec<String> = node.frames.iter().map(|line| self.call(line, next)).collect();
        let Some((last, before)) = calls.split_last() else { return };
        // Of calls without a branch between them, the innermost has the own weight.
        for (at, call) in before.iter().enumerate() {
            let front = if at == 0 { first } else { next };
            self.line(&node.under.totals, None, &format!("{front}{call}"));
        }
        let front = if before.is_empty() { first } else { next };
        self.line(&node.under.totals, own.as_ref(), &format!("{front}{last}"));
        self.branches(node, next);
    }

    fn call(&self, line: &mallow_view::Line<'_>, prefix: &str) -> String {
        let times = if line.times > 1 { format!("  × {}", line.times) } else { String::new() };
        let room = self.style.name_width(LEFT_COLUMNS + 2 + prefix.columns() + times.columns());
        format!("{}{times}", frame_text(Some(line.frame), room.max(16)))
    }

    fn rest_text(&self, rest: &Rest<CpuTotals>) -> String {
        if rest.is_deeper {
            return format!("{} deeper; use --depth to see more", plural(rest.nodes as u64, "call"));
        }
        format!("{} more below {}%", rest.nodes, f64::from(self.threshold_ppm) / 10_000.0)
    }
}
