//! `mallow heap`: which objects are in a managed heap, what retains them, and what changed.

mod capture;
mod columns;

use crate::args::{
    HeapForm, LowForm, LowHeap, LowHeapCheck, LowHeapCommand, LowHeapDiff, LowHeapExplain, LowHeapGrowth,
    LowHeapReport, TextOrJson,
};
use crate::busy;
use crate::destination::Destination;
use crate::refusal::Refusal;
use crate::{exit_code, output};
use mallow_flame::FlameGraph;
use mallow_query::Failure;
use mallow_query::explain::{MomentRequest, explained};
use mallow_query::heap::{HeapFile, HeapObjects, growth};
use mallow_stacks::{FlameWeight, Flames, Unit};
use mallow_text::heap as text;
use mallow_view::Weight;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Executes what was requested.
pub(crate) fn run(low: &LowHeap) -> Result<u8, Refusal> {
    columns::return_to_system();
    let done = match &low.command {
        Some(LowHeapCommand::Diff(low)) => diff(low),
        Some(LowHeapCommand::Growth(low)) => series(low),
        Some(LowHeapCommand::Explain(low)) => explain(low),
        Some(LowHeapCommand::Capture(low)) => return capture::run(low),
        Some(LowHeapCommand::Check(low)) => check(low),
        None => report(&low.report),
    };
    done.map_err(Refusal::of_input)
}

fn report(low: &LowHeapReport) -> Result<u8, Failure> {
    let file = low.file.as_deref().ok_or_else(|| Failure::new("which snapshot? Write mallow heap DUMP."))?;
    if low.histogram {
        return histogram(low, file);
    }
    let (limit, output) = (low.rows.limit(), destination(low));
    if low.compat.is_some() {
        let generations = open_objects(file)?.generations();
        return show(&output, None, || text::heapy_read(&generations));
    }
    let heap = open(file)?;
    match low.form() {
        HeapForm::Svg => {
            let drawn = drawing(&heap, file)?;
            return show(&output, None, || drawn);
        }
        HeapForm::Folded => {
            let lines: String =
                heap.stacks().iter().map(|(stack, bytes)| format!("{stack} {bytes}\n")).collect();
            return show(&output, None, || lines);
        }
        HeapForm::Text | HeapForm::Json => {}
    }
    let (json, style) = (low.form() == HeapForm::Json, output.style());
    match (&low.object, &low.class) {
        (Some(object), _) => {
            let page = heap.object(object)?;
            show(&output, json.then(|| mallow_json::heap::object(&page)), || {
                text::object(&page, limit, style)
            })
        }
        (None, Some(class)) => {
            let page = heap.class(class)?;
            show(&output, json.then(|| mallow_json::heap::class(&page)), || text::class(&page, limit, style))
        }
        (None, None) => {
            let page = heap.report(low.sort);
            show(&output, json.then(|| mallow_json::heap::report(&page)), || {
                text::report(&page, limit, style)
            })
        }
    }
}

fn histogram(low: &LowHeapReport, file: &Path) -> Result<u8, Failure> {
    let page = mallow_query::heap::histogram(file, low.sort)?;
    warn(file, &page.warnings);
    let output = destination(low);
    let style = output.style();
    let json = (low.form() == HeapForm::Json).then(|| mallow_json::heap::histogram(&page));
    show(&output, json, || text::histogram(&page, low.rows.limit(), style))
}

/// Returns the destination of the report, the document or the flame graph.
fn destination(low: &LowHeapReport) -> Destination {
    let asked = low.form.output.clone();
    Destination::of(low.flamegraph.clone().or(asked.output), asked.force)
}

fn drawing(heap: &HeapFile, file: &Path) -> Result<String, Failure> {
    let graph = FlameGraph {
        title: format!("What retains what: {}", file.display()),
        subtitle: "Each box is a class; above it stands what would be freed with it.".to_owned(),
        unit: Unit::Bytes,
        counted: String::new(),
        icicle: false,
        is_compared: false,
    };
    let mut stacks = Flames::default();
    for (classes, bytes) in heap.stacks() {
        stacks.add_names(classes.split(';'), FlameWeight::of(bytes));
    }
    graph.draw(&stacks).map_err(|_| {
        Failure::new(format!("nothing in {} is held by a root, so there is nothing to draw.", file.display()))
    })
}

fn diff(low: &LowHeapDiff) -> Result<u8, Failure> {
    let (diff, held) = if low.holders {
        let (before, after) = (open(&low.before)?, open(&low.after)?);
        let later = low.later.as_deref().map(open).transpose()?;
        let diff = before.objects().diff(after.objects(), later.as_ref().map(HeapFile::objects))?;
        (diff, Some(before.held(later.as_ref().unwrap_or(&after))?))
    } else {
        let (before, after) = (open_objects(&low.before)?, open_objects(&low.after)?);
        let later = low.later.as_deref().map(open_objects).transpose()?;
        (before.diff(&after, later.as_ref())?, None)
    };
    let output = Destination::from(low.form.output.clone());
    if low.compat.is_some() {
        return show(&output, None, || text::heapy_diff(&diff, low.later.is_some()));
    }
    let files = names([Some(&low.before), Some(&low.after), low.later.as_ref()].into_iter().flatten());
    let compared = text::Compared { files: &files, diff: &diff, held: held.as_deref() };
    let style = output.style();
    let json = is_json(&low.form).then(|| mallow_json::heap::diff(&files, &diff, held.as_deref()));
    show(&output, json, || text::diff(&compared, low.rows.limit(), style))
}

fn series(low: &LowHeapGrowth) -> Result<u8, Failure> {
    let growth = growth(&low.files, warn)?;
    let output = Destination::from(low.form.output.clone());
    let style = output.style();
    let json = is_json(&low.form).then(|| mallow_json::heap::growth(&names(&low.files), &growth));
    show(&output, json, || text::growth(low.files.len(), &growth, low.rows.limit(), style))
}

fn explain(low: &LowHeapExplain) -> Result<u8, Failure> {
    let moments = if low.later.is_some() { 2 } else { 1 };
    let given = [low.rss.len(), low.smaps.len(), low.allocator.len(), low.trace.len()];
    if given.iter().any(|given| *given > moments) {
        return Err(Failure::new("a flag is given twice only with a second dump: once for each."));
    }
    let request = |at: usize| MomentRequest {
        dump: if at == 0 { Some(low.dump.clone()) } else { low.later.clone() },
        pid: low.pid.filter(|_| at + 1 == moments),
        resident_bytes: low.rss.get(at).copied(),
        smaps: low.smaps.get(at).cloned(),
        allocator: low.allocator.get(at).cloned(),
        trace: low.trace.get(at).cloned(),
    };
    let before = (moments == 2).then(|| request(0));
    let page = explained(before.as_ref(), &request(moments - 1), warn)?;
    let output = Destination::from(low.form.output.clone());
    let style = output.style();
    let json = is_json(&low.form).then(|| mallow_json::heap::explain(&page));
    show(&output, json, || text::explain(&page, low.rows.limit(), style))
}

fn check(low: &LowHeapCheck) -> Result<u8, Failure> {
    let limits = low.limits();
    if limits.is_empty() {
        return Err(Failure::new("no limit is given; write --max-class Session=100, or another --max-…."));
    }
    let outcomes = open(&low.file)?.judge(&limits);
    let worst = outcomes.iter().map(mallow_view::heap::HeapOutcome::weight).max();
    let exit_code = worst.unwrap_or(Weight::Inconclusive).exit_code();
    let output = Destination::from(low.form.output.clone());
    let json = is_json(&low.form).then(|| mallow_json::heap::check(&outcomes, exit_code));
    show(&output, json, || text::limits(&outcomes, output.style()))?;
    Ok(exit_code)
}

fn names<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    files.into_iter().map(|file| file.display().to_string()).collect()
}

fn open(path: &Path) -> Result<HeapFile, Failure> {
    let reading = busy::reading(path);
    let heap = HeapFile::open(path)?;
    drop(reading);
    warn(path, heap.objects().warnings());
    Ok(heap)
}

fn open_objects(path: &Path) -> Result<HeapObjects, Failure> {
    let objects = HeapObjects::open(path)?;
    warn(path, objects.warnings());
    Ok(objects)
}

fn warn(path: &Path, warnings: &[String]) {
    let sentences: Vec<String> =
        warnings.iter().map(|warning| format!("{}: {warning}.", path.display())).collect();
    output::warn(&sentences);
}

fn is_json(form: &LowForm<TextOrJson>) -> bool {
    form.form() == TextOrJson::Json
}

/// Writes the document if there is one, and the report otherwise.
fn show(output: &Destination, json: Option<Value>, page: impl FnOnce() -> String) -> Result<u8, Failure> {
    match json {
        Some(document) => output.pretty_json(&document)?,
        None => output.text(&page())?,
    }
    Ok(exit_code::FINE)
}
