//! Interprets the command line of `mallow check`.

use crate::args::{LowCheck, LowFormat};
use mallow_collect::CommandLines;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// The default number of stacks per test.
const LIMIT: usize = 10;

/// Check a suite, or do something else with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// `None` for `mallow.toml` in the current folder.
    pub(crate) suite: Option<PathBuf>,
    pub(crate) job: Job,
    /// Globs of test names; empty for all.
    pub(crate) only: Vec<String>,
    pub(crate) measuring: Measuring,
    pub(crate) baselines: Baselines,
    pub(crate) shown: OutputOptions,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Run, compare, judge.
    Judge,
    /// Run two builds, compare, judge. Whether the argument is a folder or a command is decided later.
    Against(OsString),
    /// Run, and store the metrics as baselines.
    Update { allow_missing_counts: bool },
    /// Store baselines from a report that was made elsewhere.
    UpdateFrom { report: PathBuf, allow_missing_counts: bool },
    /// List the tests.
    List,
    /// List the named baselines.
    ListBaselines,
    /// Build and run without hooks.
    Unhooked,
    /// Build one test and open a shell there.
    Shell(String),
    /// Write the header and the shims.
    Markers(PathBuf),
}

/// What overrides the suite's settings for running tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measuring {
    pub(crate) runs: Option<NonZeroU32>,
    pub(crate) warmups: Option<u32>,
    pub(crate) jobs: Option<NonZeroU32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) python_objects: bool,
    pub(crate) command_lines: CommandLines,
}

/// What tests are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Baselines {
    pub(crate) folder: Option<PathBuf>,
    /// `None` for baselines without a name.
    pub(crate) name: Option<String>,
    pub(crate) thresholds: Option<PathBuf>,
    pub(crate) thresholds_from_logs: Vec<PathBuf>,
    pub(crate) ignore_environment: bool,
    pub(crate) allow_improvement: bool,
    /// Whether `--ci` was given; the environment may imply it, too.
    pub(crate) ci: bool,
}

/// How the result is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputOptions {
    pub(crate) form: CheckForm,
    /// `None` for stdout.
    pub(crate) output: Option<PathBuf>,
    pub(crate) junit: Option<PathBuf>,
    pub(crate) sarif: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
    /// Whether `--annotations` was given; the environment may imply it, too.
    pub(crate) annotations: bool,
    /// Functions that count as plumbing, too, as globs.
    pub(crate) plumbing: Vec<String>,
    /// The maximum number of stacks per test.
    pub(crate) limit: usize,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckForm {
    Text,
    Nio,
    Json,
    Markdown,
}

impl From<LowCheck> for Check {
    fn from(low: LowCheck) -> Self {
        let job = job(&low);
        let form = match (low.shown.json, low.shown.format) {
            (true, _) => CheckForm::Json,
            (false, LowFormat::Text) => CheckForm::Text,
            (false, LowFormat::Nio) => CheckForm::Nio,
            (false, LowFormat::Json) => CheckForm::Json,
            (false, LowFormat::Markdown) => CheckForm::Markdown,
        };
        Check {
            suite: low.suite,
            job,
            only: low.tests.only,
            measuring: Measuring {
                runs: low.tests.runs,
                warmups: low.tests.warmup,
                jobs: low.tests.jobs,
                timeout: low.tests.timeout,
                python_objects: low.tests.python_objects,
                command_lines: low.tests.arguments.command_lines(),
            },
            baselines: Baselines {
                folder: low.baselines.baselines,
                name: low.baselines.baseline,
                thresholds: low.baselines.thresholds,
                thresholds_from_logs: low.baselines.thresholds_from_log,
                ignore_environment: low.baselines.ignore_environment,
                allow_improvement: low.baselines.allow_improvement,
                ci: low.baselines.ci,
            },
            shown: OutputOptions {
                form,
                output: low.shown.output.filter(|path| path.as_os_str() != mallow_files::STREAM),
                junit: low.shown.junit,
                sarif: low.shown.sarif,
                markdown: low.shown.markdown,
                annotations: low.shown.annotations,
                plumbing: low.shown.plumbing,
                limit: low.shown.limit.unwrap_or(LIMIT),
            },
        }
    }
}

/// The parser accepts only one of them, except for `--update` with its additional flags.
fn job(low: &LowCheck) -> Job {
    let allow_missing_counts = low.baselines.allow_missing_counts;
    if let Some(folder) = &low.tests.write_markers {
        Job::Markers(folder.clone())
    } else if let Some(name) = &low.tests.shell {
        Job::Shell(name.clone())
    } else if low.tests.list {
        Job::List
    } else if low.baselines.list_baselines {
        Job::ListBaselines
    } else if low.tests.no_hooks {
        Job::Unhooked
    } else if let Some(report) = &low.baselines.from {
        Job::UpdateFrom { report: report.clone(), allow_missing_counts }
    } else if low.baselines.update {
        Job::Update { allow_missing_counts }
    } else if let Some(old) = &low.baselines.against {
        Job::Against(old.clone())
    } else {
        Job::Judge
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// The arguments of this command only.
    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        low: LowCheck,
    }

    fn check(line: &str) -> Result<Check, String> {
        let words = std::iter::once("check").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.low.into()).map_err(|error| error.to_string())
    }

    #[test]
    fn without_flags_the_suite_here_is_judged() {
        let expected = Check {
            suite: None,
            job: Job::Judge,
            only: Vec::new(),
            measuring: Measuring::default(),
            baselines: Baselines::default(),
            shown: OutputOptions {
                form: CheckForm::Text,
                output: None,
                junit: None,
                sarif: None,
                markdown: None,
                annotations: false,
                plumbing: Vec::new(),
                limit: 10,
            },
        };
        assert_eq!(check(""), Ok(expected));
    }

    #[test]
    fn every_flag_has_its_meaning() {
        let line = "gate --only a --only b* --runs 20 --warmup 0 --jobs 2 --timeout 1.5s --python-objects --no-arguments --baselines base --baseline main --thresholds t.json \
                    --thresholds-from-log l1 --thresholds-from-log l2 --ignore-environment --allow-improvement --ci --format nio \
                    --output o --junit j --sarif s --markdown m --annotations --plumbing my_* --plumbing x --limit 3";
        let expected = Check {
            suite: Some("gate".into()),
            job: Job::Judge,
            only: vec!["a".into(), "b*".into()],
            measuring: Measuring {
                runs: NonZeroU32::new(20),
                warmups: Some(0),
                jobs: NonZeroU32::new(2),
                timeout: Some(Duration::from_millis(1500)),
                python_objects: true,
                command_lines: CommandLines::ProgramsAlone,
            },
            baselines: Baselines {
                folder: Some("base".into()),
                name: Some("main".into()),
                thresholds: Some("t.json".into()),
                thresholds_from_logs: vec!["l1".into(), "l2".into()],
                ignore_environment: true,
                allow_improvement: true,
                ci: true,
            },
            shown: OutputOptions {
                form: CheckForm::Nio,
                output: Some("o".into()),
                junit: Some("j".into()),
                sarif: Some("s".into()),
                markdown: Some("m".into()),
                annotations: true,
                plumbing: vec!["my_*".into(), "x".into()],
                limit: 3,
            },
        };
        assert_eq!(check(line), Ok(expected));
        assert_eq!(check("--json").map(|check| check.shown.form), Ok(CheckForm::Json));
    }

    #[test]
    fn there_is_one_thing_to_do() {
        let report = PathBuf::from("r.json");
        for (line, job) in [
            ("--update", Job::Update { allow_missing_counts: false }),
            ("--update --allow-missing-counts", Job::Update { allow_missing_counts: true }),
            (
                "--update --from r.json",
                Job::UpdateFrom { report: report.clone(), allow_missing_counts: false },
            ),
            (
                "--update --from r.json --allow-missing-counts",
                Job::UpdateFrom { report, allow_missing_counts: true },
            ),
            ("--against ../old", Job::Against("../old".into())),
            ("--list", Job::List),
            ("--list-baselines", Job::ListBaselines),
            ("--update --baseline main", Job::Update { allow_missing_counts: false }),
            ("--no-hooks --only a", Job::Unhooked),
            ("--shell a", Job::Shell("a".into())),
            ("--write-markers include", Job::Markers("include".into())),
        ] {
            assert_eq!(check(line).map(|check| check.job), Ok(job), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "a b",
            "--from r.json",
            "--allow-missing-counts",
            "--update --against old",
            "--update --no-hooks",
            "--baseline main --against old",
            "--list-baselines --update",
            "--runs 0",
            "--jobs 0",
            "--timeout 0",
            "--timeout 0s",
            "--timeout soon",
            "--json --format nio",
            "--format xml",
            "--shell a --only b",
            "--write-markers include --update",
            "--no-hooks --json",
        ] {
            assert!(check(line).is_err(), "{line}");
        }
    }
}
