//! Whether two profiles call the same functions hot.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Functions that are compared.
const HOTTEST: usize = 10;
/// A function that is on nearly all stacks, such as `main`, is no finding.
const EVERYWHERE: f64 = 0.98;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The time of functions themselves.
    Own,
    /// With their callees.
    Inclusive,
}

/// Samples by function.
#[derive(Debug, Default)]
pub(super) struct Shares {
    own: BTreeMap<String, u64>,
    inclusive: BTreeMap<String, u64>,
    all: u64,
}

impl Shares {
    /// Adds folded stacks whose numbers are samples.
    pub(super) fn add(&mut self, folded: &str) {
        for (stack, count) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
            let count: u64 = count.parse().unwrap_or(0);
            let names: Vec<String> = stack.split(';').skip(1).map(key).collect();
            self.all += count;
            if let Some(innermost) = names.last() {
                *self.own.entry(innermost.clone()).or_default() += count;
            }
            for name in names.into_iter().collect::<BTreeSet<_>>() {
                *self.inclusive.entry(name).or_default() += count;
            }
        }
    }

    /// Adds another's samples.
    pub(super) fn put_together(&mut self, other: &Shares) {
        for (to, from) in [(&mut self.own, &other.own), (&mut self.inclusive, &other.inclusive)] {
            from.iter().for_each(|(name, count)| *to.entry(name.clone()).or_default() += count);
        }
        self.all += other.all;
    }

    pub(super) fn samples(&self) -> u64 {
        self.all
    }

    fn share(&self, kind: Kind, name: &str) -> f64 {
        let of = if kind == Kind::Own { &self.own } else { &self.inclusive };
        of.get(name).copied().unwrap_or(0) as f64 / self.all.max(1) as f64
    }

    fn hottest(&self, kind: Kind) -> Vec<&str> {
        let of = if kind == Kind::Own { &self.own } else { &self.inclusive };
        let mut names: Vec<(&str, u64)> = of.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        names.retain(|(name, _)| kind == Kind::Own || self.share(kind, name) < EVERYWHERE);
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names.into_iter().take(HOTTEST).map(|(name, _)| name).collect()
    }
}

/// A function's name, or where there is none 256 bytes of its file: an address alone is hot nowhere.
fn key(name: &str) -> String {
    let address = name.strip_prefix("0x").and_then(|rest| rest.split_once(' '));
    match address.and_then(|(address, file)| Some((u64::from_str_radix(address, 16).ok()?, file))) {
        Some((address, file)) => format!("{:#x} {file}", (address - 1) & !0xff),
        None => name.to_owned(),
    }
}

/// How far two agree on the hottest functions of the first.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    pub(super) rho: f64,
    pub(super) overlap: usize,
    /// The largest difference of shares, in points.
    pub(super) points: f64,
}

impl Agreement {
    pub(super) fn of(reference: &Shares, other: &Shares, kind: Kind) -> Agreement {
        let names = reference.hottest(kind);
        let shares = |of: &Shares| -> Vec<f64> { names.iter().map(|name| of.share(kind, name)).collect() };
        let (one, two) = (shares(reference), shares(other));
        let of_other = other.hottest(kind);
        Agreement {
            rho: spearman(&one, &two),
            overlap: names.iter().filter(|name| of_other.contains(name)).count(),
            points: one.iter().zip(&two).map(|(a, b)| (a - b).abs() * 100.0).fold(0.0, f64::max),
        }
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}, {}, {:.2}", self.rho, self.overlap, self.points)
    }
}

/// Ranks from 1, equal values with their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The correlation of ranks.
fn spearman(one: &[f64], two: &[f64]) -> f64 {
    let (one, two) = (ranks(one), ranks(two));
    let mean = (one.len() as f64 + 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    product(&one, &two) / (product(&one, &one) * product(&two, &two)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_as_in_the_textbook() {
        assert!((spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]) - 1.0).abs() < 1e-9);
        assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-9);
        // Ties: ranks 1.5, 1.5, 3 and 1, 2, 3.
        assert!((spearman(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0]) - 0.866_025_4).abs() < 1e-6);
    }

    #[test]
    fn hot_functions_are_compared_by_name_and_nameless_ones_by_place() {
        let mut one = Shares::default();
        one.add("app;main;f 60\napp;main;0x1234 [libz.so] 30\napp;main 10\n");
        let mut two = Shares::default();
        two.add("app;main;f 55\napp;main;0x12f0 [libz.so] 35\napp;main 10\n");
        let own = Agreement::of(&one, &two, Kind::Own);
        assert_eq!((own.overlap, own.rho), (3, 1.0));
        assert!((own.points - 5.0).abs() < 1e-9);
        // `main` is everywhere.
        assert_eq!(Agreement::of(&one, &two, Kind::Inclusive).overlap, 2);
    }
}
