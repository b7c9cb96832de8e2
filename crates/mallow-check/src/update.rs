//! New baselines from the results of a check: what would change, whether it may, and doing it.

use crate::baselines::Baselines;
use mallow_base::grouped;
use mallow_gate::baseline::{Baseline, BaselineError, Found, Machine};
use mallow_gate::judge::per_operation;
use mallow_gate::measurement::{Environment, Metric};
use mallow_gate::result::{CheckResult, Outcome, TestResult};
use std::path::PathBuf;

/// How to update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Accept results that look blind.
    pub force: bool,
    /// Whether this is CI (see [`crate::baselines::is_ci`]).
    pub is_ci: bool,
    /// Where the results are from.
    pub machine: Machine,
}

/// One metric, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateRow {
    /// Which.
    pub metric: Metric,
    /// The old baseline's least value; none when there is no old baseline.
    pub before: Option<u64>,
    /// The new one's.
    pub after: u64,
}

/// One test's new baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateTest {
    /// The test's name.
    pub name: String,
    /// Operations in one run, to divide metrics by.
    pub ops: Option<u64>,
    /// Where it holds.
    pub environment: Environment,
    /// The file that is written, or removed.
    pub path: PathBuf,
    /// Of what is known, in the order of [`Metric::ALL`]; empty for what is removed.
    pub rows: Vec<UpdateRow>,
    /// What is written; none when the file is removed because there is no such test.
    pub baseline: Option<Box<Baseline>>,
    /// Whether there is an old one with the same values of every metric.
    pub is_same: bool,
}

/// What an update would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The tests that get a new baseline, in the order of the results.
    pub tests: Vec<UpdateTest>,
    /// Why others do not, one sentence each.
    pub refused: Vec<String>,
    folder: Baselines,
}

/// Says what an update to a check's results would do. Writes nothing.
pub fn plan(check: &CheckResult, baselines: &Baselines, options: &Options) -> Result<Update, BaselineError> {
    let mut update = Update { tests: Vec::new(), refused: Vec::new(), folder: baselines.clone() };
    if options.is_ci {
        update.refused.push(
            "No baseline is made or changed in CI: keep `mallow check --json` as an artifact, run `mallow check --update --from REPORT` \
             at home and commit the files. Where CI is set by mistake, `CI=0` before the command tells so."
                .to_owned(),
        );
        return Ok(update);
    }
    for result in &check.tests {
        match of_test(result, check, baselines, options)? {
            Ok(Some(test)) => update.tests.push(test),
            Ok(None) => {}
            Err(sentence) => update.refused.push(sentence),
        }
    }
    Ok(update)
}

/// The change of one test, or the sentence why there is none.
fn of_test(
    result: &TestResult,
    check: &CheckResult,
    baselines: &Baselines,
    options: &Options,
) -> Result<Result<Option<UpdateTest>, String>, BaselineError> {
    let name = &result.name;
    match result.outcome {
        Outcome::Stale => return Ok(Ok(removal(result, check, baselines)?)),
        Outcome::Error => {
            return Ok(Err(format!("{name} failed, so its baseline stays as it is.")));
        }
        Outcome::Blind if !options.force => {
            let sentence = format!(
                "{name} looks blind, so its baseline stays as it is; `--allow-missing-counts` accepts it."
            );
            return Ok(Err(sentence));
        }
        _ => {}
    }
    let made =
        result.measurement.as_ref().and_then(|measurement| Baseline::of(measurement, &options.machine));
    let Some(new) = made else {
        return Ok(Err(format!("{name} was not measured, so its baseline stays as it is.")));
    };
    let old = match baselines.find(name, &new.environment)? {
        Found::Exact(old) => Some(old),
        Found::OtherEnvironment(_) | Found::None => None,
    };
    let rows: Vec<UpdateRow> = Metric::ALL
        .into_iter()
        .filter_map(|metric| {
            let before = old.as_ref().and_then(|old| old.spread(metric)).map(|spread| spread.min);
            Some(UpdateRow { metric, before, after: new.spread(metric)?.min })
        })
        .collect();
    Ok(Ok(Some(UpdateTest {
        name: name.clone(),
        ops: new.ops,
        environment: new.environment.clone(),
        path: baselines.path(name, &new.environment),
        is_same: rows.iter().all(|row| row.before == Some(row.after))
            && old.is_some_and(|old| old.ops == new.ops),
        rows,
        baseline: Some(Box::new(new)),
    })))
}

fn removal(
    result: &TestResult,
    check: &CheckResult,
    baselines: &Baselines,
) -> Result<Option<UpdateTest>, BaselineError> {
    let environments =
        check.tests.iter().filter_map(|test| test.measurement.as_ref()).map(|m| &m.environment);
    for environment in environments.chain([&check.environment]) {
        if let Found::Exact(old) = baselines.find(&result.name, environment)? {
            return Ok(Some(UpdateTest {
                name: result.name.clone(),
                ops: old.ops,
                environment: environment.clone(),
                path: baselines.path(&result.name, environment),
                rows: Vec::new(),
                baseline: None,
                is_same: false,
            }));
        }
    }
    Ok(None)
}

impl Update {
    /// Does it. Returns the files that were written or removed. Tests with the same metrics keep their file, so that a
    /// review shows what changed and nothing else.
    pub fn write(&self) -> Result<Vec<PathBuf>, BaselineError> {
        let mut paths = Vec::new();
        for test in self.tests.iter().filter(|test| !test.is_same) {
            paths.push(match &test.baseline {
                Some(baseline) => self.folder.write(baseline)?,
                None => self.folder.remove(&test.name, &test.environment)?,
            });
        }
        Ok(paths)
    }
}

impl UpdateRow {
    /// `74,000 -> 75,001 (+1.001 per operation)`, or the new value alone when nothing was before.
    pub fn text(&self, ops: Option<u64>) -> String {
        let after = grouped(self.after);
        let Some(before) = self.before else { return after };
        if before == self.after {
            return after;
        }
        let by_operation = match ops {
            Some(ops) if ops > 0 => {
                format!(" ({} per operation)", per_operation(before, self.after, ops))
            }
            _ => String::new(),
        };
        format!("{} -> {after}{by_operation}", grouped(before))
    }
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
