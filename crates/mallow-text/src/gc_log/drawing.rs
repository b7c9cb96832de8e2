//! A chart of objects and resident memory on two scales, as the source document's gnuplot script draws it.

use super::text::verdict;
use crate::cut_end;
use crate::plot::{Axis as Scale, Band, Curve, Plot, Stroke, Unit};
use mallow_growth::Observation;
use mallow_view::gc_log::{Axis, GcReport, SLOT_BYTES};

const OBJECTS: usize = 1;
const RESIDENT: usize = 0;

/// Returns the chart.
pub fn svg(report: &GcReport) -> String {
    plot(report).svg()
}

fn plot(report: &GcReport) -> Plot {
    let seen = &report.evidence.observations;
    let curve = |name: &str, colour, is_right, of: &dyn Fn(&Observation) -> f64| Curve {
        name: name.to_owned(),
        is_right,
        points: seen.iter().map(|seen| (report.across(seen), of(seen))).collect(),
        stroke: Stroke::Line,
        colour,
    };
    let objects = |seen: &Observation| (GcReport::objects_at(seen) / SLOT_BYTES) as f64;
    let mut curves = vec![curve(&report.slots_column, OBJECTS, false, &objects)];
    let resident = report.resident.as_ref();
    curves.extend(
        resident.map(|column| curve(&column.name, RESIDENT, true, &|seen| seen.resident_bytes as f64)),
    );
    let verdict = verdict(report);
    let (word, sentence) = verdict.split_once(": ").unwrap_or((&verdict, ""));
    let (across, unit) = match &report.axis {
        Axis::Requests(column) => (format!("requests ({column})"), Unit::Count),
        Axis::Seconds => ("time".to_owned(), Unit::Seconds),
        Axis::Collections => ("collections".to_owned(), Unit::Count),
    };
    let window = seen.get(report.conclusion.window.clone()).unwrap_or_default();
    let band = window.first().zip(window.last()).map(|(first, last)| Band {
        from: report.across(first),
        to: report.across(last),
        label: "judged".to_owned(),
        shade: Some(1),
    });
    Plot {
        title: format!("{word}: {}", cut_end(&report.file, 60)),
        subtitle: cut_end(sentence, 112),
        across: Scale { label: across, unit },
        left: Scale { label: "objects".to_owned(), unit: Unit::Count },
        right: resident.map(|_| Scale { label: "resident memory".to_owned(), unit: Unit::Bytes }),
        curves,
        bands: band.into_iter().collect(),
    }
}
