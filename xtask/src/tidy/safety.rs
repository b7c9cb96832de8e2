//! Every use of unsafe code carries its argument.
//!
//! Clippy says so too, but only of the code that a build's settings let it see; this reads every file.

use super::tokens::{group, line, places, word};
use super::{Finding, TextFile, Tree};
use proc_macro2::{Delimiter, TokenTree};

/// How far above the keyword its `SAFETY:` may begin, in lines that are not comments or attributes: a statement
/// may put its left side on a line of its own.
const CODE_LINES_BETWEEN_MAX: usize = 3;

/// Every unsafe block and implementation has a `SAFETY:` comment right above or inside its first line.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(of_file).collect()
}

fn of_file(file: &TextFile) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    for run in file.runs() {
        for place in places(run, "unsafe").filter(|place| opens_unsafe(run.get(place + 1))) {
            let line = line(&run[place]);
            if !is_argued(&lines, line - 1) {
                let sentence = "an unsafe block needs a `// SAFETY:` comment that says why it is sound.";
                findings.push(file.finding(line, sentence));
            }
        }
    }
    findings
}

fn opens_unsafe(next: Option<&TokenTree>) -> bool {
    group(next, Delimiter::Brace).is_some() || word(next).is_some_and(|word| word == "impl")
}

fn is_argued(lines: &[&str], index: usize) -> bool {
    let is_argument = |line: &str| line.contains("SAFETY:");
    if lines.iter().skip(index).take(2).any(|line| is_argument(line)) {
        return true;
    }
    let mut code_lines = 0;
    for line in lines[..index].iter().rev().map(|line| line.trim()) {
        if is_argument(line) {
            return true;
        }
        let is_beside = line.starts_with("//") || line.starts_with("#[");
        code_lines += usize::from(!is_beside);
        if line.is_empty() || code_lines > CODE_LINES_BETWEEN_MAX {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Tree::of(&[("a.rs", text)])).len()
    }

    #[test]
    fn an_argued_block_passes() {
        assert_eq!(count("// SAFETY: it is aligned.\nunsafe { read(p) }\n"), 0);
        assert_eq!(
            count("// SAFETY: a long one\n// over two lines\n#[inline]\nunsafe impl Send for A {}\n"),
            0
        );
        assert_eq!(count("// SAFETY: it is aligned.\nlet value =\n    unsafe { read(p) };\n"), 0);
        assert_eq!(count("unsafe {\n    // SAFETY: it is aligned.\n    read(p)\n}\n"), 0);
    }

    #[test]
    fn what_is_no_block_needs_no_argument() {
        assert_eq!(count("// unsafe { read(p) }\nlet s = \"unsafe { x }\";\n#[unsafe(no_mangle)]\n"), 0);
        assert_eq!(count("pub unsafe fn read();\nunsafe extern \"C\" { }\n"), 0);
    }

    #[test]
    fn a_bare_block_is_found() {
        assert_eq!(count("fn f() {\n    unsafe { read(p) }\n}\n"), 1);
        assert_eq!(count("unsafe impl Send for A {}\n"), 1);
        assert_eq!(count("// SAFETY: of another.\nlet a = 1;\n\nunsafe { read(p) }\n"), 1);
    }
}
