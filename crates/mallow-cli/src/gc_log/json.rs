//! The document of `mallow gc-log --json`, described by `docs/schema/gc-log.json`.

use super::course::{Axis, Course, Lines, SLOT_BYTES};
use super::exit_code_of;
use mallow_formats::gc_log::ResidentUnit;
use mallow_growth::{Need, Observation, Trend};
use serde_json::{Value, json};

pub(crate) fn document(course: &Course) -> Value {
    let judgement = &course.judgement;
    let resident = course.resident.as_ref();
    json!({
        "schema": "mallow.gc-log/2",
        "file": course.file,
        "lines": course.lines_total,
        "judged_lines": match course.lines {
            Lines::Full => "full-collections",
            Lines::Swept => "collections",
            Lines::All => "all",
        },
        "seconds": course.seconds,
        "axis": match &course.axis {
            Axis::Requests(_) => "requests",
            Axis::Seconds => "seconds",
            Axis::Collections => "collections",
        },
        "columns": {
            "objects": course.slots_column,
            "resident": resident.map(|(column, ..)| column),
            "resident_unit": resident.map(|(_, unit, _)| match unit {
                ResidentUnit::Bytes => "bytes",
                ResidentUnit::Kibibytes => "kib",
            }),
            "resident_is_peak": resident.map(|(.., is_peak)| is_peak),
            "requests": match &course.axis {
                Axis::Requests(column) => Some(column),
                _ => None,
            },
        },
        "verdict": judgement.verdict.word(),
        "exit_code": exit_code_of(judgement.verdict),
        "needs": judgement.needs.iter().map(need).collect::<Vec<_>>(),
        "slot_bytes": SLOT_BYTES,
        "growth_per": course.axis.unit(),
        "objects": trend(course, &course.objects(), SLOT_BYTES as f64),
        "resident_bytes": resident.map(|_| trend(course, &judgement.resident, 1.0)),
        "window": { "first": judgement.window.start, "end": judgement.window.end },
        "observations": course.evidence.observations.iter().map(|seen| observation(course, seen)).collect::<Vec<_>>(),
        "warnings": course.warnings,
    })
}

fn trend(course: &Course, trend: &Trend, unit: f64) -> Value {
    let growth = |value: f64| value * course.axis.scale() / unit;
    json!({
        "shape": trend.shape.key(),
        "first": trend.first / unit,
        "last": trend.last / unit,
        "growth": growth(trend.per_request),
        "growth_low": growth(trend.per_request_low),
        "growth_high": growth(trend.per_request_high),
        "noise": trend.noise / unit,
    })
}

fn observation(course: &Course, seen: &Observation) -> Value {
    json!({
        "at": course.across(seen),
        "objects": Course::objects_at(seen) / SLOT_BYTES,
        "resident_bytes": course.resident.as_ref().map(|_| seen.resident_bytes),
    })
}

fn need(need: &Need) -> &'static str {
    match need {
        Need::Iterations(_) => "more-collections",
        Need::Collection => "full-collections",
        Need::Recorder => "recorder",
        Need::Idle => "idle",
        Need::Sensitivity { .. } => "sensitivity",
        Need::OwnTools => "own-tools",
    }
}
