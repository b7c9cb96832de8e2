//! The document of `mallow gc-log --json`, described by `docs/schema/gc-log.json`.

use mallow_growth::{Need, Observation, Trend};
use mallow_view::gc_log::{Axis, GcReport, JudgedLines, SLOT_BYTES};
use serde_json::{Value, json};

/// The document.
pub fn document(course: &GcReport) -> Value {
    let conclusion = &course.conclusion;
    let resident = course.resident.as_ref();
    json!({
        "schema": "mallow.gc-log/2",
        "file": course.file,
        "lines": course.lines_total,
        "judged_lines": match course.lines {
            JudgedLines::Full => "full-collections",
            JudgedLines::Swept => "collections",
            JudgedLines::All => "all",
        },
        "seconds": course.seconds,
        "axis": match &course.axis {
            Axis::Requests(_) => "requests",
            Axis::Seconds => "seconds",
            Axis::Collections => "collections",
        },
        "columns": {
            "objects": course.slots_column,
            "resident": resident.map(|column| &column.name),
            "resident_unit": resident.map(|column| if column.is_in_kib { "kib" } else { "bytes" }),
            "resident_is_peak": resident.map(|column| column.is_peak),
            "requests": match &course.axis {
                Axis::Requests(column) => Some(column),
                _ => None,
            },
        },
        "verdict": conclusion.verdict.word(),
        "exit_code": course.weight().exit_code(),
        "needs": conclusion.needs.iter().map(need).collect::<Vec<_>>(),
        "slot_bytes": SLOT_BYTES,
        "growth_per": course.axis.unit(),
        "objects": trend(course, &course.objects(), SLOT_BYTES as f64),
        "resident_bytes": resident.map(|_| trend(course, &conclusion.resident, 1.0)),
        "window": { "first": conclusion.window.start, "end": conclusion.window.end },
        "observations": course.evidence.observations.iter().map(|seen| observation(course, seen)).collect::<Vec<_>>(),
        "warnings": course.warnings,
    })
}

fn trend(course: &GcReport, trend: &Trend, unit: f64) -> Value {
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

fn observation(course: &GcReport, seen: &Observation) -> Value {
    json!({
        "at": course.across(seen),
        "objects": GcReport::objects_at(seen) / SLOT_BYTES,
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

#[cfg(test)]
#[path = "gc_log_tests.rs"]
mod tests;
