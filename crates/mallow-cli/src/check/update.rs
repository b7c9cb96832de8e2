//! Stores metrics as baselines.

use super::ci_environment::CiEnvironment;
use super::request::Check;
use super::suite_file::{self, read};
use crate::{exit_code, output};
use mallow_check::baselines::{Baselines, this_machine};
use mallow_check::suite::Suite;
use mallow_check::update::{Options, Update, UpdateTest, plan};
use mallow_gate::baseline::Machine;
use mallow_gate::result::{CheckResult, Outcome};
use mallow_json::check::ReportFile;
use mallow_query::Failure;
use mallow_text::printable;
use std::path::Path;

/// Updates from a check that has just run.
pub(crate) fn of_result(
    check: &Check,
    result: &CheckResult,
    baselines: &Baselines,
    allow_missing_counts: bool,
    ci_environment: &CiEnvironment,
) -> Result<u8, Failure> {
    let options = Options {
        force: allow_missing_counts,
        is_ci: ci_environment.ci || check.baselines.ci,
        machine: this_machine(),
    };
    for test in result.tests.iter().filter(|test| test.outcome == Outcome::Error) {
        let told = test.sentences.iter().flat_map(|sentence| sentence.lines());
        told.for_each(|line| output::tell(&format!("{}: {}\n", printable(&test.name), printable(line))));
    }
    write(&plan(result, baselines, &options)?)
}

/// Updates from a report that was made elsewhere, usually in CI.
pub(crate) fn from_report(check: &Check, report: &Path, allow_missing_counts: bool) -> Result<u8, Failure> {
    let ci_environment = CiEnvironment::of(|name| std::env::var_os(name));
    let suite = Suite::open(check.suite.as_deref(), &check.only)?;
    let mut result = ReportFile::from_text(&read(report)?, &report.display().to_string())?.to_result()?;
    suite.keep_selected(&mut result.tests)?;
    let options = Options {
        force: allow_missing_counts,
        is_ci: ci_environment.ci || check.baselines.ci,
        machine: Machine::default(),
    };
    write(&plan(&result, &suite_file::baselines(check, &suite)?, &options)?)
}

/// Prints what changes, and writes it. If anything is refused, the command fails.
fn write(update: &Update) -> Result<u8, Failure> {
    let paths = update.write()?;
    output::to_stdout(|out| {
        for test in update.tests.iter().filter(|test| !test.is_same) {
            out.write_all(text(test).as_bytes())?;
        }
        let same = update.tests.iter().filter(|test| test.is_same).count();
        writeln!(out, "{} written, {same} unchanged.", mallow_text::plural(paths.len() as u64, "baseline"))
    })?;
    update.refused.iter().for_each(|sentence| output::tell(&format!("mallow: {sentence}\n")));
    Ok(if update.refused.is_empty() { exit_code::FINE } else { exit_code::FAILED })
}

/// Formats one test: its name, and old and new values that differ.
fn text(test: &UpdateTest) -> String {
    if test.baseline.is_none() {
        return format!("{}: removed, there is no such test.\n", test.name);
    }
    let mut text = format!("{}\n", test.name);
    for row in test.rows.iter().filter(|row| row.before != Some(row.after)) {
        text.push_str(&format!("  {:<16} {}\n", row.metric.word().replace('_', " "), row.text(test.ops)));
    }
    text
}
