//! `mallow heap`: what lies in a managed heap, who retains it, and what changed.

use crate::args::{LowHeap, LowHeapCheck, LowHeapCommand, LowHeapDiff, LowHeapGrowth, LowHeapReport};
use crate::{exit_code, output, terminal};
use mallow_query::Failure;
use mallow_query::heap::{HeapFile, growth};
use mallow_text::heap as text;
use mallow_view::Weight;
use std::path::Path;

/// Does what was asked for.
pub(crate) fn run(low: &LowHeap) -> Result<u8, Failure> {
    match (&low.command, &low.report) {
        (Some(LowHeapCommand::Diff(low)), _) => diff(low),
        (Some(LowHeapCommand::Growth(low)), _) => series(low),
        (Some(LowHeapCommand::Check(low)), _) => check(low),
        (None, Some(low)) => report(low),
        (None, None) => Err(Failure::new("which snapshot? Write mallow heap DUMP.")),
    }
}

fn report(low: &LowHeapReport) -> Result<u8, Failure> {
    let heap = open(&low.file)?;
    let (rows, style) = (low.shown.limit, terminal::style(&std::io::stdout()));
    show(&match (&low.object, &low.class) {
        (Some(object), _) => text::object(&heap.object(object)?, rows, style),
        (None, Some(class)) => text::class(&heap.class(class)?, rows, style),
        (None, None) => text::report(&heap.report(low.sort), rows, style),
    })?;
    Ok(exit_code::FINE)
}

fn diff(low: &LowHeapDiff) -> Result<u8, Failure> {
    let (before, after) = (open(&low.before)?, open(&low.after)?);
    let later = low.later.as_deref().map(open).transpose()?;
    let diff = before.diff(&after, later.as_ref());
    let files = [Some(&low.before), Some(&low.after), low.later.as_ref()];
    let files: Vec<String> = files.into_iter().flatten().map(|file| file.display().to_string()).collect();
    let compared = text::Compared { files: &files, diff: &diff };
    show(&text::diff(&compared, low.shown.limit, terminal::style(&std::io::stdout())))?;
    Ok(exit_code::FINE)
}

fn series(low: &LowHeapGrowth) -> Result<u8, Failure> {
    let classes = growth(&low.files, warn)?;
    show(&text::growth(low.files.len(), &classes, low.shown.limit, terminal::style(&std::io::stdout())))?;
    Ok(exit_code::FINE)
}

fn check(low: &LowHeapCheck) -> Result<u8, Failure> {
    let limits = low.limits();
    if limits.is_empty() {
        return Err(Failure::new("no limit is given; write --max-class Session=100, or another --max-…."));
    }
    let outcomes = open(&low.file)?.judge(&limits);
    show(&text::limits(&outcomes, terminal::style(&std::io::stdout())))?;
    let worst = outcomes.iter().map(mallow_view::heap::HeapOutcome::weight).max();
    Ok(worst.unwrap_or(Weight::Inconclusive).exit_code())
}

fn open(path: &Path) -> Result<HeapFile, Failure> {
    let heap = HeapFile::open(path)?;
    warn(path, heap.warnings());
    Ok(heap)
}

fn warn(path: &Path, warnings: &[String]) {
    let sentences: Vec<String> =
        warnings.iter().map(|warning| format!("{}: {warning}.", path.display())).collect();
    output::warn(&sentences);
}

fn show(page: &str) -> Result<(), Failure> {
    output::to_stdout(|out| out.write_all(page.as_bytes()))
}
