//! The trace file while it grows.

use crate::error::CollectError;
use crate::output::{self, Opened, Output};
use crate::sink::Sink;
use mallow_trace::{ChunkKind, TraceWriter};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Writes chunks, and knows what the file is called.
#[derive(Debug)]
pub(crate) struct TraceFile {
    path: PathBuf,
    /// Whether the file is new: then it is removed if the recording fails.
    is_new: bool,
    writer: TraceWriter<BufWriter<File>>,
}

/// Fast enough to keep up with 20 million events a second on part of one core; higher levels gain a tenth in
/// size.
const ZSTD_LEVEL: i32 = 1;

impl TraceFile {
    /// Begins a trace, under a name of its own while the program's process id is not known.
    pub(crate) fn create(output: &Output) -> Result<TraceFile, CollectError> {
        let Opened { file, path, is_new } = output::open(output)?;
        mallow_files::mark_as_made_here(&file);
        match TraceWriter::new(BufWriter::with_capacity(1 << 18, file), ZSTD_LEVEL) {
            Ok(writer) => Ok(TraceFile { path, is_new, writer }),
            Err(cause) => {
                if is_new {
                    let _ = std::fs::remove_file(&path);
                }
                Err(CollectError::CannotWrite { path, cause })
            }
        }
    }

    /// The file's present name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to its final name, now that the process is known.
    pub(crate) fn name_by_process(
        &mut self,
        output: &Output,
        program: &str,
        pid: u32,
    ) -> Result<(), CollectError> {
        if let Output::Default(directory) = output {
            self.path = output::name_by_process(&self.path, directory, program, pid)?;
        }
        Ok(())
    }

    /// Removes it, unless there was such a file before.
    pub(crate) fn discard(&self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn written(&self, outcome: io::Result<()>) -> Result<(), CollectError> {
        outcome.map_err(|cause| CollectError::CannotWrite { path: self.path.clone(), cause })
    }
}

impl Sink for &mut TraceFile {
    fn chunk(
        &mut self,
        kind: ChunkKind,
        process: u32,
        encode: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), CollectError> {
        let outcome = self.writer.put_bytes(kind, process, encode);
        self.written(outcome)
    }

    fn flush(&mut self) -> Result<(), CollectError> {
        let outcome = self.writer.flush();
        self.written(outcome)
    }
}
