//! Marks on lines of a change, in GitHub's workflow commands: `::error file=src/buf.rs,line=88,title=…::…`.
//!
//! GitHub shows ten errors and ten warnings of a step, so the worst come first.

use super::details::told;
use super::stack::chain;
use super::verdict::{Weight, weight};
use mallow_base::Frame;
use mallow_check::result::{CheckResult, TestResult};
use mallow_view::check::{changes, left, site_metrics, varying, visible, worst_first};
use std::path::Path;

/// Columns of a stack in a mark.
const WIDTH: usize = 100;

/// The commands, one line each. `checkout` is the folder to which paths are relative.
pub(crate) fn commands(result: &CheckResult, allow_improvement: bool, checkout: Option<&Path>) -> String {
    let mut text = String::new();
    for test in worst_first(result) {
        let command = match weight(test, allow_improvement) {
            Weight::Failed => "error",
            Weight::Inconclusive => "warning",
            Weight::Fine => continue,
        };
        let title = format!("{} {}", test.outcome.word(), test.name);
        let place = place(test, checkout)
            .map(|(file, line)| format!("file={},line={line},", property(&file)))
            .unwrap_or_default();
        text.push_str(&format!("::{command} {place}title={}::{}\n", property(&title), data(&message(test))));
    }
    text
}

/// Why, and the stacks to blame.
fn message(test: &TestResult) -> String {
    let mut lines: Vec<String> =
        test.sentences.iter().flat_map(|sentence| told(sentence, usize::MAX)).collect();
    lines.extend(blamed(test).iter().map(|frames| chain(frames, WIDTH)));
    if lines.is_empty() {
        lines.push(test.outcome.word().to_owned());
    }
    lines.join("\n")
}

/// The stacks that explain a verdict, the first the most: what became more, else what was left behind, what varies, or
/// what became less.
fn blamed(test: &TestResult) -> Vec<Vec<&Frame>> {
    const STACKS: usize = 3;
    let rows: Vec<_> =
        site_metrics(test).into_iter().flat_map(|metric| changes(test, metric, usize::MAX).rows).collect();
    let more = rows.iter().filter(|row| row.difference() > 0).map(|row| row.frames.clone());
    let left = left(test, STACKS).rows.into_iter().map(|row| row.frames);
    let vary = varying(test, STACKS).0.into_iter().map(|row| row.frames);
    let less = rows.iter().filter(|row| row.difference() < 0).map(|row| row.frames.clone());
    let groups: [Vec<Vec<&Frame>>; 4] = [more.collect(), left.collect(), vary.collect(), less.collect()];
    let first = groups.into_iter().find(|group| !group.is_empty()).unwrap_or_default();
    first.into_iter().take(STACKS).collect()
}

/// The innermost line of the first stack to blame that is in the checkout; where there is none, of the test's stack.
fn place(test: &TestResult, checkout: Option<&Path>) -> Option<(String, u32)> {
    let stacks = blamed(test);
    let all = stacks.iter().flat_map(|frames| frames.iter().copied());
    let any = test.changes.iter().flat_map(|change| visible(&change.frames));
    all.chain(any).find_map(|frame| {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        Some((relative(file, checkout)?, line))
    })
}

/// A path as GitHub wants it: relative to the checkout. Files elsewhere, such as a library's, cannot be marked.
fn relative(file: &str, checkout: Option<&Path>) -> Option<String> {
    let path = Path::new(file);
    let inside = match checkout {
        Some(checkout) if path.is_absolute() => path.strip_prefix(checkout).ok()?,
        _ if path.is_absolute() => return None,
        _ => path.strip_prefix("./").unwrap_or(path),
    };
    let leaves = inside.components().any(|part| part == std::path::Component::ParentDir);
    (!leaves).then(|| inside.to_string_lossy().into_owned())
}

/// A command's message.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command, which also ends at a comma and a colon.
fn property(text: &str) -> String {
    data(&text.replace(|c: char| c.is_control(), "?")).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;
    use mallow_check::result::Outcome;

    fn lines(allow_improvement: bool) -> Vec<String> {
        let text = commands(&sample::check(), allow_improvement, Some(Path::new("/srv/checkout")));
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_worst_come_first_with_the_line_that_is_to_blame() {
        let lines = lines(false);
        let titles: Vec<&str> = lines.iter().filter_map(|line| line.split("::").nth(1)).collect();
        assert_eq!(
            titles,
            [
                "error title=ERROR crashes",
                "error title=BLIND header_map",
                "error file=src/buf.rs,line=88,title=REGRESSED buffer_rw",
                "error file=src/session.c,line=31,title=REGRESSED rst_fd_leak",
                "error file=src/row.c,line=4,title=REGRESSED row_sizes",
                "warning file=src/pool.c,line=20,title=FLAKY thread_hop",
                "warning file=src/cow.c,line=3,title=MISSING cow_copy",
                "warning title=STALE old_name",
                "error file=src/ring.rs,line=7,title=IMPROVED ring_modify",
            ]
        );
        assert_eq!(
            lines[4],
            "::error file=src/row.c,line=4,title=REGRESSED row_sizes::bytes: 384 per run, 192 more than the baseline's 192 \
             (+192.000 per operation); 200 allowed.%0Arow (row.c:4) ← main"
        );
    }

    #[test]
    fn an_allowed_improvement_is_not_marked() {
        assert!(!lines(true).iter().any(|line| line.contains("IMPROVED")));
    }

    #[test]
    fn only_files_of_the_checkout_are_marked() {
        let checkout = Some(Path::new("/srv/checkout"));
        assert_eq!(relative("/srv/checkout/src/a.c", checkout), Some("src/a.c".into()));
        assert_eq!(relative("./src/a.c", checkout), Some("src/a.c".into()));
        assert_eq!(relative("/usr/include/c++/12/vector", checkout), None);
        assert_eq!(relative("/srv/checkout/../a.c", checkout), None);
        assert_eq!(relative("/srv/checkout/src/a.c", None), None);
        assert_eq!(relative("src/a.c", None), Some("src/a.c".into()));
    }

    #[test]
    fn what_would_end_a_command_is_written_as_github_wants_it() {
        let mut test = sample::bare("a,b: 50%", Outcome::Error);
        test.sentences = vec!["100 % of 3::4".into(), "second".into()];
        let mut result = sample::fine();
        result.tests = vec![test];
        assert_eq!(
            commands(&result, false, None),
            "::error title=ERROR a%2Cb%3A 50%25::100 %25 of 3::4%0Asecond\n"
        );
    }
}
