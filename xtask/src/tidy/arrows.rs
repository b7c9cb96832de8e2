//! Which crate may use which: the table of crates in ARCHITECTURE.md says so, and here it is held.

use super::packages::{Member, Tree};
use super::{Finding, manual};
use std::collections::BTreeMap;
use std::path::Path;

/// A crate, and packages.
type Row = (&'static str, &'static [&'static str]);

/// Packages that a crate must not be built on, however far below: a page in a browser shows the same rows as a terminal, so what
/// they are made of has no sockets, signals, threads or files.
const NEVER: &[Row] = &[
    ("mallow-view", &["hyper", "rustix", "signal-hook", "tokio", "zstd"]),
    // What is below the text is below this.
    ("mallow-json", &["hyper", "rustix", "signal-hook", "tokio", "zstd"]),
];

/// The same without the features that are on by default: whoever wants the profiler alone gets no runtime for HTTP.
const NEVER_SLIM: &[Row] = &[("mallow", &["h2", "hdrhistogram", "hyper", "rustls", "tokio"])];

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
        let finding = move |way: String| Finding {
            path: "Cargo.toml".into(),
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

/// Every arrow between our crates is in the table, and every crate has a row. Those of tests alone are free.
pub(super) fn check(files: &super::Tree, members: &[Member]) -> Vec<Finding> {
    let text = files.get(manual::MANUAL).map_or("", |manual| &manual.text);
    members.iter().flat_map(|member| of_one(text, member, members)).collect()
}

fn of_one(text: &str, member: &Member, members: &[Member]) -> Vec<Finding> {
    let finding = |sentence: String| Finding { path: member.manifest.clone(), line: 0, sentence };
    let name = &member.name;
    // What is profiled in tests must not know who watches it, but for what programs link in.
    let allowed = match row(text, member.folder()) {
        _ if member.manifest.starts_with("programs") => vec!["mallow-alloc"],
        Some(cell) => quoted(cell).collect(),
        None => {
            return vec![finding(format!("{name} has no row in the table of crates of {}.", manual::MANUAL))];
        }
    };
    let is_allowed = |used: &&String| {
        let folder = members.iter().find(|other| other.name == **used).map(Member::folder);
        allowed
            .iter()
            .any(|word| word == used || word.ends_with('/') && folder.is_some_and(|it| it.starts_with(word)))
    };
    let may = if allowed.is_empty() { "none of our crates".to_owned() } else { allowed.join(", ") };
    let forbidden = member.uses.iter().filter(|used| !is_allowed(used));
    forbidden.map(|used| finding(format!("{name} must not use {used}; it may use {may}."))).collect()
}

/// The last cell of the row whose first one is a crate's folder: what that crate may use.
fn row<'a>(text: &'a str, folder: &Path) -> Option<&'a str> {
    let cells = text.lines().map(|line| line.trim_matches(['|', ' ']).split(" | ").collect::<Vec<&str>>());
    let is_its =
        |cells: &Vec<&str>| cells.len() == 3 && quoted(cells[0]).any(|word| Path::new(word) == folder);
    Some(cells.into_iter().find(is_its)?[2])
}

/// What stands between back quotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
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

    fn found(members: &[Member]) -> Vec<Finding> {
        let text = "| `crates/mallow-wire` | bytes | – |\n\
                    | `crates/mallow-profile` | model | `mallow-stacks`, `mallow-base` |\n\
                    | `crates/mallow-cli` | binary | every crate of `crates/` |\n";
        check(&crate::tidy::Tree::of(&[(manual::MANUAL, text)]), members)
    }

    #[test]
    fn arrows_of_the_table_pass() {
        let used = [member("mallow-wire", &[]), member("mallow-profile", &["mallow-base"])];
        let user = member("mallow-cli", &["mallow-profile", "mallow-wire"]);
        assert_eq!(found(&[&used[..], &[user]].concat()), []);
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let found = found(&[member("mallow-profile", &["mallow-base", "mallow-formats"])]);
        assert_eq!(
            found[0].to_string(),
            "crates/mallow-profile/Cargo.toml: mallow-profile must not use mallow-formats; \
             it may use mallow-stacks, mallow-base."
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let found = found(&[member("mallow-new", &[])]);
        assert!(found[0].sentence.starts_with("mallow-new has no row"), "{}", found[0]);
    }

    #[test]
    fn a_program_may_not_know_us() {
        let mut program = member("csv-aggregate", &["mallow-base"]);
        program.manifest = "programs/csv-aggregate/Cargo.toml".into();
        let found = found(&[program]);
        assert!(found[0].sentence.ends_with("it may use mallow-alloc."), "{}", found[0]);
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
            "Cargo.toml: mallow-view must have nothing of this below it: \
             mallow-view, mallow-soak, mallow-load, tokio."
        );
        assert_eq!(found.len(), 1);
        tree.remove("mallow-load");
        assert_eq!(check_tree(&tree, NEVER), []);
    }
}
