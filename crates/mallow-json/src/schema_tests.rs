//! Checks documents against their published schemas.

use serde_json::{Value, json};

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
            "additionalProperties" => value.as_object().is_none_or(|object| {
                *rule == json!(false) && object.keys().all(|key| schema["properties"].get(key).is_some())
            }),
            "properties" => {
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
