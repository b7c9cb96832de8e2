//! Where a suite's sources are in the checkout that a CI server shows.

use std::path::{Path, PathBuf};

/// Maps sources to the checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// The suite's folder, to which paths of tests that mallow built are relative.
    suite: PathBuf,
    /// The checkout's folder, to which GitHub's paths are relative.
    checkout: PathBuf,
}

impl Checkout {
    /// `checkout` is the value of the environment; without it, the nearest folder above the suite with a git repository is used.
    pub(crate) fn new(checkout: Option<&Path>, suite: &Path) -> Self {
        let of_git = || suite.ancestors().find(|folder| folder.join(".git").exists());
        let checkout = checkout.or_else(of_git).unwrap_or(suite);
        // The suite's folder is free of symbolic links, too.
        let checkout = checkout.canonicalize().unwrap_or_else(|_| checkout.to_owned());
        Self { suite: suite.to_owned(), checkout }
    }

    /// Returns a source's path relative to the checkout. A file outside of it, such as a library's source, has none.
    pub(crate) fn relative(&self, file: &str) -> Option<String> {
        let path = self.suite.join(file).canonicalize().ok().filter(|path| path.is_file())?;
        Some(path.strip_prefix(&self.checkout).ok()?.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_gate::result::Outcome;
    use mallow_samples::check as sample;
    use mallow_text::check::annotations::commands;
    use std::fs;

    /// Creates a checkout with the sources that the samples name, and the suite in it.
    fn checkout() -> std::io::Result<(tempfile::TempDir, Checkout)> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        for folder in ["src", "gate", ".git"] {
            fs::create_dir(root.join(folder))?;
        }
        for file in ["buf.rs", "session.c", "row.c", "pool.c", "cow.c", "ring.rs"] {
            fs::write(root.join("src").join(file), "")?;
        }
        let places = Checkout::new(None, &root.join("gate"));
        Ok((folder, places))
    }

    fn lines(allow_improvement: bool) -> std::io::Result<Vec<String>> {
        let (_folder, places) = checkout()?;
        let mut result = sample::check();
        // The samples' sources are in /srv/checkout, and mallow makes paths relative to the suite.
        let frames = result.tests.iter_mut().flat_map(|test| {
            let changes = test.changes.iter_mut().flat_map(|change| &mut change.frames);
            let left = test.left.iter_mut().flat_map(|site| &mut site.frames);
            changes.chain(left).chain(test.varying.iter_mut().flat_map(|site| &mut site.frames))
        });
        for file in frames.filter_map(|frame| frame.file.as_mut()) {
            *file = file.replace("/srv/checkout/", "../");
        }
        Ok(commands(&result, allow_improvement, &|file| places.relative(file))
            .lines()
            .map(str::to_owned)
            .collect())
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
        let told = Checkout::new(Some(&folder.path().join("src")), &folder.path().join("gate"));
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
            commands(&result, false, &|_| None),
            "::error title=ERROR a%2Cb%3A 50%25::100 %25 of 3::4%0Asecond\n"
        );
    }
}
