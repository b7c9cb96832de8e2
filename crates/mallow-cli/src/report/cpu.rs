//! `mallow report` for a CPU profile.

use super::request::CpuRequest;
use crate::args::{AnySort, ReportForm};
use crate::destination::Destination;
use crate::{exit_code, output};
use mallow_cpu::CpuMetric;
use mallow_json::cpu::CpuJson;
use mallow_query::{CpuFile, Failure, with_source};
use mallow_stacks::Metric;
use mallow_view::{CpuLayout, CpuOptions, FunctionOrder, annotated};

/// Shows a profile.
pub(super) fn run(
    request: &CpuRequest,
    compact: bool,
    mut file: CpuFile,
    out: &Destination,
) -> Result<u8, Failure> {
    if let Some(flag) = &request.only_heap {
        return Err(file.has_no_heap_metrics(flag));
    }
    output::warn(&file.warnings);
    let by = file.choose(request.measure.or(metric(request.sort)))?;
    file.cut(&request.window)?;
    request.scripts.keep_in(&mut file.profile.stacks);
    let layout = match (&request.layout, request.sort) {
        (Some(layout), _) => layout.clone(),
        (None, Some(AnySort::Functions(order))) => CpuLayout::Functions(order),
        (None, Some(AnySort::Cpu(_))) => CpuLayout::Stacks,
        (None, _) => CpuLayout::Functions(FunctionOrder::Own),
    };
    let options = CpuOptions {
        layout,
        by,
        limit: request.limit,
        shown: request.shown,
        filter: request.filter.clone(),
        part: file.part.clone(),
    };
    let style = out.style();
    if let Some(wanted) = &request.annotate {
        let functions = with_source(annotated(&file.profile, wanted, by));
        let whole = by.of_site(&file.profile.totals());
        let text = mallow_text::cpu::annotated(&functions, by, whole, wanted, style);
        out.page(&text)?;
    } else if request.form != ReportForm::Text {
        let document =
            CpuJson::of(&file.profile, &options, compact, &file.path, file.format.word(), &file.warnings);
        match request.form {
            ReportForm::Ndjson => out.ndjson(&document, "stacks", std::iter::empty::<()>())?,
            _ => out.json(&document)?,
        }
    } else {
        let text = mallow_text::cpu::report(&file.profile, &options, style);
        out.page(&text)?;
    }
    Ok(exit_code::FINE)
}

fn metric(sort: Option<AnySort>) -> Option<CpuMetric> {
    match sort {
        Some(AnySort::Cpu(metric)) => Some(metric),
        _ => None,
    }
}
