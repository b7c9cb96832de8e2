//! A check as Markdown, for a comment on a change or a job's summary: a table, the worst first, stacks collapsed.
//!
//! Servers truncate or refuse more than 65,536 characters, so what does not fit is left out and counted.

use super::details;
use super::metrics::{from_baseline, operations, per_operation, steadiness};
use super::text::Page;
use crate::markdown::{BYTES_MAX, STYLE, code, code_cell, folded, inline};
use crate::{grouped, plural};
use mallow_gate::measurement::Metric;
use mallow_gate::result::{Outcome, TestResult};
use mallow_view::Weight;
use mallow_view::check::weight;
use mallow_view::check::{conclusion, worst_first};

/// Table rows are added up to this number of bytes.
const TABLE_BYTES_MAX: usize = 30_000;
/// The maximum number of bytes of one test's reasons, which may quote a program's output.
const DETAILS_BYTES_MAX: usize = 8_000;
/// The maximum number of columns of a name.
const NAME_MAX: usize = 200;
/// The maximum number of columns of a sentence.
const SENTENCE_MAX: usize = 1000;

impl Page<'_> {
    /// Returns the page as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("## Allocations: {}\n\n", self.headline());
        for sentence in self.result.sentences.iter().take(20) {
            out.push_str(&format!("**{}**\n\n", inline(sentence, SENTENCE_MAX)));
        }
        self.table(&mut out);
        self.reasons(&mut out);
        if self.has_metrics_to_accept() {
            out.push_str(&format!(
                "\nTo accept these values: {}\n",
                code(&self.result.update_command, NAME_MAX)
            ));
        }
        out.push_str(&format!(
            "\n{}. Ran on {}.\n",
            self.counts(),
            inline(&self.environment(), SENTENCE_MAX)
        ));
        out
    }

    /// Formats `2 of 12 tests failed`, and the most important notes.
    fn headline(&self) -> String {
        let tests = &self.result.tests;
        let count = |wanted| {
            tests.iter().filter(|test| weight(test, self.allow_improvement) == wanted).count() as u64
        };
        let (failed, inconclusive) = (count(Weight::Failed), count(Weight::Inconclusive));
        let all = plural(tests.len() as u64, "test");
        match (failed, inconclusive) {
            _ if tests.is_empty() => "nothing was checked".to_owned(),
            (0, 0) => format!("{all}, all fine"),
            (0, _) => format!("{} of {all} inconclusive", grouped(inconclusive)),
            (_, 0) => format!("{} of {all} failed", grouped(failed)),
            _ => format!("{} of {all} failed, {} inconclusive", grouped(failed), grouped(inconclusive)),
        }
    }

    fn table(&self, out: &mut String) {
        if self.result.tests.is_empty() {
            return;
        }
        out.push_str("| verdict | test | per op | allocations | left | fds | least in |\n|---|---|--:|--:|--:|--:|--:|\n");
        let mut left_out = 0_u64;
        for test in worst_first(self.result) {
            let row = self.row(test);
            if left_out == 0 && out.len() + row.len() <= TABLE_BYTES_MAX {
                out.push_str(&row);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            out.push_str(&format!(
                "\n{} not shown for lack of room; none is worse.\n",
                plural(left_out, "more test")
            ));
        }
    }

    fn row(&self, test: &TestResult) -> String {
        let word = test.outcome.word();
        let verdict = match weight(test, self.allow_improvement) {
            Weight::Fine => word.to_owned(),
            Weight::Inconclusive | Weight::Failed => format!("**{word}**"),
        };
        let metrics = match conclusion(test, Metric::Allocations) {
            Some(allocations) => {
                let least = |metric| {
                    conclusion(test, metric)
                        .map(|conclusion| grouped(conclusion.spread.min))
                        .unwrap_or_default()
                };
                [
                    per_operation(allocations, operations(test)),
                    from_baseline(allocations),
                    least(Metric::Remaining),
                    least(Metric::Descriptors),
                    steadiness(allocations),
                ]
                .join(" | ")
            }
            None => " | | | | ".to_owned(),
        };
        format!("| {verdict} | {} | {metrics} |\n", code_cell(&test.name, NAME_MAX))
    }

    /// Appends the details of each test, collapsed.
    fn reasons(&self, out: &mut String) {
        let mut left_out = 0_u64;
        for test in worst_first(self.result).into_iter().filter(|test| test.outcome != Outcome::Ok) {
            let text = self.folded(test);
            if left_out == 0 && out.len() + text.len() <= BYTES_MAX {
                out.push_str(&text);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            let tests = plural(left_out, "more test");
            out.push_str(&format!("\nThe reasons of {tests} are left out for lack of room.\n"));
        }
    }

    fn folded(&self, test: &TestResult) -> String {
        let all = details::lines(test, self.limit, STYLE);
        let mut lines = String::new();
        for (at, line) in all.iter().enumerate() {
            if lines.len() + line.len() > DETAILS_BYTES_MAX {
                lines.push_str(&format!("… {}\n", plural((all.len() - at) as u64, "more line")));
                break;
            }
            lines.push_str(line);
            lines.push('\n');
        }
        let summary =
            format!("<b>{}</b> <code>{}</code>", test.outcome.word(), inline(&test.name, SENTENCE_MAX));
        let is_open = weight(test, self.allow_improvement) == Weight::Failed;
        format!("\n{}", folded(&summary, is_open, &lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use mallow_gate::result::CheckResult;
    use mallow_samples::check as sample;

    fn markdown(result: &CheckResult) -> String {
        Page { result, limit: 10, allow_improvement: false }.markdown()
    }

    #[test]
    fn every_verdict() {
        assert_snapshot!(markdown(&sample::check()));
    }

    #[test]
    fn the_headline_says_how_it_went() {
        let headline = |result: &CheckResult| markdown(result).lines().next().unwrap_or_default().to_owned();
        let mut result = sample::fine();
        assert_eq!(headline(&result), "## Allocations: 2 tests, all fine");
        result.tests.push(sample::flaky());
        assert_eq!(headline(&result), "## Allocations: 1 of 3 tests inconclusive");
        result.tests.push(sample::regressed());
        assert_eq!(headline(&result), "## Allocations: 1 of 4 tests failed, 1 inconclusive");
        result.tests.clear();
        assert_eq!(headline(&result), "## Allocations: nothing was checked");
    }

    #[test]
    fn it_fits_into_a_comment_whatever_is_in_it() {
        let mut result = sample::check();
        // Their names alone are more than twice of what fits.
        for at in 0..300 {
            let mut test = sample::regressed();
            test.name = format!("{}_{at}", "very_long_<name>|".repeat(20));
            test.sentences.push("said: ``` & <b> ".repeat(800));
            result.tests.push(test);
        }
        result.sentences = vec!["x".repeat(100_000); 50];
        let text = markdown(&result);
        assert!((50_000..65_000).contains(&text.len()), "{}", text.len());
        assert_eq!(text.matches("<details").count(), text.matches("</details>").count());
        assert_eq!(text.matches("```").count() % 2, 0);
        assert!(text.contains(" more tests not shown for lack of room; none is worse.\n"), "{text}");
        assert!(text.contains("The reasons of "), "{text}");
        assert!(text.contains("more lines\n"), "{text}");
    }

    #[test]
    fn names_are_not_taken_for_markup() {
        let mut result = sample::fine();
        result.tests[0].name = "a|b`c<d>*e*".into();
        result.tests[0].outcome = Outcome::Error;
        let text = markdown(&result);
        assert!(text.contains("| **ERROR** | `a\\|b'c<d>*e*` |"), "{text}");
        assert!(text.contains("<code>a|b&#96;c&lt;d&gt;&#42;e&#42;</code>"), "{text}");
    }
}
