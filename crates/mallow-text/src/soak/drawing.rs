//! A chart of heap and resident memory against requests, with the phases and the judged window.

use super::metrics::phase;
use super::sentence;
use crate::cut_end;
use crate::plot::{Axis, Band, Curve, Plot, Stroke, Unit};
use mallow_evidence::{Phase, Sample, SoakReport};
use mallow_growth::{Basis, Observation};
use mallow_view::soak::phases;

/// The maximum number of letters of the second line.
const SUBTITLE_MAX: usize = 112;
/// The colours of the curves.
const HEAP: usize = 0;
const RESIDENT: usize = 1;
const TRIMMED: usize = 5;
const MANAGED: usize = 2;
const TREND: usize = 6;

/// Returns the chart of a report.
pub fn svg(report: &SoakReport) -> String {
    plot(report).svg()
}

fn plot(report: &SoakReport) -> Plot {
    // Idle observations have no position of their own on an axis of requests.
    let is_shown = |sample: &&Sample| sample.phase != Phase::IdleControl && !sample.is_after_exit();
    let samples: &Vec<&Sample> = &report.samples.iter().filter(is_shown).collect();
    let has_heap = samples.iter().any(|sample| sample.heap.is_some());
    let mut curves = vec![
        curve("RSS at rest", RESIDENT, has_heap, points(samples, |one| Some(one.memory.rss_bytes))),
        curve(
            "RSS after trimming",
            TRIMMED,
            has_heap,
            points(samples, |one| Some(one.memory_trimmed?.rss_bytes)),
        ),
        curve("managed heap", MANAGED, false, points(samples, managed)),
        curve("live heap", HEAP, false, points(samples, |one| Some(one.heap?.live_bytes))),
    ];
    curves.retain(|curve| !curve.points.is_empty());
    curves.extend(trend(report, has_heap));
    let axis = |label: &str| Axis { label: label.to_owned(), unit: Unit::Bytes };
    let verdict = sentence::verdict(report);
    let sentence = verdict.split_once(": ").map_or(verdict.as_str(), |(_, rest)| rest);
    Plot {
        title: format!("{}: {}", report.conclusion.verdict.word(), cut_end(&report.command.join(" "), 60)),
        subtitle: cut_end(sentence, SUBTITLE_MAX),
        across: Axis { label: "requests answered".into(), unit: Unit::Count },
        left: axis(if has_heap { "live heap" } else { "resident memory" }),
        right: has_heap.then(|| axis("resident memory")),
        curves,
        bands: bands(report),
    }
}

fn managed(sample: &Sample) -> Option<u64> {
    let bytes = sample.runtimes.iter().map(|runtime| runtime.managed_bytes);
    (!sample.runtimes.is_empty()).then(|| bytes.fold(0, u64::saturating_add))
}

fn points(samples: &[&Sample], of: impl Fn(&Sample) -> Option<u64>) -> Vec<(f64, f64)> {
    let point = |sample: &&Sample| Some((sample.requests_total as f64, of(sample)? as f64));
    samples.iter().filter_map(point).collect()
}

fn curve(name: &str, colour: usize, is_right: bool, points: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.into(), is_right, points, stroke: Stroke::Line, colour }
}

/// Returns the trend of the judged series over its window, as a line through the median of the observations. A trend by age has
/// another axis.
fn trend(report: &SoakReport, has_heap: bool) -> Option<Curve> {
    if report.conclusion.by_age {
        return None;
    }
    let (basis, trend) = (report.conclusion.basis, report.conclusion.trend());
    let seen = report.evidence.observations.get(report.conclusion.window.clone())?;
    let level = |seen: &Observation| match basis {
        // The trend of single stacks is drawn through the live heap, which they are part of.
        Basis::LiveHeap | Basis::Stacks => seen.live_bytes,
        Basis::ManagedHeap => seen.managed_bytes,
        Basis::Mapped => seen.mapped_bytes,
        Basis::Resident => seen.trimmed_bytes.or(Some(seen.resident_bytes)),
    };
    let (first, last) = (seen.first()?.requests as f64, seen.last()?.requests as f64);
    let mut offsets: Vec<f64> = seen
        .iter()
        .filter_map(|seen| Some(level(seen)? as f64 - trend.per_request * seen.requests as f64))
        .collect();
    offsets.sort_by(f64::total_cmp);
    let offset = *offsets.get(offsets.len() / 2)?;
    let at = |requests: f64| (requests, offset + trend.per_request * requests);
    let is_right = has_heap && matches!(basis, Basis::Mapped | Basis::Resident);
    let name = format!("trend: {} B/request", super::metrics::small(trend.per_request));
    Some(Curve { name, is_right, points: vec![at(first), at(last)], stroke: Stroke::Dashed, colour: TREND })
}

/// Returns the phases that have requests, and the half of the load that was judged.
fn bands(report: &SoakReport) -> Vec<Band> {
    let band = |from: u64, to: u64, label: &str, shade| Band {
        from: from as f64,
        to: to as f64,
        label: label.to_owned(),
        shade,
    };
    let window = report.evidence.observations.get(report.conclusion.window.clone());
    let begin = window.and_then(|seen| seen.first()).map(|seen| seen.requests);
    let mut bands = Vec::new();
    for (what, from, to) in phases(&report.samples) {
        match (what, begin) {
            (Phase::Measured, Some(begin)) if (from..to).contains(&begin) => {
                bands.push(band(from, begin, phase(what), None));
                bands.push(band(begin, to, "judged", Some(1)));
            }
            (Phase::Measured, _) => bands.push(band(from, to, phase(what), None)),
            (Phase::Burst | Phase::WarmUp, _) => bands.push(band(from, to, phase(what), Some(0))),
            _ => {}
        }
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::soak as sample;

    #[test]
    fn a_leak_is_drawn_with_its_trend_and_its_phases() {
        let plot = plot(&sample::leaking());
        let names: Vec<&str> = plot.curves.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(names, ["RSS at rest", "RSS after trimming", "live heap", "trend: 16.0 B/request"]);
        // The samples' live heap is exactly on the line.
        assert_eq!(plot.curves[3].points, [(70_000.0, 3_217_152.0), (115_000.0, 3_937_152.0)]);
        let bands: Vec<(&str, f64, f64)> =
            plot.bands.iter().map(|band| (band.label.as_str(), band.from, band.to)).collect();
        let expected = [
            ("burst", 0.0, 5_000.0),
            ("warm-up", 5_000.0, 15_000.0),
            ("load", 15_000.0, 70_000.0),
            ("judged", 70_000.0, 115_000.0),
        ];
        assert_eq!(bands, expected);
    }

    #[test]
    fn without_a_recorder_there_is_one_scale() {
        let mut report = sample::leaking();
        report.samples.iter_mut().for_each(|sample| sample.heap = None);
        report.conclusion.heap = None;
        let plot = plot(&report);
        assert!(plot.right.is_none() && plot.curves.iter().all(|curve| !curve.is_right));
        assert_eq!(plot.left.label, "resident memory");
    }

    #[test]
    fn every_verdict_can_be_drawn() {
        for mut report in sample::all() {
            assert!(svg(&report).contains("</svg>"));
            report.samples.clear();
            report.evidence.observations.clear();
            assert!(svg(&report).contains("</svg>"));
        }
    }
}
