//! Dispatches a profile to its reader.

pub(crate) mod bpftrace;
mod dhat;
mod dtrace;
mod folded;
mod gperftools_heap;
mod heaptrack;
pub(crate) mod heaptrack_print;
mod jemalloc_heap;
mod massif;
mod memcheck_xml;
mod perf_data;
mod perf_script;
mod pprof;
mod text_stacks;
mod valgrind_frames;

pub(crate) use heaptrack::events as heaptrack_events;
pub(crate) use jemalloc_heap::{NO_ADDRESS, NO_STACK};

use crate::source::Source;
use crate::{AnyImported, Format, ImportError, Imported};
use mallow_profile::ReallocAttribution;
use mallow_trace::{Trace, looks_like};
use std::io::{BufReader, Cursor};
use std::path::Path;

/// Parses a file of a recognised format.
pub(crate) fn of_file(
    source: Source<'_>,
    format: Format,
    path: &Path,
    attribution: ReallocAttribution,
) -> Result<Imported, ImportError> {
    if format == Format::Mallow {
        let file = BufReader::new(mallow_files::open_input(path)?);
        return Ok(Trace::open(file)?.import(attribution)?);
    }
    read(source, format)
}

/// The same for a profile of any kind.
pub(crate) fn any_of_file(
    source: Source<'_>,
    format: Format,
    path: &Path,
    attribution: ReallocAttribution,
) -> Result<AnyImported, ImportError> {
    let torn = source.torn();
    let mut imported = match format {
        Format::Pprof => pprof::read_any(&source.whole(format)?),
        Format::PerfData => Ok(AnyImported::Cpu(perf_data::read(&source.whole(format)?)?)),
        Format::PerfScript => Ok(AnyImported::Cpu(perf_script::read(source.lines(format))?)),
        _ => return Ok(AnyImported::Heap(of_file(source, format, path, attribution)?)),
    }?;
    if torn.get() {
        let (warnings, complete) = match &mut imported {
            AnyImported::Heap(imported) => (&mut imported.warnings, &mut imported.complete),
            AnyImported::Cpu(imported) => (&mut imported.warnings, &mut imported.complete),
        };
        (*complete, _) = (false, warnings.push(CUT.to_owned()));
    }
    Ok(imported)
}

/// The warning about a compressed file that was cut off.
const CUT: &str =
    "the compressed file was cut off: what stands before the cut is read, and the rest is missing";

/// Parses bytes of a known or given format, as a profile of any kind.
///
/// # Errors
/// See [`ImportError`].
pub fn read_any_as(bytes: &[u8], format: Format) -> Result<AnyImported, ImportError> {
    match format {
        Format::Pprof | Format::PerfData | Format::PerfScript => {
            any_of_file(Source::of_bytes(bytes)?, format, Path::new(""), ReallocAttribution::OwnSite)
        }
        _ => Ok(AnyImported::Heap(read_as(bytes, format)?)),
    }
}

/// Parses bytes of a known or given format.
///
/// # Errors
/// See [`ImportError`].
pub fn read_as(bytes: &[u8], format: Format) -> Result<Imported, ImportError> {
    if format == Format::Mallow {
        return Ok(Trace::open(Cursor::new(bytes))?.import(ReallocAttribution::OwnSite)?);
    }
    read(Source::of_bytes(bytes)?, format)
}

fn read(source: Source<'_>, format: Format) -> Result<Imported, ImportError> {
    let torn = source.torn();
    let mut imported = read_unpacked(source, format)?;
    if torn.get() && format != Format::Heaptrack {
        imported.complete = false;
        imported.warnings.push(CUT.to_owned());
    }
    Ok(imported)
}

fn read_unpacked(source: Source<'_>, format: Format) -> Result<Imported, ImportError> {
    match format {
        Format::JemallocHeap => jemalloc_heap::read(source.lines(format)),
        Format::GperftoolsHeap => gperftools_heap::read(source.lines(format)),
        Format::Pprof => pprof::read(&source.whole(format)?),
        Format::Folded => folded::read(source.lines(format)),
        Format::Dtrace => dtrace::read(source.lines(format)),
        Format::Bpftrace => bpftrace::read(source.lines(format)),
        Format::HeaptrackPrint => heaptrack_print::read(source.lines(format)),
        Format::MemcheckXml => memcheck_xml::read(source),
        Format::JemallocStats
        | Format::MallocInfo
        | Format::GcTracer
        | Format::RubyHeap
        | Format::Hprof
        | Format::V8Heap
        | Format::PythonHeap
        | Format::PerfData
        | Format::PerfScript => Err(ImportError::NotAProfile { format }),
        Format::Heaptrack => heaptrack::read(source),
        Format::Dhat => dhat::read(source),
        Format::Massif => massif::read(source.lines(format)),
        // Both callers open our own trace themselves: it needs a seekable file.
        Format::Mallow => Err(ImportError::Unknown { looks_like: looks_like(source.beginning()) }),
    }
}
