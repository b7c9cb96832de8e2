//! Small heaps with sizes that are known by hand, damage, and random heaps compared with a naive reader.

use super::*;
use mallow_heapsnap::{DominatorTree, DuplicateString, Edge, EdgeLabel};
use proptest::prelude::*;
use serde_json::{Value, json};

const NODE_TYPES: [&str; 8] =
    ["synthetic", "object", "string", "array", "hidden", "native", "closure", "sliced string"];
const EDGE_TYPES: [&str; 6] = ["property", "element", "internal", "hidden", "shortcut", "weak"];

/// A heap to be written: type, name and size of each node, and edges by the types' names.
#[derive(Clone, Debug, Default)]
struct Heap {
    nodes: Vec<(&'static str, String, u64)>,
    edges: Vec<(u32, &'static str, String, u32)>,
}

impl Heap {
    fn new(nodes: &[(&'static str, &str, u64)], edges: &[(u32, &'static str, &str, u32)]) -> Heap {
        Heap {
            nodes: nodes.iter().map(|(kind, name, bytes)| (*kind, (*name).to_owned(), *bytes)).collect(),
            edges: edges
                .iter()
                .map(|(from, kind, name, to)| (*from, *kind, (*name).to_owned(), *to))
                .collect(),
        }
    }

    /// The id of node n is 2 n + 1.
    fn json(&self) -> Value {
        let mut strings: Vec<&str> = Vec::new();
        let mut string = |text| {
            let known = strings.iter().position(|other| *other == text);
            known.unwrap_or_else(|| {
                strings.push(text);
                strings.len() - 1
            })
        };
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for (at, (kind, name, bytes)) in self.nodes.iter().enumerate() {
            let own: Vec<_> = self.edges.iter().filter(|edge| edge.0 as usize == at).collect();
            let kind = NODE_TYPES.iter().position(|other| other == kind).unwrap();
            nodes.extend([kind, string(name), 2 * at + 1, *bytes as usize, own.len(), 0, 0]);
            for (_, kind, name, to) in own {
                let is_index = ["element", "hidden"].contains(kind);
                let label = if is_index { name.parse().unwrap() } else { string(name) };
                edges.extend([
                    EDGE_TYPES.iter().position(|other| other == kind).unwrap(),
                    label,
                    7 * *to as usize,
                ]);
            }
        }
        json!({"snapshot": {"meta": meta(), "node_count": 0}, "nodes": nodes, "edges": edges, "strings": strings})
    }

    /// From memory, with one thread, and from a file, whose references a second thread parses.
    fn read(&self) -> Snapshot {
        let text = text(&self.json());
        let snapshot = read_text(&text).unwrap();
        let file = read(Source::of_file(file_of(&text).path()).unwrap()).unwrap();
        assert_eq!((sizes(&file), edges(&file)), (sizes(&snapshot), edges(&snapshot)));
        snapshot
    }
}

fn file_of(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// Returns each object's references.
fn edges(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let of = |object| snapshot.graph.edges(object).map(|edge| format!("{edge:?}")).collect();
    snapshot.graph.objects().map(of).collect()
}

/// Returns what a second thread has parsed of the references of a file, if the first one finds them at that position.
fn read_ahead(text: &str) -> Option<edges_ahead::EdgesRead> {
    let meta = meta::Meta::parse(meta().to_string().as_bytes()).unwrap();
    let file = Source::of_file(file_of(text).path()).unwrap().plain_file().unwrap();
    let start = text.find(",\"edges\":").unwrap() + ",\"edges\":".len();
    edges_ahead::EdgesAhead::start(&file, 0, 0, &meta).unwrap().read_from(start as u64)
}

#[test]
fn references_are_read_ahead_where_their_key_stands_first() {
    let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    let nodes: Vec<_> = names.iter().map(|name| ("object", &name[..], 8)).collect();
    let refer: Vec<_> = (1..100).map(|to| (to / 2, "property", &names[to as usize][..], to)).collect();
    let whole = text(&Heap::new(&nodes, &refer).json());
    let key = whole.find(",\"edges\"").unwrap();
    // A block that is searched at once ends before the key, anywhere within it, and after it.
    let at_once = 256 << 10;
    for blanks in (0..20).map(|before| at_once + before - key).chain([0]) {
        let mut text = whole.clone();
        text.insert_str(key, &" ".repeat(blanks));
        let read = read_ahead(&text).unwrap();
        assert!(text[read.end as usize..].starts_with(",\"strings\":"), "{blanks}");
        assert_eq!(read.edges.targets, refer.iter().map(|edge| edge.3).collect::<Vec<_>>());
    }
}

#[test]
fn references_of_another_place_and_damaged_ones_are_not_taken() {
    let heap = Heap::new(&[("object", "a", 8), ("object", "b", 16)], &[(0, "property", "b", 1)]);
    let whole = text(&heap.json());
    let decoy = whole.replace(",\"edges\"", ",\"other\":{\"edges\":[0,0,0]},\"edges\"");
    let odd = whole.replace("],\"strings\"", ",1],\"strings\"");
    for text in [&decoy, &odd, &whole[..whole.find("],\"strings\"").unwrap()].to_owned()] {
        assert!(read_ahead(text).is_none(), "{text}");
        // The first thread finds the right ones, or reports their error.
        let (file, memory) = (read(Source::of_file(file_of(text).path()).unwrap()), read_text(text));
        match (file, memory) {
            (Ok(file), Ok(memory)) => {
                assert_eq!((edges(&file), file.warnings), (edges(&memory), memory.warnings))
            }
            (file, memory) => assert_eq!(file.err().unwrap().to_string(), memory.err().unwrap().to_string()),
        }
    }
    assert_eq!(edges(&read_text(&decoy).unwrap()), edges(&heap.read()));
}

/// Returns a document with the description first.
fn text(json: &Value) -> String {
    let part = |key: &str| format!("{key:?}:{}", json[key]);
    format!("{{{}}}", ["snapshot", "nodes", "edges", "strings"].map(part).join(","))
}

fn meta() -> Value {
    json!({
        "node_fields": ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"],
        "node_types": [NODE_TYPES, "string", "number", "number", "number", "number", "number"],
        "edge_fields": ["type", "name_or_index", "to_node"],
        "edge_types": [EDGE_TYPES, "string_or_number", "node"],
    })
}

fn read_text(text: &str) -> Result<Snapshot, ImportError> {
    read(Source::of_bytes(text.as_bytes()).unwrap())
}

/// Returns own and retained bytes of each object.
fn sizes(snapshot: &Snapshot) -> Vec<(u64, u64)> {
    let tree = DominatorTree::new(&snapshot.graph);
    let of = |object| (snapshot.graph.size_bytes(object), tree.retained_bytes(object).unwrap_or(0));
    snapshot.graph.objects().map(of).collect()
}

fn class(snapshot: &Snapshot, object: u32) -> String {
    let graph = &snapshot.graph;
    let class = graph.class(graph.class_of(ObjectId(object)));
    format!("{} {}", graph.name(class.kind.0), graph.name(class.name))
}

/// Returns whether an edge is not in the file.
fn is_hung(graph: &Graph, edge: &Edge) -> bool {
    matches!(edge.label, Some(EdgeLabel::Name(name)) if graph.name(name) == "(nothing else retains it)")
}

#[test]
fn every_rule_of_devtools_is_kept() {
    // The global object (2) is the only thing that the program reaches itself.
    let pair = "3 / part of key (Key @9) -> value (Value @11) pair in WeakMap (table @7)";
    let heap = Heap::new(
        &[
            ("synthetic", "", 0),
            ("synthetic", "(GC roots)", 0),
            ("object", "global", 10),
            ("array", "", 100),
            ("object", "Key", 1_000),
            ("object", "Value", 10_000),
            ("hidden", "system / Map", 100_000),
            ("object", "Cache", 1_000_000),
            ("string", "held weakly", 10_000_000),
        ],
        &[
            (0, "element", "1", 1),
            (0, "shortcut", "global", 2),
            (1, "element", "1", 2),
            (1, "element", "2", 5),
            (1, "element", "3", 7),
            (2, "internal", "elements", 3),
            (2, "property", "self", 2),
            (2, "shortcut", "also", 5),
            (2, "property", "key", 4),
            (2, "weak", "1", 8),
            (3, "internal", pair, 5),
            (4, "internal", pair, 5),
            (4, "hidden", "0", 6),
            (7, "property", "key", 4),
        ],
    );
    let snapshot = heap.read();
    assert_eq!(
        sizes(&snapshot),
        [
            (0, 11_111_110),
            (0, 1_000_000),
            // Its elements are its own bytes.
            (110, 111_110),
            (0, 0),
            // The map is its own, and it alone retains the value, which neither the table nor the roots do.
            (101_000, 111_000),
            (10_000, 10_000),
            (0, 0),
            (1_000_000, 1_000_000),
            (10_000_000, 10_000_000),
        ]
    );
    assert_eq!((snapshot.warnings.len(), snapshot.is_partial, snapshot.notes.len()), (0, false, 1));
    let label = |edge: Edge| match edge.label {
        Some(EdgeLabel::Name(name)) => snapshot.graph.name(name).to_owned(),
        Some(EdgeLabel::Element(at)) => at.to_string(),
        None => String::new(),
    };
    let labels: Vec<String> = snapshot.graph.edges(ObjectId(0)).map(label).collect();
    assert_eq!(labels, ["1", "global", "(nothing else retains it)"]);
    assert_eq!(snapshot.graph.find(9), Some(ObjectId(4)));
}

#[test]
fn classes_and_names_are_those_of_devtools() {
    let heap = Heap::new(
        &[
            ("synthetic", "", 0),
            ("object", "Session", 1),
            ("native", "<div class=\"wide\" id=3>", 1),
            ("native", "Detached <p x>", 1),
            ("native", "<br>", 1),
            ("closure", "onClick", 1),
            ("hidden", "system / Map", 1),
            ("string", "text", 1),
            ("sliced string", "(sliced string)", 1),
            ("native", "<div>", 1),
        ],
        &[(0, "shortcut", "1", 1), (2, "element", "0", 4), (2, "hidden", "0", 9)],
    );
    let expected = [
        "synthetic (synthetic)",
        "object Session",
        "native <div>",
        "native Detached <p>",
        "native <br>",
        "closure Function",
        "hidden (system)",
        "string (string)",
    ];
    let snapshot = heap.read();
    assert_eq!((0..10).map(|at| class(&snapshot, at)).collect::<Vec<_>>()[..8], expected);
    assert_eq!(class(&snapshot, 8), "sliced string (sliced string)");
    assert_eq!(snapshot.slot_bytes, Some(5));
    assert_eq!(snapshot.graph.class_of(ObjectId(2)), snapshot.graph.class_of(ObjectId(9)));
    assert_eq!(snapshot.graph.name_of(ObjectId(5)), Some("onClick"));
    // Node 2 is detached: so is what it leads to, except through a hidden edge.
    let mut json = heap.json();
    json["nodes"][2 * 7 + 6] = 2.into();
    let snapshot = read_text(&text(&json)).unwrap();
    assert_eq!(
        [2, 4, 9].map(|at| class(&snapshot, at)),
        ["native Detached <div>", "native Detached <br>", "native <div>"]
    );
    json["nodes"][4 * 7 + 6] = 1.into();
    let snapshot = read_text(&text(&json)).unwrap();
    assert_eq!(class(&snapshot, 4), "native <br>");
}

#[test]
fn a_property_whose_name_is_not_in_the_file_names_no_object() {
    let nodes = [("synthetic", "", 0), ("object", "Object", 1), ("object", "Object", 1), ("object", "A", 1)];
    let named = [(1, "property", "a", 3), (2, "property", "a", 3)];
    let mut json = Heap::new(&nodes, &named).json();
    for beyond in [1 << 20, u64::from(u32::MAX), 1 << 40] {
        json["edges"][1] = beyond.into();
        let snapshot = read_text(&text(&json)).unwrap();
        assert_eq!([1, 2].map(|at| class(&snapshot, at)), ["object Object", "object Object"], "{beyond}");
    }
}

#[test]
fn strings_of_one_number_are_equal_if_they_are_whole() {
    let long = "x".repeat(1024);
    let shown = "y".repeat(1023);
    let mut nodes = vec![("synthetic", "", 0), ("sliced string", "s", 20), ("object", "a", 1)];
    nodes.extend([("string", "a", 16), ("string", "a", 24), ("string", "a", 16), ("string", "b", 16)]);
    nodes.extend([("string", &long[..], 2000), ("string", &long[..], 3000)]);
    nodes.extend([("string", &shown[..], 1040), ("string", &shown[..], 1040)]);
    let strings = Heap::new(&nodes, &[]).read().strings;
    assert_eq!(strings.uncompared, 3);
    let told = |at: usize| {
        let value: &DuplicateString = &strings.values[at];
        (&value.text[..], value.is_whole, value.strings, value.bytes, value.wasted_bytes)
    };
    assert_eq!((told(0), told(1)), ((&shown[..80], false, 2, 2080, 1040), ("a", true, 3, 56, 40)));
    assert_eq!(strings.values.len(), 2);
}

#[test]
fn what_a_file_of_another_age_or_runtime_has_is_read() {
    // Five fields in another order, unknown ones, strings first, unknown keys, blanks, a root that is not the first.
    let text = r#" { "snapshot" : { "title":"x", "meta": { "node_fields":["id","name","new","type","edge_count","self_size"],
        "node_types":[0,0,0,["synthetic","object"],0,0], "edge_fields":["to_node","name_or_index","type","more"],
        "edge_types":[0,0,["property","shiny"]] }, "root_index":6, "extra_native_bytes":1234567, "trace":[{"a":[]}] },
        "strings":["","A","field"], "samples":[1,[2,"]"]], "edges":[ 0,2,0,9 , 0 , 2,1,9 ], "locations":[-1],
        "nodes":[ 5,1,9,1,0,40 , 7 , 0,9,0,2,0 ] } "#;
    let snapshot = read_text(text).unwrap();
    assert_eq!(sizes(&snapshot), [(40, 40), (0, 40)]);
    assert_eq!((class(&snapshot, 0), snapshot.graph.id(ObjectId(1))), ("object A".to_owned(), 7));
    assert_eq!((snapshot.graph.edges_len(), snapshot.warnings.len()), (2, 0));
    assert!(snapshot.notes[1].contains("1,234,567 bytes of native memory"), "{:?}", snapshot.notes);
}

#[test]
fn an_object_was_made_in_the_innermost_script_that_called() {
    let text = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","trace_node_id"],
        "node_types":[["synthetic","object"],0,0,0,0,0],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["property"],0,0],
        "trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],
        "trace_node_fields":["id","function_info_index","count","size","children"]}},
        "nodes":[0,0,1,0,3,0, 1,1,3,24,0,3, 1,1,5,24,0,2, 1,1,7,24,0,99],"edges":[0,1,6,0,1,12,0,1,18],
        "trace_function_infos":[0,0,0,0,0,0, 5,1,2,81,4,14, 7,1,0,0,0,0],
        "trace_tree":[1,0,0,0,[2,1,1,24,[3,2,1,24,[]]]],
        "strings":["","keep","app.js"]}"#;
    let graph = read_text(text).unwrap().graph;
    let site = |object: u32| {
        let site = graph.site(graph.site_of(ObjectId(object))?);
        Some((graph.name(site.file), site.line))
    };
    // The second was allocated by `keep`, the first by a function of the virtual machine that it called, the third by an unknown call.
    assert_eq!([0, 1, 2, 3].map(site), [None, Some(("app.js", 4)), Some(("app.js", 4)), None]);
}

#[test]
fn a_file_that_is_cut_off_is_read_to_there() {
    let nodes = [("synthetic", "root", 0), ("object", "A", 8), ("string", "text", 16)];
    let heap = Heap::new(&nodes, &[(0, "shortcut", "a", 1), (1, "property", "b", 2)]);
    let text_whole = text(&heap.json());
    // With sorted keys, the description comes after what it describes.
    let error = read_text(&heap.json().to_string()).unwrap_err().to_string();
    assert!(error.contains("a description of the fields (`meta`) before them"), "{error}");
    let mut seen = std::collections::BTreeSet::new();
    for end in 0..text_whole.len() {
        match read_text(&text_whole[..end]) {
            Ok(snapshot) => {
                let graph = &snapshot.graph;
                assert!(
                    snapshot.warnings[0].starts_with("The file ends before its end: "),
                    "{:?}",
                    snapshot.warnings
                );
                let edges = graph
                    .objects()
                    .flat_map(|object| graph.edges(object))
                    .filter(|edge| !is_hung(graph, edge))
                    .count();
                assert_eq!(snapshot.is_partial, edges < 2);
                sizes(&snapshot);
                seen.insert((graph.len(), edges, snapshot.warnings.len()));
            }
            Err(error) => assert_eq!(
                error.to_string(),
                "this V8 heap snapshot cannot be read: it ends before it says which fields its nodes have"
            ),
        }
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
    assert_eq!(sizes(&read_text(&text_whole).unwrap()), [(0, 24), (24 - 16, 24), (16, 16)]);
}

#[test]
fn references_that_do_not_fit_are_counted() {
    let heap = Heap::new(&[("synthetic", "", 0), ("object", "A", 8)], &[(0, "element", "1", 1)]);
    let mut json = heap.json();
    let edges = json["edges"].as_array_mut().unwrap();
    edges.splice(0..0, [0, 99, 7, 0, 0, 8, 0, 0, 14].map(Value::from));
    json["nodes"][4] = 3.into();
    json["nodes"][7 + 1] = 77.into();
    let warnings = read_text(&text(&json)).unwrap().warnings;
    let expected = [
        "1 references belong to no object.",
        "2 references lead to no object.",
        "The names of 1 objects are not in the file.",
    ];
    assert_eq!(warnings, expected);
    json["nodes"][4] = 5.into();
    let snapshot = read_text(&text(&json)).unwrap();
    assert_eq!((snapshot.is_partial, snapshot.graph.edges_len()), (true, 2));
    assert_eq!(snapshot.warnings[0], "1 references are missing, so retained sizes are unknown.");
}

/// Computes what holds what, by the rules as they are stated, from the parsed document.
fn holds(heap: &Heap) -> Vec<(u32, u32)> {
    let mut owned = vec![false; heap.nodes.len()];
    for _ in 0..=heap.nodes.len() {
        for (from, kind, _, to) in &heap.edges {
            let is_start = *from == 0 && *kind == "shortcut";
            owned[*to as usize] |= is_start || owned[*from as usize] && *kind != "weak";
        }
    }
    let holds = |(from, kind, name, to): &(u32, &str, String, u32)| {
        let is_table =
            *kind == "internal" && name.ends_with(&format!("pair in WeakMap (table @{})", 2 * from + 1));
        let by_root = *from == 0 || *kind != "shortcut" && (owned[*from as usize] || !owned[*to as usize]);
        *kind != "weak" && from != to && !is_table && by_root
    };
    heap.edges.iter().filter(|edge| holds(edge)).map(|(from, _, _, to)| (*from, *to)).collect()
}

/// Returns own bytes after parts gave theirs to the only whole that reaches them through parts.
fn moved(heap: &Heap) -> Vec<u64> {
    let len = heap.nodes.len();
    let is_part = |at: usize| {
        let (kind, name, _) = &heap.nodes[at];
        ["hidden", "array"].contains(kind) || *kind == "native" && name == "system / ExternalStringData"
    };
    let mut bytes: Vec<u64> = heap.nodes.iter().map(|node| node.2).collect();
    let has_user = heap.edges.iter().any(|edge| edge.0 == 0 && heap.nodes[edge.3 as usize].0 != "synthetic");
    if !has_user {
        return bytes;
    }
    let mut wholes = vec![Vec::new(); len];
    for whole in (0..len).filter(|at| !is_part(*at)) {
        let mut reached = vec![false; len];
        reached[whole] = true;
        for _ in 0..=len {
            for (from, kind, _, to) in &heap.edges {
                let (from, to) = (*from as usize, *to as usize);
                let passes = from == whole || is_part(from);
                reached[to] |= *kind != "weak" && reached[from] && passes && is_part(to);
            }
        }
        (0..len).filter(|at| *at != whole && reached[*at]).for_each(|at| wholes[at].push(whole));
    }
    for part in (0..len).filter(|at| is_part(*at)) {
        if let [whole] = wholes[part][..]
            && heap.nodes[whole].0 != "synthetic"
        {
            bytes[whole] += heap.nodes[part].2;
            bytes[part] = 0;
        }
    }
    bytes
}

fn heaps() -> impl Strategy<Value = Heap> {
    let node = (0..NODE_TYPES.len(), 0..4usize, 0..5u64);
    let edge = (0..14u32, 0..EDGE_TYPES.len(), 0..4usize, 0..14u32);
    (prop::collection::vec(node, 1..14), prop::collection::vec(edge, 0..40)).prop_map(|(nodes, edges)| {
        let len = nodes.len() as u32;
        let name =
            |at: usize| ["A", "system / ExternalStringData", "é\u{1f600}\n\"", "length"][at].to_owned();
        let node = |(at, (kind, text, bytes)): (usize, (usize, usize, u64))| {
            let kind = if at == 0 { "synthetic" } else { NODE_TYPES[kind] };
            (kind, name(text), bytes << (4 * at))
        };
        let edge = |(from, kind, text, to): (u32, usize, usize, u32)| {
            let (from, kind, to) = (from % len, EDGE_TYPES[kind], to % len);
            let label = match (kind, text) {
                ("element" | "hidden", at) => at.to_string(),
                (_, at @ 2..) => format!(
                    "1 / part of key (K @1) -> value (V @3) pair in WeakMap (table @{})",
                    2 * (from + at as u32 - 2) + 1
                ),
                (_, at) => name(at),
            };
            (from, kind, label, to)
        };
        let mut edges: Vec<_> = edges.into_iter().map(edge).collect();
        edges.sort_by_key(|edge| edge.0);
        Heap { nodes: nodes.into_iter().enumerate().map(node).collect(), edges }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn any_heap_is_read_as_the_obvious_reader_reads_it(heap in heaps(), is_pretty in any::<bool>()) {
        let Value::Object(json) = heap.json() else { unreachable!() };
        let value = |key: &str| if is_pretty { format!("{:#}", json[key]) } else { json[key].to_string() };
        let keys = ["snapshot", "nodes", "edges", "strings"].map(|key| format!("{key:?}:{}", value(key)));
        let snapshot = read_text(&format!("{{{}}}", keys.join(","))).unwrap();
        prop_assert_eq!(&snapshot.warnings, &Vec::<String>::new());
        let graph = &snapshot.graph;
        let bytes = moved(&heap);
        let held = holds(&heap);
        let mut edges = Vec::new();
        for object in graph.objects() {
            let (kind, name, _) = &heap.nodes[object.0 as usize];
            prop_assert_eq!(graph.size_bytes(object), bytes[object.0 as usize]);
            prop_assert_eq!(graph.name_of(object), Some(&name[..]));
            prop_assert_eq!(graph.name(graph.kind_of(object).0), *kind);
            edges.extend(graph.edges(object).map(|edge| (object.0, edge)));
        }
        let (hung, edges): (Vec<_>, Vec<_>) = edges.into_iter().partition(|(_, edge)| is_hung(graph, edge));
        prop_assert_eq!(edges.len(), heap.edges.len());
        for ((from, edge), (from_there, _, label, to)) in edges.iter().zip(&heap.edges) {
            let told = match edge.label {
                Some(EdgeLabel::Name(name)) => graph.name(name).to_owned(),
                Some(EdgeLabel::Element(at)) => at.to_string(),
                None => String::new(),
            };
            prop_assert_eq!((from, edge.target.0, told), (from_there, *to, label.clone()));
        }
        let told: Vec<(u32, u32)> =
            edges.iter().filter(|(_, edge)| edge.holds).map(|(from, edge)| (*from, edge.target.0)).collect();
        prop_assert_eq!(&told, &held);
        let hung: Vec<u32> = hung.iter().map(|(_, edge)| edge.target.0).collect();
        let expected: Vec<u32> =
            (1..heap.nodes.len() as u32).filter(|at| held.iter().all(|edge| edge.1 != *at)).collect();
        prop_assert_eq!(hung, expected);
    }

    #[test]
    fn no_damage_is_a_panic(heap in heaps(), at in any::<prop::sample::Index>(), byte in any::<u8>(), is_cut in any::<bool>()) {
        let mut text = text(&heap.json()).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if is_cut {
            text.truncate(at);
        }
        if let Ok(snapshot) = read(Source::of_bytes(&text).unwrap()) {
            sizes(&snapshot);
        }
    }
}
