//! What was missing when the addresses of a module were looked up, and the sentences that say so.

use mallow_base::{Frame, printable};
use std::cmp::Reverse;

/// What was missing or damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The file has the names of exported functions alone.
    Stripped,
    /// It has no name at all.
    Symbolless,
    /// Anything else, as a sentence with a cure.
    Other(String),
}

/// What was missing of one module.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) module: String,
    pub(crate) problem: Problem,
    /// How many of the first addresses that were asked for have no name.
    pub(crate) nameless: usize,
}

/// Returns whether one of these frames has an address for a name.
pub(crate) fn is_nameless(frames: &[Frame]) -> bool {
    frames.iter().any(|frame| frame.function.starts_with("0x"))
}

/// So many files of one kind have a sentence each. A program with a window has dozens, and more sentences than rows in its summary.
const ALONE_MAX: usize = 2;
/// So many are named in the sentence of all, those with the most addresses first.
const NAMED_MAX: usize = 3;

/// The sentences: those of single files in the order in which they were met, the others behind them.
pub(crate) fn sentences(missing: &[Missing]) -> Vec<String> {
    let count = |problem: &Problem| missing.iter().filter(|it| it.problem == *problem).count();
    let is_alone = |it: &&Missing| matches!(it.problem, Problem::Other(_)) || count(&it.problem) <= ALONE_MAX;
    let alone = missing.iter().filter(is_alone).map(|it| of_one(&it.module, &it.problem));
    let kinds = [Problem::Stripped, Problem::Symbolless];
    let many = kinds.iter().filter(|kind| count(kind) > ALONE_MAX).map(|kind| of_many(missing, kind));
    alone.chain(many).collect()
}

fn of_one(path: &str, problem: &Problem) -> String {
    let path = printable(path);
    const CURE: &str =
        "Install its debug package (-dbgsym, -dbg or -debuginfo), or build it with -g and without -s.";
    match problem {
        Problem::Stripped => format!("{path} is stripped: only its exported functions have names. {CURE}"),
        Problem::Symbolless => {
            format!("{path} has no symbols at all, so its frames are addresses. {CURE}")
        }
        Problem::Other(sentence) => sentence.clone(),
    }
}

fn of_many(missing: &[Missing], kind: &Problem) -> String {
    let mut files: Vec<&Missing> = missing.iter().filter(|it| it.problem == *kind).collect();
    files.sort_by_key(|it| Reverse(it.nameless));
    let name = |it: &&Missing| printable(it.module.rsplit('/').next().unwrap_or(&it.module));
    let names: Vec<String> = files.iter().take(NAMED_MAX).map(name).collect();
    let more = match files.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = match kind {
        Problem::Stripped => "are stripped: only their exported functions have names",
        _ => "have no symbols at all, so their frames are addresses",
    };
    format!(
        "{} files {what}: {}{more}. Install their debug packages (-dbgsym, -dbg or -debuginfo), or build them with -g and without -s.",
        files.len(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(module: &str, problem: Problem, nameless: usize) -> Missing {
        Missing { module: module.to_owned(), problem, nameless }
    }

    #[test]
    fn many_files_of_a_kind_share_a_sentence_and_those_with_most_addresses_are_named() {
        let mut all: Vec<Missing> =
            (0..5).map(|n| missing(&format!("/lib/{n}.so"), Problem::Stripped, 10 * n)).collect();
        all.push(missing("/bin/a", Problem::Symbolless, 1));
        all.push(missing("/bin/b", Problem::Other("b is gone.".to_owned()), 1));
        let said = sentences(&all);
        assert_eq!(
            said,
            [
                "/bin/a has no symbols at all, so its frames are addresses. Install its debug package (-dbgsym, -dbg or \
                 -debuginfo), or build it with -g and without -s.",
                "b is gone.",
                "5 files are stripped: only their exported functions have names: 4.so, 3.so, 2.so and 2 more. Install their \
                 debug packages (-dbgsym, -dbg or -debuginfo), or build them with -g and without -s.",
            ]
        );
    }

    #[test]
    fn two_files_have_a_sentence_each_and_three_are_all_named() {
        let all = [1, 2, 3].map(|n| missing(&format!("/lib/{n}.so"), Problem::Symbolless, 0));
        assert_eq!(sentences(&all[..2]).len(), 2);
        assert_eq!(
            sentences(&all),
            [
                "3 files have no symbols at all, so their frames are addresses: 1.so, 2.so, 3.so. Install their debug packages \
              (-dbgsym, -dbg or -debuginfo), or build them with -g and without -s."
            ]
        );
        assert!(sentences(&[]).is_empty());
    }
}
