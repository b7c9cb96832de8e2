//! A heap of a few objects, and files with errors.

use super::*;
use mallow_heapsnap::{DominatorTree, Sum, sum_of};

const HEAP: &str = r#"{"mallow":"python-heap/1","version":"3.11.7","traced":true}
{"root":"module app","r":[10]}
{"root":"native code","r":[70]}
{"type":0,"name":"module","kind":"builtin"}
{"at":10,"t":0,"s":72,"r":[20],"name":"app"}
{"type":1,"name":"dict","kind":"builtin"}
{"type":2,"name":"str","kind":"builtin"}
{"type":3,"name":"app.Session","kind":"instance"}
{"type":4,"name":"list","kind":"builtin"}
{"site":0,"file":"/srv/app.py","line":12}
{"at":20,"t":1,"s":232,"r":[30,40],"l":[null,"SESSIONS"]}
{"at":30,"t":2,"s":57,"h":7,"n":8,"v":"SESSIONS"}
{"at":40,"t":4,"s":600,"r":[50,60],"i":true}
{"at":50,"t":3,"s":48,"r":[61,99],"l":["user",null],"m":0}
{"at":60,"t":3,"s":48,"r":[62],"l":["user"],"m":0}
{"at":61,"t":2,"s":54,"h":9,"n":5,"v":"ab\"\u00fc"}
{"at":62,"t":2,"s":54,"h":9,"n":5,"v":"ab\"\u00fc"}
{"at":70,"t":1,"s":64,"r":[30],"l":[4]}
{"end":9}
"#;

fn of(text: &str) -> Snapshot {
    read(Source::of_bytes(text.as_bytes()).unwrap()).unwrap()
}

#[test]
fn objects_have_types_names_lines_and_labels() {
    let snapshot = of(HEAP);
    assert_eq!(snapshot.warnings, [] as [&str; 0]);
    assert!(!snapshot.is_partial && snapshot.is_whole());
    let graph = &snapshot.graph;
    let find = |address| graph.find(address).unwrap();
    let class = |address| graph.name(graph.class(graph.class_of(find(address))).name);
    assert_eq!([class(10), class(50), class(62)], ["module", "app.Session", "str"]);
    assert_eq!((graph.name_of(find(10)), graph.name_of(find(50))), (Some("app"), None));
    let site = graph.site(graph.site_of(find(60)).unwrap());
    assert_eq!((graph.name(site.file), site.line), ("/srv/app.py", 12));
    assert!(graph.site_of(find(10)).is_none());
    let labels = |address| -> Vec<String> {
        let text = |label| match label {
            Some(EdgeLabel::Name(name)) => graph.name(name).to_owned(),
            Some(EdgeLabel::Element(index)) => index.to_string(),
            None => "-".to_owned(),
        };
        let to = |edge: mallow_heapsnap::Edge| format!("{} {}", text(edge.label), graph.id(edge.target));
        graph.edges(find(address)).map(to).collect()
    };
    assert_eq!(labels(20), ["- 30", "SESSIONS 40"]);
    assert_eq!(labels(40), ["0 50", "1 60"]);
    assert_eq!(labels(50), ["user 61"], "what names nothing is left out");
    assert_eq!((labels(60), labels(70)), (vec!["user 62".to_owned()], vec!["4 30".to_owned()]));
    assert!(snapshot.notes[1].ends_with("no object of the snapshot: 1"), "{:?}", snapshot.notes);
    let tree = DominatorTree::new(graph);
    let is_session = |object| graph.name(graph.class(graph.class_of(object)).name) == "app.Session";
    assert_eq!(
        sum_of(graph, &tree, is_session),
        Sum { objects: 2, bytes: 96, retained_bytes: 96 + 108 },
        "each holds its text"
    );
    // The string that both dictionaries hold is retained by neither.
    assert_eq!(tree.retained_bytes(find(70)), Some(64));
    assert_eq!(tree.retained_bytes(find(10)), Some(72 + 232 + 600 + 96 + 108));
    // All but the list are small enough for Python's own allocator.
    assert_eq!(snapshot.slot_bytes, Some(72 + 232 + 57 + 96 + 108 + 64));
    let [content] = &snapshot.strings.values[..] else { panic!("{:?}", snapshot.strings) };
    assert_eq!((&content.text[..], content.strings, content.wasted_bytes), ("ab\"ü", 2, 54));
}

#[test]
fn contents_that_were_left_out_are_compared_all_the_same() {
    let without = HEAP.replace(",\"v\":\"ab\\\"\\u00fc\"", "");
    let [content] = &of(&without).strings.values[..] else { panic!("not one") };
    assert_eq!((&content.text[..], content.is_whole, content.strings), ("0000000000000009", false, 2));
}

#[test]
fn damage_is_counted_and_the_rest_is_read() {
    let bad = HEAP.replace("{\"at\":40,\"t\":4", "{\"at\":40,\"t\":77").replace("{\"at\":61,", "{\"at\":6~,");
    let snapshot = of(&bad);
    assert_eq!(snapshot.graph.len(), 7);
    assert!(snapshot.warnings[0].starts_with("2 of 19 lines are damaged"), "{:?}", snapshot.warnings);
    assert!(!snapshot.is_whole());
    let lost = HEAP.replace("{\"end\":9}", "{\"end\":10}");
    assert_eq!(of(&lost).warnings, ["9 of 10 objects are there"]);
    let no_roots: String =
        HEAP.lines().filter(|line| !line.contains("root")).map(|line| format!("{line}\n")).collect();
    assert!(of(&no_roots).is_partial);
}

#[test]
fn a_size_that_nobody_knows_is_said() {
    let unsized_one = HEAP.replace("{\"at\":10,\"t\":0,\"s\":72", "{\"at\":10,\"t\":0");
    assert_ne!(unsized_one, HEAP);
    let snapshot = of(&unsized_one);
    assert_eq!(snapshot.warnings, ["1 objects have no size and count as 0 bytes"]);
    assert!(!snapshot.is_whole());
}

#[test]
fn every_cut_is_read_to_there() {
    for end in 0..HEAP.len() - 1 {
        let snapshot = of(&HEAP[..end]);
        assert!(!snapshot.warnings.is_empty(), "cut at {end}");
        DominatorTree::new(&snapshot.graph);
    }
}

#[test]
fn a_newer_kind_is_refused() {
    let newer = HEAP.replace("python-heap/1", "python-heap/2");
    let error = read(Source::of_bytes(newer.as_bytes()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("python-heap/2") && error.contains("newer mallow"), "{error}");
}
