//! The recorder's modules are a chain: each uses only those that its crate's first page lists above it.
//!
//! Where other crates only must not go round in circles, this one can be read from the top as a proof.

use super::modules::Crate;
use super::{Finding, Tree};
use std::path::Path;

const FOLDER: &str = "recorder/mallow-recorder";

/// The table in the heading of `lib.rs` lists every module, and none of them uses one that stands below it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(first_page) = tree.get(&format!("{FOLDER}/src/lib.rs")) else { return Vec::new() };
    let Some(read) = Crate::read(tree, &Path::new(FOLDER).join("Cargo.toml")) else { return Vec::new() };
    let chain: Vec<&str> = first_page.text.lines().filter_map(listed).collect();
    let mut findings = Vec::new();
    let modules = || read.files.keys().filter_map(|place| place.first());
    for module in modules().filter(|module| !chain.contains(&module.as_str())) {
        let sentence = format!("the module `{module}` is not in the table above; give it its place.");
        findings.push(first_page.finding(0, sentence));
    }
    for module in chain.iter().filter(|module| !modules().any(|it| it == *module)) {
        findings.push(first_page.finding(0, format!("there is no module `{module}`.")));
    }
    let height = |module: &String| chain.iter().position(|it| it == module);
    for one in &read.uses {
        let (user, used) = (one.user.first().and_then(height), one.used.first().and_then(height));
        if user.zip(used).is_some_and(|(user, used)| user < used) {
            let sentence =
                format!("it uses `{}`, which stands below it in the table of lib.rs.", one.used.join("::"));
            findings.push(Finding { path: read.files[&one.user].clone(), line: one.line, sentence });
        }
    }
    findings
}

/// The module of a row, as in ``//! | [`sys`] | system calls |``.
fn listed(line: &str) -> Option<&str> {
    let cell = line.strip_prefix("//! | ")?.split_once(" | ")?.0;
    cell.trim_matches(['[', ']']).strip_prefix('`')?.strip_suffix('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_PAGE: &str =
        "//! |---|---|\n//! | [`sys`] | calls |\n//! | `ring` | records |\npub mod ring;\nmod sys;\n";

    fn found(first_page: &str, sys: &str, ring: &str) -> Vec<String> {
        let path = |name: &str| format!("{FOLDER}/src/{name}.rs");
        let (lib_path, sys_path, ring_path) = (path("lib"), path("sys"), path("ring"));
        let tree = Tree::of(&[(&lib_path, first_page), (&sys_path, sys), (&ring_path, ring)]);
        check(&tree).into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn a_chain_passes() {
        let ring = "use crate::{Caller, sys};\nfn f() { sys::x() }\n// crate::thread is not code\n";
        assert_eq!(found(FIRST_PAGE, "use crate::sys::x;\n", ring), Vec::<String>::new());
    }

    #[test]
    fn who_climbs_is_found() {
        let climbs = ["it uses `ring`, which stands below it in the table of lib.rs."];
        for sys in
            ["use crate::ring::push;", "use crate::{Caller, ring::push};", "fn f() { crate::ring::push(); }"]
        {
            assert_eq!(found(FIRST_PAGE, sys, "pub fn push() {}\n"), climbs, "{sys}");
        }
    }

    #[test]
    fn a_module_without_a_place_and_a_place_without_a_module_are_found() {
        let path = "the module `ring` is not in the table above; give it its place.";
        assert_eq!(found(&FIRST_PAGE.replace("//! | `ring` | records |\n", ""), "", ""), [path]);
        let less = FIRST_PAGE.replace("| `ring`", "| `rings`");
        assert_eq!(found(&less, "", ""), [path, "there is no module `rings`."]);
    }
}
