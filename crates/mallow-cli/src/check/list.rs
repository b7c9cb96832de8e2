//! `mallow check --list`: the names that `--only` takes. `--list-baselines`: those that `--baseline` takes.

use super::request::Check;
use super::suite_file;
use crate::{exit_code, output};
use mallow_check::suite::Suite;
use mallow_check::workdir::Workdir;
use mallow_query::Failure;
use mallow_text::{plural, printable};

/// Prints all names that `--only` accepts, one per line: those of the tests, each followed by those of its regions,
/// as far as these are known from the last run or from baselines.
pub(crate) fn list(check: &Check) -> Result<u8, Failure> {
    let suite = Suite::open(check.suite.as_deref(), &check.only)?;
    let with_baseline = suite_file::baselines(check, &suite)?.all_names()?;
    let mut names: Vec<String> = Vec::new();
    for test in &suite.tests {
        let mut results = Workdir::noted_regions(&suite.folder, &test.name);
        if results.is_empty() {
            results = with_baseline.iter().filter(|name| suite.test_of(name) == test.name).cloned().collect();
        }
        results.retain(|result| *result != test.name && suite.test_of(result) == test.name);
        let all = std::iter::once(test.name.clone()).chain(results);
        names.extend(all.filter(|name| suite.selection.names(&test.name, name)));
    }
    output::to_stdout(|out| names.iter().try_for_each(|name| writeln!(out, "{}", printable(name))))?;
    Ok(exit_code::FINE)
}

/// Prints the named baselines, one per line, each with the number of its tests and the classes of environments that it is for.
pub(crate) fn baselines(check: &Check) -> Result<u8, Failure> {
    let suite = Suite::open(check.suite.as_deref(), &check.only)?;
    let named = suite_file::all_baselines(check, &suite)?.list_named()?;
    let columns = named.iter().map(|named| named.name.len()).max().unwrap_or(0);
    output::to_stdout(|out| {
        named.iter().try_for_each(|named| {
            let tests = plural(named.tests as u64, "test");
            writeln!(out, "{:columns$}  {tests}  {}", printable(&named.name), named.classes.join(" "))
        })
    })?;
    Ok(exit_code::FINE)
}
