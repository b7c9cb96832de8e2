//! A JVM's heap dump: the HPROF format of `jcmd GC.heap_dump`, `jmap` and `-XX:+HeapDumpOnOutOfMemoryError`, and Android's.
//!
//! The file is read twice, a block at a time: first which objects and classes there are ([`survey`]), then what they refer to ([`references`]), as
//! classes and objects may stand behind what names them. Beside the graph there are at most 16 bytes of memory for each of the file,
//! in ordinary dumps less than half a byte.
//!
//! In the order of reading: [`blocks`], [`records`] with [`faults`] and [`texts`], [`classes`], [`layout`] with [`injected`], [`survey`], [`plans`],
//! [`references`], [`contents`].

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

/// How many batches of references may wait.
const BATCHES_AHEAD: usize = 8;

/// Reads a dump, which is opened twice.
///
/// # Errors
/// It cannot be opened, or its first bytes are not those of a dump. What is damaged behind them is a warning.
pub(crate) fn read<'a>(open: impl Fn() -> io::Result<Source<'a>> + Sync) -> Result<Snapshot, ImportError> {
    let (survey, faults) = survey(&open)?;
    let (index, doubles) = AddressIndex::new(&survey.ids);
    let (edges, extracted) = references(&open, &survey, &index)?;
    Ok(assemble::assemble(survey, index, edges, extracted, faults.sentences(), doubles as u64))
}

/// Counts a dump's objects by class. That takes one reading, and nothing of what the objects hold.
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
            // The first reading told of what is damaged.
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
