//! Everything that we are built from may be passed on. The rule stands in `deny.toml`, in cargo-deny's own form;
//! this check applies it without needing that tool.

use super::packages::Used;
use super::{Finding, Tree};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, Licensee, ParseMode};

const RULE: &str = "deny.toml";

/// What `deny.toml` says of licences.
#[derive(Debug, Deserialize)]
struct File {
    licenses: Rule,
}

#[derive(Debug, Deserialize)]
struct Rule {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that are allowed for one crate alone.
#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

/// Every package has a licence that `deny.toml` allows.
pub(super) fn check(tree: &Tree, packages: &[Used]) -> Vec<Finding> {
    let finding = |sentence: String| Finding { path: RULE.into(), line: 0, sentence };
    let Some(file) = tree.get(RULE) else {
        return vec![finding("it is missing; it says which licences are allowed.".to_owned())];
    };
    let rule = match toml::from_str::<File>(&file.text) {
        Ok(file) => file.licenses,
        Err(error) => return vec![finding(format!("it cannot be read: {}.", error.message()))],
    };
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
    /// Returns whether an SPDX expression holds for the crate `name`; `/` for OR, as old manifests have it. What cannot be read
    /// does not hold.
    fn allows(&self, name: &str, expression: &str) -> bool {
        let extra = self.exceptions.iter().filter(|it| it.name == name).flat_map(|it| &it.allow);
        let allowed: Vec<Licensee> =
            self.allow.iter().chain(extra).filter_map(|it| Licensee::parse(it).ok()).collect();
        let is_allowed = |asked: &LicenseReq| allowed.iter().any(|licensee| licensee.satisfies(asked));
        let mode =
            ParseMode { allow_slash_as_or_operator: true, allow_deprecated: true, ..ParseMode::STRICT };
        Expression::parse_mode(expression, mode).is_ok_and(|it| it.evaluate(is_allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[licenses]\nallow = [\"MIT\", # short\n \"Zlib\"]\nexceptions = [\n    \
                        { crate = \"one\", allow = [\"NCSA\"] },\n]\n";

    #[test]
    fn expressions_are_evaluated() {
        let rule = toml::from_str::<File>(TEXT).unwrap().licenses;
        for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(GPL-3.0 OR MIT) AND Zlib", "MIT AND Zlib"] {
            assert!(rule.allows("any", good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0-only",
            "MIT WITH strings",
            "MIT WITH LLVM-exception",
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
    fn a_repository_without_a_rule_that_can_be_read_is_found() {
        for files in [&[][..], &[(RULE, "[licenses]\nallow = \"MIT\"\n")]] {
            assert_eq!(check(&Tree::of(files), &[]).len(), 1);
        }
    }
}
