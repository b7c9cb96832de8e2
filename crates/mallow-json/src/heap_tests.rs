//! Every document fits the published schema.

use super::*;
use crate::schema_tests::assert_fits;
use mallow_view::Origin;
use mallow_view::heap::{ClassSeries, GenerationRow, Grown, HeapLimit, HeldGrowth, ObjectId, StringRow};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/schema/heap.json")).unwrap()
}

const SUM: Sum = Sum { objects: 2, bytes: 80, retained_bytes: 640 };

fn row() -> ObjectRow {
    ObjectRow { id: "0x7f10".into(), label: "Session".into(), bytes: 40, retained_bytes: Some(320) }
}

fn field() -> FieldRow {
    FieldRow { field: ".list".into(), holds: true, object: row() }
}

fn object_page() -> ObjectReport {
    ObjectReport {
        object: ObjectRow { retained_bytes: None, ..row() },
        is_partial: false,
        kind: "OBJECT".into(),
        site: Some("a.rb:3".into()),
        generation: Some(7),
        roots: vec!["vm".into()],
        references: vec![field()],
        referrers: vec![field()],
        path_root: Some("vm".into()),
        path: vec![field()],
        dominators: vec![row()],
        retained: vec![("String".into(), SUM)],
    }
}

pub(crate) fn held_rows() -> [HeldRow; 2] {
    [held_row(Some("Array")), held_row(None)]
}

fn held_row(holder: Option<&str>) -> HeldRow {
    let growth = HeldGrowth {
        class: "Session".into(),
        kind: "OBJECT".into(),
        holder: holder.map(str::to_owned),
        before: SUM,
        after: SUM,
        example: ObjectId(1),
        site: holder.map(|_| ("a.rb:3".to_owned(), 2)),
    };
    HeldRow { growth, example: object_page() }
}

fn heap() -> HeapReport {
    let group = |kind: &str| vec![GroupRow { name: "Session".into(), kind: kind.into(), sum: SUM }];
    HeapReport {
        file: "dump.json".into(),
        format: Origin { word: "ruby-heap", name: "Ruby heap dump", is_trace: false },
        all: SUM,
        unreachable: Sum::default(),
        is_partial: false,
        has_sites: true,
        kinds: group(""),
        classes: group("OBJECT"),
        sites: group(""),
        generations: vec![GenerationRow { generation: None, sum: SUM }],
        retainers: vec![row()],
        strings: vec![StringRow {
            text: "a".into(),
            is_whole: true,
            strings: 2,
            bytes: 80,
            wasted_bytes: 40,
        }],
        string_contents: 1,
        strings_wasted_bytes: 40,
        strings_uncompared: 3,
        own_class: None,
        warnings: vec!["w".into()],
        notes: vec!["n".into()],
    }
}

#[test]
fn a_heap_fits_the_schema() {
    let whole = report(&heap());
    assert_fits(&whole, &schema());
    assert_eq!(
        (&whole["classes"][0]["retained_bytes"], &whole["unreachable_bytes"]),
        (&json!(640), &json!(0))
    );
    let partial = report(&HeapReport { is_partial: true, has_sites: false, ..heap() });
    assert_fits(&partial, &schema());
    assert_eq!(
        (&partial["classes"][0]["retained_bytes"], &partial["unreachable_bytes"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(partial["sites"], json!([]));
}

#[test]
fn an_object_and_a_class_fit_the_schema() {
    assert_fits(&object(&object_page()), &schema());
    let page = ClassReport {
        name: "Session".into(),
        is_partial: false,
        sum: SUM,
        sites: vec![("a.rb:3".into(), SUM)],
        objects: vec![row()],
        holders: vec![("Array".into(), 2)],
        example: Some(Box::new(object_page())),
    };
    assert_fits(&class(&page), &schema());
    let partial = class(&ClassReport { example: None, is_partial: true, ..page });
    assert_fits(&partial, &schema());
    assert_eq!(partial["retained_bytes"], json!(null));
}

#[test]
fn comparisons_and_limits_fit_the_schema() {
    let changed = HeapDiff {
        identity: Identity::Address,
        is_complete: true,
        before: SUM,
        after: SUM,
        classes: vec![mallow_view::heap::ClassChange {
            name: "A".into(),
            kind: "OBJECT".into(),
            before: SUM,
            after: SUM,
        }],
        new: vec![NewObjects {
            class: "A".into(),
            kind: "OBJECT".into(),
            site: None,
            generations: Some((3, 4)),
            sum: SUM,
        }],
        new_sum: SUM,
        gone: Sum::default(),
        grown: vec![Grown { class: "Hash".into(), objects: 1, bytes: 9 }],
        moved: 1,
    };
    let files = ["a".to_owned(), "b".to_owned()];
    assert_fits(&diff(&files, &changed, None), &schema());
    let held = held_rows();
    for identity in [Identity::Number, Identity::AddressAndGeneration, Identity::Address, Identity::Classes] {
        assert_fits(&diff(&files, &HeapDiff { identity, ..changed.clone() }, Some(&held)), &schema());
    }
    let series =
        ClassSeries { name: "A".into(), kind: "OBJECT".into(), objects: vec![1, 2], bytes: vec![40, 80] };
    let series = HeapGrowth { classes: vec![series], is_complete: false };
    assert_fits(&growth(&files, &series), &schema());
    for kind in [LimitKind::Objects, LimitKind::Bytes, LimitKind::Retained] {
        let limit = HeapLimit { class: Some("A".into()), kind, max: 3 };
        let unknown = HeapOutcome {
            limit: HeapLimit { class: None, ..limit.clone() },
            found: None,
            reason: Some("r".into()),
        };
        assert_fits(&check(&[HeapOutcome { limit, found: Some(4), reason: None }, unknown], 1), &schema());
    }
}

#[test]
fn an_explanation_fits_the_schema() {
    use mallow_view::heap::{Moment, NativeRow, explain as explained};
    let row = NativeRow { module: "ext.so".into(), is_runtime: false, bytes: 9, frame: None, frame_bytes: 0 };
    let now = Moment { resident_bytes: Some(100), live: Some(vec![row]), ..Moment::default() };
    for before in [None, Some(&Moment::default()), Some(&now)] {
        assert_fits(&explain(&explained(before, &now)), &schema());
    }
}
