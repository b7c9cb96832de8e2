//! Any bytes given to the reader of another tool's profiles end in a profile with its warnings or in one named error: never
//! a panic, never an endless loop, never more memory than the input justifies.

use super::said::said;
use mallow_formats::export::{self, ExportFormat, ExportOptions, Measure, Packing};
use mallow_formats::{AnyImported, Format, Imported, read_any_as, read_as};
use mallow_profile::Totals;

pub(super) fn import(data: &[u8], format: Format) {
    said(read_as(data, format).err());
}

/// Where time went, written in every form that holds it, and read again where ours does.
pub(super) fn of_time(data: &[u8], format: Format) {
    let imported = match read_any_as(data, format) {
        Ok(AnyImported::Cpu(imported)) => imported,
        Ok(AnyImported::Heap(_)) => return,
        Err(error) => return said(Some(error)),
    };
    for format in [ExportFormat::Pprof, ExportFormat::Folded, ExportFormat::Speedscope, ExportFormat::Firefox]
    {
        let mut out = Vec::new();
        let metric = imported.profile.main_metric();
        export::write_cpu(&imported.profile, format, metric, Packing::Plain, &mut out).unwrap();
        assert!(format != ExportFormat::Pprof || read_any_as(&out, Format::Pprof).is_ok());
    }
}

/// What was read, written again as `format`; nothing when it could not be read.
fn exported(data: &[u8], from: Format, to: ExportFormat, measure: Measure) -> Option<(Imported, Vec<u8>)> {
    match read_as(data, from) {
        Err(error) => {
            said(Some(error));
            None
        }
        Ok(imported) => {
            let mut out = Vec::new();
            let written = export::write(&imported.profile, to, &ExportOptions { measure }, &mut out);
            match written {
                Ok(_) => Some((imported, out)),
                Err(error) => {
                    assert!(export::missing(&imported.profile, to).is_some());
                    said(Some(error));
                    None
                }
            }
        }
    }
}

/// What was read can be written, and what was written can be read.
pub(super) mod rewritten {
    use super::*;

    fn rewritten(data: &[u8], from: Format, to: ExportFormat, again: Format) {
        if let Some((_, out)) = exported(data, from, to, Measure::Leaked) {
            assert!(read_as(&out, again).is_ok());
        }
    }

    pub(in super::super) fn gperftools_heap(data: &[u8]) {
        rewritten(data, Format::GperftoolsHeap, ExportFormat::JemallocHeap, Format::JemallocHeap);
    }

    pub(in super::super) fn jemalloc_heap(data: &[u8]) {
        rewritten(data, Format::JemallocHeap, ExportFormat::JemallocHeap, Format::JemallocHeap);
    }

    pub(in super::super) fn pprof(data: &[u8]) {
        rewritten(data, Format::Pprof, ExportFormat::Pprof, Format::Pprof);
        of_time(data, Format::Pprof);
    }
}

/// What was read, written and read again keeps its sums.
pub(super) mod same_sums {
    use super::*;

    /// The totals of what was read first, and of what was read again.
    fn twice(data: &[u8], format: Format, to: ExportFormat, measure: Measure) -> Option<(Imported, Totals)> {
        let (imported, out) = exported(data, format, to, measure)?;
        let again = read_as(&out, format).map(|again| again.profile.totals());
        Some((imported, again.unwrap_or_default()))
    }

    pub(in super::super) fn dhat(data: &[u8]) {
        let Some((imported, after)) = twice(data, Format::Dhat, ExportFormat::Dhat, Measure::Bytes) else {
            return;
        };
        let before = imported.profile.totals();
        assert_eq!((before.allocations, before.bytes), (after.allocations, after.bytes));
        assert_eq!((before.peak_bytes, before.leaked_bytes), (after.peak_bytes, after.leaked_bytes));
    }

    pub(in super::super) fn massif(data: &[u8]) {
        let Some((imported, after)) = twice(data, Format::Massif, ExportFormat::Massif, Measure::Peak) else {
            return;
        };
        // What is not known has no place in the file: a peak that is its last snapshot is taken for the end.
        let (before, known) = (imported.profile.totals(), imported.profile.known);
        assert!(!known.leaked || before.leaked_bytes == after.leaked_bytes);
        assert!(!known.peak || before.peak_bytes == after.peak_bytes);
    }
}
