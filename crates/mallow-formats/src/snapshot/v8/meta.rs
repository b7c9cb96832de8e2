//! The file's description of its fields: those of nodes and edges. Runtimes and versions differ, so nothing is assumed.

use serde_json::Value;

/// The maximum number of fields of a record; V8 has never written more than seven.
pub(super) const FIELDS_MAX: usize = 16;
/// The description has some kilobytes.
pub(super) const META_BYTES_MAX: usize = 1 << 20;
/// A node with an undescribed type.
pub(super) const UNDESCRIBED: u8 = u8::MAX;

/// The position of each field of a record, and the meaning of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) node_fields: usize,
    pub(super) node_type: usize,
    pub(super) node_name: usize,
    pub(super) node_id: usize,
    pub(super) node_size: usize,
    pub(super) node_edges: usize,
    /// Since Chrome 87.
    pub(super) node_detachedness: Option<usize>,
    pub(super) node_types: Vec<String>,
    /// Which call allocated it, if that was tracked.
    pub(super) node_call: Option<usize>,
    /// The format of these calls.
    pub(super) traces: Option<TraceMeta>,
    pub(super) edge_fields: usize,
    pub(super) edge_type: usize,
    pub(super) edge_label: usize,
    pub(super) edge_target: usize,
    pub(super) edge_types: Vec<EdgeType>,
}

/// The positions of the fields of `trace_function_infos` and `trace_tree`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceMeta {
    pub(super) function_fields: usize,
    pub(super) script: usize,
    pub(super) line: usize,
    pub(super) call_fields: usize,
    pub(super) id: usize,
    pub(super) function: usize,
    pub(super) children: usize,
}

/// The kind of a reference, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EdgeType {
    /// By a name that the program gave: a variable, a property. Unknown types count as this one.
    Named,
    /// By an index.
    Element,
    /// By a name that the virtual machine gave.
    Internal,
    /// By an index of the virtual machine.
    Hidden,
    /// Not from the object itself, but from something behind it.
    Shortcut,
    /// One that does not keep its target alive.
    Weak,
}

impl Meta {
    /// Parses the JSON of `meta`; the error is what was expected.
    pub(super) fn parse(json: &[u8]) -> Result<Meta, String> {
        let json: Value = serde_json::from_slice(json).map_err(|_| "a description of the fields (`meta`)")?;
        let nodes = Fields::of(&json, "node_fields")?;
        let edges = Fields::of(&json, "edge_fields")?;
        let node_type = nodes.place("type")?;
        let edge_type = edges.place("type")?;
        let node_types = type_names(&json, "node_types", node_type)?;
        if node_types.len() >= UNDESCRIBED.into() {
            return Err(format!("fewer than {UNDESCRIBED} types of nodes"));
        }
        let edge_types = type_names(&json, "edge_types", edge_type)?;
        Ok(Meta {
            node_fields: nodes.names.len(),
            node_type,
            node_name: nodes.place("name")?,
            node_id: nodes.place("id")?,
            node_size: nodes.place("self_size")?,
            node_edges: nodes.place("edge_count")?,
            node_detachedness: nodes.place("detachedness").ok(),
            node_types,
            node_call: nodes.place("trace_node_id").ok(),
            traces: TraceMeta::of(&json),
            edge_fields: edges.names.len(),
            edge_type,
            edge_label: edges.place("name_or_index")?,
            edge_target: edges.place("to_node")?,
            edge_types: edge_types.iter().map(|name| EdgeType::of_name(name)).collect(),
        })
    }

    /// Returns the type of nodes with this name.
    pub(super) fn node_type_named(&self, name: &str) -> Option<u8> {
        self.node_types.iter().position(|other| other == name).map(|at| at as u8)
    }
}

impl TraceMeta {
    /// Returns `None` if nothing was tracked. `children` must be the last field, since all others of a call come before it.
    fn of(meta: &Value) -> Option<TraceMeta> {
        let functions = Fields::of(meta, "trace_function_info_fields").ok()?;
        let calls = Fields::of(meta, "trace_node_fields").ok()?;
        let children = calls.place("children").ok().filter(|at| at + 1 == calls.names.len())?;
        Some(TraceMeta {
            function_fields: functions.names.len(),
            script: functions.place("script_name").ok()?,
            line: functions.place("line").ok()?,
            call_fields: calls.names.len(),
            id: calls.place("id").ok()?,
            function: calls.place("function_info_index").ok()?,
            children,
        })
    }
}

impl EdgeType {
    fn of_name(name: &str) -> EdgeType {
        match name {
            "element" => EdgeType::Element,
            "internal" => EdgeType::Internal,
            "hidden" => EdgeType::Hidden,
            "shortcut" => EdgeType::Shortcut,
            "weak" => EdgeType::Weak,
            _ => EdgeType::Named,
        }
    }
}

struct Fields<'a> {
    key: &'static str,
    names: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    fn of(meta: &'a Value, key: &'static str) -> Result<Fields<'a>, String> {
        let names = meta[key].as_array().and_then(|names| names.iter().map(Value::as_str).collect());
        let names: Option<Vec<&str>> = names;
        let names = names.filter(|names| (1..=FIELDS_MAX).contains(&names.len()));
        Ok(Fields { key, names: names.ok_or_else(|| format!("`{key}` of up to {FIELDS_MAX} names"))? })
    }

    fn place(&self, name: &str) -> Result<usize, String> {
        let place = self.names.iter().position(|other| *other == name);
        place.ok_or_else(|| format!("`{name}` in `{}`", self.key))
    }
}

fn type_names(meta: &Value, key: &str, place: usize) -> Result<Vec<String>, String> {
    let names = meta[key][place].as_array();
    let names = names.and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
    names.ok_or_else(|| format!("names of types in `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        let json = r#"{"edge_types":["node",["weak","shiny","hidden"]],"edge_fields":["to_node","type","name_or_index"],
            "node_fields":["id","edge_count","type","new","self_size","name"],"node_types":[0,0,["synthetic","string"]]}"#;
        let meta = Meta::parse(json.as_bytes()).unwrap();
        let places = [meta.node_id, meta.node_edges, meta.node_type, meta.node_size, meta.node_name];
        assert_eq!((places, meta.node_fields, meta.node_detachedness), ([0, 1, 2, 4, 5], 6, None));
        assert_eq!((meta.edge_target, meta.edge_type, meta.edge_label, meta.edge_fields), (0, 1, 2, 3));
        assert_eq!(meta.edge_types, [EdgeType::Weak, EdgeType::Named, EdgeType::Hidden]);
        assert_eq!((meta.node_type_named("string"), meta.node_type_named("number")), (Some(1), None));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |json: &str| Meta::parse(json.as_bytes()).unwrap_err();
        assert_eq!(error("{"), "a description of the fields (`meta`)");
        assert_eq!(error("{}"), "`node_fields` of up to 16 names");
        let fields = r#""node_fields":["type"],"edge_fields":["type"]"#;
        assert_eq!(error(&format!("{{{fields}}}")), "names of types in `node_types`");
        let types = r#""node_types":[["a"]],"edge_types":[["b"]]"#;
        assert_eq!(error(&format!("{{{fields},{types}}}")), "`name` in `node_fields`");
    }
}
