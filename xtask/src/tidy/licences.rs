//! Everything that we are built from may be passed on. The rule stands in `deny.toml`, in cargo-deny's own form;
//! this check applies it without needing that tool.

use super::packages::Used;
use super::{Finding, Tree};

const RULE: &str = "deny.toml";

/// What `deny.toml` allows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    allowed: Vec<String>,
    /// (crate, licence) pairs that are allowed for that crate alone.
    exceptions: Vec<(String, String)>,
}

/// Every package has a licence that `deny.toml` allows.
pub(super) fn check(tree: &Tree, packages: &[Used]) -> Vec<Finding> {
    let Some(file) = tree.get(RULE) else {
        let sentence = "it is missing; it says which licences are allowed.".to_owned();
        return vec![Finding { path: RULE.into(), line: 0, sentence }];
    };
    let rule = Rule::read(&file.text);
    let mut findings: Vec<Finding> = packages
        .iter()
        .filter(|package| !rule.allows(&package.name, &package.licence))
        .map(|package| {
            let Used { name, version, licence, workspace } = package;
            let licence = if licence.is_empty() { "no licence" } else { licence };
            let sentence = format!("{name} {version} has {licence}, which {RULE} does not allow.");
            Finding { path: workspace.clone(), line: 0, sentence }
        })
        .collect();
    findings.dedup();
    findings
}

impl Rule {
    /// Reads the two forms that `deny.toml` uses: `allow = [` with one quoted name a line, and
    /// `{ crate = "…", allow = ["…"] }` on one line.
    fn read(text: &str) -> Rule {
        let mut rule = Rule::default();
        let mut in_allowed = false;
        for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
            if line == "allow = [" {
                in_allowed = true;
            } else if line == "]" {
                in_allowed = false;
            } else if in_allowed {
                rule.allowed.extend(quoted(line));
            } else if line.starts_with("{ crate = ") {
                let mut names = quoted(line).into_iter();
                let name = names.next().unwrap_or_default();
                rule.exceptions.extend(names.map(|licence| (name.clone(), licence)));
            }
        }
        rule
    }

    fn allows(&self, name: &str, expression: &str) -> bool {
        let is_allowed = |licence: &str| {
            let is_exception = |(of, extra): &(String, String)| of == name && extra == licence;
            self.allowed.iter().any(|allowed| allowed == licence) || self.exceptions.iter().any(is_exception)
        };
        holds(expression, &is_allowed)
    }
}

fn quoted(line: &str) -> Vec<String> {
    line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Evaluates an SPDX expression: OR of ANDs of licences and parentheses, `WITH` part of a licence's name, and the old
/// `/` for OR. What cannot be read does not hold.
fn holds(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Expression { words: &words, is_allowed };
    let value = reader.any();
    value == Some(true) && reader.words.is_empty()
}

struct Expression<'a> {
    words: &'a [&'a str],
    is_allowed: &'a dyn Fn(&str) -> bool,
}

impl Expression<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut value = self.all()?;
        while self.take("OR") {
            value |= self.all()?;
        }
        Some(value)
    }

    fn all(&mut self) -> Option<bool> {
        let mut value = self.one()?;
        while self.take("AND") {
            value &= self.one()?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.any()?;
            return self.take(")").then_some(value);
        }
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        if !self.take("WITH") {
            return Some((self.is_allowed)(first));
        }
        let (exception, rest) = self.words.split_first()?;
        self.words = rest;
        Some((self.is_allowed)(&format!("{first} WITH {exception}")))
    }

    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[licenses]\nallow = [\n    \"MIT\", # short\n    \"Zlib\",\n]\nexceptions = [\n    \
                        { crate = \"one\", allow = [\"NCSA\"] },\n]\n";

    #[test]
    fn the_rule_is_read() {
        let rule = Rule::read(TEXT);
        assert_eq!(rule.allowed, ["MIT", "Zlib"]);
        assert_eq!(rule.exceptions, [("one".to_owned(), "NCSA".to_owned())]);
    }

    #[test]
    fn expressions_are_evaluated() {
        let rule = Rule::read(TEXT);
        for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(GPL-3.0 OR MIT) AND Zlib", "MIT AND Zlib"] {
            assert!(rule.allows("any", good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT WITH strings",
            "(MIT",
            "MIT OR",
            "MIT Zlib",
            "NCSA AND MIT",
        ] {
            assert!(!rule.allows("any", bad), "{bad}");
        }
        assert!(rule.allows("one", "(MIT OR Apache-2.0) AND NCSA"));
    }

    #[test]
    fn a_package_that_is_not_allowed_is_found() {
        let package = |licence: &str| Used {
            name: "other".to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            workspace: "fuzz/Cargo.toml".into(),
        };
        let found = check(&Tree::of(&[(RULE, TEXT)]), &[package("MIT"), package("NCSA"), package("")]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "fuzz/Cargo.toml: other 1.0.0 has NCSA, which deny.toml does not allow.",
                "fuzz/Cargo.toml: other 1.0.0 has no licence, which deny.toml does not allow."
            ]
        );
    }

    #[test]
    fn a_repository_without_a_rule_is_found() {
        assert_eq!(check(&Tree::of(&[]), &[]).len(), 1);
    }
}
