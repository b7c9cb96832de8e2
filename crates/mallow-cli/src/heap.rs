//! `mallow heap`: what lies in a managed heap, and who retains it.

use crate::args::LowHeap;
use crate::{exit_code, output, terminal};
use mallow_query::Failure;
use mallow_query::heap::HeapFile;
use mallow_text::heap as text;

/// Reads the snapshot and shows the page that was asked for.
pub(crate) fn run(low: &LowHeap) -> Result<u8, Failure> {
    let heap = HeapFile::open(&low.file)?;
    output::warn(heap.warnings());
    let style = terminal::style(&std::io::stdout());
    let page = match (&low.object, &low.class) {
        (Some(object), _) => text::object(&heap.object(object)?, low.limit, style),
        (None, Some(class)) => text::class(&heap.class(class)?, low.limit, style),
        (None, None) => text::report(&heap.report(low.sort), low.limit, style),
    };
    output::to_stdout(|out| out.write_all(page.as_bytes()))?;
    Ok(exit_code::FINE)
}
