//! The guide's chapter on `mallow.toml` and the code tell the same: every key has a row, every row is a key, every
//! default is the one that is filled in, and every example can be read.

use super::tests::parse;
use super::*;
use mallow_gate::measurement::Metric;

const CHAPTER: &str = include_str!("../../../../docs/guide/mallow-toml.md");

/// The keys of a table, as the reader itself lists them for one that is like none of them.
fn keys(text_up_to_key: &str) -> Vec<String> {
    let error = parse(&format!("{text_up_to_key}qqqqqqqqqqqqqqqqqq = 1\n")).expect_err("an unknown key");
    let (_, list) = error.reason.split_once("; there are ").expect("a list of keys");
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The same without old names, which are still read.
fn current_keys(text_up_to_key: &str) -> Vec<String> {
    keys(text_up_to_key).into_iter().filter(|key| key != "quiesce_ms").collect()
}

/// The rows of the tables in a section: what stands in each column, without the heading.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let begin = CHAPTER.find(&format!("\n## {heading}\n")).expect("a section") + 1;
    let section = &CHAPTER[begin..];
    let end = section[1..].find("\n## ").map_or(section.len(), |end| end + 1);
    let rows = section[..end].lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(str::trim).collect()).collect()
}

/// The keys that have a row of their own.
fn written(heading: &str) -> Vec<String> {
    let rows = rows(heading);
    let names = rows.iter().filter_map(|row| row[0].strip_prefix('`')?.strip_suffix('`'));
    names.map(str::to_owned).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

fn default_of(key: &str) -> &'static str {
    let key = format!("`{key}`");
    rows("[gate]").into_iter().find(|row| row[0] == key).expect("a row")[2]
}

#[test]
fn every_key_of_the_gate_and_of_a_test_has_its_row_and_no_other_is_there() {
    let gate = current_keys("[gate]\n");
    assert_eq!(gate.len(), 20);
    assert_eq!(sorted(written("[gate]")), sorted(gate));
    let test = current_keys("[[test]]\nname = \"a\"\n");
    assert_eq!(test.len(), 22);
    assert_eq!(sorted(written("[[test]]")), sorted(test));
    assert_eq!(sorted(written("[swift]")), sorted(keys("[swift]\n")));
    assert_eq!(keys(""), ["gate", "swift", "test", "defaults"]);
    assert_eq!(sorted(written("[defaults]")), sorted(keys("[defaults]\n")));
}

#[test]
fn every_metric_and_every_part_of_a_limit_is_there() {
    let limits = keys("[gate.limit]\n");
    assert_eq!(limits, Metric::ALL.map(Metric::word));
    let names = written("Limits");
    for metric in &limits {
        assert!(names.contains(&format!("limit.{metric}")), "{metric}");
    }
    let parts: Vec<String> = rows("Limits").iter().map(|row| row[0].to_owned()).collect();
    for part in keys("[gate.limit.bytes]\n") {
        assert!(parts.iter().any(|row| row.contains(&format!("{part} = "))), "{part}");
    }
}

#[test]
fn every_mode_and_every_ending_is_there() {
    assert_eq!(written("Modes"), Mode::ALL.map(|mode| format!("\"{}\"", mode.word())));
    let files: Vec<&str> = rows("Files that are tests").iter().map(|row| row[0]).collect();
    for (ending, _) in Language::ENDINGS {
        assert!(files.iter().any(|file| file.contains(&format!(".{ending}`"))), "{ending}");
    }
}

#[test]
fn the_defaults_are_those_of_the_code() {
    let gate = parse("").unwrap().gate;
    assert_eq!(default_of("runs"), format!("`{}`", gate.defaults.runs));
    assert_eq!(default_of("warmup"), format!("`{}`", gate.defaults.warmup));
    assert_eq!(default_of("timeout"), format!("`\"{}s\"`", gate.defaults.timeout.as_secs()));
    let baselines = gate.baselines.strip_prefix("/srv/demo").unwrap();
    assert_eq!(default_of("baselines"), format!("`\"{}\"`", baselines.display()));
    let pins = PINNED.map(|(name, value)| format!("`{name}={value}`")).join(", ");
    assert!(CHAPTER.contains(&pins), "{pins}");
    assert_eq!(TestSpec::new("a", None, Path::new("/"), gate.defaults).mode.word(), "region");
}

#[test]
fn every_example_can_be_read_and_together_they_have_every_key() {
    let examples: Vec<&str> = CHAPTER
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("\n```").next().expect("the example's end"))
        .collect();
    assert_eq!(examples.len(), 3);
    for example in &examples {
        parse(example).unwrap();
    }
    let lines: Vec<&str> = examples.iter().flat_map(|example| example.lines()).collect();
    let tables = ["[gate]\n", "[swift]\n", "[[test]]\nname = \"a\"\n"];
    for key in tables.into_iter().flat_map(current_keys) {
        let is_used =
            |line: &&str| line.starts_with(&format!("{key} =")) || line.starts_with(&format!("{key}."));
        assert!(lines.iter().any(is_used), "{key}");
    }
}

/// An editor that knows the schema completes the keys that the reader takes.
#[test]
fn the_schema_has_the_keys_of_every_table() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/schema/mallow-toml.json")).expect("a schema");
    let of = |table: &serde_json::Value| {
        let properties = table["properties"].as_object().expect("properties");
        properties.keys().cloned().collect::<Vec<String>>()
    };
    let tables = &schema["properties"];
    assert_eq!(sorted(of(&schema)), sorted(keys("")));
    assert_eq!(sorted(of(&tables["gate"])), sorted(keys("[gate]\n")));
    assert_eq!(sorted(of(&tables["test"]["items"])), sorted(keys("[[test]]\nname = \"a\"\n")));
    assert_eq!(sorted(of(&schema["$defs"]["limits"])), sorted(keys("[gate.limit]\n")));
    let flags = keys("[defaults]\n").into_iter().filter(|key| key != "pager").collect();
    assert_eq!(sorted(of(&tables["defaults"])), sorted(flags));
    let modes = tables["test"]["items"]["properties"]["mode"]["enum"].as_array().expect("modes");
    assert_eq!(modes.iter().filter_map(|mode| mode.as_str()).collect::<Vec<_>>(), Mode::ALL.map(Mode::word));
}

/// An editor marks the sizes that the reader refuses, and no others but those that are too large.
#[test]
fn the_schema_knows_sizes_as_the_reader_does() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/schema/mallow-toml.json")).expect("a schema");
    let pattern = schema["$defs"]["size"]["oneOf"][1]["pattern"].as_str().expect("a pattern");
    let pattern = regex::Regex::new(pattern).expect("a pattern of sizes");
    let list = include_str!("../../../mallow-base/src/quantity/sizes.txt");
    for (text, bytes) in list.lines().filter_map(|line| line.split_once('|')) {
        let is_read = parse(&format!("[gate]\nlimit.peak = \"{text}\"\n")).is_ok();
        assert_eq!(is_read, bytes != "none", "{text}");
        assert_eq!(pattern.is_match(text), mallow_base::quantity::bytes(text).is_some(), "{text}");
    }
    for metric in Metric::ALL.map(Metric::word).into_iter().filter(|word| *word != "wall") {
        let rule = &schema["$defs"]["limits"]["properties"][metric]["$ref"];
        let takes_sizes = parse(&format!("[gate]\nlimit.{metric} = \"1K\"\n")).is_ok();
        let name = if takes_sizes { "#/$defs/size_limit" } else { "#/$defs/limit" };
        assert_eq!(rule.as_str(), Some(name), "{metric}");
    }
}
