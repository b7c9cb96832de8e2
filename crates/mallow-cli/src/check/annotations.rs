//! Marks on lines of a change, in GitHub's workflow commands: `::error file=src/buf.rs,line=88,title=…::…`.
//!
//! GitHub shows ten errors and ten warnings of a step, so the worst come first.

use super::details::told;
use super::stack::chain;
use super::verdict::{Weight, weight};
use mallow_base::Frame;
use mallow_gate::result::{CheckResult, TestResult};
use mallow_view::check::{changes, largest, left, site_metrics, varying, visible, worst_first};
use std::path::{Path, PathBuf};

/// Columns of a stack in a mark.
const WIDTH: usize = 100;

/// Where sources are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The suite's folder, to which paths of tests that mallow built are relative.
    suite: PathBuf,
    /// The checkout's folder, to which GitHub's paths are relative.
    checkout: PathBuf,
}

impl Places {
    /// `checkout` is what the environment says; without, it is the nearest folder around the suite that git knows.
    pub(crate) fn new(checkout: Option<&Path>, suite: &Path) -> Self {
        let of_git = || suite.ancestors().find(|folder| folder.join(".git").exists());
        let checkout = checkout.or_else(of_git).unwrap_or(suite);
        // The suite's folder has no symbolic links in it either.
        let checkout = checkout.canonicalize().unwrap_or_else(|_| checkout.to_owned());
        Self { suite: suite.to_owned(), checkout }
    }

    /// A source's path as GitHub wants it. What is not a file of the checkout, such as a library's source, has none.
    fn relative(&self, file: &str) -> Option<String> {
        let path = self.suite.join(file).canonicalize().ok().filter(|path| path.is_file())?;
        Some(path.strip_prefix(&self.checkout).ok()?.to_string_lossy().into_owned())
    }
}

/// The commands, one line each.
pub(crate) fn commands(result: &CheckResult, allow_improvement: bool, places: &Places) -> String {
    let mut text = String::new();
    for test in worst_first(result) {
        let command = match weight(test, allow_improvement) {
            Weight::Failed => "error",
            Weight::Inconclusive => "warning",
            Weight::Fine => continue,
        };
        let title = format!("{} {}", test.outcome.word(), test.name);
        let place = place(test, places)
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
    let more = rows.iter().filter(|row| row.difference() > 0).map(|row| from_blamed(&row.frames, row.blamed));
    let left = left(test, STACKS, <[_]>::to_vec).rows.into_iter().map(|row| row.frames);
    let vary = varying(test, STACKS, <[_]>::to_vec).0.into_iter().map(|row| row.frames);
    let less = rows.iter().filter(|row| row.difference() < 0).map(|row| from_blamed(&row.frames, row.blamed));
    let most = site_metrics(test)
        .into_iter()
        .flat_map(|metric| largest(test, metric, STACKS, |frames, _| frames.to_vec()).0);
    let most = most.map(|row| from_blamed(&row.frames, row.blamed));
    let groups: [Vec<Vec<&Frame>>; 5] =
        [more.collect(), left.collect(), vary.collect(), less.collect(), most.collect()];
    let first = groups.into_iter().find(|group| !group.is_empty()).unwrap_or_default();
    first.into_iter().take(STACKS).collect()
}

/// A stack from the line to blame on: what it ended in is in the table.
fn from_blamed<'a>(frames: &[&'a Frame], blamed: usize) -> Vec<&'a Frame> {
    frames[blamed.min(frames.len())..].to_vec()
}

/// The innermost line of the first stack to blame that is in the checkout; where there is none, of the test's stack.
fn place(test: &TestResult, places: &Places) -> Option<(String, u32)> {
    let stacks = blamed(test);
    let all = stacks.iter().flat_map(|frames| frames.iter().copied());
    let any = test.changes.iter().flat_map(|change| visible(&change.frames, &test.plumbing));
    all.chain(any).find_map(|frame| {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        Some((places.relative(file)?, line))
    })
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
    use mallow_gate::result::Outcome;
    use std::fs;

    /// A checkout with the sources that the samples name, and the suite in it.
    fn checkout() -> std::io::Result<(tempfile::TempDir, Places)> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        for folder in ["src", "gate", ".git"] {
            fs::create_dir(root.join(folder))?;
        }
        for file in ["buf.rs", "session.c", "row.c", "pool.c", "cow.c", "ring.rs"] {
            fs::write(root.join("src").join(file), "")?;
        }
        let places = Places::new(None, &root.join("gate"));
        Ok((folder, places))
    }

    fn lines(allow_improvement: bool) -> std::io::Result<Vec<String>> {
        let (_folder, places) = checkout()?;
        let mut result = sample::check();
        // The samples' sources lie in /srv/checkout, and mallow makes paths relative to the suite.
        let frames = result.tests.iter_mut().flat_map(|test| {
            let changes = test.changes.iter_mut().flat_map(|change| &mut change.frames);
            let left = test.left.iter_mut().flat_map(|site| &mut site.frames);
            changes.chain(left).chain(test.varying.iter_mut().flat_map(|site| &mut site.frames))
        });
        for file in frames.filter_map(|frame| frame.file.as_mut()) {
            *file = file.replace("/srv/checkout/", "../");
        }
        Ok(commands(&result, allow_improvement, &places).lines().map(str::to_owned).collect())
    }

    #[test]
    fn the_worst_come_first_with_the_line_that_is_to_blame() -> std::io::Result<()> {
        let lines = lines(false)?;
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
             (+192.000 per operation); 200 allowed.%0Arow (row.c:4) ← main (test_row_sizes.c:9)"
        );
        Ok(())
    }

    #[test]
    fn an_allowed_improvement_is_not_marked() -> std::io::Result<()> {
        assert!(!lines(true)?.iter().any(|line| line.contains("IMPROVED")));
        Ok(())
    }

    #[test]
    fn only_files_of_the_checkout_are_marked() -> std::io::Result<()> {
        let (folder, places) = checkout()?;
        let whole = folder.path().join("src/buf.rs");
        for (file, expected) in [
            ("../src/buf.rs", Some("src/buf.rs")),
            (&*whole.to_string_lossy(), Some("src/buf.rs")),
            ("../src/other.rs", None),
            ("../src", None),
            ("/bin/sh", None),
            ("", None),
        ] {
            assert_eq!(places.relative(file).as_deref(), expected, "{file}");
        }
        let told = Places::new(Some(&folder.path().join("src")), &folder.path().join("gate"));
        assert_eq!(told.relative("../src/buf.rs").as_deref(), Some("buf.rs"));
        Ok(())
    }

    #[test]
    fn what_would_end_a_command_is_written_as_github_wants_it() {
        let mut test = sample::bare("a,b: 50%", Outcome::Error);
        test.sentences = vec!["100 % of 3::4".into(), "second".into()];
        let mut result = sample::fine();
        result.tests = vec![test];
        assert_eq!(
            commands(&result, false, &Places::new(None, Path::new("/srv"))),
            "::error title=ERROR a%2Cb%3A 50%25::100 %25 of 3::4%0Asecond\n"
        );
    }
}
