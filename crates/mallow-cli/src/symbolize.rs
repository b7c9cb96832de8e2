//! `mallow symbolize`: adds names for addresses that had none when the program ran.

use crate::args::LowSymbolize;
use crate::busy::busy;
use crate::destination::Destination;
use crate::{exit_code, output};
use mallow_formats::Format;
use mallow_query::{Failure, Names, refused};
use mallow_text::plural;
use mallow_trace::{Trace, TraceError};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};

/// Looks names up and writes the trace with them.
pub(crate) fn run(low: &LowSymbolize) -> Result<u8, Failure> {
    let file = &low.file;
    let format = mallow_formats::format_of(file).map_err(|error| refused(file, &error))?;
    if format != Format::Mallow {
        return Err(Failure::new(format!(
            "{} is a {format}, which has its names; symbolize is for traces of mallow record.",
            file.display()
        )));
    }
    let unread = |error: TraceError| refused(file, &error.into());
    let opened = mallow_files::open_input(file).map_err(|error| unread(error.into()))?;
    let trace = Trace::open(BufReader::new(opened)).map_err(unread)?;
    let busy = busy(format!("looking up names for {}", file.display()));
    mallow_query::look_up_with_patience();
    let mut names = Names::new();
    let copy = |out: &mut dyn Write| trace.copy_with_names(|stacks| names.complete(stacks), out);
    let is_in_place = low.output.output.is_none() && file.as_os_str() != mallow_files::STREAM;
    let found = match is_in_place {
        true => {
            let is_made_here = mallow_files::is_made_here(file);
            let copy = |new: &mut File| {
                if is_made_here {
                    mallow_files::mark_as_made_here(new);
                }
                copy(&mut BufWriter::new(new))
            };
            mallow_files::replace_with(file, copy).map_err(unread)?
        }
        false => {
            let mut found = 0;
            Destination::from(low.output.clone()).write(|out| {
                found = copy(out).map_err(io::Error::other)?;
                Ok(())
            })?;
            found
        }
    };
    drop(busy);
    output::warn(&names.warnings());
    output::inform(&format!("found names for {}\n", plural(found as u64, "address")));
    Ok(exit_code::FINE)
}
