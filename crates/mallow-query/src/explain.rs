//! Where a process's memory is: what has to be read for the answer.

use crate::failure::{Failure, reason};
use crate::heap::HeapFile;
use crate::profile_file::{ProfileFile, refused};
use mallow_formats::Document;
use mallow_profile::{AllocatorState, MappedMemory, ReallocAttribution};
use mallow_view::heap::{Explanation, Moment, explain, native_rows};
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The files of one moment; each is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MomentRequest {
    /// A snapshot of the managed heap.
    pub dump: Option<PathBuf>,
    /// A process that runs.
    pub pid: Option<u32>,
    /// A copy of its `/proc/PID/smaps`.
    pub smaps: Option<PathBuf>,
    /// Resident bytes.
    pub resident_bytes: Option<u64>,
    /// The allocator's statistics: `malloc_info` or jemalloc's.
    pub allocator: Option<PathBuf>,
    /// A recording of its native blocks.
    pub trace: Option<PathBuf>,
}

/// Reads both moments and adds up; passes warnings of the files to `warn`.
///
/// # Errors
/// A file cannot be read, or has another format than expected.
pub fn explained(
    before: Option<&MomentRequest>,
    now: &MomentRequest,
    mut warn: impl FnMut(&Path, &[String]),
) -> Result<Explanation, Failure> {
    let before = before.map(|request| moment(request, &mut warn)).transpose()?;
    Ok(explain(before.as_ref(), &moment(now, &mut warn)?))
}

fn moment(request: &MomentRequest, warn: &mut impl FnMut(&Path, &[String])) -> Result<Moment, Failure> {
    let mut moment = Moment { resident_bytes: request.resident_bytes, ..Moment::default() };
    if let Some(path) = &request.dump {
        let heap = HeapFile::open(path)?;
        warn(path, heap.objects().warnings());
        moment.managed = Some(heap.managed());
    }
    if let Some(pid) = request.pid {
        moment.mapped = Some(mapped(&PathBuf::from(format!("/proc/{pid}/smaps")))?);
        moment.threads = threads(pid);
    }
    if let Some(path) = &request.smaps {
        moment.mapped = Some(mapped(path)?);
    }
    if let Some(path) = &request.allocator {
        moment.allocator = Some(allocator(path)?);
    }
    if let Some(path) = &request.trace {
        let file = ProfileFile::open(path, ReallocAttribution::OwnSite)?;
        warn(path, &file.warnings);
        let processes = file.profile.processes.len();
        if processes > 1 {
            warn(path, &[format!("it is of {processes} processes, whose live blocks are added up here")]);
        }
        moment.live = Some(native_rows(&file.profile));
    }
    Ok(moment)
}

fn mapped(path: &Path) -> Result<MappedMemory, Failure> {
    let unread = |why: String| Failure::new(format!("cannot read {}: {why}.", path.display()));
    let file = mallow_files::open_input(path).map_err(|error| unread(reason(&error)))?;
    mallow_formats::smaps::read(BufReader::new(file)).map_err(unread)
}

fn threads(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

fn allocator(path: &Path) -> Result<AllocatorState, Failure> {
    match mallow_formats::open(path).map_err(|error| refused(path, &error))? {
        Document::AllocatorState(state) => Ok(state),
        _ => Err(Failure::new(format!(
            "{} is neither malloc_info nor statistics of jemalloc.",
            path.display()
        ))),
    }
}
