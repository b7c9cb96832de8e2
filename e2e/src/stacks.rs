//! Finds the stacks of a report that a stated site speaks of.

use crate::program::{string, strings};
use serde_json::Value;
use std::path::Path;

/// The rows of `report["sites"]` that belong to the stated site: its function owns them, `frames` follow each other
/// somewhere in them, and they pass through `passes_through`.
///
/// `own` is the folder of the program's own files.
#[must_use]
pub fn of_site<'a>(report: &'a Value, site: &Value, own: &Path) -> Vec<&'a Value> {
    let function = string(&site["function"]);
    let frames = strings(&site["frames"]);
    let passes_through = strings(&site["passes_through"]);
    let rows = report["sites"].as_array().into_iter().flatten();
    rows.filter(|row| {
        owner(row, own).is_some_and(|owner| owner == function) && {
            let names = names(row);
            follow_each_other(&names, &frames) && in_order(&names, &passes_through)
        }
    })
    .collect()
}

/// The innermost frame that lies in the program's own files and is not one of the C++ library's: a static executable has those too.
#[must_use]
pub fn owner(row: &Value, own: &Path) -> Option<String> {
    let frames = row["frames"].as_array()?;
    frames
        .iter()
        .filter(|frame| frame["module"].as_str().is_some_and(|module| Path::new(module).starts_with(own)))
        .map(|frame| plain_name(frame["function"].as_str().unwrap_or_default()))
        .find(|name| !OF_THE_CXX_LIBRARY.iter().any(|start| name.starts_with(start)))
}

const OF_THE_CXX_LIBRARY: [&str; 4] = ["std::", "__gnu_cxx::", "operator new", "__cxa_"];

/// Names of a row's frames without parameters, leaf first.
#[must_use]
pub fn names(row: &Value) -> Vec<String> {
    let frames = row["frames"].as_array().into_iter().flatten();
    frames.map(|frame| plain_name(frame["function"].as_str().unwrap_or_default())).collect()
}

/// A C++ function's name without parameters, return type and qualifiers: `void std::f<int>(int) const` is
/// `std::f<int>`.
#[must_use]
pub fn plain_name(name: &str) -> String {
    let (mut depth, mut start, mut end) = (0_usize, 0, name.len());
    for (at, c) in name.char_indices() {
        match c {
            '(' if depth == 0 && at > start && !name[at..].starts_with("(anonymous namespace)") => {
                end = at;
                break;
            }
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && !name[start..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
    }
    name[start..end].to_owned()
}

fn follow_each_other(names: &[String], frames: &[String]) -> bool {
    frames.is_empty() || names.windows(frames.len()).any(|window| window == frames)
}

fn in_order(names: &[String], wanted: &[String]) -> bool {
    let mut names = names.iter();
    wanted.iter().all(|wanted| names.any(|name| name == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_lose_parameters_and_return_types() {
        for (name, plain) in [
            ("main", "main"),
            ("own_block(unsigned int)", "own_block"),
            ("Local::~Local()", "Local::~Local"),
            ("void std::f<int, g(long)>(int) const", "std::f<int, g(long)>"),
            ("operator new(unsigned long)", "operator new"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ] {
            assert_eq!(plain_name(name), plain);
        }
    }

    #[test]
    fn the_owner_lies_in_the_program_and_is_no_template_of_the_library() {
        let frame = |function: &str, module: &str| json!({"function": function, "module": module});
        let row = json!({"frames": [
            frame("malloc", "/lib/libc.so.6"),
            frame("std::vector<int>::push_back(int const&)", "/out/p"),
            frame("grow(int)", "/out/p"),
            frame("main", "/out/p"),
        ]});
        assert_eq!(owner(&row, Path::new("/out")).as_deref(), Some("grow"));
        assert_eq!(owner(&row, Path::new("/other")), None);
        let report = json!({"sites": [row]});
        let found = |site: Value| of_site(&report, &site, Path::new("/out")).len();
        assert_eq!(found(json!({"function": "grow"})), 1);
        assert_eq!(found(json!({"function": "grow", "frames": ["grow", "main"]})), 1);
        assert_eq!(found(json!({"function": "grow", "frames": ["main", "grow"]})), 0);
        assert_eq!(found(json!({"function": "grow", "passes_through": ["malloc", "main"]})), 1);
        assert_eq!(found(json!({"function": "grow", "passes_through": ["main", "malloc"]})), 0);
    }
}
