//! What the rows of every front end are made of runs nothing and opens nothing.
//!
//! The target without a system (`cargo xtask wasm`) has these modules of the standard library too, and only fails when they are
//! called. Unit tests are held as well: they have no files either.

use super::packages::Member;
use super::tokens::{Run, group, line, places, word};
use super::{Finding, Tree};
use proc_macro2::{Delimiter, TokenTree};
use std::path::Path;

/// The crate that is held, with everything of ours below it.
const TOP: &str = "mallow-json";

/// Modules of `std` that reach out of the process, and clocks.
const OUTSIDE: [&str; 8] = ["env", "fs", "net", "os", "process", "thread", "Instant", "SystemTime"];

/// One finding for each use of such a module or clock.
pub(super) fn check(tree: &Tree, members: &[Member]) -> Vec<Finding> {
    let mut crates = vec![TOP];
    let mut at = 0;
    while let Some(name) = crates.get(at) {
        let member = members.iter().find(|member| member.name == *name);
        let uses = member.into_iter().flat_map(|member| &member.uses).map(String::as_str);
        let new: Vec<&str> = uses.filter(|used| !crates.contains(used)).collect();
        crates.extend(new);
        at += 1;
    }
    let is_held =
        |path: &Path| crates.iter().any(|name| path.starts_with(Path::new("crates").join(name).join("src")));
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| is_held(&file.path)) {
        for (line, what) in file.runs().iter().flat_map(outside) {
            findings.push(file.finding(
                line,
                format!("`{what}` is not for a crate below {TOP}, which runs and opens nothing."),
            ));
        }
    }
    findings
}

/// What a run of tokens names of `std` that it must not.
fn outside(run: &Run) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in places(run, "std") {
        let mut next = at;
        while is_path(run, next) {
            next += 3;
            let inside =
                group(run.get(next), Delimiter::Brace).map(|group| group.stream().into_iter().collect());
            let words = inside.unwrap_or_else(|| run.get(next).cloned().into_iter().collect::<Vec<_>>());
            let words = words.iter().filter_map(|token| word(Some(token)));
            let named = words.filter(|word| OUTSIDE.contains(&word.as_str()));
            found.extend(named.map(|name| (line(&run[at]), format!("std::{name}"))));
        }
    }
    found
}

/// Returns whether `::` stands behind a token.
fn is_path(run: &Run, at: usize) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    run.len() > at + 3 && run[at + 1..at + 3].iter().all(is_colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_sockets_and_clocks_are_found_below_the_rows_and_nowhere_else() {
        let member = |name: &str, uses: &[&str]| Member {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml").into(),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
        };
        let members = [
            member("mallow-json", &["mallow-view"]),
            member("mallow-view", &["mallow-gate"]),
            member("mallow-gate", &["mallow-base"]),
            member("mallow-base", &[]),
            member("mallow-check", &["mallow-gate"]),
        ];
        let source = "use std::path::Path;\nuse std::{fmt, fs};\n// std::net\nfn f() { g(std::time::Instant::now()) }\n";
        let tree = Tree::of(&[
            ("crates/mallow-base/src/clock.rs", source),
            ("crates/mallow-check/src/clock.rs", source),
            (
                "crates/mallow-view/src/lib.rs",
                "const TEXT: &str = \"std::process\"; use std::time::Duration;",
            ),
        ]);
        let found: Vec<String> = check(&tree, &members).iter().map(ToString::to_string).collect();
        let rest = "is not for a crate below mallow-json, which runs and opens nothing.";
        assert_eq!(
            found,
            [
                format!("crates/mallow-base/src/clock.rs:2: `std::fs` {rest}"),
                format!("crates/mallow-base/src/clock.rs:4: `std::Instant` {rest}"),
            ]
        );
    }
}
