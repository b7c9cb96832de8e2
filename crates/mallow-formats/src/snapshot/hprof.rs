//! A JVM's heap dump: the HPROF format of `jcmd GC.heap_dump`, `jmap` and `-XX:+HeapDumpOnOutOfMemoryError`, and Android's.
//!
//! The file is read twice, one block at a time: first for its objects and classes ([`survey`]), then for their
//! references ([`references`]), since classes and objects may come after what refers to them. In addition to the
//! graph, at most 16 bytes of memory are used for each byte of the file, in ordinary dumps less than half a byte.
//!
//! In reading order: [`blocks`], [`records`] with [`faults`] and [`texts`], [`classes`], [`layout`] with
//! [`injected`], [`survey`], [`plans`], [`references`], [`contents`].

mod assemble;
mod blocks;
mod classes;
mod contents;
mod faults;
mod injected;
mod layout;
mod plans;
mod records;
mod references;
mod survey;
mod texts;

use crate::ImportError;
use crate::source::Source;
use blocks::with_bytes;
use faults::Faults;
use mallow_heapsnap::{AddressIndex, Histogram, Names, Snapshot};
use plans::Planner;
use references::{Edges, Extracted, Extractor};
use std::io;
use std::sync::mpsc::sync_channel;
use std::thread;
use survey::Survey;

/// The maximum number of pending batches of references.
const BATCHES_AHEAD: usize = 8;

/// Parses a dump, which is opened twice.
///
/// # Errors
/// If it cannot be opened, or its first bytes are not those of a dump. Damage after that is a warning.
pub(crate) fn read<'a>(open: impl Fn() -> io::Result<Source<'a>> + Sync) -> Result<Snapshot, ImportError> {
    let (survey, faults) = survey(&open)?;
    let (index, doubles) = AddressIndex::new(&survey.ids);
    let (edges, extracted) = references(&open, &survey, &index)?;
    Ok(assemble::assemble(survey, index, edges, extracted, faults.sentences(), doubles as u64))
}

/// Counts a dump's objects by class. The file is read once, and the contents of objects are skipped.
///
/// # Errors
/// See [`read`].
pub(crate) fn histogram<'a>(
    open: impl Fn() -> io::Result<Source<'a>> + Sync,
) -> Result<Histogram, ImportError> {
    let (survey, faults) = survey(&open)?;
    Ok(assemble::histogram(&survey, faults.sentences()))
}

fn survey<'a>(open: &(impl Fn() -> io::Result<Source<'a>> + Sync)) -> Result<(Survey, Faults), ImportError> {
    with_bytes(open, |bytes| {
        let header = records::header(bytes)?;
        let mut survey = Survey::new(header);
        let mut faults = Faults::default();
        records::records(bytes, header, &mut survey, &mut faults);
        Ok((survey, faults))
    })
}

fn references<'a>(
    open: &(impl Fn() -> io::Result<Source<'a>> + Sync),
    survey: &Survey,
    index: &AddressIndex,
) -> Result<(Edges, Extracted), ImportError> {
    let (send, batches) = sync_channel(BATCHES_AHEAD);
    thread::scope(|scope| {
        let edges = scope.spawn(move || Edges::collect(&batches, index, survey.ids.len()));
        let extracted = with_bytes(open, |bytes| {
            let header = records::header(bytes)?;
            let planner = Planner::new(&survey.classes, &survey.texts, Names::default(), header.id_bytes);
            let mut extractor = Extractor::new(&survey.classes, planner, header.id_bytes, send);
            // The first pass has already reported damage.
            records::records(bytes, header, &mut extractor, &mut Faults::default());
            Ok::<_, ImportError>(extractor.finish())
        });
        let edges = edges.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((edges, extracted?))
    })
}

#[cfg(test)]
#[path = "hprof_tests.rs"]
mod tests;
