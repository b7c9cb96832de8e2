//! Objects that stay, go, come, grow and take each other's place.

use super::*;
use crate::Histogram;
use crate::growth::Growth;
use crate::{Class, ClassId, DuplicateStrings, GraphParts, KindId, Names};

/// Objects as (address, class, bytes, generation + 1).
fn graph(runtime: Runtime, objects: &[(u64, &str, u64, u32)]) -> Snapshot {
    let mut names = Names::default();
    let kind = KindId(names.intern("OBJECT"));
    let mut parts = GraphParts { edge_starts: vec![0; objects.len() + 1], ..GraphParts::default() };
    for (id, class, bytes, generation) in objects {
        let name = names.intern(class);
        let known = parts.classes.iter().position(|class| class.name == name);
        let class = known.unwrap_or_else(|| {
            parts.classes.push(Class { kind, name, object: None });
            parts.classes.len() - 1
        });
        parts.ids.push(*id);
        parts.class_of.push(ClassId(class as u32));
        parts.sizes.push(*bytes);
        parts.generation_of.push(*generation);
    }
    parts.names = names;
    Snapshot {
        graph: Graph::new(runtime, parts),
        strings: DuplicateStrings::default(),
        is_partial: false,
        slot_bytes: None,
        other_lines: 0,
        warnings: Vec::new(),
        notes: Vec::new(),
    }
}

fn new_of(diff: &HeapDiff) -> Vec<(&str, u64, u64)> {
    diff.new.iter().map(|new| (&new.class[..], new.sum.objects, new.sum.bytes)).collect()
}

#[test]
fn an_object_is_the_same_by_address_class_and_generation_and_never_by_size() {
    let before = graph(
        Runtime::Ruby,
        &[(8, "Cache", 100, 3), (16, "Session", 40, 3), (24, "String", 40, 3), (32, "String", 40, 3)],
    );
    let after = graph(
        Runtime::Ruby,
        // The cache grew; a session of a later generation lies where one lay; a string became an array; one is gone.
        &[(8, "Cache", 900, 3), (16, "Session", 40, 9), (24, "Array", 40, 9), (40, "String", 7, 2)],
    );
    let diff = diff(&before, &after, None);
    assert_eq!(diff.identity, Identity::AddressAndGeneration);
    assert_eq!(new_of(&diff), [("Array", 1, 40), ("Session", 1, 40), ("String", 1, 7)]);
    assert_eq!(diff.grown, [Grown { class: "Cache".into(), objects: 1, bytes: 800 }]);
    assert_eq!((diff.gone.objects, diff.gone.bytes), (3, 120));
    assert_eq!(diff.moved, 1, "the string of the first generations was made before the first snapshot");
    assert_eq!(diff.new[1].generations, Some((8, 8)));
    let names: Vec<&str> = diff.classes.iter().map(|class| &class.name[..]).collect();
    assert_eq!(names, ["Cache", "Array", "String"], "the number of sessions is the same");
}

#[test]
fn with_a_third_snapshot_only_what_stays_is_new() {
    let [before, after, later] = [
        graph(Runtime::V8, &[(1, "A", 10, 0)]),
        graph(Runtime::V8, &[(1, "A", 10, 0), (3, "B", 20, 0), (5, "B", 30, 0)]),
        graph(Runtime::V8, &[(1, "A", 10, 0), (5, "B", 30, 0), (7, "C", 50, 0)]),
    ];
    let two = diff(&before, &after, None);
    assert_eq!((two.identity, new_of(&two)), (Identity::Number, vec![("B", 2, 50)]));
    let three = diff(&before, &after, Some(&later));
    assert_eq!((new_of(&three), three.new_sum.bytes), (vec![("B", 1, 30)], 30));
    let mut growth = Growth::default();
    [&before, &after, &later].iter().for_each(|graph| growth.add(&Histogram::of(graph)));
    let classes = growth.finish().classes;
    let of = |name: &str| classes.iter().find(|class| class.name == name).unwrap();
    assert_eq!((&of("B").objects[..], &of("C").bytes[..]), (&[0, 2, 1][..], &[0, 0, 50][..]));
    assert!(!of("B").grows_in_each() && !of("A").grows_in_each());
}

#[test]
fn of_a_jvm_only_classes_are_compared() {
    let (before, after) =
        (graph(Runtime::Jvm, &[(8, "A", 10, 0)]), graph(Runtime::Jvm, &[(16, "A", 10, 0), (24, "A", 5, 0)]));
    let diff = diff(&before, &after, None);
    assert_eq!((diff.identity, diff.new.len(), diff.classes.len()), (Identity::Classes, 0, 1));
    assert_eq!((diff.classes[0].before.objects, diff.classes[0].after.bytes), (1, 15));
}

#[test]
fn a_part_of_a_heap_makes_no_whole_comparison() {
    let whole = graph(Runtime::Ruby, &[(8, "A", 10, 1)]);
    assert!(diff(&whole, &whole, Some(&whole)).is_complete);
    let partial = Snapshot { is_partial: true, ..whole.clone() };
    let damaged = Snapshot { warnings: vec!["torn".into()], ..whole.clone() };
    for part in [partial, damaged] {
        assert!(!diff(&part, &whole, None).is_complete);
        assert!(!diff(&whole, &part, None).is_complete);
        assert!(!diff(&whole, &whole, Some(&part)).is_complete);
        let mut growth = Growth::default();
        growth.add(&Histogram::of(&whole));
        assert!(growth.clone().finish().is_complete);
        growth.add(&Histogram::of(&part));
        assert!(!growth.finish().is_complete);
    }
}

#[test]
fn an_object_of_v8_may_be_called_otherwise_later() {
    let [before, after] = [
        graph(Runtime::V8, &[(1, "Object", 10, 0), (3, "Object", 10, 0), (5, "Gone", 1, 0)]),
        graph(Runtime::V8, &[(1, "{a, b}", 10, 0), (3, "Object", 12, 0), (7, "{a, b}", 10, 0)]),
    ];
    let diff = diff(&before, &after, None);
    assert_eq!((new_of(&diff), diff.gone.objects), (vec![("{a, b}", 1, 10)], 1));
    let change = |name: &str| {
        let class = diff.classes.iter().find(|class| class.name == name).unwrap();
        (class.before.objects, class.after.objects)
    };
    assert_eq!((change("{a, b}"), change("Object"), change("Gone")), ((1, 2), (1, 1), (1, 0)));
}
