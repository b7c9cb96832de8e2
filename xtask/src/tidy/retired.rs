//! Retired words: terms that the project replaced by the field's own, and that must not come back in names.
//!
//! An identifier or a file's name is split into words (`lastLook`, `last_look`, `LAST_LOOKS`: last, look). No word, nor
//! sequence of words, may be retired; a final `s` makes no difference. A word that is written like a type (`Look`) is retired
//! in names of types only: as a verb or a plain word it is allowed. Comments and strings are not checked, nor programs
//! that are profiled in tests.

use super::tokens::{line, word};
use super::{Finding, TextFile, Tree};
use std::collections::BTreeMap;

/// Each retired word with its replacement.
const RETIRED: &[(&str, &str)] = &[
    ("admit", "register"),
    ("aide", "helper thread"),
    ("Alarm", "timer"),
    ("Anybody", "any"),
    ("Arrival", "registration"),
    ("booking", "attribution"),
    ("bp_use", "fp use"),
    ("brief", "short-lived"),
    ("bury", "finalize"),
    ("Course", "trend, phases"),
    ("Crew", "worker set"),
    ("Cut", "truncated"),
    ("deaf", "ignored"),
    ("Debt", "ack state"),
    ("defeated", "unhookable"),
    ("Desk", "plan server"),
    ("Door", "socket, restriction"),
    ("events_view", "event options"),
    ("figure", "metric"),
    ("Fold", "aggregator"),
    ("folded_process", "process summary"),
    ("folded_site", "site summary"),
    ("folded_thread", "thread summary"),
    ("folded_totals", "totals"),
    ("Fresh", "new frame"),
    ("give_back", "release"),
    ("handed_on", "preserved"),
    ("Hello", "handshake"),
    ("introduce", "register"),
    ("judgement", "conclusion, verdict"),
    ("keep_unchanged", "revalidate"),
    ("Known", "availability"),
    ("lane", "channel"),
    ("let_go", "detach"),
    ("Liar", "forged process"),
    ("meet_early", "resolve pending"),
    ("Misfits", "mismatched edges"),
    ("order_trim", "request trim"),
    ("Outside", "external"),
    ("overlapped", "displaced"),
    ("Patience", "timeout"),
    ("patience_us", "reorder window"),
    ("Pause", "poll backoff"),
    ("plane", "series, metric"),
    ("posthumous", "after exit"),
    ("Questions", "live queries"),
    ("realloc_moved", "realloc done"),
    ("Shown", "frame visibility"),
    ("Shows", "event report"),
    ("Sight", "detection limit"),
    ("Silence", "collector timeout"),
    ("sites_view", "site options"),
    ("stacks_cut", "stacks truncated"),
    ("Standing", "position, thread state"),
    ("station", "worker thread"),
    ("Stillness", "settling"),
    ("succeed", "replace image"),
    ("surroundings", "unwind context, environment"),
    ("take_back", "release"),
    ("tally", "stats"),
    ("tells_lifetimes", "has lifetimes"),
    ("Theirs", "program handler"),
    ("Told", "missing data, reported"),
    ("unmet", "missing"),
    ("untold", "unknown"),
    ("wiped", "cleared by fork"),
    ("workplace", "work directory"),
];

/// Folders that are checked.
const FOLDERS: &[&str] = &["crates", "e2e", "fuzz", "markers", "recorder", "xtask"];

/// Returns one finding for each retired word in a name.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    files(tree).flat_map(|file| found(file, RETIRED)).collect()
}

fn files(tree: &Tree) -> impl Iterator<Item = &TextFile> {
    tree.rust().filter(|file| FOLDERS.iter().any(|folder| file.path.starts_with(folder)))
}

type Rows = [(&'static str, &'static str)];

fn found(file: &TextFile, rows: &Rows) -> Vec<Finding> {
    let path = file.path.with_extension("");
    // Each name once, with the line of its first use.
    let mut names: BTreeMap<String, usize> =
        path.iter().filter_map(|part| Some((part.to_str()?.to_owned(), 0))).collect();
    for token in file.runs().iter().flatten() {
        if let Some(name) = word(Some(token)) {
            names.entry(name).or_insert_with(|| line(token));
        }
    }
    let rows: Vec<_> = rows.iter().map(|(retired, instead)| (*retired, *instead, parts(retired))).collect();
    let mut findings = Vec::new();
    for (name, line) in names {
        let parts = parts(&name);
        for (retired, instead, wanted) in &rows {
            if (is_of_type(&name) || !is_of_type(retired)) && has(&parts, wanted) {
                let sentence = format!("`{name}`: `{retired}` is retired; say {instead}.");
                findings.push(file.finding(line, sentence));
            }
        }
    }
    findings
}

fn is_of_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase) && !name.contains('_')
}

fn has(parts: &[String], wanted: &[String]) -> bool {
    let same = |(part, wanted): (&String, &String)| {
        part == wanted || part.strip_suffix('s') == Some(wanted) || wanted.strip_suffix('s') == Some(part)
    };
    parts.windows(wanted.len()).any(|window| window.iter().zip(wanted).all(same))
}

/// Returns a name's words in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !spaced.ends_with(char::is_uppercase) {
            spaced.push('_');
        }
        spaced.push(c);
    }
    let parts = spaced.split(['_', '-']).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &Rows = &[("Look", "snapshot"), ("lane", "slot"), ("let_go", "detach")];

    fn words(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(path, text)]);
        tree.rust().flat_map(|file| found(file, ROWS)).map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn names_of_the_field_pass() {
        let text = "//! Of lanes.\n/// Let go.\nfn look_ahead(planes: Lookup, airlane: u8) { \"lane\"; let letgo = go; }\n";
        assert_eq!(words("crates/a/src/slot.rs", text), [""; 0]);
    }

    #[test]
    fn a_retired_word_is_found_in_every_spelling() {
        for (name, retired) in [
            ("LANE_COUNT", "lane"),
            ("lanes", "lane"),
            ("LaneReader", "lane"),
            ("lastLane", "lane"),
            ("may_let_go", "let_go"),
            ("LetGo", "let_go"),
            ("LastLooks", "Look"),
        ] {
            let found = words("crates/a/src/b.rs", &format!("//! A.\nconst {name}: u8 = 1;\n"));
            assert_eq!(found.len(), 1, "{name}");
            assert!(
                found[0].starts_with(&format!("crates/a/src/b.rs:2: `{name}`: `{retired}` is retired; say "))
            );
        }
    }

    #[test]
    fn a_file_has_no_retired_name() {
        let found = words("crates/a/src/lanes/mod.rs", "");
        assert_eq!(found, ["crates/a/src/lanes/mod.rs: `lanes`: `lane` is retired; say slot."]);
    }
}
