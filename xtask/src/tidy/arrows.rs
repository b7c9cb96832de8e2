//! Which crate may use which: the arrows of ARCHITECTURE.md as data.

use super::Finding;
use super::packages::Member;

/// A crate and the crates that it may use. Those of tests alone are free.
type Row = (&'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    ("mallow-wire", &[]),
    ("mallow-base", &[]),
    ("mallow-recorder", &["mallow-wire"]),
    ("mallow-preload", &["mallow-recorder", "mallow-wire"]),
    ("mallow-symbols", &["mallow-base"]),
    ("mallow-profile", &["mallow-base"]),
    ("mallow-heapsnap", &["mallow-base"]),
    ("mallow-trace", &["mallow-wire", "mallow-base", "mallow-profile"]),
    ("mallow-collect", &["mallow-wire", "mallow-base", "mallow-profile", "mallow-trace"]),
    ("mallow-formats", &["mallow-trace", "mallow-profile", "mallow-heapsnap", "mallow-base"]),
    ("mallow-gate", &["mallow-profile", "mallow-base"]),
    ("mallow-check", &["mallow-gate", "mallow-profile", "mallow-collect", "mallow-base"]),
    ("mallow-growth", &["mallow-base"]),
    ("mallow-evidence", &["mallow-growth", "mallow-profile", "mallow-base"]),
    ("mallow-load", &["mallow-base"]),
    (
        "mallow-soak",
        &[
            "mallow-profile",
            "mallow-collect",
            "mallow-evidence",
            "mallow-growth",
            "mallow-load",
            "mallow-base",
        ],
    ),
    (
        "mallow-view",
        &[
            "mallow-profile",
            "mallow-heapsnap",
            "mallow-gate",
            "mallow-growth",
            "mallow-evidence",
            "mallow-base",
        ],
    ),
    (
        "mallow-cli",
        &[
            "mallow-base",
            "mallow-trace",
            "mallow-collect",
            "mallow-symbols",
            "mallow-profile",
            "mallow-formats",
            "mallow-heapsnap",
            "mallow-check",
            "mallow-gate",
            "mallow-evidence",
            "mallow-growth",
            "mallow-load",
            "mallow-soak",
            "mallow-view",
        ],
    ),
    // The end-to-end tests see mallow as people do; they may know the layout of what they corrupt.
    ("e2e", &["mallow-wire", "mallow-base"]),
    ("xtask", &["mallow-base"]),
    // Lives in other people's programs.
    ("mallow-markers", &[]),
    (
        "mallow-fuzz",
        &[
            "mallow-check",
            "mallow-gate",
            "mallow-formats",
            "mallow-load",
            "mallow-profile",
            "mallow-trace",
            "mallow-symbols",
            "mallow-heapsnap",
        ],
    ),
];

/// Every arrow between our crates is in the table, and every crate has a row.
pub(super) fn check(members: &[Member]) -> Vec<Finding> {
    members.iter().flat_map(of_one).collect()
}

fn of_one(member: &Member) -> Vec<Finding> {
    let finding = |sentence: String| Finding { path: member.manifest.clone(), line: 0, sentence };
    // What is profiled in tests must not know who watches it.
    let is_program = member.manifest.starts_with("programs");
    let allowed = match ROWS.iter().find(|(name, _)| *name == member.name) {
        Some((_, allowed)) => *allowed,
        None if is_program => &[],
        None => {
            let name = &member.name;
            let sentence =
                format!("{name} has no row in xtask/src/tidy/arrows.rs; say there what it may use.");
            return vec![finding(sentence)];
        }
    };
    let forbidden = member.uses.iter().filter(|name| !allowed.contains(&name.as_str()));
    forbidden
        .map(|name| {
            let may = if allowed.is_empty() { "none of our crates".to_owned() } else { allowed.join(", ") };
            finding(format!("{} must not use {name}; it may use {may}.", member.name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, uses: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml").into(),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn arrows_of_the_table_pass() {
        let members =
            [member("mallow-wire", &[]), member("mallow-collect", &["mallow-profile", "mallow-wire"])];
        assert_eq!(check(&members), []);
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let found = check(&[member("mallow-profile", &["mallow-base", "mallow-formats"])]);
        assert_eq!(
            found[0].to_string(),
            "crates/mallow-profile/Cargo.toml: mallow-profile must not use mallow-formats; \
             it may use mallow-base."
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let found = check(&[member("mallow-new", &[])]);
        assert!(found[0].sentence.starts_with("mallow-new has no row"), "{}", found[0]);
    }

    #[test]
    fn a_program_may_not_know_us() {
        let mut program = member("csv-aggregate", &["mallow-base"]);
        program.manifest = "programs/csv-aggregate/Cargo.toml".into();
        let found = check(&[program]);
        assert!(found[0].sentence.ends_with("it may use none of our crates."), "{}", found[0]);
    }

    #[test]
    fn the_table_has_no_cycle() {
        let mut settled: Vec<&str> = Vec::new();
        while settled.len() < ROWS.len() {
            let is_ready = |(name, uses): &&Row| {
                !settled.contains(name) && uses.iter().all(|used| settled.contains(used))
            };
            let next = ROWS.iter().find(is_ready);
            settled.push(next.expect("a crate of the table can only be reached through itself").0);
        }
    }
}
