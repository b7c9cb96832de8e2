//! Files and functions that fit into a head.

use super::tokens::functions;
use super::{Finding, Tree};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 80;

/// Functions that may stay longer than the limit, as (path, function, lines). A number here may only fall.
const LONGER: &[(&str, &str, usize)] = &[];

/// No source file above 600 lines and no Rust function above 80.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in
        tree.files.iter().filter(|file| file.has_extension(&["rs", "c", "cpp", "h", "py", "js", "rb"]))
    {
        let lines = file.text.lines().count();
        // A recorded session or a golden file is as long as it is.
        if lines > FILE_LINES_MAX && !file.path.starts_with("fixtures") {
            let sentence = format!("{lines} lines; a file has at most {FILE_LINES_MAX}. Split it by idea.");
            findings.push(file.finding(0, sentence));
        }
    }
    for file in tree.rust() {
        for function in functions(file.runs()) {
            let exception = LONGER
                .iter()
                .find(|(path, name, _)| file.path == std::path::Path::new(path) && *name == function.name);
            let limit = exception.map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
            if function.lines > limit {
                let sentence = format!(
                    "`{}` has {} lines; a function has at most {limit}.",
                    function.name, function.lines
                );
                findings.push(file.finding(function.line, sentence));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("//! A.\nfn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn what_fits_passes() {
        let file = "//!\n".repeat(FILE_LINES_MAX);
        assert_eq!(check(&Tree::of(&[("a.rs", &file), ("b.rs", &function_of(FUNCTION_LINES_MAX))])), []);
    }

    #[test]
    fn a_long_function_is_found() {
        let found = check(&Tree::of(&[("a.rs", &function_of(81))]));
        assert_eq!(found[0].to_string(), "a.rs:2: `long` has 81 lines; a function has at most 80.");
    }

    #[test]
    fn a_long_file_is_found() {
        let found = check(&Tree::of(&[("a.c", &"int x;\n".repeat(601))]));
        assert_eq!(found[0].to_string(), "a.c: 601 lines; a file has at most 600. Split it by idea.");
    }
}
