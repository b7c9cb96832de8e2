//! What one types after `cargo xtask bench`.

use std::path::{Path, PathBuf};

const ROUNDS: u32 = 5;

/// What to measure, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Beginnings of the names of programs; empty means all.
    pub(super) only: Vec<String>,
    /// Timed rounds per program.
    pub(super) rounds: u32,
    /// Small inputs, to see that everything works; the metrics mean nothing.
    pub(super) quick: bool,
    /// The binary to measure instead of this checkout's.
    pub(super) mallow: Option<PathBuf>,
    /// Where the dated record goes.
    pub(super) output: Option<PathBuf>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { only: Vec::new(), rounds: ROUNDS, quick: false, mallow: None, output: None }
    }
}

impl Plan {
    /// Reads the words after `bench`.
    pub(crate) fn parse(words: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut rounds = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().copied().ok_or_else(|| format!("`{word}` needs a value after it."));
            match *word {
                "--only" => plan.only.push(value()?.to_owned()),
                "--rounds" => rounds = Some(parse_rounds(value()?)?),
                "--quick" => plan.quick = true,
                "--mallow" => plan.mallow = Some(value()?.into()),
                "--output" => plan.output = Some(value()?.into()),
                _ => return Err(format!("`bench` does not understand `{word}`.")),
            }
        }
        plan.rounds = rounds.unwrap_or(if plan.quick { 1 } else { ROUNDS });
        Ok(plan)
    }

    /// Returns whether a program of this name is to be measured.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|start| name.starts_with(start.as_str()))
    }

    /// Returns whether nothing but the comparison of this name, or programs of it (`cpu/sqlite3`), is to be measured.
    pub(super) fn is_only(&self, name: &str) -> bool {
        !self.only.is_empty() && self.only.iter().all(|only| only.split('/').next() == Some(name))
    }

    /// Returns whether this program of a comparison is to be measured.
    pub(super) fn wants_in(&self, comparison: &str, program: &str) -> bool {
        self.only.iter().any(|only| match only.split_once('/') {
            Some((name, start)) => name == comparison && program.starts_with(start),
            None => only == comparison,
        })
    }

    /// Where to write the result down. A part of the table, or one of small inputs, is no record unless somebody
    /// asks for it by naming a folder.
    pub(super) fn folder(&self, root: &Path) -> Option<PathBuf> {
        let is_complete = self.only.is_empty() && !self.quick;
        self.output.clone().or_else(|| is_complete.then(|| root.join("bench/record")))
    }
}

fn parse_rounds(word: &str) -> Result<u32, String> {
    match word.parse() {
        Ok(rounds) if rounds > 0 => Ok(rounds),
        _ => Err(format!("`--rounds {word}`: a whole number from 1 is needed.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_and_recorded_unless_told_otherwise() {
        let plan = Plan::parse(&[]).unwrap();
        assert_eq!(plan, Plan::default());
        assert!(plan.wants("ruby"));
        assert_eq!(plan.folder(Path::new("here")), Some(PathBuf::from("here/bench/record")));
    }

    #[test]
    fn options_are_read() {
        let words = ["--only", "storm", "--only", "ruby", "--quick", "--mallow", "m", "--output", "o"];
        let plan = Plan::parse(&words).unwrap();
        assert_eq!((plan.rounds, plan.quick), (1, true));
        assert!(plan.wants("storm-10x1") && plan.wants("ruby") && !plan.wants("cc1plus"));
        assert_eq!(
            (plan.mallow.as_deref(), plan.output.as_deref()),
            (Some(Path::new("m")), Some(Path::new("o")))
        );
        assert_eq!(Plan::parse(&["--quick", "--rounds", "3"]).unwrap().rounds, 3);
        let only = |words: &[&str]| Plan::parse(words).unwrap().is_only("ruby");
        assert!(only(&["--only", "ruby"]) && !only(&[]) && !only(&["--only", "ruby", "--only", "python3"]));
    }

    #[test]
    fn a_part_of_the_table_is_not_recorded() {
        for words in [&["--quick"][..], &["--only", "ruby"]] {
            assert_eq!(Plan::parse(words).unwrap().folder(Path::new("here")), None);
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let fault = |words: &[&str]| Plan::parse(words).unwrap_err();
        assert_eq!(fault(&["--fast"]), "`bench` does not understand `--fast`.");
        assert_eq!(fault(&["--rounds", "0"]), "`--rounds 0`: a whole number from 1 is needed.");
        assert_eq!(fault(&["--only"]), "`--only` needs a value after it.");
    }
}
