//! Suppressions of leaks: from files, and from the executable that was recorded.

use crate::failure::{Failure, reason};
use crate::request::Suppressions;
use mallow_profile::{Profile, SuppressedSite, Suppression, suppress_leaks};
use mallow_symbols::embedded_suppressions;
use std::path::Path;

/// All suppressions, and what they took from the leaks of a profile.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) sources: Vec<Source>,
    /// Of all sources, in their order; what [`SuppressedSite::by`] counts.
    pub(crate) suppressions: Vec<Suppression>,
    pub(crate) taken: Vec<SuppressedSite>,
}

/// Where suppressions came from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    /// Whether `path` is an executable that carries them.
    pub(crate) is_embedded: bool,
    /// Where this source's suppressions end among all.
    end: usize,
}

impl Applied {
    /// Reads what is asked for, and takes the suppressed leaks from the profile. What a file's suppressions do not meet, and
    /// embedded ones that cannot be read, are warnings.
    pub(crate) fn to(
        profile: &mut Profile,
        asked: &Suppressions,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Failure> {
        let mut applied = Self::default();
        for path in &asked.files {
            let shown = path.display();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::new(format!("cannot read {shown}: {}.", reason(&error))))?;
            let found = Suppression::parse(&text)
                .map_err(|error| Failure::new(format!("cannot use {shown}: {error}.")))?;
            applied.add(path.display().to_string(), false, found);
        }
        if asked.embedded {
            applied.add_embedded(profile, warnings);
        }
        applied.taken = suppress_leaks(profile, &applied.suppressions);
        warnings.extend(applied.unused());
        Ok(applied)
    }

    /// Where a suppression came from.
    pub(crate) fn source(&self, index: usize) -> Option<&Source> {
        self.sources.iter().find(|source| index < source.end)
    }

    fn add(&mut self, path: String, is_embedded: bool, found: Vec<Suppression>) {
        self.suppressions.extend(found);
        self.sources.push(Source { path, is_embedded, end: self.suppressions.len() });
    }

    fn add_embedded(&mut self, profile: &Profile, warnings: &mut Vec<String>) {
        for module in &profile.stacks.modules {
            let path = &module.path;
            let in_the_way = match embedded_suppressions(Path::new(path), &module.build_id) {
                Ok(None) => continue,
                Ok(Some(text)) => match Suppression::parse(&text) {
                    Ok(found) => {
                        self.add(path.clone(), true, found);
                        continue;
                    }
                    Err(error) => format!("{error} of its __lsan_default_suppressions"),
                },
                Err(error) => error.to_string(),
            };
            warnings.push(format!(
                "{path} has suppressions of its own that were not used: {in_the_way}. Give them with --suppressions FILE."
            ));
        }
    }

    /// A sentence for each file with suppressions that met no leak. An executable's own are meant for many runs.
    fn unused(&self) -> Vec<String> {
        let mut start = 0;
        let mut sentences = Vec::new();
        for source in &self.sources {
            let range = start..source.end;
            start = source.end;
            let unused: Vec<String> = range
                .filter(|index| !self.taken.iter().any(|one| one.by == *index))
                .map(|index| &self.suppressions[index])
                .map(|one| format!("leak:{} (line {})", one.pattern, one.line))
                .collect();
            if !source.is_embedded && !unused.is_empty() {
                let what = unused.join(", ");
                sentences.push(format!("{} suppresses nothing in this run with {what}.", source.path));
            }
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn file(text: &str) -> (tempfile::TempDir, Suppressions) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known.txt");
        std::fs::write(&path, text).unwrap();
        (folder, Suppressions { files: vec![path], embedded: true })
    }

    #[test]
    fn a_file_takes_leaks_and_tells_what_it_did_not_meet() {
        let (_folder, asked) = file("# known\nleak:load_field\nleak:nobody\nleak:libx\n");
        let (mut profile, mut warnings) = (sample::leaky_c(), Vec::new());
        let applied = Applied::to(&mut profile, &asked, &mut warnings).unwrap();
        assert_eq!((applied.taken.len(), applied.taken[0].by), (1, 0));
        assert_eq!(applied.taken[0].site.totals.leaked_bytes, 112);
        assert!(applied.source(2).unwrap().path.ends_with("known.txt"));
        assert_eq!(warnings.len(), 1);
        let ending =
            "known.txt suppresses nothing in this run with leak:nobody (line 3), leak:libx (line 4).";
        assert!(warnings[0].ends_with(ending), "{}", warnings[0]);
        assert_eq!(profile.totals().leaked_blocks, 37_457);
    }

    #[test]
    fn a_file_that_is_none_is_a_sentence() {
        let (_folder, asked) = file("leak:a\nrace:b\n");
        let failure = Applied::to(&mut sample::leaky_c(), &asked, &mut Vec::new()).unwrap_err();
        let ending = "known.txt: line 2 suppresses what another sanitizer finds; only lines of `leak:PATTERN` \
                      suppress leaks.";
        assert!(failure.sentence().ends_with(ending), "{}", failure.sentence());
        let asked = Suppressions { files: vec!["/does/not/exist".into()], embedded: false };
        let failure = Applied::to(&mut sample::leaky_c(), &asked, &mut Vec::new()).unwrap_err();
        assert!(failure.sentence().starts_with("cannot read /does/not/exist: "), "{}", failure.sentence());
    }
}
