//! Whole dumps: written by hand, damaged, and long enough for many blocks.

use super::*;
use mallow_heapsnap::{DominatorTree, Graph, ObjectId, Totals};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

fn snapshot(dump: &[u8]) -> Snapshot {
    let snapshot = read(Source::of_bytes(dump).unwrap()).unwrap();
    has_the_same_objects(&snapshot, &read_objects(Source::of_bytes(dump).unwrap()).unwrap());
    snapshot
}

/// Reading only the objects yields the same ones, without references. Damage in skipped parts may be missed.
fn has_the_same_objects(whole: &Snapshot, objects: &Snapshot) {
    let rows = |snapshot: &Snapshot| -> Vec<_> {
        let graph = &snapshot.graph;
        let row = |object: ObjectId| {
            let class = graph.class(graph.class_of(object));
            let site = graph.site_of(object).map(|site| graph.site(site));
            let place = site.map(|site| (graph.name(site.file).to_owned(), site.line));
            let names = [class.kind.0, class.name].map(|name| graph.name(name).to_owned());
            (graph.id(object), names, graph.size_bytes(object), place, graph.generation_of(object))
        };
        graph.objects().map(row).collect()
    };
    assert_eq!((objects.graph.edges_len(), objects.strings.values.len()), (0, 0));
    if whole.warnings == objects.warnings {
        assert_eq!(rows(objects), rows(whole));
        assert_eq!((objects.is_partial, objects.other_lines), (whole.is_partial, whole.other_lines));
        assert_eq!(objects.slot_bytes, whole.slot_bytes);
    }
}

fn object(graph: &Graph, address: u64) -> ObjectId {
    graph.find(address).unwrap()
}

fn class_name(graph: &Graph, address: u64) -> &str {
    graph.name(graph.class(graph.class_of(object(graph, address))).name)
}

const HAND: &str = r#"{"type":"ROOT", "root":"vm", "references":["0x100", "0x100", "0x999"]}
{"address":"0x10", "type":"CLASS", "class":"0x18", "name":"Session", "references":["0x18"], "memsize":500}
{"address":"0x18", "type":"CLASS", "class":"0x20", "superclass":"0x10", "singleton":true, "references":[], "memsize":400}
{"address":"0x20", "type":"CLASS", "class":"0x20", "name":"Class", "references":[], "memsize":300}
{"address":"0x100", "type":"ARRAY", "length":2, "references":["0x108", "0x110", "0x100"], "memsize":40, "flags":{"old":true}}
{"address":"0x108", "type":"OBJECT", "class":"0x10", "ivars":3, "references":["0x118"], "file":"a.rb", "line":3, "generation":7, "memsize":40}
{"address":"0x110", "type":"OBJECT", "class":"0x18", "ivars":3, "references":["0x120"], "file":"a.rb", "line":3, "generation":8, "memsize":40}
{"address":"0x118", "type":"STRING", "bytesize":2, "value":"ab", "references":[], "memsize":100}
{"address":"0x120", "type":"STRING", "bytesize":2, "value":"ab", "memsize":70}
{"address":"0x128", "type":"STRING", "shared":true, "references":["0x120"], "memsize":5000000000}
{"address":"0x130", "type":"IMEMO", "class":"0x10", "imemo_type":"ment", "memsize":40}
{"address":"0x138", "type":"SHAPE", "id":1, "edges":0, "memsize":64}
{"address":"0x140", "type":"NONE"}
"#;

#[test]
fn a_dump_written_by_hand() {
    let snapshot = snapshot(HAND.as_bytes());
    let graph = &snapshot.graph;
    assert_eq!((graph.len(), snapshot.is_partial, snapshot.warnings.len()), (11, false, 0));
    assert_eq!(
        snapshot.notes,
        ["slots that hold no object: 1", "references that lead to no object of the dump: 1"]
    );
    assert_eq!(snapshot.slot_bytes, Some(400));
    assert_eq!(class_name(graph, 0x108), "Session");
    assert_eq!(
        class_name(graph, 0x110),
        "Session",
        "an object with a singleton class is of the class behind it"
    );
    assert_eq!(class_name(graph, 0x130), "ment", "the class of an object of the interpreter's is none");
    assert_eq!(class_name(graph, 0x18), "Class");
    assert_eq!(class_name(graph, 0x100), "(hidden)");
    assert_eq!(graph.name_of(object(graph, 0x10)), Some("Session"));
    assert_eq!(graph.size_bytes(object(graph, 0x128)), 5_000_000_000);
    let tree = DominatorTree::new(graph);
    let retained = |address| tree.retained_bytes(object(graph, address));
    // With the class that no other object has.
    assert_eq!(retained(0x108), Some(140 + 500));
    assert_eq!(retained(0x110), Some(110));
    // With the classes that only its objects hold.
    assert_eq!(retained(0x100), Some(40 + 140 + 110 + 500 + 400 + 300));
    assert_eq!((retained(0x128), retained(0x138)), (None, Some(64)));
    let totals = Totals::new(graph, &tree);
    assert_eq!((totals.all.objects, totals.unreachable.objects), (11, 2));
    let sites: Vec<(u64, u64)> = totals.sites.iter().map(|of| (of.sum.objects, of.sum.bytes)).collect();
    assert_eq!(sites[1], (2, 80));
    let generations: Vec<Option<u32>> = totals.generations.iter().map(|of| of.key.map(|at| at.0)).collect();
    assert_eq!(generations, [None, Some(7), Some(8)]);
    let strings = &snapshot.strings;
    let equal = &strings.values[0];
    assert_eq!((&equal.text[..], equal.strings, equal.bytes, equal.wasted_bytes), ("ab", 2, 170, 100));
    assert_eq!((strings.values.len(), strings.uncompared), (1, 1));
}

#[test]
fn a_part_of_a_heap_says_that_it_is_one() {
    let dump: String = HAND.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let partial = snapshot(dump.as_bytes());
    assert!(partial.is_partial);
    assert!(partial.notes[0].contains("has no roots"), "{:?}", partial.notes);
}

#[test]
fn what_is_damaged_is_counted_and_the_rest_is_there() {
    let mut dump = HAND.replace("\"length\":2", "\"le###ngth\":x\"2");
    dump.push_str("garbage\n{\"garbage\":1}\n{\"address\":\"0x148\", \"type\":\"STR");
    let torn = snapshot(dump.as_bytes());
    assert_eq!(torn.graph.len(), 11);
    assert_eq!(torn.warnings.len(), 1);
    let first = dump.find("{\"address\":\"0x100\"").unwrap();
    let expected = format!("3 of 13 lines are damaged, the first at byte {first}: of 1 their address");
    assert!(torn.warnings[0].starts_with(&expected), "{}", torn.warnings[0]);
    let tree = DominatorTree::new(&torn.graph);
    assert_eq!(tree.retained_bytes(object(&torn.graph, 0x100)), Some(1490), "its references were rescued");
    let twice = snapshot(format!("{HAND}{HAND}").as_bytes());
    assert!(
        twice.warnings[0].starts_with("11 objects lie at the address of another one"),
        "{:?}",
        twice.warnings
    );
}

#[test]
fn of_a_torn_archive_what_is_there_is_read() {
    use std::io::Write;
    let dump = long_dump(30_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(dump.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let half = snapshot(&packed[..packed.len() / 2]);
    assert!(
        !half.is_whole() && half.graph.len() > 5_000 && half.graph.len() < 30_000,
        "{}",
        half.graph.len()
    );
    assert!(half.warnings[0].starts_with("it cannot be read behind byte "), "{:?}", half.warnings);
    assert!(snapshot(&packed).is_whole());
}

/// Lines in the format of each version.
#[test]
fn every_version_is_read() {
    // 2.1 writes control characters unescaped and has no flags; up to 2.4 there are nodes; 3.2 has slots of several
    // sizes and shapes; later versions leave out contents that are empty or unwanted, and flags need not be true.
    let versions = [
        "{\"address\":\"0x8\", \"type\":\"STRING\", \"class\":\"0x10\", \"bytesize\":3, \"value\":\"a\u{1}\u{1f}\", \"memsize\":40}",
        r#"{"address":"0x8", "type":"NODE", "node_type":"NODE_SCOPE", "references":["0x8"], "memsize":40, "flags":{"long_lived":true}}"#,
        r#"{"address":"0x8", "type":"OBJECT", "shape_id":7, "slot_size":160, "class":"0x10", "embedded":true, "ivars":9, "memsize":160, "flags":{"wb_protected":true, "age":3}}"#,
        r#"{"address":"0x8", "type":"STRING", "shape_id":0, "slot_size":40, "class":"0x10", "chilled":true, "embedded":true, "bytesize":0, "encoding":"UTF-8", "coderange":"7bit", "memsize":40, "flags":{"old":null}}"#,
        r#"{"address":"0x8", "type":"IMEMO", "slot_size":40, "imemo_type":"callcache", "called_id":"foo", "receiver_class":"0x10", "memsize":40}"#,
        r#"{"address":"0x8", "type":"ZOMBIE", "class":"0x10", "frozen":true}"#,
        r#"{"address":"0x8", "type":"DATA", "class":"0x10", "struct":"VM/thread", "references":[], "memsize":40}"#,
    ];
    let (mut kinds, mut slots) = (Vec::new(), Vec::new());
    for line in versions {
        let read = snapshot(
            format!("{{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x8\"]}}\n{line}\n").as_bytes(),
        );
        assert_eq!((read.graph.len(), &read.warnings[..]), (1, &[][..]), "{line}");
        kinds.push(read.graph.name(read.graph.kind_of(ObjectId(0)).0).to_owned());
        slots.push(read.slot_bytes);
    }
    assert_eq!(kinds, ["STRING", "NODE", "OBJECT", "STRING", "IMEMO", "ZOMBIE", "DATA"]);
    assert_eq!((slots[0], slots[2], slots[3]), (Some(40), Some(160), Some(40)));
}

#[test]
fn every_beginning_of_a_dump_is_read() {
    for len in 0..HAND.len() {
        let snapshot = snapshot(&HAND.as_bytes()[..len]);
        assert!(snapshot.graph.len() <= 11);
        DominatorTree::new(&snapshot.graph);
    }
}

/// Returns a dump of several blocks. Some names of files have line feeds, some objects refer to those of another block.
fn long_dump(objects: u64) -> String {
    let mut dump = "{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x1000000\"]}\n".to_owned();
    for at in 0..objects {
        let address = |at: u64| 0x0100_0000 + at * 40;
        let (next, other) = (address((at + 1) % objects), address(at * 7919 % objects));
        let file = if at % 3 == 0 { "app/\nmodels.rb" } else { "app/models.rb" };
        writeln!(
            dump,
            "{{\"address\":\"{:#x}\", \"type\":\"STRING\", \"class\":\"0x1000028\", \"bytesize\":20, \"value\":\"value {}\", \
             \"references\":[\"{next:#x}\", \"{other:#x}\"], \"file\":\"{file}\", \"line\":{}, \"generation\":{}, \"memsize\":{}, \
             \"flags\":{{\"wb_protected\":true}}}}",
            address(at), at % 1000, at % 50, at / 1000, 40 + at % 64
        )
        .unwrap();
    }
    dump
}

#[test]
fn many_blocks_are_one_dump() {
    let objects = 60_000;
    let dump = long_dump(objects);
    assert!(dump.len() > 3 * (4 << 20), "{} bytes", dump.len());
    let snapshot = snapshot(dump.as_bytes());
    let graph = &snapshot.graph;
    // The reference implementation: a JSON parser, line by line.
    let lines = dump.replace("/\nm", "/\\nm");
    let values: Vec<Value> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |value: &Value| u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
    let index: HashMap<u64, u32> =
        values.iter().zip(0..).map(|(value, at)| (number(&value["address"]), at)).collect();
    assert_eq!(graph.len(), values.len());
    for (object, value) in graph.objects().zip(&values) {
        assert_eq!(graph.id(object), number(&value["address"]));
        assert_eq!(graph.size_bytes(object), value["memsize"].as_u64().unwrap());
        assert_eq!(graph.generation_of(object).map(|at| u64::from(at.0)), value["generation"].as_u64());
        let site = graph.site(graph.site_of(object).unwrap());
        assert_eq!(
            (graph.name(site.file), u64::from(site.line)),
            (value["file"].as_str().unwrap(), value["line"].as_u64().unwrap())
        );
        let references: Vec<u32> =
            value["references"].as_array().unwrap().iter().map(|of| index[&number(of)]).collect();
        assert_eq!(graph.edges(object).map(|edge| edge.target.0).collect::<Vec<_>>(), references);
    }
    assert_eq!(graph.sites().len(), 100);
    assert_eq!(snapshot.strings.values.len(), 1000);
    assert!(
        snapshot.strings.values.iter().all(|value| value.strings == 60 && value.text.starts_with("value "))
    );
}
