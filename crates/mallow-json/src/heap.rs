//! The documents of `mallow heap --json`, described by `docs/schema/heap.json`.

use crate::spelling::spelled;
use mallow_view::heap::{
    ClassReport, Explanation, FieldRow, GroupRow, HeapDiff, HeapGrowth, HeapOutcome, HeapReport, HeldRow,
    HistogramReport, Identity, LimitKind, NewObjects, ObjectReport, ObjectRow, Part, Sum,
};
use serde_json::{Value, json};

/// The whole heap.
pub fn report(report: &HeapReport) -> Value {
    json!({
        "schema": "mallow.heap/2",
        "file": report.file,
        "format": spelled(report.format.word),
        "is_partial": report.is_partial,
        "objects": report.all.objects,
        "bytes": report.all.bytes,
        "unreachable_objects": (!report.is_partial).then_some(report.unreachable.objects),
        "unreachable_bytes": (!report.is_partial).then_some(report.unreachable.bytes),
        "kinds": groups(&report.kinds, report.is_partial),
        "classes": groups(&report.classes, report.is_partial),
        "sites": groups(if report.has_sites { &report.sites } else { &[] }, report.is_partial),
        "generations": report.generations.iter().map(|row| {
            with(sum(&row.sum, report.is_partial), "generation", json!(row.generation))
        }).collect::<Vec<_>>(),
        "retainers": report.retainers.iter().map(object_row).collect::<Vec<_>>(),
        "strings": report.strings.iter().map(|row| json!({
            "text": row.text,
            "is_whole": row.is_whole,
            "strings": row.strings,
            "bytes": row.bytes,
            "wasted_bytes": row.wasted_bytes,
        })).collect::<Vec<_>>(),
        "string_contents": report.string_contents,
        "strings_wasted_bytes": report.strings_wasted_bytes,
        "strings_uncompared": report.strings_uncompared,
        "notes": report.notes,
        "warnings": report.warnings,
    })
}

/// The classes of a heap.
pub fn histogram(report: &HistogramReport) -> Value {
    json!({
        "schema": "mallow.heap-histogram/2",
        "file": report.file,
        "format": spelled(report.format.word),
        "objects": report.all.objects,
        "bytes": report.all.bytes,
        "classes": report.classes.iter().map(|row| {
            let Sum { objects, bytes, .. } = row.sum;
            json!({ "name": row.name, "kind": row.kind, "objects": objects, "bytes": bytes })
        }).collect::<Vec<_>>(),
        "notes": report.notes,
        "warnings": report.warnings,
    })
}

/// One object.
pub fn object(report: &ObjectReport) -> Value {
    json!({
        "schema": "mallow.heap-object/1",
        "object": object_row(&report.object),
        "is_partial": report.is_partial,
        "kind": report.kind,
        "site": report.site,
        "generation": report.generation,
        "roots": report.roots,
        "path_root": report.path_root,
        "path": fields(&report.path),
        "dominators": report.dominators.iter().map(object_row).collect::<Vec<_>>(),
        "references": fields(&report.references),
        "referrers": fields(&report.referrers),
        "retained": report.retained.iter().map(named).collect::<Vec<_>>(),
    })
}

/// The objects of a class.
pub fn class(report: &ClassReport) -> Value {
    json!({
        "schema": "mallow.heap-class/1",
        "class": report.name,
        "is_partial": report.is_partial,
        "objects": report.sum.objects,
        "bytes": report.sum.bytes,
        "retained_bytes": (!report.is_partial).then_some(report.sum.retained_bytes),
        "sites": report.sites.iter().map(named).collect::<Vec<_>>(),
        "holders": report.holders.iter().map(|(name, references)| json!({ "name": name, "references": references })).collect::<Vec<_>>(),
        "largest": report.objects.iter().map(object_row).collect::<Vec<_>>(),
        "example": report.example.as_deref().map(object),
    })
}

/// What changed, and who holds what grew if that was asked for.
pub fn diff(files: &[String], diff: &HeapDiff, held: Option<&[HeldRow]>) -> Value {
    json!({
        "schema": "mallow.heap-diff/2",
        "files": files,
        "identity": match diff.identity {
            Identity::Number => "number",
            Identity::AddressAndGeneration => "address_class_generation",
            Identity::Address => "address_class",
            Identity::Classes => "classes",
        },
        "is_complete": diff.is_complete,
        "before": counted(&diff.before),
        "after": counted(&diff.after),
        "gone": counted(&diff.gone),
        "new": counted(&diff.new_sum),
        "new_objects": diff.new.iter().map(new_objects).collect::<Vec<_>>(),
        "grown": diff.grown.iter().map(|of| json!({ "class": of.class, "objects": of.objects, "bytes": of.bytes })).collect::<Vec<_>>(),
        "classes": diff.classes.iter().map(|class| json!({
            "class": class.name,
            "kind": class.kind,
            "before": counted(&class.before),
            "after": counted(&class.after),
        })).collect::<Vec<_>>(),
        "moved": diff.moved,
        "held": held.map(held_rows),
    })
}

/// What grew, by who holds it.
pub fn held_rows(rows: &[HeldRow]) -> Vec<Value> {
    let row = |HeldRow { growth, example }: &HeldRow| {
        json!({
            "class": growth.class,
            "kind": growth.kind,
            "holder": growth.holder,
            "before": sum(&growth.before, false),
            "after": sum(&growth.after, false),
            "site": growth.site.as_ref().map(|(site, _)| site),
            "site_objects": growth.site.as_ref().map(|(_, objects)| objects),
            "example": object(example),
        })
    };
    rows.iter().map(row).collect()
}

/// A series of snapshots.
pub fn growth(files: &[String], growth: &HeapGrowth) -> Value {
    json!({
        "schema": "mallow.heap-growth/1",
        "files": files,
        "is_complete": growth.is_complete,
        "classes": growth.classes.iter().map(|class| json!({
            "class": class.name,
            "kind": class.kind,
            "objects": class.objects,
            "bytes": class.bytes,
            "grows_in_each": class.grows_in_each(),
        })).collect::<Vec<_>>(),
    })
}

/// Where a process's memory is.
pub fn explain(page: &Explanation) -> Value {
    json!({
        "schema": "mallow.heap-explain/1",
        "resident_bytes": page.resident_bytes,
        "resident_before": page.resident_before,
        "parts": page.parts.iter().map(|row| json!({
            "part": part(row.part),
            "bytes": row.bytes,
            "before": row.before,
            "note": row.note,
        })).collect::<Vec<_>>(),
        "native": page.native.iter().map(|row| json!({
            "module": row.module,
            "is_runtime": row.is_runtime,
            "bytes": row.bytes,
            "function": row.frame.as_ref().map(|frame| &frame.function),
            "file": row.frame.as_ref().and_then(|frame| frame.file.as_ref()),
            "line": row.frame.as_ref().and_then(|frame| frame.line),
            "function_bytes": row.frame_bytes,
        })).collect::<Vec<_>>(),
        "verdict": page.culprit.map(part),
        "is_compared": page.is_compared,
        "sentences": page.sentences,
    })
}

fn part(part: Part) -> &'static str {
    match part {
        Part::Managed => "managed",
        Part::Native => "native",
        Part::Allocator => "allocator",
        Part::Stacks => "stacks",
        Part::Files => "files",
        Part::Unexplained => "unexplained",
    }
}

/// Limits, and what came of them.
pub fn check(outcomes: &[HeapOutcome], exit_code: u8) -> Value {
    json!({
        "schema": "mallow.heap-check/1",
        "exit_code": exit_code,
        "limits": outcomes.iter().map(|outcome| json!({
            "class": outcome.limit.class,
            "metric": match outcome.limit.kind {
                LimitKind::Objects => "objects",
                LimitKind::Bytes => "bytes",
                LimitKind::Retained => "retained_bytes",
            },
            "max": outcome.limit.max,
            "found": outcome.found,
            "reason": outcome.reason,
        })).collect::<Vec<_>>(),
    })
}

fn new_objects(of: &NewObjects) -> Value {
    json!({
        "class": of.class,
        "kind": of.kind,
        "site": of.site,
        "generation_first": of.generations.map(|(first, _)| first),
        "generation_last": of.generations.map(|(_, last)| last),
        "objects": of.sum.objects,
        "bytes": of.sum.bytes,
    })
}

fn groups(rows: &[GroupRow], is_partial: bool) -> Vec<Value> {
    let row = |row: &GroupRow| {
        let named = with(sum(&row.sum, is_partial), "name", json!(row.name));
        if row.kind.is_empty() { named } else { with(named, "kind", json!(row.kind)) }
    };
    rows.iter().map(row).collect()
}

fn sum(sum: &Sum, is_partial: bool) -> Value {
    with(counted(sum), "retained_bytes", json!((!is_partial).then_some(sum.retained_bytes)))
}

fn counted(sum: &Sum) -> Value {
    json!({ "objects": sum.objects, "bytes": sum.bytes })
}

fn named((name, sum): &(String, Sum)) -> Value {
    with(counted(sum), "name", json!(name))
}

fn object_row(row: &ObjectRow) -> Value {
    json!({ "id": row.id, "label": row.label, "bytes": row.bytes, "retained_bytes": row.retained_bytes })
}

fn fields(rows: &[FieldRow]) -> Vec<Value> {
    let row = |row: &FieldRow| {
        with(with(object_row(&row.object), "field", json!(row.field)), "holds", json!(row.holds))
    };
    rows.iter().map(row).collect()
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}

#[cfg(test)]
#[path = "heap_tests.rs"]
pub(crate) mod tests;
