//! What `--only` asks for: tests and their regions, by name or by a pattern with `*` and `?`, as shells have it.
//!
//! A result is called after its test, or, where a program has several regions, `TEST.REGION`. Which regions there are is known
//! when the program has run. So a test is run when it, or a region that it may turn out to have, is asked for; and of what
//! came of it only what was asked for is kept.

use crate::did_you_mean::nearest_few;
use crate::suite::SuiteError;
use mallow_gate::glob;
use mallow_gate::result::TestResult;

/// How many names are offered for one that is not there.
const OFFERED_MAX: usize = 5;

/// The words of `--only`; without any, everything is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    words: Vec<String>,
}

impl Selection {
    /// Of these words.
    pub fn of(words: &[String]) -> Selection {
        Selection { words: words.to_vec() }
    }

    /// Returns whether everything is asked for.
    pub fn is_all(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns whether a test has to be run for what is asked for.
    pub fn may_be_of(&self, test: &str) -> bool {
        self.is_all() || self.words.iter().any(|word| may_name(word, test))
    }

    /// Returns whether a test is asked for itself, or a region of it by its whole name.
    pub fn names_test(&self, test: &str) -> bool {
        let is_region = |word: &String| word.strip_prefix(test).is_some_and(|rest| rest.starts_with('.'));
        self.names(test, test) || self.words.iter().any(is_region)
    }

    /// Returns whether a result of a test is asked for.
    pub fn names(&self, test: &str, result: &str) -> bool {
        self.is_all() || self.words.iter().any(|word| names(word, test, result))
    }

    /// Leaves the results that were asked for. `test_of` says whose a result is. A test that failed before its regions were
    /// known stays when nothing else is what a word asks for.
    ///
    /// # Errors
    /// When a word names nothing of all that there is.
    pub fn keep(
        &self,
        results: &mut Vec<TestResult>,
        test_of: impl Fn(&TestResult) -> String,
    ) -> Result<(), SuiteError> {
        if self.is_all() {
            return Ok(());
        }
        let tests: Vec<String> = results.iter().map(&test_of).collect();
        let named = |word: &str| {
            let mut all = tests.iter().zip(&*results);
            all.any(|(test, result)| names(word, test, &result.name))
        };
        let open: Vec<&String> = self.words.iter().filter(|word| !named(word)).collect();
        let may_have_had = |word: &str, test: &str, result: &TestResult| {
            result.measurement.is_none() && result.name == test && may_name(word, test)
        };
        for word in &open {
            if !tests.iter().zip(&*results).any(|(test, result)| may_have_had(word, test, result)) {
                return Err(not_there(word, results.iter().map(|result| result.name.as_str())));
            }
        }
        let mut tests = tests.iter();
        results.retain(|result| {
            let test = tests.next().map_or(result.name.as_str(), String::as_str);
            self.names(test, &result.name) || open.iter().any(|word| may_have_had(word, test, result))
        });
        Ok(())
    }

    /// Returns whether each word may name something of these tests.
    pub(crate) fn check(&self, tests: &[String]) -> Result<(), SuiteError> {
        let strange = self.words.iter().find(|word| !tests.iter().any(|test| may_name(word, test)));
        strange.map_or(Ok(()), |word| Err(not_there(word, tests.iter().map(String::as_str))))
    }
}

/// Returns whether a word names a result: its test, or itself.
fn names(word: &str, test: &str, result: &str) -> bool {
    [test, result].into_iter().any(|name| word == name || glob::matches(word, name))
}

/// Returns whether a word names a test or a region that the test may have.
fn may_name(word: &str, test: &str) -> bool {
    names(word, test, test) || glob::goes_on_from(word, &format!("{test}."))
}

fn not_there<'names>(asked: &str, names: impl Iterator<Item = &'names str> + Clone) -> SuiteError {
    let mut nearest: Vec<String> =
        nearest_few(asked, names.clone(), OFFERED_MAX).into_iter().map(str::to_owned).collect();
    let count = names.clone().count();
    if nearest.is_empty() && count <= OFFERED_MAX {
        nearest = names.map(str::to_owned).collect();
    }
    SuiteError::NotThere { asked: asked.to_owned(), nearest, tests: count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_gate::result::Outcome;
    use mallow_gate::sample;

    fn selection(words: &[&str]) -> Selection {
        Selection { words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    fn measured(name: &str) -> TestResult {
        let mut result = TestResult::unmeasured(name, Outcome::Ok, String::new());
        result.measurement = Some(sample::counts(None, &[1]));
        result
    }

    fn test_of(result: &TestResult) -> String {
        result.name.split('.').next().unwrap_or_default().to_owned()
    }

    fn kept(words: &[&str], names: &[&str], failed: &[&str]) -> Result<Vec<String>, String> {
        let failed = failed.iter().map(|name| TestResult::unmeasured(name, Outcome::Error, String::new()));
        let mut results: Vec<TestResult> = names.iter().map(|name| measured(name)).chain(failed).collect();
        selection(words).keep(&mut results, test_of).map_err(|error| error.to_string())?;
        Ok(results.into_iter().map(|result| result.name).collect())
    }

    #[test]
    fn a_test_stands_for_its_regions_and_a_region_for_itself() {
        let names = ["alloc.read", "alloc.write", "other"];
        let check = |words: &[&str], expected: &[&str]| {
            assert_eq!(kept(words, &names, &[]).unwrap(), expected, "{words:?}");
        };
        check(&[], &names);
        check(&["alloc"], &["alloc.read", "alloc.write"]);
        check(&["al*"], &["alloc.read", "alloc.write"]);
        check(&["alloc.write"], &["alloc.write"]);
        check(&["*write"], &["alloc.write"]);
        check(&["alloc.*"], &["alloc.read", "alloc.write"]);
        check(&["other", "*.r*"], &["alloc.read", "other"]);
    }

    #[test]
    fn a_word_that_names_nothing_is_an_error() {
        let names = ["alloc.read", "alloc.write"];
        let expected = "there is no test or region \"alloc.writ\"; there are alloc.write, alloc.read";
        assert_eq!(kept(&["alloc.read", "alloc.writ"], &names, &[]), Err(expected.to_owned()));
        // What failed may have had it.
        assert_eq!(kept(&["alloc.writ"], &["other"], &["alloc"]), Ok(vec!["alloc".to_owned()]));
        assert_eq!(kept(&["*.read"], &["alloc.read"], &["other"]), Ok(vec!["alloc.read".to_owned()]));
        assert_eq!(kept(&["other"], &["alloc.read"], &["other"]), Ok(vec!["other".to_owned()]));
    }

    #[test]
    fn a_test_is_run_for_a_region_that_it_may_have() {
        let is_run = |word: &str| selection(&[word]).may_be_of("alloc");
        for word in ["alloc", "al*", "alloc.x", "*x", "a*x", "alloc?x", "*"] {
            assert!(is_run(word), "{word}");
        }
        for word in ["", "other", "alloc.", "allo.x", "other.x", "b*", "allocs", "al?"] {
            assert!(!is_run(word), "{word}");
        }
    }
}
