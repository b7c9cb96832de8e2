//! `mallow report` of a profile that tells where a processor's time went.

use super::request::CpuRequest;
use crate::args::AnySort;
use crate::{exit_code, output, pager, terminal};
use mallow_cpu::CpuMetric;
use mallow_json::cpu::CpuJson;
use mallow_query::{CpuFile, Failure, with_source};
use mallow_stacks::Metric;
use mallow_view::{CpuLayout, CpuOptions, FunctionOrder, annotated};

/// Shows a profile.
pub(super) fn run(request: &CpuRequest, mut file: CpuFile) -> Result<u8, Failure> {
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
    let style = terminal::style(&std::io::stdout());
    if let Some(wanted) = &request.annotate {
        let functions = with_source(annotated(&file.profile, wanted, by));
        let whole = by.of_site(&file.profile.totals());
        let text = mallow_text::cpu::annotated(&functions, by, whole, wanted, style);
        pager::show(&text)?;
    } else if request.json {
        let document = CpuJson::of(&file.profile, &options, &file.path, file.format.word(), &file.warnings);
        output::to_stdout(|out| {
            serde_json::to_writer(&mut *out, &document)?;
            out.write_all(b"\n")
        })?;
    } else {
        let text = mallow_text::cpu::report(&file.profile, &options, style);
        pager::show(&text)?;
    }
    Ok(exit_code::FINE)
}

fn metric(sort: Option<AnySort>) -> Option<CpuMetric> {
    match sort {
        Some(AnySort::Cpu(metric)) => Some(metric),
        _ => None,
    }
}
