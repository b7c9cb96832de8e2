//! The recorder's modules are a chain: each uses only those that its crate's first page lists above it.
//!
//! Circles between modules cannot be read as a proof, and the compiler does not mind them.

use super::rust_text::code_only;
use super::{Finding, TextFile, Tree};

const FOLDER: &str = "recorder/mallow-recorder/src";

/// The table in the heading of `lib.rs` lists every module, and none of them names one that stands below it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(first_page) = tree.get(&format!("{FOLDER}/lib.rs")) else { return Vec::new() };
    let chain: Vec<&str> = first_page.text.lines().filter_map(listed).collect();
    let mut findings = Vec::new();
    for (index, line) in code_only(&first_page.text).lines().enumerate() {
        let module =
            line.trim_start_matches("pub ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        if let Some(module) = module.filter(|module| !chain.contains(module)) {
            let sentence = format!("the module `{module}` is not in the table above; give it its place.");
            findings.push(first_page.finding(index + 1, sentence));
        }
    }
    for (place, module) in chain.iter().enumerate() {
        match tree.get(&format!("{FOLDER}/{module}.rs")) {
            Some(file) => findings.extend(climbs(file, &chain[..=place], &chain[place + 1..])),
            None => findings.push(first_page.finding(0, format!("there is no module `{module}`."))),
        }
    }
    findings
}

/// The module of a row, as in ``//! | [`sys`] | system calls |``.
fn listed(line: &str) -> Option<&str> {
    let cell = line.strip_prefix("//! | ")?.split_once(" | ")?.0;
    cell.trim_matches(['[', ']']).strip_prefix('`')?.strip_suffix('`')
}

/// Where a file names a module that stands below it.
fn climbs(file: &TextFile, above: &[&str], below: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in code_only(&file.text).lines().enumerate() {
        for (at, mark) in line.match_indices("crate::") {
            let rest = &line[at + mark.len()..];
            for name in
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').take_while(|name| *name != "as")
            {
                if below.contains(&name) && !above.contains(&name) {
                    let sentence = format!("it uses `{name}`, which stands below it in the table of lib.rs.");
                    findings.push(file.finding(index + 1, sentence));
                }
                // Behind the first name only a list of modules goes on: `crate::{a, b}`.
                if !rest.starts_with('{') {
                    break;
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_PAGE: &str =
        "//! |---|---|\n//! | [`sys`] | calls |\n//! | `ring` | records |\npub mod ring;\nmod sys;\n";

    fn found(first_page: &str, sys: &str, ring: &str) -> Vec<String> {
        let path = |name: &str| format!("{FOLDER}/{name}.rs");
        let (lib_path, sys_path, ring_path) = (path("lib"), path("sys"), path("ring"));
        let tree = Tree::of(&[(&lib_path, first_page), (&sys_path, sys), (&ring_path, ring)]);
        check(&tree).into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn a_chain_passes() {
        let ring = "use crate::{Caller, sys};\n// crate::thread is not code\n";
        assert_eq!(found(FIRST_PAGE, "use crate::sys::x;\n", ring), Vec::<String>::new());
    }

    #[test]
    fn who_climbs_is_found() {
        let climbs = ["it uses `ring`, which stands below it in the table of lib.rs."];
        for sys in ["use crate::ring;", "use crate::{Caller, ring};", "fn f() { crate::ring::push(); }"] {
            assert_eq!(found(FIRST_PAGE, sys, ""), climbs, "{sys}");
        }
    }

    #[test]
    fn a_module_without_a_place_and_a_place_without_a_module_are_found() {
        let more = format!("{FIRST_PAGE}mod tls;\n");
        assert_eq!(found(&more, "", ""), ["the module `tls` is not in the table above; give it its place."]);
        let less = FIRST_PAGE.replace("| `ring`", "| `rings`");
        assert_eq!(found(&less, "", "").len(), 2);
    }
}
