//! Nothing in the repository knows the machine it was written on.

use super::{Finding, Tree};

/// Folders that exist on one machine only. Written in two pieces, or this file would find itself.
const FOLDERS: &[&str] = &[concat!("/wo", "rk"), concat!("/ro", "ot")];

/// Names in examples that are nobody's.
const NOBODY: &[&str] = &["user", "you", "me", "dev"];

/// Settings that send cargo, pip or npm to another registry than the public one.
const REGISTRIES: &[&str] = &[
    concat!("sparse", "+http"),
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("GO", "PROXY"),
    concat!("npm_config", "_registry"),
];

/// No path of one machine, no registry's address, no address of a private network.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(what) = machine_path(line) {
                let sentence = format!("`{what}` is a path of one machine; use a path that everybody has.");
                findings.push(file.finding(index + 1, sentence));
            }
            if let Some(what) = registry(line) {
                let sentence =
                    format!("`{what}` belongs into a machine's settings, not into the repository.");
                findings.push(file.finding(index + 1, sentence));
            }
        }
    }
    findings
}

fn machine_path(line: &str) -> Option<String> {
    let folder =
        FOLDERS.iter().find(|folder| starts_of(line, folder).any(ends_name)).map(ToString::to_string);
    folder.or_else(|| {
        let home = "/home/";
        let names = starts_of(line, home).map(|rest| rest.split(|c: char| !is_name(c)).next().unwrap_or(""));
        let name = { names }.find(|name| !name.is_empty() && !NOBODY.contains(name))?;
        Some(format!("{home}{name}"))
    })
}

/// What follows `path` wherever it starts a path in the line, and is not the middle of a longer one.
fn starts_of<'a>(line: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(path).filter_map(move |(at, _)| {
        let before = line[..at].chars().next_back();
        let is_start = before.is_none_or(|c| !is_name(c) && !"./~}>)*$]".contains(c));
        is_start.then(|| &line[at + path.len()..])
    })
}

fn ends_name(rest: &str) -> bool {
    !rest.starts_with(|c: char| is_name(c) && c != '.')
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

fn registry(line: &str) -> Option<String> {
    let setting = REGISTRIES.iter().find(|setting| line.contains(*setting)).map(ToString::to_string);
    setting.or_else(|| {
        line.match_indices("://").find_map(|(at, mark)| {
            let host = line[at + mark.len()..].split(['/', ':', '"', ' ']).next()?;
            is_private(host).then(|| format!("{mark}{host}"))
        })
    })
}

/// Returns whether a host is an IPv4 address of a private network; the machine itself (127.0.0.1) is everybody's.
fn is_private(host: &str) -> bool {
    host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_private())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        check(&Tree::of(&[("notes.md", line)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_that_everybody_has_pass() {
        for line in [
            "/usr/bin/python3 /proc/self/maps /tmp/a",
            "a/work/b, crates/root/x and ${HOME}/work/c",
            "/workshop /rooted /home/user/app /home/<name>/app",
            "http://127.0.0.1:6379/ and registry+https://github.com/rust-lang/crates.io-index",
        ] {
            assert_eq!(found(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn machine_paths_are_found() {
        let people = ["/ho", "me/anna/app"].concat();
        for path in [format!("see {}/main", FOLDERS[0]), format!("\"{}/.bashrc\"", FOLDERS[1]), people] {
            let found = found(&path);
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].starts_with("notes.md:1: `/"), "{}", found[0]);
        }
    }

    #[test]
    fn registries_are_found() {
        for line in [
            format!("index = \"{}s://crates.example/\"", REGISTRIES[0]),
            format!("{} = \"mirror\"", REGISTRIES[1]),
            ["url = \"http://", "192.168.1.4:8080/simple\""].concat(),
        ] {
            assert_eq!(found(&line).len(), 1, "{line}");
        }
    }
}
