//! Every hazard program is tested, and no test is switched off.

use super::tokens::{functions, group, line, places, word};
use super::{Finding, TextFile, Tree};
use proc_macro2::Delimiter;
use std::collections::BTreeSet;
use std::path::Path;

const PROGRAMS: &str = "programs/hazards";

/// Every program of `programs/hazards` that states its metrics (NAME.json beside NAME.c or NAME.cpp) has a test of
/// its name in `e2e/tests/hazards*.rs`, as `hazard!(NAME)` or `fn NAME()`; and no test is ignored but
/// those of the root workspace that `cargo xtask long` runs.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = untested(tree);
    for file in tree.rust() {
        let runs_long = ["crates", "e2e", "xtask"].iter().any(|place| file.path.starts_with(place));
        // The first word between the brackets of `#[ignore]`.
        for attribute in file.runs().iter().filter(|run| places(run, "ignore").next() == Some(0)) {
            let line = line(&attribute[0]);
            let whole = file.text.lines().nth(line - 1).unwrap_or("");
            if !runs_long || !whole.contains("in `cargo xtask long`") {
                let sentence =
                    "an ignored test checks nothing; mend it, or let `cargo xtask long` run it and say so.";
                findings.push(file.finding(line, sentence));
            }
        }
    }
    findings
}

fn untested(tree: &Tree) -> Vec<Finding> {
    let tested: BTreeSet<String> =
        tree.rust().filter(|file| holds_tests(&file.path)).flat_map(tests_of).collect();
    let mut findings = Vec::new();
    for metrics in tree.files.iter().filter(|file| is_program_file(file) && file.has_extension(&["json"])) {
        let name = test_name(&metrics.path);
        let has_source = tree.files.iter().any(|file| {
            is_program_file(file) && !file.has_extension(&["json", "md"]) && test_name(&file.path) == name
        });
        if !has_source {
            findings.push(metrics.finding(0, "there is no program with these figures beside it."));
        }
        if !tested.contains(&name) {
            let sentence = format!("no test runs it; add `hazard!({name});` to e2e/tests/hazards.rs.");
            findings.push(metrics.finding(0, sentence));
        }
    }
    findings
}

fn is_program_file(file: &TextFile) -> bool {
    file.path.starts_with(PROGRAMS)
}

/// `e2e/tests/hazards.rs`, `e2e/tests/hazards_threads.rs` and what stands in `e2e/tests/hazards/`.
fn holds_tests(path: &Path) -> bool {
    path.strip_prefix("e2e/tests").is_ok_and(|rest| rest.to_string_lossy().starts_with("hazards"))
}

fn test_name(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().replace('-', "_")).unwrap_or_default()
}

fn tests_of(file: &TextFile) -> Vec<String> {
    let by_hand = functions(file.runs()).into_iter().map(|function| function.name);
    let by_macro = file.runs().iter().flat_map(|run| {
        places(run, "hazard").filter_map(|place| {
            let arguments = group(run.get(place + 2), Delimiter::Parenthesis)?;
            word(arguments.stream().into_iter().next().as_ref())
        })
    });
    by_hand.chain(by_macro).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: (&str, &str) = ("programs/hazards/realloc-chain.c", "int main(void) {}\n");
    const METRICS: (&str, &str) = ("programs/hazards/realloc-chain.json", "{}\n");

    #[test]
    fn a_program_with_its_test_passes() {
        for test in [
            "hazard!(realloc_chain);\n",
            "#[test]\nfn realloc_chain() {}\n",
            "hazard!(\n    realloc_chain,\n    2\n);",
        ] {
            assert_eq!(check(&Tree::of(&[PROGRAM, METRICS, ("e2e/tests/hazards_c.rs", test)])), [], "{test}");
        }
        assert_eq!(check(&Tree::of(&[PROGRAM])), []);
    }

    #[test]
    fn a_program_without_a_test_is_found() {
        for test in ["// hazard!(realloc_chain);\n", "hazard!(realloc_chains);\n", "\"fn realloc_chain\""] {
            let found = check(&Tree::of(&[PROGRAM, METRICS, ("e2e/tests/hazards.rs", test)]));
            assert_eq!(
                found[0].to_string(),
                "programs/hazards/realloc-chain.json: no test runs it; \
                 add `hazard!(realloc_chain);` to e2e/tests/hazards.rs."
            );
        }
    }

    #[test]
    fn metrics_without_a_program_are_found() {
        let found = check(&Tree::of(&[METRICS, ("e2e/tests/hazards.rs", "hazard!(realloc_chain);\n")]));
        assert_eq!(found[0].sentence, "there is no program with these figures beside it.");
    }

    #[test]
    fn an_ignored_test_is_found() {
        let found = check(&Tree::of(&[("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n")]));
        let expected =
            "a.rs:2: an ignored test checks nothing; mend it, or let `cargo xtask long` run it and say so.";
        assert_eq!(found[0].to_string(), expected);
    }

    #[test]
    fn a_test_of_the_long_suite_may_be_ignored_where_that_suite_looks() {
        let text = "#[test]\n#[ignore = \"an hour: in `cargo xtask long`\"]\nfn a() {}\n";
        assert_eq!(check(&Tree::of(&[("e2e/tests/a.rs", text)])), []);
        assert_eq!(check(&Tree::of(&[("recorder/a.rs", text)])).len(), 1);
    }
}
