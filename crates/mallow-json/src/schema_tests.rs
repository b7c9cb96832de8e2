//! Checks documents against their published schemas. Those allow new keys, so that a reader of today takes a document of tomorrow; here each key has to be in them.

use serde_json::Value;

/// Checks a value against the part of JSON Schema that our schemas use, and complains of any other keyword.
pub(crate) fn check(value: &Value, schema: &Value, root: &Value, path: &str) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().ok_or(format!("{path}: no schema"))? {
        let holds = match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let name = rule.as_str().and_then(|name| name.strip_prefix("#/$defs/")).ok_or("bad $ref")?;
                return check(value, &root["$defs"][name], root, path);
            }
            "const" => value == rule,
            "enum" => rule.as_array().is_some_and(|values| values.contains(value)),
            "type" => rule
                .as_array()
                .map_or_else(|| is_a(value, rule), |types| types.iter().any(|t| is_a(value, t))),
            "minimum" => value.as_i64().is_none_or(|number| Some(number) >= rule.as_i64()),
            "oneOf" => {
                let fits = |part: &&Value| check(value, part, root, path).is_ok();
                rule.as_array().map(|parts| parts.iter().filter(fits).count()) == Some(1)
            }
            // As the standard has it: what is no object lacks nothing.
            "required" => rule.as_array().is_some_and(|names| {
                let is_there = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
                !value.is_object() || names.iter().all(is_there)
            }),
            "properties" => {
                let is_known = |key: &String| rule.get(key).is_some();
                if let Some(key) =
                    value.as_object().and_then(|object| object.keys().find(|key| !is_known(key)))
                {
                    return Err(format!("{path}.{key} is not in the schema"));
                }
                for (name, part) in rule.as_object().ok_or("bad properties")? {
                    if let Some(inner) = value.get(name) {
                        check(inner, part, root, &format!("{path}.{name}"))?;
                    }
                }
                true
            }
            "items" => {
                // As the standard has it: what is no array has no items.
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(item, rule, root, &format!("{path}[{index}]"))?;
                }
                true
            }
            other => return Err(format!("the checker does not know {other}")),
        };
        if !holds {
            return Err(format!("{path}: {value} breaks {keyword} {rule}"));
        }
    }
    Ok(())
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => false,
    }
}

#[track_caller]
pub(crate) fn assert_fits(value: &Value, schema: &Value) {
    assert_eq!(check(value, schema, schema, "$"), Ok(()));
}

/// Every schema. A page of the guide leads to each.
const SCHEMAS: [(&str, &str); 13] = [
    ("bench", include_str!("../../../docs/schema/bench.json")),
    ("check", include_str!("../../../docs/schema/check.json")),
    ("config", include_str!("../../../docs/schema/config.json")),
    ("cpu", include_str!("../../../docs/schema/cpu.json")),
    ("cpu-diff", include_str!("../../../docs/schema/cpu-diff.json")),
    ("diff", include_str!("../../../docs/schema/diff.json")),
    ("gc-log", include_str!("../../../docs/schema/gc-log.json")),
    ("heap", include_str!("../../../docs/schema/heap.json")),
    ("mallow-toml", include_str!("../../../docs/schema/mallow-toml.json")),
    ("report", include_str!("../../../docs/schema/report.json")),
    ("soak", include_str!("../../../docs/schema/soak.json")),
    ("stat", include_str!("../../../docs/schema/stat.json")),
    ("version", include_str!("../../../docs/schema/version.json")),
];

/// The spelling that every enumeration of every document has.
#[test]
fn values_and_keys_are_lower_case_with_underscores() {
    let is_plain = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    fn each(value: &Value, path: &str, visit: &mut dyn FnMut(&str, &str, &Value)) {
        for (key, part) in value.as_object().into_iter().flatten() {
            visit(path, key, part);
            each(part, &format!("{path}/{key}"), visit);
        }
        for (at, part) in value.as_array().into_iter().flatten().enumerate() {
            each(part, &format!("{path}/{at}"), visit);
        }
    }
    let mut others = Vec::new();
    for (stem, text) in SCHEMAS {
        let schema: Value = serde_json::from_str(text).unwrap();
        each(&schema, stem, &mut |path, key, value| {
            // The names of schemas are no enumerations.
            let is_name = path.ends_with("/properties/schema");
            let words: Vec<&str> = match key {
                "const" if !is_name => value.as_str().into_iter().collect(),
                "enum" => value.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
                "properties" => value.as_object().into_iter().flatten().map(|(key, _)| &**key).collect(),
                _ => Vec::new(),
            };
            let wrong = words.into_iter().filter(|word| !is_plain(word));
            others.extend(wrong.map(|word| format!("{path}: {word}")));
        });
    }
    // What is set by hand is named as its flag.
    assert_eq!(others, ["mallow-toml/properties/defaults: debug-path"]);
}

/// Each schema has a name of its own, by which editors and validators keep it, and none forbids what a later version adds.
#[test]
fn schemas_have_names_and_are_open() {
    for (stem, text) in SCHEMAS {
        let schema: Value = serde_json::from_str(text).unwrap();
        let id = schema["$id"].as_str().unwrap();
        let version =
            id.strip_prefix(&format!("urn:mallow:{stem}:")).unwrap_or_else(|| panic!("{id} in {stem}"));
        if let Some(word) = schema["properties"]["schema"]["const"].as_str() {
            assert_eq!(word, format!("mallow.{stem}/{version}"));
        }
        let is_closed = text.contains("\"additionalProperties\": false");
        // What people write by hand is held to its keys, so that editors mark slips.
        assert_eq!(is_closed, stem == "mallow-toml", "{stem}");
    }
}
