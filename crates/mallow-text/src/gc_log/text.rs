//! The result as text: what was read, the verdict, both series, and what to do next.

use crate::{grouped, wrapped};
use mallow_base::{Bytes, Count};
use mallow_growth::{Need, Observation, Trend, Verdict};
use mallow_view::gc_log::{Axis, GcReport, JudgedLines, SLOT_BYTES};

const WIDTH: usize = 80;
const SPARKS: usize = 44;

/// Returns the whole report.
pub fn text(report: &GcReport) -> String {
    let mut text = String::new();
    let mut paragraph = |sentence: &str| {
        for line in wrapped(sentence, WIDTH) {
            text.push_str(&line);
            text.push('\n');
        }
    };
    paragraph(&head(report));
    paragraph(&columns(report));
    text.push('\n');
    let mut paragraph = |sentence: &str| {
        for line in wrapped(sentence, WIDTH) {
            text.push_str(&line);
            text.push('\n');
        }
        text.push('\n');
    };
    paragraph(&verdict(report));
    text.push_str(&table(report));
    text.push('\n');
    text.push_str(&courses(report));
    if let Some(advice) = advice(report) {
        text.push('\n');
        for line in wrapped(&advice, WIDTH) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// Formats `leak.log: 527 lines, 30 of them behind full collections, over 9.2 s.`
fn head(report: &GcReport) -> String {
    let judged = report.evidence.observations.len();
    let which = match report.lines {
        JudgedLines::Full => format!("{} of them behind full collections are judged", grouped(judged as u64)),
        JudgedLines::Swept => format!(
            "{} of them behind collections are judged, of which too few were full ones: old garbage may be among what \
             they count",
            grouped(judged as u64)
        ),
        JudgedLines::All => {
            "all of them are judged, since too few stand behind collections (events: end_sweep): garbage is \
                       among what they count"
                .to_owned()
        }
    };
    let over = match report.seconds {
        Some(seconds) if seconds >= 1.0 => {
            format!(", over {}", mallow_base::Micros((seconds * 1e6) as u64))
        }
        _ => String::new(),
    };
    format!("{}: {} lines{over}; {which}.", report.file, grouped(report.lines_total as u64))
}

fn columns(report: &GcReport) -> String {
    let across = match &report.axis {
        Axis::Requests(column) => format!("They run over requests (column {column})."),
        Axis::Seconds => {
            "There is no column of requests, so they run over time: what a busy hour needs looks like growth."
                .to_owned()
        }
        Axis::Collections => {
            "There is no column of requests, and nobody knows what tick counts, so the x axis is collections."
                .to_owned()
        }
    };
    let resident = match &report.resident {
        Some(column) => {
            let unit = if column.is_in_kib { "KiB" } else { "bytes" };
            let peak = if column.is_peak { ", a peak that never falls" } else { "" };
            format!("resident memory is {} (in {unit}{peak})", column.name)
        }
        None => "resident memory is not in the log".to_owned(),
    };
    format!("Objects are {}, {resident}. {across}", report.slots_column)
}

/// Formats `LEAKING: objects grow by 200 per request (199 to 201).`
pub(crate) fn verdict(report: &GcReport) -> String {
    let word = report.conclusion.verdict.word();
    let what = match report.conclusion.verdict {
        Verdict::Leaking => format!("objects grow by {}", per_unit(report, &report.objects(), true)),
        Verdict::Plateau => match report.conclusion.plateau {
            Some(plateau) => format!("memory rose by {} and stopped", Bytes(plateau.rise_bytes as u64)),
            None => "memory rose and stopped".to_owned(),
        },
        Verdict::Clean => match report.conclusion.detectable_per_request {
            Some(least) => format!(
                "nothing grows; a leak of {} of objects per {} would have been seen",
                bytes(least * report.axis.scale()),
                report.axis.unit()
            ),
            None => "nothing grows".to_owned(),
        },
        Verdict::Inconclusive if is_native(report) => format!(
            "objects stand, and resident memory grows by {}",
            per_unit(report, &report.conclusion.resident, false)
        ),
        Verdict::Inconclusive => "the log does not decide whether it leaks".to_owned(),
        Verdict::Mappings | Verdict::Retention | Verdict::Fragmentation => {
            "objects stand, and resident memory grows".to_owned()
        }
        Verdict::GrowsWhenIdle | Verdict::Invalid => "the log proves nothing".to_owned(),
    };
    format!("{word}: {what}.")
}

/// Returns whether the red curve is flat and the blue one rises: what grows is not Ruby's.
fn is_native(report: &GcReport) -> bool {
    report.conclusion.needs.contains(&Need::Recorder) && report.conclusion.resident.per_request_low > 0.0
}

fn advice(report: &GcReport) -> Option<String> {
    if report.is_managed() || report.conclusion.verdict == Verdict::Leaking {
        return Some(
            "What grows are Ruby's objects. ObjectSpace.dump_all before and after shows which.".to_owned(),
        );
    }
    if is_native(report) {
        return Some(
            "What grows is not Ruby's: native memory, of the interpreter or of an extension, or free memory that the \
             allocator keeps. mallow soak on the same server tells which, and names the stacks."
                .to_owned(),
        );
    }
    let needs = &report.conclusion.needs;
    if needs.contains(&Need::Collection) {
        return Some("A log with full collections would decide: call GC.start from time to time.".to_owned());
    }
    needs.iter().find_map(|need| match need {
        Need::Iterations(more) => {
            Some(format!("{} more collections might decide.", grouped(u64::from(*more))))
        }
        _ => None,
    })
}

fn table(report: &GcReport) -> String {
    let unit = format!("per {}", report.axis.unit());
    let mut text = format!("{:<16} {:>12} {:>12}  {unit}\n", "", "first", "last");
    let objects = report.objects();
    let slots = |value: f64| grouped((value / SLOT_BYTES as f64).max(0.0) as u64);
    text.push_str(&row("objects", &slots(objects.first), &slots(objects.last), &per(report, &objects, true)));
    if report.resident.is_some() {
        let resident = report.conclusion.resident;
        let size = |value: f64| Bytes(value.max(0.0) as u64).to_string();
        let growth = per(report, &resident, false);
        text.push_str(&row("resident memory", &size(resident.first), &size(resident.last), &growth));
    }
    text
}

fn row(name: &str, first: &str, last: &str, growth: &str) -> String {
    format!("{name:<16} {first:>12} {last:>12}  {growth}\n")
}

/// Formats `200 (199 to 201)`.
fn per(report: &GcReport, trend: &Trend, is_objects: bool) -> String {
    let scale = report.axis.scale();
    let metric = |value: f64| match is_objects {
        true => count(value * scale / SLOT_BYTES as f64),
        false => bytes(value * scale),
    };
    let [middle, low, high] = [trend.per_request, trend.per_request_low, trend.per_request_high].map(metric);
    format!("{middle} ({low} to {high})")
}

fn per_unit(report: &GcReport, trend: &Trend, is_objects: bool) -> String {
    let text = per(report, trend, is_objects);
    let (middle, between) = text.split_once(' ').unwrap_or((&text, ""));
    match is_objects {
        true => format!("{middle} per {} {between}", report.axis.unit()),
        false => format!("{} per {}", bytes(trend.per_request * report.axis.scale()), report.axis.unit()),
    }
}

/// Returns both series as one line each, over the same axis.
fn courses(report: &GcReport) -> String {
    let seen = &report.evidence.observations;
    let line = |name: &str, of: fn(&Observation) -> u64| {
        let values: Vec<f64> = seen.iter().map(|seen| of(seen) as f64).collect();
        format!("{name:<16} {}\n", sparks(&values))
    };
    let mut text = line("objects", GcReport::objects_at);
    if report.resident.is_some() {
        text.push_str(&line("resident memory", |seen| seen.resident_bytes));
    }
    let window = &report.conclusion.window;
    if let (Some(first), Some(judged), Some(last)) = (seen.first(), seen.get(window.start), seen.last()) {
        let place = |seen: &Observation| grouped(report.across(seen).max(0.0) as u64);
        let unit = match report.axis {
            Axis::Requests(_) => "requests",
            Axis::Seconds => "seconds",
            Axis::Collections => "collections",
        };
        text.push_str(&format!(
            "{:<16} {} to {} {unit}, judged from {} on\n",
            "",
            place(first),
            place(last),
            place(judged)
        ));
    }
    text
}

fn sparks(values: &[f64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    // A hundredth of the level is not a trend.
    let span = (most - least).max(most / 20.0).max(1.0);
    let each = values.len().div_ceil(SPARKS).max(1);
    let level = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        LEVELS[((mean - least) / span * 7.0).round().clamp(0.0, 7.0) as usize]
    };
    values.chunks(each).map(level).collect()
}

fn count(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match size {
        _ if size < 0.005 => "0".to_owned(),
        _ if size < 99.95 => format!("{sign}{size:.1}"),
        _ if size >= 1e6 => format!("{sign}{}", Count(size.round() as u64)),
        _ => format!("{sign}{}", grouped(size.round() as u64)),
    }
}

fn bytes(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        size if size < 1_024.0 => format!("{sign}{size:.1} B"),
        size => format!("{sign}{}", Bytes(size.round() as u64)),
    }
}
