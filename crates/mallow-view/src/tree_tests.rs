//! Trees of stacks written by hand, and of any stacks against a slow twin.

use super::*;
use crate::example::{allocated, frame, profile, site};
use crate::{Filter, Measure, lines};
use mallow_profile::Profile;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const OPTIONS: TreeOptions = TreeOptions {
    direction: Direction::Callers,
    key: SortKey::Measure(Measure::Allocations),
    threshold_ppm: 0,
    depth: 32,
    limit: usize::MAX,
    shown: FrameVisibility::WithoutPlumbing,
};

fn of(stacks: &[(&[&str], u64)]) -> Profile {
    let mut profile = profile();
    for (functions, allocations) in stacks {
        let locations: Vec<Vec<Frame>> =
            functions.iter().map(|function| vec![frame(function, "/bin/app")]).collect();
        site(&mut profile, 0, &locations, allocated(*allocations, allocations * 10));
    }
    profile
}

fn example() -> Profile {
    of(&[
        (&["malloc", "dup", "load", "main", "_start"], 60),
        (&["dup", "save", "main", "_start"], 30),
        (&["dup", "load", "main", "_start"], 9),
        (&["main", "_start"], 1),
    ])
}

#[test]
fn a_call_is_one_branch_though_only_one_of_its_stacks_has_it_inlined() {
    let mut profile = profile();
    let inlined = Frame { inlined: true, ..frame("clone", "/bin/app") };
    site(&mut profile, 0, &[vec![inlined, frame("add", "/bin/app")]], allocated(3, 30));
    site(
        &mut profile,
        0,
        &[vec![frame("clone", "/bin/app")], vec![frame("build", "/bin/app")]],
        allocated(4, 40),
    );
    let drawn = drawn(&profile, &OPTIONS);
    assert_eq!(drawn, [" 7", "  clone*1 7", "    build*1 4", "    add*1 3"]);
}

/// One line for each node: indentation, calls, allocations.
fn drawn(profile: &Profile, options: &TreeOptions) -> Vec<String> {
    let sites = Sites::of(profile, options.shown, &Filter::default());
    let mut out = Vec::new();
    draw(&tree(&sites, options), 0, &mut out);
    out
}

fn draw(node: &TreeNode<'_>, depth: usize, out: &mut Vec<String>) {
    let calls: Vec<String> =
        node.frames.iter().map(|line| format!("{}*{}", line.frame.function, line.times)).collect();
    let indent = "  ".repeat(depth);
    out.push(format!("{indent}{} {}", calls.join("<"), node.under.totals.allocations));
    if let Some(own) = node.own {
        out.push(format!("{indent}  own {}", own.totals.allocations));
    }
    node.children.iter().for_each(|child| draw(child, depth + 1, out));
    if let Some(Rest { nodes, under, is_deeper }) = node.rest {
        let how = if is_deeper { " deeper" } else { "" };
        out.push(format!(
            "{indent}  rest {nodes} of {} sites {}{how}",
            under.sites, under.totals.allocations
        ));
    }
}

#[test]
fn callers_grow_outwards_and_straight_chains_are_one_node() {
    assert_eq!(
        drawn(&example(), &OPTIONS),
        [" 100", "  dup*1 99", "    load*1<main*1 69", "    save*1<main*1 30", "  main*1 1"]
    );
}

#[test]
fn callees_grow_inwards_and_a_node_can_end_a_stack_itself() {
    let options = TreeOptions { direction: Direction::Callees, ..OPTIONS };
    assert_eq!(
        drawn(&example(), &options),
        [" 100", "  main*1 100", "    own 1", "    load*1<dup*1 69", "    save*1<dup*1 30"]
    );
}

#[test]
fn what_weighs_too_little_is_folded_and_still_adds_up() {
    let options = TreeOptions { direction: Direction::Callees, threshold_ppm: 310_000, ..OPTIONS };
    assert_eq!(
        drawn(&example(), &options),
        [" 100", "  main*1 100", "    load*1<dup*1 69", "    rest 2 of 2 sites 31"]
    );
    // Exactly the threshold is enough.
    let options = TreeOptions { direction: Direction::Callees, threshold_ppm: 300_000, ..OPTIONS };
    assert_eq!(drawn(&example(), &options)[3], "    save*1<dup*1 30");
}

#[test]
fn depth_and_number_of_children_have_a_limit() {
    let shallow = TreeOptions { depth: 1, ..OPTIONS };
    assert_eq!(
        drawn(&example(), &shallow),
        [" 100", "  dup*1 99", "    rest 2 of 2 sites 99 deeper", "  main*1 1"]
    );
    let none = TreeOptions { depth: 0, ..OPTIONS };
    assert_eq!(drawn(&example(), &none), [" 100", "  rest 2 of 3 sites 100 deeper"]);
    let narrow = TreeOptions { limit: 1, ..OPTIONS };
    assert_eq!(
        drawn(&example(), &narrow),
        [" 100", "  dup*1 99", "    load*1<main*1 69", "    rest 1 of 1 sites 30", "  rest 1 of 1 sites 1"]
    );
}

#[test]
fn recursion_is_one_call() {
    let profile = of(&[(&["push", "visit", "visit", "visit", "main"], 5), (&["push", "visit", "main"], 2)]);
    assert_eq!(drawn(&profile, &OPTIONS), [" 7", "  push*1<visit*3<main*1 7"]);
}

#[test]
fn sites_without_a_stack_and_none_at_all() {
    assert_eq!(drawn(&of(&[(&[], 3), (&["main"], 1)]), &OPTIONS), [" 4", "  own 3", "  main*1 1"]);
    assert_eq!(drawn(&of(&[(&[], 3)]), &OPTIONS), [" 3", "  own 3"]);
    assert_eq!(drawn(&profile(), &OPTIONS), [" 0"]);
}

#[test]
fn only_sites_that_the_key_concerns_are_in_the_tree() {
    let options = TreeOptions { key: Measure::Leaked.into(), ..OPTIONS };
    assert_eq!(drawn(&example(), &options), [" 0"]);
}

#[test]
fn averages_sort_by_the_average_and_fold_by_the_weight() {
    let mut profile = of(&[(&["many", "main"], 99)]);
    site(&mut profile, 0, &[vec![frame("big", "/bin/app")]], allocated(1, 1_000_000));
    let options = TreeOptions { key: SortKey::Size, threshold_ppm: 10_000, ..OPTIONS };
    assert_eq!(drawn(&profile, &options), [" 100", "  big*1 1", "  rest 1 of 1 sites 99"]);
}

/// The slow twin: the metrics of every path, by whole lists of names.
fn twin(sites: &Sites<'_>, direction: Direction) -> BTreeMap<Vec<String>, u64> {
    let mut sums = BTreeMap::new();
    for row in &sites.rows {
        let mut path: Vec<String> = lines(sites.frames(row), FrameVisibility::WithoutPlumbing)
            .iter()
            .map(|line| line.frame.function.clone())
            .collect();
        if direction == Direction::Callees {
            path.reverse();
        }
        for length in 0..=path.len() {
            *sums.entry(path[..length].to_vec()).or_default() += row.totals.allocations;
        }
    }
    sums
}

/// Checks a node against the twin and gives how many paths it holds.
fn check(node: &TreeNode<'_>, above: &[String], sums: &BTreeMap<Vec<String>, u64>, options: &TreeOptions) {
    let mut path = above.to_vec();
    for line in &node.frames {
        path.push(line.frame.function.clone());
        assert_eq!(sums[&path], node.under.totals.allocations, "{path:?}");
    }
    let next: BTreeSet<&String> = sums
        .keys()
        .filter(|key| key.len() == path.len() + 1 && key.starts_with(&path))
        .filter_map(|key| key.last())
        .collect();
    let going_on: u64 =
        next.iter().map(|name| sums[&[path.as_slice(), std::slice::from_ref(*name)].concat()]).sum();
    let shown: u64 = node.children.iter().map(|child| child.under.totals.allocations).sum();
    let [own, rest] = [node.own, node.rest.map(|rest| rest.under)]
        .map(|under| under.map_or(0, |under| under.totals.allocations));
    let ends_here = node.under.totals.allocations - going_on;
    if next.is_empty() && !path.is_empty() {
        assert_eq!((shown, own, rest), (0, 0, 0));
        return;
    }
    assert_eq!(shown + own + rest, node.under.totals.allocations, "{path:?}");
    let folded_own = if own == 0 { ends_here } else { 0 };
    assert_eq!(own + folded_own, ends_here);
    let whole = sums[&Vec::new()];
    for name in next {
        let weight = sums[&[path.as_slice(), std::slice::from_ref(name)].concat()];
        let is_shown = node.children.iter().any(|child| child.frames[0].frame.function == *name);
        let is_heavy = weight * 1_000_000 >= u64::from(options.threshold_ppm) * whole;
        assert_eq!(is_shown, is_heavy, "{path:?} {name}");
    }
    for pair in node.children.windows(2) {
        assert!(pair[0].under.totals.allocations >= pair[1].under.totals.allocations);
    }
    node.children.iter().for_each(|child| check(child, &path, sums, options));
}

proptest! {
    #[test]
    fn every_node_is_the_sum_of_the_sites_with_its_path(
        stacks in prop::collection::vec(
            (prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "main", "malloc", "_start"]), 0..7), 1..50_u64),
            1..40,
        ),
        callees: bool,
        threshold_ppm in prop::sample::select(vec![0, 10_000, 100_000, 400_000]),
    ) {
        let stacks: Vec<(&[&str], u64)> = stacks.iter().map(|(stack, count)| (stack.as_slice(), *count)).collect();
        let profile = of(&stacks);
        let direction = if callees { Direction::Callees } else { Direction::Callers };
        let options = TreeOptions { direction, threshold_ppm, ..OPTIONS };
        let sites = Sites::of(&profile, options.shown, &Filter::default());
        check(&tree(&sites, &options), &[], &twin(&sites, direction), &options);
    }
}
