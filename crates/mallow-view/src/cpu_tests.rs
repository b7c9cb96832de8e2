//! Another set of metrics than the heap's: where a processor's time went, by samples and nanoseconds.
//!
//! What is held here: sites, trees, top sites, flame graphs, diffs and limits need nothing but [`Metric`], [`Weights`] and
//! [`StackProfile`] of whatever is profiled.

use crate::diff::{Change, Comparison, DiffOptions, DiffRow, Limit, Section};
use crate::tops::tops;
use crate::{Direction, Filter, FrameVisibility, Sites, TreeNode, TreeOptions, compared, folded, tree};
use mallow_base::{Frame, add_fields};
use mallow_stacks::{
    Address, Metric, ProcessIndex, Site, StackProfile, Stacks, StacksBuilder, Unit, Weights,
};
use std::num::NonZeroU64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Time {
    samples: u64,
    nanoseconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpu {
    Samples,
    Nanoseconds,
}

impl Metric for Cpu {
    type Weights = Time;

    const ALL: &'static [Cpu] = &[Cpu::Samples, Cpu::Nanoseconds];

    const LIMITS: &'static str = "time>+1% or samples>100";

    fn word(self) -> &'static str {
        match self {
            Cpu::Samples => "samples",
            Cpu::Nanoseconds => "time",
        }
    }

    fn subject(self) -> &'static str {
        match self {
            Cpu::Samples => "samples",
            Cpu::Nanoseconds => "time on a processor",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Cpu::Samples => Unit::Count,
            Cpu::Nanoseconds => Unit::Nanoseconds,
        }
    }

    fn of_site(self, time: &Time) -> u64 {
        match self {
            Cpu::Samples => time.samples,
            Cpu::Nanoseconds => time.nanoseconds,
        }
    }
}

impl Weights for Time {
    type Metric = Cpu;

    fn add(&mut self, other: &Time) {
        add_fields!(self, other; samples, nanoseconds);
    }

    fn tie(&self) -> [u64; 2] {
        [self.nanoseconds, self.samples]
    }
}

struct Sampled {
    stacks: Stacks,
    sites: Vec<Site<Time>>,
}

impl StackProfile for Sampled {
    type Weights = Time;

    fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    fn sites(&self) -> &[Site<Time>] {
        &self.sites
    }

    fn processes(&self) -> usize {
        1
    }

    fn command(&self) -> &[String] {
        &[]
    }

    fn program(&self, _: ProcessIndex) -> Option<&str> {
        Some("/usr/bin/app")
    }

    fn knows(&self, _: Cpu) -> bool {
        true
    }

    fn beyond(&self, _: &Time) -> Time {
        Time::default()
    }
}

/// Stacks, outermost call first, each with the line of its innermost call, its samples and its nanoseconds.
fn sampled(stacks: &[(&str, u32, u64, u64)]) -> Sampled {
    let mut builder = StacksBuilder::default();
    let sites = stacks.iter().map(|&(calls, line, samples, nanoseconds)| {
        let locations: Vec<_> = calls
            .split(';')
            .map(|function| {
                let is_leaf = calls.ends_with(function);
                let file = Some(String::from("/src/app.c"));
                let line = Some(if is_leaf { line } else { 1 });
                let frame = Frame { function: function.into(), file, line, ..Frame::default() };
                builder.location(Address::Unknown, vec![frame])
            })
            .collect();
        let stack = builder.stack(locations);
        Site { process: ProcessIndex(0), stack, totals: Time { samples, nanoseconds } }
    });
    let sites = sites.collect();
    Sampled { stacks: builder.finish(), sites }
}

fn before() -> Sampled {
    sampled(&[
        ("_start;main;parse;hash", 10, 50, 5_000),
        ("_start;main;parse;malloc", 20, 30, 3_100),
        ("_start;main;write", 30, 20, 1_900),
    ])
}

fn after() -> Sampled {
    sampled(&[
        ("_start;main;parse;hash", 12, 10, 1_000),
        ("_start;main;parse;malloc", 22, 30, 3_100),
        ("_start;main;flush", 40, 5, 600),
    ])
}

fn drawn(node: &TreeNode<'_, Time>, depth: usize, out: &mut Vec<String>) {
    let calls: Vec<&str> = node.frames.iter().map(|line| line.frame.function.as_str()).collect();
    let Time { samples, nanoseconds } = node.under.totals;
    out.push(format!("{}{} {samples} {nanoseconds}", " ".repeat(depth), calls.join("<")));
    node.children.iter().for_each(|child| drawn(child, depth + 1, out));
}

#[test]
fn a_tree_adds_up_samples_and_time() {
    let profile = before();
    let sites = Sites::of(&profile, FrameVisibility::WithoutStart, &Filter::default());
    let options = TreeOptions {
        direction: Direction::Callees,
        key: Cpu::Nanoseconds,
        threshold_ppm: 0,
        depth: 8,
        limit: 8,
        shown: FrameVisibility::WithoutStart,
    };
    let root = tree(&sites, &options);
    let mut lines = Vec::new();
    drawn(&root, 0, &mut lines);
    assert_eq!(
        lines,
        [
            " 100 10000",
            " main 100 10000",
            "  parse 80 8100",
            "   hash 50 5000",
            "   malloc 30 3100",
            "  write 20 1900"
        ]
    );
    let light = tree(
        &sites,
        &TreeOptions {
            key: Cpu::Samples,
            threshold_ppm: 250_000,
            ..TreeOptions {
                direction: Direction::Callers,
                key: Cpu::Samples,
                threshold_ppm: 0,
                depth: 8,
                limit: 8,
                shown: FrameVisibility::WithoutStart,
            }
        },
    );
    assert_eq!(light.children.len(), 2);
    assert_eq!(light.rest.map(|rest| (rest.nodes, rest.under.totals.samples)), Some((1, 20)));
}

#[test]
fn the_innermost_function_is_the_top_site_be_it_the_allocator() {
    let profile = before();
    let mut sites = Sites::of(&profile, FrameVisibility::WithoutStart, &Filter::default());
    sites.sort(Cpu::Samples);
    let names = sites.rows.iter().map(|row| {
        (sites.frames(row).next().map_or("", |frame| frame.function.as_str()), row.totals.samples)
    });
    assert_eq!(names.collect::<Vec<_>>(), [("hash", 50), ("malloc", 30), ("write", 20)]);
    assert_eq!(sites.totals(), Time { samples: 100, nanoseconds: 10_000 });
    // As a summary of the heap has them: without plumbing.
    let by_metric: Vec<(Cpu, Vec<u64>)> = tops(&profile.stacks, profile.sites.as_slice())
        .0
        .iter()
        .map(|top| (top.measure, top.rows.iter().map(|row| row.value).collect()))
        .collect();
    assert_eq!(by_metric, [(Cpu::Samples, vec![50, 30, 20]), (Cpu::Nanoseconds, vec![5_000, 3_100, 1_900])]);
}

#[test]
fn folded_stacks_are_those_of_any_metric() {
    let rows = |profile: &Sampled| {
        folded(profile, FrameVisibility::WithoutStart, &Filter::default(), Cpu::Nanoseconds)
    };
    let texts: Vec<String> = rows(&before()).iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["app;main;parse;hash 5000", "app;main;parse;malloc 3100", "app;main;write 1900"]);
    let sides = [&before(), &after()];
    let both = compared(sides, FrameVisibility::WithoutStart, &Filter::default(), Cpu::Nanoseconds);
    let both: Vec<String> = both.iter().map(ToString::to_string).collect();
    assert_eq!(
        both,
        [
            "app;main;flush 0 600",
            "app;main;parse;hash 5000 1000",
            "app;main;parse;malloc 3100 3100",
            "app;main;write 1900 0"
        ]
    );
}

#[test]
fn a_diff_finds_what_took_longer_though_lines_moved() {
    let (before, after) = (before(), after());
    let options =
        DiffOptions { by: Cpu::Nanoseconds, shown: FrameVisibility::WithoutStart, ..DiffOptions::default() };
    let comparison = Comparison::of(&before, &after, &options);
    let row = |row: &DiffRow<'_, Time>| {
        let side = row.after.as_ref().or(row.before.as_ref());
        let name = side.and_then(|side| side.frames.first()).map_or("", |frame| frame.function.as_str());
        (row.section, name.to_owned(), row.change(Cpu::Nanoseconds).difference())
    };
    assert_eq!(
        comparison.rows.iter().map(row).collect::<Vec<_>>(),
        [
            (Section::New, "flush".to_owned(), 600),
            (Section::Gone, "write".to_owned(), -1_900),
            (Section::Changed, "hash".to_owned(), -4_000)
        ]
    );
    assert_eq!(comparison.unchanged.change, Change { before: 3_100, after: 3_100 });
    assert_eq!(
        comparison.totals,
        [
            (Cpu::Samples, Change { before: 100, after: 45 }),
            (Cpu::Nanoseconds, Change { before: 10_000, after: 4_700 })
        ]
    );
    let is_broken = |limit: &str| {
        let limit: Limit<Cpu> = limit.parse().unwrap();
        limit.judge(&comparison, NonZeroU64::MIN).unwrap().is_broken.unwrap()
    };
    assert!(is_broken("time>4.6us") && !is_broken("time>4.7us"));
    assert!(is_broken("samples>44") && !is_broken("samples>+0%"));
}

#[test]
fn what_is_no_limit_is_refused_in_the_words_of_its_metrics() {
    let refused = |text: &str| text.parse::<Limit<Cpu>>().unwrap_err().to_string();
    assert_eq!(
        refused("time"),
        "`time` is not a limit, it has no `>`; write for example time>+1% or samples>100"
    );
    assert_eq!(refused("bytes>1"), "`bytes` in `bytes>1` cannot be limited; use one of samples, time");
    assert_eq!(
        refused("time>1KiB"),
        "`1KiB` in `time>1KiB` has an unknown unit; use ns, us, ms, s, min or h"
    );
}
