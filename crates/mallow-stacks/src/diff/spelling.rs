//! One function under two spellings.
//!
//! Debug information calls an inlined function `allocate_cow` and the same one, where it is called, `parse::Allocations::allocate_cow`; a type
//! gets a parameter, and `Parser::next` is `Parser<F>::next` from then on. Such names are one function when each of
//! them stands on one side only, and no other name of that side could be meant.

use super::node::NameId;
use super::state::{Rounds, SharedNames};
use mallow_base::last_word;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Names of one last part that are compared; `new` may be the last part of hundreds.
const NAMES_MAX: usize = 64;

/// A name without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plain<'a> {
    id: NameId,
    text: &'a str,
    /// Whether it had some.
    had_parameters: bool,
}

/// Names of both sides with the same end.
type Alike<'a> = FxHashMap<&'a str, [Vec<Plain<'a>>; 2]>;

/// Functions with two spellings, as pairs of a name before and a name after.
pub(super) fn find(rounds: &Rounds<'_>, known: &SharedNames) -> Vec<(NameId, NameId)> {
    let plain: Vec<(Cow<'_, str>, bool)> =
        rounds.sides.names.iter().map(|name| without_parameters(name)).collect();
    let mut alike: Alike<'_> = FxHashMap::default();
    for (side, names) in rounds.names_of_sides().into_iter().enumerate() {
        for name in names.into_iter().filter(|name| !known.has(*name)) {
            let (text, had_parameters) = &plain[name as usize];
            if !text.starts_with("0x") {
                let plain = Plain { id: name, text, had_parameters: *had_parameters };
                alike.entry(last_word(text)).or_default()[side].push(plain);
            }
        }
    }
    let mut pairs: Vec<(NameId, NameId)> =
        alike.values().flat_map(|[before, after]| pair(before, after)).collect();
    pairs.sort_unstable();
    pairs
}

/// The pairs in which neither name could be another one's spelling.
fn pair(before: &[Plain<'_>], after: &[Plain<'_>]) -> Vec<(NameId, NameId)> {
    if before.len().max(after.len()) > NAMES_MAX {
        return Vec::new();
    }
    let one = |name: &Plain<'_>| {
        let other = only(*name, after)?;
        (only(other, before)? == *name && is_spelling(*name, other)).then_some((name.id, other.id))
    };
    before.iter().filter_map(one).collect()
}

/// The name that can be meant, if there is one and no other.
fn only<'a>(name: Plain<'_>, others: &[Plain<'a>]) -> Option<Plain<'a>> {
    let mut found = others.iter().filter(|other| is_end(name, **other));
    let first = found.next().copied();
    if found.next().is_none() { first } else { None }
}

/// Returns whether two names that may be meant by each other are one: where both have parameters and differ, they are of two types.
fn is_spelling(a: Plain<'_>, b: Plain<'_>) -> bool {
    is_end(a, b) && !(a.had_parameters && b.had_parameters)
}

/// Returns whether two names are the same but for parameters, or one of them is the end of the other.
fn is_end(a: Plain<'_>, b: Plain<'_>) -> bool {
    let (short, long) = if a.text.len() < b.text.len() { (a, b) } else { (b, a) };
    long.text.strip_suffix(short.text).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

/// Returns a name without the contents of angle brackets; of `<T as Trait>::f` the `T` is kept. Operators and arrows
/// are no brackets: such a name is unchanged. Also returns whether anything was removed.
fn without_parameters(name: &str) -> (Cow<'_, str>, bool) {
    let is_bracketed = name.contains('<') && !name.contains("operator") && !name.contains("->");
    let opened = name.matches('<').count();
    if !is_bracketed || opened != name.matches('>').count() {
        return (Cow::Borrowed(name), false);
    }
    let (mut plain, mut depth, mut is_type) = (String::with_capacity(name.len()), 0_usize, false);
    let mut had_parameters = false;
    for (at, letter) in name.char_indices() {
        match letter {
            '<' if at == 0 => is_type = true,
            '<' => (depth, had_parameters) = (depth + 1, true),
            '>' if depth > 0 => depth -= 1,
            '>' => is_type = false,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
        // What is left of the first bracket is ` as Trait`.
        if is_type && depth == 0 && name[at..].starts_with(" as ") {
            plain.pop();
            depth = 1;
            is_type = false;
        }
    }
    (Cow::Owned(plain.replace("::::", "::")), had_parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_no_part_of_a_plain_name() {
        for (name, plain, had_parameters) in [
            ("parse::Parser<F>::next", "parse::Parser::next", true),
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push", true),
            ("<parse::Parser<F> as core::iter::Iterator>::next", "parse::Parser::next", true),
            ("<parse::Parser as core::iter::Iterator>::next", "parse::Parser::next", false),
            ("operator<<", "operator<<", false),
            ("std::operator< <char>", "std::operator< <char>", false),
            ("f(int (*)(A<B>)->C)", "f(int (*)(A<B>)->C)", false),
            ("plain", "plain", false),
            ("a<b", "a<b", false),
        ] {
            assert_eq!(without_parameters(name), (plain.into(), had_parameters), "{name}");
        }
    }

    fn plain(id: NameId, text: &str) -> Plain<'_> {
        Plain { id, text, had_parameters: false }
    }

    #[test]
    fn a_spelling_is_the_same_name_or_its_end() {
        let of = |a, b| is_spelling(plain(0, a), plain(1, b));
        assert!(of("allocate_cow", "parse::Allocations::allocate_cow"));
        assert!(of("parse::f", "parse::f"));
        assert!(!of("cow", "parse::allocate_cow"));
        assert!(!of("parse::f", "read::f"));
        let [words, rows] = [0, 1].map(|id| Plain { had_parameters: true, ..plain(id, "Vec::push") });
        assert!(!is_spelling(words, rows), "of two types");
    }

    #[test]
    fn a_name_with_two_candidates_has_none() {
        let after = [plain(7, "tree::Tree::push"), plain(8, "links::Stack::push")];
        assert_eq!(pair(&[plain(1, "push")], &after), []);
        assert_eq!(pair(&[plain(1, "Tree::push")], &after), [(1, 7)]);
        assert_eq!(pair(&[plain(1, "Tree::push"), plain(2, "push")], &after), []);
        assert_eq!(pair(&[plain(1, "push")], &after[..1]), [(1, 7)]);
        let of_another_type = |name| Plain { had_parameters: true, ..name };
        let before = [plain(1, "push"), of_another_type(plain(2, "push"))];
        assert_eq!(pair(&before, &[of_another_type(plain(7, "push"))]), [], "the second may be meant");
    }
}
