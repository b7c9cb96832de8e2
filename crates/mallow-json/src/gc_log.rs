//! The document of `mallow gc-log --json`, described by `docs/schema/gc-log.json`.

use crate::spelling::spelled;
use mallow_growth::{Need, Observation, Trend};
use mallow_view::gc_log::{Axis, GcReport, JudgedLines, SLOT_BYTES};
use serde_json::{Value, json};

/// The document.
pub fn document(report: &GcReport) -> Value {
    let conclusion = &report.conclusion;
    let resident = report.resident.as_ref();
    json!({
        "schema": "mallow.gc-log/3",
        "file": report.file,
        "lines": report.lines_total,
        "judged_lines": match report.lines {
            JudgedLines::Full => "full_collections",
            JudgedLines::Swept => "collections",
            JudgedLines::All => "all",
        },
        "seconds": report.seconds,
        "axis": match &report.axis {
            Axis::Requests(_) => "requests",
            Axis::Seconds => "seconds",
            Axis::Collections => "collections",
        },
        "columns": {
            "objects": report.slots_column,
            "resident": resident.map(|column| &column.name),
            "resident_unit": resident.map(|column| if column.is_in_kib { "kib" } else { "bytes" }),
            "resident_is_peak": resident.map(|column| column.is_peak),
            "requests": match &report.axis {
                Axis::Requests(column) => Some(column),
                _ => None,
            },
        },
        "verdict": spelled(conclusion.verdict.word()),
        "exit_code": report.weight().exit_code(),
        "needs": conclusion.needs.iter().map(need).collect::<Vec<_>>(),
        "slot_bytes": SLOT_BYTES,
        "growth_per": report.axis.unit(),
        "objects": trend(report, &report.objects(), SLOT_BYTES as f64),
        "resident_bytes": resident.map(|_| trend(report, &conclusion.resident, 1.0)),
        "window": { "first": conclusion.window.start, "end": conclusion.window.end },
        "observations": report.evidence.observations.iter().map(|seen| observation(report, seen)).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}

fn trend(report: &GcReport, trend: &Trend, unit: f64) -> Value {
    let growth = |value: f64| value * report.axis.scale() / unit;
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

fn observation(report: &GcReport, seen: &Observation) -> Value {
    json!({
        "at": report.across(seen),
        "objects": GcReport::objects_at(seen) / SLOT_BYTES,
        "resident_bytes": report.resident.as_ref().map(|_| seen.resident_bytes),
    })
}

fn need(need: &Need) -> &'static str {
    match need {
        Need::Iterations(_) => "more_collections",
        Need::Collection => "full_collections",
        Need::Recorder => "recorder",
        Need::Idle => "idle",
        Need::Sensitivity { .. } => "sensitivity",
        Need::OwnTools => "own_tools",
    }
}

#[cfg(test)]
#[path = "gc_log_tests.rs"]
mod tests;
