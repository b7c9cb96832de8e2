//! Which crate may use which: the arrows of ARCHITECTURE.md as data.

use super::Finding;
use super::packages::{Member, Tree};
use std::collections::BTreeMap;

/// A crate and the crates that it may use. Those of tests alone are free.
type Row = (&'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    ("mallow-wire", &[]),
    ("mallow-base", &[]),
    ("mallow-recorder", &["mallow-wire"]),
    ("mallow-preload", &["mallow-recorder", "mallow-wire"]),
    ("mallow-symbols", &["mallow-base"]),
    ("mallow-stacks", &["mallow-base"]),
    ("mallow-profile", &["mallow-stacks", "mallow-base"]),
    ("mallow-heapsnap", &["mallow-base"]),
    ("mallow-trace", &["mallow-wire", "mallow-base", "mallow-profile"]),
    ("mallow-launch", &["mallow-wire"]),
    ("mallow-collect", &["mallow-wire", "mallow-base", "mallow-profile", "mallow-trace", "mallow-launch"]),
    (
        "mallow-formats",
        &["mallow-trace", "mallow-stacks", "mallow-profile", "mallow-heapsnap", "mallow-base"],
    ),
    ("mallow-gate", &["mallow-profile", "mallow-base"]),
    ("mallow-check", &["mallow-gate", "mallow-profile", "mallow-collect", "mallow-launch", "mallow-base"]),
    ("mallow-growth", &["mallow-base"]),
    ("mallow-evidence", &["mallow-growth", "mallow-profile", "mallow-base"]),
    ("mallow-load", &["mallow-base"]),
    (
        "mallow-soak",
        &[
            "mallow-profile",
            "mallow-collect",
            "mallow-launch",
            "mallow-evidence",
            "mallow-growth",
            "mallow-load",
            "mallow-base",
        ],
    ),
    (
        "mallow-view",
        &[
            "mallow-stacks",
            "mallow-profile",
            "mallow-heapsnap",
            "mallow-gate",
            "mallow-growth",
            "mallow-evidence",
            "mallow-base",
        ],
    ),
    // What decides, without knowing who asks.
    (
        "mallow-query",
        &[
            "mallow-formats",
            "mallow-growth",
            "mallow-heapsnap",
            "mallow-profile",
            "mallow-symbols",
            "mallow-trace",
            "mallow-view",
            "mallow-base",
        ],
    ),
    (
        "mallow-text",
        &["mallow-gate", "mallow-growth", "mallow-profile", "mallow-evidence", "mallow-view", "mallow-base"],
    ),
    (
        "mallow-json",
        &[
            "mallow-gate",
            "mallow-growth",
            "mallow-profile",
            "mallow-evidence",
            "mallow-text",
            "mallow-view",
            "mallow-base",
        ],
    ),
    // Tests alone use it.
    (
        "mallow-samples",
        &["mallow-gate", "mallow-growth", "mallow-profile", "mallow-evidence", "mallow-view", "mallow-base"],
    ),
    (
        "mallow-cli",
        &[
            "mallow-base",
            "mallow-trace",
            "mallow-launch",
            "mallow-collect",
            "mallow-symbols",
            "mallow-profile",
            "mallow-formats",
            "mallow-heapsnap",
            "mallow-check",
            "mallow-gate",
            "mallow-evidence",
            "mallow-growth",
            "mallow-load",
            "mallow-soak",
            "mallow-view",
            "mallow-query",
            "mallow-text",
            "mallow-json",
        ],
    ),
    // The end-to-end tests see mallow as people do; they may know the layout of what they corrupt.
    ("e2e", &["mallow-wire", "mallow-base"]),
    ("xtask", &["mallow-base"]),
    // Lives in other people's programs.
    ("mallow-markers", &[]),
    (
        "mallow-fuzz",
        &[
            "mallow-check",
            "mallow-gate",
            "mallow-json",
            "mallow-formats",
            "mallow-load",
            "mallow-profile",
            "mallow-trace",
            "mallow-symbols",
            "mallow-heapsnap",
        ],
    ),
];

/// Packages that a crate must not be built on, however far below: a page in a browser shows the same rows as a terminal, so what
/// they are made of has no sockets, signals, threads or files.
const NEVER: &[Row] = &[
    ("mallow-view", &["hyper", "rustix", "signal-hook", "tokio", "zstd"]),
    // What is below the text is below this.
    ("mallow-json", &["hyper", "rustix", "signal-hook", "tokio", "zstd"]),
];

/// The same without the features that are on by default: whoever wants the profiler alone gets no runtime for HTTP.
const NEVER_SLIM: &[Row] = &[("mallow-cli", &["h2", "hdrhistogram", "hyper", "tokio"])];

/// Nothing below a crate is what it must never be built on. `slim` is the tree without the features that are on by default.
pub(super) fn check_trees(tree: &Tree, slim: &Tree) -> Vec<Finding> {
    let mut findings = check_tree(tree, NEVER);
    findings.extend(check_tree(slim, NEVER_SLIM));
    findings
}

fn check_tree(tree: &Tree, never: &'static [Row]) -> Vec<Finding> {
    let of_row = |(name, never): &Row| {
        let below = below(tree, name);
        let ways = never.iter().filter_map(|forbidden| way(&below, forbidden)).collect::<Vec<_>>();
        let path = format!("crates/{name}/Cargo.toml");
        let finding = move |way: String| Finding {
            path: path.clone().into(),
            line: 0,
            sentence: format!("{name} must have nothing of this below it: {way}."),
        };
        ways.into_iter().map(finding).collect::<Vec<_>>()
    };
    never.iter().flat_map(of_row).collect()
}

/// Every package below one, with the package that leads to it.
fn below<'a>(tree: &'a Tree, name: &'a str) -> BTreeMap<&'a str, &'a str> {
    let mut by = BTreeMap::new();
    let mut next = vec![name];
    while let Some(user) = next.pop() {
        for used in tree.get(user).into_iter().flatten() {
            by.entry(used.as_str()).or_insert_with(|| {
                next.push(used);
                user
            });
        }
    }
    by
}

/// `mallow-view, mallow-soak, tokio`; none where there is no way.
fn way(below: &BTreeMap<&str, &str>, forbidden: &str) -> Option<String> {
    let mut way = vec![*below.get_key_value(forbidden)?.0];
    while let Some(user) = below.get(way[way.len() - 1]) {
        way.push(user);
    }
    way.reverse();
    Some(way.join(", "))
}

/// Every arrow between our crates is in the table, and every crate has a row.
pub(super) fn check(members: &[Member]) -> Vec<Finding> {
    members.iter().flat_map(of_one).collect()
}

fn of_one(member: &Member) -> Vec<Finding> {
    let finding = |sentence: String| Finding { path: member.manifest.clone(), line: 0, sentence };
    // What is profiled in tests must not know who watches it.
    let is_program = member.manifest.starts_with("programs");
    let allowed = match ROWS.iter().find(|(name, _)| *name == member.name) {
        Some((_, allowed)) => *allowed,
        None if is_program => &[],
        None => {
            let name = &member.name;
            let sentence =
                format!("{name} has no row in xtask/src/tidy/arrows.rs; say there what it may use.");
            return vec![finding(sentence)];
        }
    };
    let forbidden = member.uses.iter().filter(|name| !allowed.contains(&name.as_str()));
    forbidden
        .map(|name| {
            let may = if allowed.is_empty() { "none of our crates".to_owned() } else { allowed.join(", ") };
            finding(format!("{} must not use {name}; it may use {may}.", member.name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, uses: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml").into(),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn arrows_of_the_table_pass() {
        let members =
            [member("mallow-wire", &[]), member("mallow-collect", &["mallow-profile", "mallow-wire"])];
        assert_eq!(check(&members), []);
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let found = check(&[member("mallow-profile", &["mallow-base", "mallow-formats"])]);
        assert_eq!(
            found[0].to_string(),
            "crates/mallow-profile/Cargo.toml: mallow-profile must not use mallow-formats; \
             it may use mallow-stacks, mallow-base."
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let found = check(&[member("mallow-new", &[])]);
        assert!(found[0].sentence.starts_with("mallow-new has no row"), "{}", found[0]);
    }

    #[test]
    fn a_program_may_not_know_us() {
        let mut program = member("csv-aggregate", &["mallow-base"]);
        program.manifest = "programs/csv-aggregate/Cargo.toml".into();
        let found = check(&[program]);
        assert!(found[0].sentence.ends_with("it may use none of our crates."), "{}", found[0]);
    }

    #[test]
    fn what_is_forbidden_is_found_however_far_below() {
        let uses = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut tree = Tree::from([
            ("mallow-view".to_owned(), uses(&["mallow-base", "mallow-soak"])),
            ("mallow-soak".to_owned(), uses(&["mallow-load"])),
            ("mallow-load".to_owned(), uses(&["tokio"])),
            ("mallow-cli".to_owned(), uses(&["mallow-view", "rustix"])),
        ]);
        let found = check_tree(&tree, NEVER);
        assert_eq!(
            found[0].to_string(),
            "crates/mallow-view/Cargo.toml: mallow-view must have nothing of this below it: \
             mallow-view, mallow-soak, mallow-load, tokio."
        );
        assert_eq!(found.len(), 1);
        tree.remove("mallow-load");
        assert_eq!(check_tree(&tree, NEVER), []);
    }

    #[test]
    fn every_crate_that_is_held_pure_has_a_row() {
        assert!(NEVER.iter().chain(NEVER_SLIM).all(|(name, _)| ROWS.iter().any(|(row, _)| row == name)));
    }

    #[test]
    fn the_table_has_no_cycle() {
        let mut settled: Vec<&str> = Vec::new();
        while settled.len() < ROWS.len() {
            let is_ready = |(name, uses): &&Row| {
                !settled.contains(name) && uses.iter().all(|used| settled.contains(used))
            };
            let next = ROWS.iter().find(is_ready);
            settled.push(next.expect("a crate of the table can only be reached through itself").0);
        }
    }
}
