//! The reports as they are shown.

use super::*;
use crate::Style;
use insta::assert_snapshot;
use mallow_base::Frame;
use mallow_view::Origin;
use mallow_view::heap::{
    ClassChange, ClassReport, ClassSeries, Explanation, FieldRow, GenerationRow, Generations, GroupRow,
    Grown, HeapDiff, HeapGrowth, HeapLimit, HeapOutcome, HeapReport, HeldGrowth, HeldRow, HistogramReport,
    Identity, LimitKind, NativeRow, NewObjects, ObjectId, ObjectReport, ObjectRow, Part, PartRow, StringRow,
    Sum,
};

const MIB: u64 = 1 << 20;

fn sum(objects: u64, bytes: u64, retained_bytes: u64) -> Sum {
    Sum { objects, bytes, retained_bytes }
}

fn group(name: &str, kind: &str, sum: Sum) -> GroupRow {
    GroupRow { name: name.into(), kind: kind.into(), sum }
}

fn object_row(id: &str, label: &str, bytes: u64, retained: Option<u64>) -> ObjectRow {
    ObjectRow { id: id.into(), label: label.into(), bytes, retained_bytes: retained }
}

fn heap() -> HeapReport {
    HeapReport {
        file: "tmp/after an hour.json".into(),
        format: Origin { word: "ruby-heap", name: "Ruby heap dump", is_trace: false },
        all: sum(8_017_167, 1200 * MIB, 1199 * MIB),
        unreachable: sum(1200, MIB, 0),
        is_partial: false,
        has_sites: true,
        kinds: vec![group("OBJECT", "", sum(2_000_000, 76 * MIB, 678 * MIB))],
        classes: vec![
            group("Array", "ARRAY", sum(2_000_000, 93 * MIB, 695 * MIB)),
            group("Session", "OBJECT", sum(2_000_000, 76 * MIB, 678 * MIB)),
            group("A::Name::That::Is::Long::Enough::To::Be::Cut", "OBJECT", sum(3, 120, 120)),
        ],
        sites: vec![
            group("(not traced)", "", sum(17_142, 3 * MIB, 3 * MIB)),
            group("/srv/app/models/session.rb:12", "", sum(6_000_000, 602 * MIB, 602 * MIB)),
        ],
        generations: vec![
            GenerationRow { generation: None, sum: sum(17_142, 3 * MIB, 3 * MIB) },
            GenerationRow { generation: Some(9), sum: sum(4, 160, 160) },
            GenerationRow { generation: Some(10), sum: sum(7, 280, 280) },
        ],
        retainers: vec![
            object_row("0x7efca7676c90", "Array", 16 * MIB, Some(695 * MIB)),
            object_row("0x10", "Class Session", 824, None),
        ],
        strings: vec![StringRow {
            text: "say \"hi\"\n".into(),
            is_whole: false,
            strings: 108,
            bytes: 4320,
            wasted_bytes: 4280,
        }],
        string_contents: 1,
        strings_wasted_bytes: 4280,
        strings_uncompared: 308,
        own_class: Some("Session".into()),
        warnings: Vec::new(),
        notes: vec!["references that lead to no object of the dump: 1".into()],
    }
}

fn object_page() -> ObjectReport {
    let session = object_row("0x7efcab3d0d70", "Session", 40, Some(321));
    let field = |field: &str, holds, object| FieldRow { field: field.into(), holds, object };
    ObjectReport {
        object: session.clone(),
        is_partial: false,
        kind: "OBJECT".into(),
        site: Some("/srv/app/models/session.rb:12".into()),
        generation: Some(9),
        roots: Vec::new(),
        references: vec![
            field("", true, object_row("0x20", "String", 40, Some(100))),
            field(".cache", false, object_row("0x28", "Hash", 40, None)),
        ],
        referrers: vec![field("[3]", true, object_row("0x7efca7676c90", "Array", 400, Some(3210)))],
        path_root: Some("global_tbl".into()),
        path: vec![
            field("", true, object_row("0x7efca7676c90", "Array", 400, Some(3210))),
            field("[3]", true, session),
        ],
        dominators: vec![object_row("0x7efca7676c90", "Array", 400, Some(3210))],
        retained: vec![("String".into(), sum(2, 281, 0)), ("Session".into(), sum(1, 40, 0))],
    }
}

#[test]
fn a_heap() {
    assert_snapshot!(report(&heap(), 2, Style::PLAIN));
}

#[test]
fn the_classes_of_a_heap() {
    let HeapReport { file, format, all, classes, notes, .. } = heap();
    let report = HistogramReport { file, format, all, classes, warnings: Vec::new(), notes };
    assert_snapshot!(histogram(&report, 2, Style::PLAIN));
}

#[test]
fn a_part_of_a_heap_has_no_retained_sizes() {
    let page = report(&HeapReport { is_partial: true, has_sites: false, ..heap() }, 1, Style::PLAIN);
    assert!(!page.contains("held by") && !page.contains("objects that retain most"), "{page}");
    let row = page.lines().find(|line| line.ends_with("Array  ARRAY")).unwrap();
    assert!(row.contains("7.8%          -"), "{row}");
}

#[test]
fn strings_that_cannot_be_compared_are_told_where_none_are_equal() {
    let page = report(&HeapReport { strings: Vec::new(), ..heap() }, 1, Style::PLAIN);
    assert!(page.contains("the dump does not contain the contents of 308 strings"), "{page}");
}

#[test]
fn an_object() {
    assert_snapshot!(object(&object_page(), 10, Style::PLAIN));
}

#[test]
fn of_a_part_of_a_heap_nobody_says_who_holds_what() {
    let not_held = |mut row: ObjectRow| {
        row.retained_bytes = None;
        row
    };
    let page = ObjectReport {
        is_partial: true,
        object: not_held(object_page().object),
        path_root: None,
        path: Vec::new(),
        dominators: Vec::new(),
        retained: Vec::new(),
        ..object_page()
    };
    let class = class(
        &ClassReport {
            is_partial: true,
            sum: sum(1000, 40_000, 0),
            objects: vec![page.object.clone()],
            example: Some(Box::new(page.clone())),
            ..class_page()
        },
        10,
        Style::PLAIN,
    );
    assert_snapshot!(object(&page, 10, Style::PLAIN) + "---\n" + &class);
}

fn class_page() -> ClassReport {
    ClassReport {
        name: "Session".into(),
        is_partial: false,
        sum: sum(1000, 40_000, 321_000),
        sites: vec![("/srv/app/models/session.rb:12".into(), sum(1000, 40_000, 0))],
        objects: vec![object_page().object],
        holders: vec![("Array[3]".into(), 1000)],
        example: Some(Box::new(object_page())),
    }
}

#[test]
fn a_class() {
    assert_snapshot!(class(&class_page(), 10, Style::PLAIN));
}

#[test]
fn what_changed() {
    let page = HeapDiff {
        identity: Identity::AddressAndGeneration,
        is_complete: true,
        before: sum(20_169, 3 * MIB, 0),
        after: sum(23_173, 4 * MIB, 0),
        classes: vec![
            ClassChange {
                name: "String".into(),
                kind: "STRING".into(),
                before: sum(10_357, MIB / 2, 0),
                after: sum(12_358, MIB, 0),
            },
            ClassChange {
                name: "Cache".into(),
                kind: "OBJECT".into(),
                before: sum(3, 4000, 0),
                after: sum(3, 100, 0),
            },
        ],
        new: vec![
            NewObjects {
                class: "String".into(),
                kind: "STRING".into(),
                site: Some("app/session.rb:3".into()),
                generations: Some((12, 14)),
                sum: sum(1000, 199_900, 0),
            },
            NewObjects {
                class: "Hash".into(),
                kind: "HASH".into(),
                site: None,
                generations: None,
                sum: sum(1, 40, 0),
            },
        ],
        new_sum: sum(1001, 199_940, 0),
        gone: sum(2, 80, 0),
        grown: vec![Grown { class: "Hash".into(), objects: 1, bytes: 28_672 }],
        moved: 7,
    };
    let files = ["before.json".to_owned(), "after.json".to_owned(), "later.json".to_owned()];
    assert_snapshot!(diff(&Compared { files: &files, diff: &page, held: None }, 10, Style::PLAIN));
    assert_snapshot!(heapy_diff(&page, true), @r"
    Retained STRING 1000 objects of size 199900/199940 (in bytes) at: app/session.rb:3
    Retained HASH 1 objects of size 40/199940 (in bytes) at: :
    ");
}

#[test]
fn who_holds_what_grew() {
    let growth = HeldGrowth {
        class: "Session".into(),
        kind: "OBJECT".into(),
        holder: Some("Array".into()),
        before: sum(10, 400, 3210),
        after: sum(1010, 40_400, 324_210),
        example: ObjectId(7),
        site: Some(("/srv/app/models/session.rb:12".into(), 1000)),
    };
    let bare = HeldGrowth { holder: None, site: None, class: "Entry".into(), ..growth.clone() };
    let rows = [growth, bare].map(|growth| HeldRow { growth, example: object_page() });
    assert_snapshot!(held(&rows, 10, Style::PLAIN).join("\n"));
    assert!(held(&[], 10, Style::PLAIN)[1].ends_with("no class has more objects and retains more"));
}

#[test]
fn what_a_comparison_rests_on() {
    let page = HeapDiff {
        identity: Identity::AddressAndGeneration,
        is_complete: false,
        before: sum(2, 80, 0),
        after: sum(2, 80, 0),
        classes: Vec::new(),
        new: Vec::new(),
        new_sum: sum(2, 80, 0),
        gone: sum(2, 80, 0),
        grown: Vec::new(),
        moved: 0,
    };
    let files = ["before.json".to_owned(), "after.json".to_owned()];
    assert_snapshot!(diff(&Compared { files: &files, diff: &page, held: None }, 10, Style::PLAIN));
}

#[test]
fn generations_as_heapy_prints_them() {
    assert_snapshot!(heapy_read(&Generations { rows: heap().generations, other_lines: 5 }), @r"

    Analyzing Heap
    ==============
    Generation: nil object count: 17147, mem: 3072.0 kb
    Generation:   9 object count: 4, mem: 0.2 kb
    Generation:  10 object count: 7, mem: 0.3 kb

    Heap total
    ==============
    Generations (active): 3
    Count: 17158
    Memory: 3072.4 kb
    ");
}

#[test]
fn a_series() {
    let class = |name: &str, objects: [u64; 3], bytes: [u64; 3]| ClassSeries {
        name: name.into(),
        kind: "OBJECT".into(),
        objects: objects.into(),
        bytes: bytes.into(),
    };
    let classes = [
        class("Session", [1000, 2000, 3000], [40_000, 80_000, 120_000]),
        class("Hash", [104, 104, 104], [100, 200, 400_000]),
        class("Gone", [5, 3, 1], [500, 300, 100]),
    ];
    let series = |classes: &[ClassSeries]| HeapGrowth { classes: classes.to_vec(), is_complete: true };
    assert_snapshot!(growth(3, &series(&classes), 10, Style::PLAIN), @r"
    3 snapshots: 1 class with more objects in each than in the one before

        grew by  classes, with their objects in each
       78.1 KiB  Session  in each step
                   1,000 → 2,000 → 3,000
        391 KiB  Hash
                   104 → 104 → 104
    ");
    assert_snapshot!(growth(3, &series(&classes[2..]), 10, Style::PLAIN), @r"
    3 snapshots: 0 classes with more objects in each than in the one before
    no class has more bytes in the last than in the first
    ");
    let parts = growth(3, &HeapGrowth { is_complete: false, ..series(&classes[2..]) }, 10, Style::PLAIN);
    assert!(parts.contains("note: not each file holds a whole heap"), "{parts}");
}

#[test]
fn limits_that_hold_fail_and_cannot_be_told() {
    let outcome = |class: Option<&str>, kind, max, found, reason: Option<&str>| HeapOutcome {
        limit: HeapLimit { class: class.map(str::to_owned), kind, max },
        found,
        reason: reason.map(str::to_owned),
    };
    let outcomes = [
        outcome(Some("Session"), LimitKind::Objects, 100, Some(3000), None),
        outcome(Some("Cache"), LimitKind::Retained, MIB, Some(700), None),
        outcome(None, LimitKind::Bytes, MIB, None, Some("the dump is damaged")),
    ];
    assert_snapshot!(limits(&outcomes, Style::PLAIN), @r"
    FAILED  Session has 3,000 objects, at most 100 objects allowed
    OK      Cache retains 700 B, at most 1.00 MiB allowed
    UNKNOWN the heap: the dump is damaged
    3 limits: 1 failed, 1 could not be judged
    ");
}

#[test]
fn where_memory_is() {
    let part = |part, bytes, before, note: &str| PartRow { part, bytes, before, note: note.into() };
    let frame = Frame {
        function: "handle".into(),
        file: Some("stack_leak.c".into()),
        line: Some(20),
        ..Frame::default()
    };
    let native = |module: &str, is_runtime, bytes, frame: Option<Frame>| NativeRow {
        module: module.into(),
        is_runtime,
        bytes,
        frame_bytes: bytes,
        frame,
    };
    let page = Explanation {
        resident_bytes: Some(284 * MIB),
        resident_before: Some(30 * MIB),
        parts: vec![
            part(Part::Managed, Some(3 * MIB), Some(3 * MIB), "17,192 objects"),
            part(
                Part::Native,
                Some(265 * MIB),
                Some(7 * MIB),
                "what glibc malloc says is allocated, without objects' contents",
            ),
            part(Part::Allocator, None, None, "give --malloc-info or --jemalloc"),
            part(Part::Unexplained, Some(5 * MIB), Some(9 * MIB), ""),
        ],
        culprit: Some(Part::Native),
        is_compared: true,
        sentences: vec![
            "What grew is native, outside of the managed heap: look at the calls that allocate it".into(),
        ],
        native: vec![
            native("stack_leak.so", false, 255 * MIB, Some(frame)),
            native("libruby.so", true, 3 * MIB, None),
        ],
    };
    assert_snapshot!(explain(&page, 10, Style::PLAIN));
}
