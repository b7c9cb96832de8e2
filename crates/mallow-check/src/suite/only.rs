//! Which tests were asked for: by name, or by a pattern with `*` and `?`, as shells have it.

use super::SuiteError;
use crate::glob::matches;
use crate::manifest::TestSpec;
use crate::nearest::nearest_few;

/// How many names are offered for one that is not there.
const OFFERED_MAX: usize = 5;

/// Keeps the tests that were asked for; all if nothing was. Each word has to match something.
pub(super) fn keep(tests: &mut Vec<TestSpec>, names: &[String], only: &[String]) -> Result<(), SuiteError> {
    for asked in only {
        if !names.iter().any(|name| is_asked_for(name, asked)) {
            return Err(not_there(asked, names));
        }
    }
    if !only.is_empty() {
        tests.retain(|test| only.iter().any(|asked| is_asked_for(&test.name, asked)));
    }
    Ok(())
}

/// A name, a pattern, or what reports call a region of the test: its name and the region's behind a dot.
fn is_asked_for(name: &str, asked: &str) -> bool {
    name == asked
        || matches(asked, name)
        || asked.strip_prefix(name).is_some_and(|region| region.starts_with('.') && region.len() > 1)
}

fn not_there(asked: &str, names: &[String]) -> SuiteError {
    let mut nearest: Vec<String> = nearest_few(asked, names.iter().map(String::as_str), OFFERED_MAX)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if nearest.is_empty() && names.len() <= OFFERED_MAX {
        nearest = names.to_vec();
    }
    SuiteError::NotThere { asked: asked.to_owned(), nearest, tests: names.len() }
}
