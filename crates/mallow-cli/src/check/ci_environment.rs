//! Reads from the environment whether a check runs in CI, and in which.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where the check runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CiEnvironment {
    /// Whether this is any CI: no baseline may be created there unless requested.
    pub(crate) ci: bool,
    /// Whether this is a job of GitHub's, which reads annotations from stdout.
    pub(crate) github_actions: bool,
    /// The file whose Markdown GitHub shows as a job's summary. Text is appended to it.
    pub(crate) step_summary: Option<PathBuf>,
    /// The checkout, to which paths in annotations are relative.
    pub(crate) checkout: Option<PathBuf>,
}

impl CiEnvironment {
    /// Reads variables with a function like [`std::env::var_os`].
    pub(crate) fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        // Every well-known CI sets CI to true or 1; a person who sets it to false or 0 means it.
        let is_on = |name: &str| set(name).is_some_and(|value| value != "false" && value != "0");
        Self {
            ci: is_on("CI"),
            github_actions: is_on("GITHUB_ACTIONS"),
            step_summary: set("GITHUB_STEP_SUMMARY").map(PathBuf::from),
            checkout: ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"].into_iter().find_map(set).map(PathBuf::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> CiEnvironment {
        CiEnvironment::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn at_home_there_is_nothing_to_tell_anybody() {
        assert_eq!(of(&[]), CiEnvironment::default());
        assert_eq!(
            of(&[("CI", ""), ("GITHUB_ACTIONS", "false"), ("GITHUB_STEP_SUMMARY", "")]),
            CiEnvironment::default()
        );
        assert_eq!(of(&[("CI", "0")]), CiEnvironment::default());
    }

    #[test]
    fn ci_is_recognised() {
        let github = of(&[
            ("CI", "true"),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_STEP_SUMMARY", "/run/summary.md"),
            ("GITHUB_WORKSPACE", "/srv/checkout"),
        ]);
        let expected = CiEnvironment {
            ci: true,
            github_actions: true,
            step_summary: Some("/run/summary.md".into()),
            checkout: Some("/srv/checkout".into()),
        };
        assert_eq!(github, expected);
        let gitlab = of(&[("CI", "true"), ("CI_PROJECT_DIR", "/builds/a/b")]);
        assert_eq!(
            (gitlab.ci, gitlab.github_actions, gitlab.checkout),
            (true, false, Some("/builds/a/b".into()))
        );
    }
}
