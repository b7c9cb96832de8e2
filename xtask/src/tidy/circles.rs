//! No circles between the files of a crate: what is read first never needs what is read later.
//!
//! A file uses another where it names an item of it (`modules.rs` says how that is found out). One kind of use makes no
//! circle: a child may name a type, a trait or a constant of a module that it stands in, however far up, because a parent
//! says what it is about and its children do the work. A parent's function or static in its child is a use like any other, and
//! so is everything between siblings, cousins, and from a parent down. Files that reach each other by such uses are a
//! circle. Programs that are profiled in tests are left as they are.

use super::modules::{Crate, Place, Use};
use super::packages::Member;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// One finding for each group of files that reach each other, with its shortest circle.
pub(super) fn check(tree: &Tree, members: &[Member]) -> Vec<Finding> {
    let is_held = |member: &&Member| !member.manifest.starts_with("programs");
    let held = members.iter().filter(is_held);
    held.filter_map(|member| Crate::read(tree, &member.manifest)).flat_map(|it| of_crate(&it)).collect()
}

fn of_crate(read: &Crate) -> Vec<Finding> {
    let uses: Vec<&Use> = read.uses.iter().filter(|one| counts(one)).collect();
    let mut told: BTreeSet<&Place> = BTreeSet::new();
    let mut findings = Vec::new();
    for (place, path) in &read.files {
        let from_here = reached(&uses, place);
        if told.contains(place) || !from_here.contains_key(place) {
            continue;
        }
        let group = from_here.keys().filter(|other| reached(&uses, other).contains_key(place)).copied();
        told.extend(group);
        let steps: Vec<String> = circle(&from_here, place).into_iter().map(step).collect();
        findings.push(Finding {
            path: path.clone(),
            line: 0,
            sentence: format!("a circle: {}.", steps.join(", ")),
        });
    }
    findings
}

/// All but a declaration of a module that the user stands in.
fn counts(one: &Use) -> bool {
    !(one.is_declaration && one.user.starts_with(&one.used))
}

/// What can be reached from `start`, each with the use by which it is reached first.
fn reached<'a>(uses: &[&'a Use], start: &'a Place) -> BTreeMap<&'a Place, &'a Use> {
    let mut by: BTreeMap<&Place, &Use> = BTreeMap::new();
    let mut next = vec![start];
    while !next.is_empty() {
        let mut found = Vec::new();
        for one in uses.iter().filter(|one| next.contains(&&one.user)) {
            by.entry(&one.used).or_insert_with(|| {
                found.push(&one.used);
                one
            });
        }
        next = found;
    }
    by
}

/// The uses that lead from `start` back to it.
fn circle<'a>(by: &BTreeMap<&Place, &'a Use>, start: &Place) -> Vec<&'a Use> {
    let mut steps = vec![by[start]];
    while steps[steps.len() - 1].user != *start {
        steps.push(by[&steps[steps.len() - 1].user]);
    }
    steps.reverse();
    steps
}

fn step(one: &Use) -> String {
    let name = |place: &Place| if place.is_empty() { "the root".to_owned() } else { place.join("::") };
    format!("{} uses `{}` of {} (line {})", name(&one.user), one.name, name(&one.used), one.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// What is found in a crate of these files of `src`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|(name, _)| format!("crates/a/src/{name}.rs")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().zip(files).map(|(path, (_, text))| (path.as_str(), *text)).collect();
        let read = Crate::read(&Tree::of(&files), Path::new("crates/a/Cargo.toml")).unwrap();
        of_crate(&read).iter().map(ToString::to_string).collect()
    }

    const ROOT: (&str, &str) = ("lib", "mod a;\nmod b;\nmod c;\n");

    #[test]
    fn files_that_need_each_other_in_one_direction_pass() {
        let a = "use crate::b::{self, f};\nfn g() { b::h(); }\n";
        let b = "use crate::c;\npub fn f() { c::x::<crate::c::T>() }\npub fn h() { h() }\n";
        assert_eq!(found(&[ROOT, ("a", a), ("b", b), ("c", "pub fn x<T>() {} pub struct T;\n")]), [""; 0]);
    }

    #[test]
    fn two_files_that_use_each_other_are_found() {
        for (a, b) in [
            ("use crate::b::f;\npub fn g() {}\n", "use crate::a::g;\npub fn f() {}\n"),
            ("use super::b;\npub fn g() { b::f() }\n", "pub fn f() { super::a::g() }\n"),
            (
                "\npub fn g() { print!(\"{}\", crate::b::f()) }\n",
                "use crate::{a::{self, g}};\npub fn f() {}\n",
            ),
            ("use crate::b::*;\npub fn g() { f() }\n", "\npub fn f() { use crate::a::g as h; }\n"),
            ("pub struct T(crate::b::f);\npub struct g;\n", "pub struct f(crate::a::g);\n"),
        ] {
            let circles = found(&[ROOT, ("a", a), ("b", b), ("c", "")]);
            assert_eq!(circles.len(), 1, "{a}{b}{circles:?}");
            let start = "crates/a/src/a.rs: a circle: a uses `f` of b (line ";
            assert!(
                circles[0].starts_with(start) && circles[0].contains("), b uses `g` of a (line "),
                "{circles:?}"
            );
        }
    }

    #[test]
    fn a_circle_of_three_goes_through_what_is_exported_again() {
        let root = "mod a;\nmod b;\nmod c;\npub use a::f;\npub use b::*;\n";
        let files = [
            ("lib", root),
            ("a", "use crate::g;\npub fn f() {}\n"),
            ("b", "use crate::c::h;\npub fn g() {}\n"),
            ("c", "pub fn h() { crate::f() }\n"),
        ];
        let circle = "crates/a/src/a.rs: a circle: a uses `g` of b (line 1), b uses `h` of c (line 1), \
                      c uses `f` of a (line 1).";
        assert_eq!(found(&files), [circle]);
    }

    #[test]
    fn a_child_may_name_what_its_parents_declare_and_call_nothing_of_them() {
        let root = ("lib", "mod a;\npub struct R;\n");
        let a = "mod b;\npub struct T;\npub const C: u8 = 1;\npub fn f() { b::g() }\nfn h() {}\n";
        let declared = "use super::T;\npub fn g() { let x: crate::R = super::C; T::new() }\n";
        assert_eq!(found(&[root, ("a", a), ("a/b", declared)]), [""; 0]);
        for called in ["use super::h;\npub fn g() {}\n", "pub fn g() { crate::a::h() }\n"] {
            assert_eq!(found(&[root, ("a", a), ("a/b", called)]).len(), 1, "{called}");
        }
    }

    #[test]
    fn tests_and_other_crates_make_no_circle() {
        let a = "use crate::b::f;\npub fn g() {}\nuse std::b;\n";
        let b =
            "pub fn f() { a::g(); other::crate_::a::g() }\n#[cfg(test)]\nmod tests { use crate::a::g; }\n";
        assert_eq!(found(&[ROOT, ("a", a), ("b", b), ("c", "")]), [""; 0]);
    }
}
