//! What suppressions took from the leaks, as a reader counts it: in rows of sites that look the same.

use crate::{Filter, FrameVisibility, Sites};
use mallow_profile::{Profile, SuppressedSite, Suppression, known_leaks, suppress_leaks};

/// What stands for a file of those that are built in.
const BUILT_IN: &str = "built in";

/// All suppressions, and what they took from the leaks of a profile.
#[derive(Debug, Default)]
pub struct AppliedSuppressions {
    /// Their sources.
    pub sources: Vec<SuppressionSource>,
    /// Those of all sources, in their order; [`SuppressedSite::by`] is an index into it.
    pub suppressions: Vec<Suppression>,
    /// The sites that they took.
    pub taken: Vec<SuppressedSite>,
}

/// A source of suppressions.
#[derive(Debug)]
pub struct SuppressionSource {
    /// Its path.
    pub path: String,
    /// Whether `path` is an executable that carries them.
    pub is_embedded: bool,
    /// Whether they are mallow's own.
    pub is_built_in: bool,
    /// The end of this source's suppressions among all.
    end: usize,
}

impl AppliedSuppressions {
    /// Adds the suppressions of a source.
    pub fn add(&mut self, path: String, is_embedded: bool, found: Vec<Suppression>) {
        self.suppressions.extend(found);
        let end = self.suppressions.len();
        self.sources.push(SuppressionSource { path, is_embedded, is_built_in: false, end });
    }

    /// Adds those that are built in.
    pub fn add_known(&mut self) {
        self.suppressions.extend(known_leaks());
        let (path, end) = (String::from(BUILT_IN), self.suppressions.len());
        self.sources.push(SuppressionSource { path, is_embedded: false, is_built_in: true, end });
    }

    /// Removes the suppressed leaks from a profile. A file's suppressions that match nothing are warnings.
    pub fn take(&mut self, profile: &mut Profile, warnings: &mut Vec<String>) {
        self.taken = suppress_leaks(profile, &self.suppressions);
        warnings.extend(self.unused());
    }

    /// Returns the source of a suppression.
    pub fn source(&self, index: usize) -> Option<&SuppressionSource> {
        self.sources.iter().find(|source| index < source.end)
    }

    /// Returns a sentence for each file with suppressions that matched no leak. An executable's own, and those that are built in, are meant for
    /// many runs.
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
            if !source.is_embedded && !source.is_built_in && !unused.is_empty() {
                let what = unused.join(", ");
                sentences.push(format!("{} suppresses nothing in this run with {what}.", source.path));
            }
        }
        sentences
    }
}

/// All that was suppressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuppressedLeaks {
    /// Sites, counted as rows of a report.
    pub sites: usize,
    /// Their leaked bytes.
    pub bytes: u64,
    /// Their leaked blocks.
    pub blocks: u64,
    /// One entry for each suppression, in their order.
    pub by: Vec<SuppressedBy>,
}

/// What one suppression removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuppressedBy {
    /// Sites, counted as rows of a report.
    pub sites: usize,
    /// Their leaked bytes.
    pub bytes: u64,
    /// Their leaked blocks.
    pub blocks: u64,
}

impl SuppressedLeaks {
    /// Counts the suppressed sites that a filter wants. `suppressions` is how many there were.
    pub fn of(
        profile: &Profile,
        taken: &[SuppressedSite],
        suppressions: usize,
        shown: FrameVisibility,
        filter: &Filter,
    ) -> Self {
        if taken.is_empty() {
            return Self { by: vec![SuppressedBy::default(); suppressions], ..Self::default() };
        }
        let sites = taken.iter().map(|one| (one.by, &one.site));
        let by: Vec<SuppressedBy> = Sites::of_groups(&profile.stacks, shown, filter, suppressions, sites)
            .iter()
            .map(|sites| {
                let totals = sites.totals();
                SuppressedBy {
                    sites: sites.rows.len(),
                    bytes: totals.leaked_bytes,
                    blocks: totals.leaked_blocks,
                }
            })
            .collect();
        let sum = |metric: fn(&SuppressedBy) -> u64| by.iter().map(metric).fold(0, u64::saturating_add);
        let (bytes, blocks) = (sum(|by| by.bytes), sum(|by| by.blocks));
        Self { sites: by.iter().map(|by| by.sites).sum(), bytes, blocks, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{frame, profile, site};
    use mallow_profile::SiteTotals;

    #[test]
    fn sites_that_look_the_same_are_one() {
        let mut profile = profile();
        let leaked =
            SiteTotals { leaked_bytes: 8, leaked_blocks: 1, allocations: 2, ..SiteTotals::default() };
        let stack =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| vec![frame(name, "/bin/app")]).collect() };
        site(&mut profile, 0, &stack(&["malloc", "cache", "main"]), leaked);
        site(&mut profile, 0, &stack(&["cache", "main"]), leaked);
        site(&mut profile, 0, &stack(&["pool", "main"]), leaked);
        site(&mut profile, 0, &stack(&["main"]), leaked);
        let suppressions = Suppression::parse("leak:cache\nleak:unused\nleak:pool").unwrap();
        let taken = suppress_leaks(&mut profile, &suppressions);
        let count =
            |shown, filter: &Filter| SuppressedLeaks::of(&profile, &taken, suppressions.len(), shown, filter);
        let all = count(FrameVisibility::WithoutPlumbing, &Filter::default());
        let by = |sites, bytes, blocks| SuppressedBy { sites, bytes, blocks };
        let expected = SuppressedLeaks {
            sites: 2,
            bytes: 24,
            blocks: 3,
            by: vec![by(1, 16, 2), by(0, 0, 0), by(1, 8, 1)],
        };
        assert_eq!(all, expected);
        assert_eq!(count(FrameVisibility::All, &Filter::default()).sites, 3);
        let filter = Filter { function: Some("pool".into()), ..Filter::default() };
        assert_eq!(count(FrameVisibility::All, &filter).bytes, 8);
        let nothing = SuppressedLeaks::of(&profile, &[], 1, FrameVisibility::All, &Filter::default());
        assert_eq!((nothing.sites, nothing.by), (0, vec![by(0, 0, 0)]));
    }
}
