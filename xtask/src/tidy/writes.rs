//! Files are made by `mallow-files` alone, which makes them anew, for their owner, and not through links that somebody has planted.

use super::{Finding, TextFile, Tree};

/// What makes or opens a file to be written.
const WAYS: &[&str] = &["File::create", "fs::write(", "OpenOptions"];

/// Where files are opened otherwise, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("crates/mallow-files/", "it is the one that makes them"),
    (
        "crates/mallow-capture/src/fifo.rs",
        "it opens a FIFO of the program's, behind a link that was looked at",
    ),
    ("crates/mallow-cli/build.rs", "it lays out sources in the folder that cargo made for it"),
    ("crates/mallow-cli/src/bench/outputs.rs", "it writes to a terminal or a pipe that is there"),
];

/// No other crate of ours makes a file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let ours = |file: &&TextFile| {
        let path = file.path.to_string_lossy();
        let is_test = path.contains("/tests/") || path.contains("/examples/") || path.ends_with("tests.rs");
        path.starts_with("crates/")
            && path.ends_with(".rs")
            && !is_test
            && !OTHERWISE.iter().any(|(place, _)| path.starts_with(place))
    };
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(ours) {
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            if let Some(way) = WAYS.iter().find(|way| has_word(line, way)) {
                let sentence = format!(
                    "`{way}` makes files that others may have planted or can read; `mallow_files` has a function for it."
                );
                findings.push(file.finding(index + 1, sentence));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_in_one_place() {
        let text = "fn f() { File::create(path); TraceFile::create(path) }\n// File::create(path)\n#[cfg(test)]\nmod tests { fs::write(path, text) }\n";
        let found = |path: &str| check(&Tree::of(&[(path, text)])).len();
        assert_eq!(found("crates/a/src/lib.rs"), 1);
        for path in [
            "crates/mallow-files/src/create.rs",
            "crates/a/tests/all.rs",
            "crates/a/src/b_tests.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(found(path), 0, "{path}");
        }
    }
}
