//! heaptrack's data files, versions 0 to 3, raw and interpreted.
//!
//! One record per line, whose first character is its kind; all numbers are hexadecimal. Source: heaptrack's reader
//! `accumulatedtracedata.cpp` and writer `libheaptrack.cpp`, and files that heaptrack 1.4.0 wrote.
//!
//! | line | raw file | interpreted file |
//! |---|---|---|
//! | `v` | heaptrack's version, the file's version | the same |
//! | `X` `I` `S` `A` | command; page size and pages; suppression; attached | the same |
//! | `x` `m` | executable; loaded modules | none |
//! | `s` `i` | none | a string; an address with its frames, innermost first |
//! | `t` | address, parent | `i` record, parent |
//! | `a` | none | a pair of size and stack (none in version 0) |
//! | `+` `-` | size, stack, pointer; pointer | a pair's number (version 0: as raw) |
//! | `c` `R` | milliseconds since the start; resident pages | the same |
//!
//! The meaning of metrics:
//! - *Temporary* is heaptrack's: freed by the very next event, of whatever thread, because the file names no threads.
//!   If there are no pointers, pairs are compared as in heaptrack's analysis: another block of the same size and
//!   stack matches, and so does the first pair after any free. The total is the one that `heaptrack_print` prints.
//! - *Peak* follows our counting rules: of equal peaks the last. heaptrack takes the first, so its breakdown by site
//!   may belong to another moment if a program reaches the same peak again. Peak bytes are equal.
//! - *Times* have the resolution of heaptrack's clock, about 10 ms, which is too coarse for lifetimes: they stay
//!   unknown.
//! - A `realloc` is a free and an allocation, and failed calls are not recorded: neither is known.
//!
//! Malformed lines are skipped and summed up in one warning, as heaptrack does. Memory is bounded by live blocks,
//! distinct stacks and strings: no event is kept.

mod events;
mod fields;
mod frames;
mod header;
mod modules;

use crate::export::heaptrack::MADE_UP_COMMENT;
use crate::lines::Lines;
use crate::source::Source;
use crate::{Format, ImportError, Imported};
use events::{Events, counted};
use fields::{Fields, NotThere};
use frames::Frames;
use header::Header;
use mallow_profile::{
    Aggregator, Availability, EventSink, LocationId, Process, ProfileBuilder, Recording, Sample,
};
use modules::Modules;

/// heaptrack's own reader takes the page size from `I`; this is for older files, which have none.
const PAGE_BYTES: u64 = 4096;

/// Parses a heaptrack file.
///
/// # Errors
/// If the first line is not a version, or an unsupported one.
pub(crate) fn read(source: Source<'_>) -> Result<Imported, ImportError> {
    Ok(Reader::run(source, Aggregator::new())?.finish())
}

/// Passes a file's events to `sink`, with stacks numbered as in the profile that [`read`] makes of it. Returns false
/// if the events are synthetic, so that they add up to sums.
///
/// # Errors
/// As [`read`].
pub(crate) fn events(source: Source<'_>, sink: &mut impl EventSink) -> Result<bool, ImportError> {
    Ok(!Reader::run(source, sink)?.is_made_up)
}

/// What was read so far.
struct Reader<S> {
    header: Header,
    builder: ProfileBuilder,
    process: Process,
    frames: Frames,
    modules: Modules,
    events: Events<S>,
    /// Whether `x` or `m` lines were seen: `t` and `+` are those of a raw file.
    is_raw: bool,
    page_bytes: u64,
    has_clock: bool,
    is_attached: bool,
    is_made_up: bool,
    /// The comments that the interpreter writes at the end.
    has_trailer: bool,
    skipped: Skipped,
    /// Why reading ended before the end.
    torn: Option<String>,
}

/// Skipped lines.
#[derive(Default)]
struct Skipped {
    lines: u64,
    first: u64,
    expected: &'static str,
}

impl<S: EventSink> Reader<S> {
    /// Parses a whole file.
    fn run(source: Source<'_>, sink: S) -> Result<Reader<S>, ImportError> {
        let mut lines = source.lines(Format::Heaptrack);
        let header = Header::read(&mut lines)?;
        let mut reader = Reader::new(header, sink);
        reader.read_all(&mut lines);
        Ok(reader)
    }

    fn new(header: Header, sink: S) -> Reader<S> {
        let known = Availability {
            allocations: true,
            bytes: true,
            temporary: true,
            peak: true,
            peak_blocks: true,
            leaked: true,
            leaked_blocks: true,
            own_maximum: true,
            own_maximum_blocks: true,
            ..Availability::NOTHING
        };
        Reader {
            header,
            builder: ProfileBuilder::new(Recording::default(), known),
            process: Process::default(),
            frames: Frames::default(),
            modules: Modules::default(),
            events: Events::new(sink),
            is_raw: false,
            page_bytes: PAGE_BYTES,
            has_clock: false,
            is_attached: false,
            is_made_up: false,
            has_trailer: false,
            skipped: Skipped::default(),
            torn: None,
        }
    }

    /// Reads to the end, or to where an archive is truncated.
    fn read_all(&mut self, lines: &mut Lines<'_>) {
        let mut number = lines.number();
        loop {
            match lines.next() {
                Ok(None) => return,
                Ok(Some(line)) => {
                    number += 1;
                    self.frames.afford_more(line.len());
                    if let Err(NotThere(expected)) = self.line(line) {
                        self.skipped.add(number, expected);
                    }
                }
                Err(error) => {
                    self.torn = Some(format!("reading stopped behind line {number}: {error}"));
                    return;
                }
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), NotThere> {
        let Some((&kind, rest)) = line.split_first() else { return Ok(()) };
        let mut fields = Fields::new(rest);
        match kind {
            b'+' | b'-' => self.event(kind, &mut fields),
            b's' | b'i' | b't' | b'a' => self.numbered(kind, &mut fields),
            b'x' | b'm' => self.module(kind, &mut fields),
            b'c' => self.clock(fields.number("a time")?),
            b'R' => self.resident(fields.number("a number of pages")?),
            b'#' => {
                self.comment(line);
                Ok(())
            }
            _ => self.about(kind, &mut fields),
        }
    }

    /// Handles records that occur once.
    fn about(&mut self, kind: u8, fields: &mut Fields<'_>) -> Result<(), NotThere> {
        match kind {
            b'X' => {
                self.process.command = fields.rest();
                let words = self.process.command.split_whitespace().map(str::to_owned);
                self.builder.recording().command = words.collect();
            }
            b'I' => self.page_bytes = fields.number("a page size")?,
            b'S' => {
                let line = fields.rest();
                self.builder.recording().suppressions.push(line);
            }
            b'A' => self.is_attached = true,
            _ => return Err(NotThere("one of heaptrack's lines")),
        }
        Ok(())
    }

    /// Handles records that others refer to by number. A malformed one keeps its number, so that later ones keep theirs.
    fn numbered(&mut self, kind: u8, fields: &mut Fields<'_>) -> Result<(), NotThere> {
        match kind {
            b's' => {
                let text = self.text(fields);
                self.frames.add_string(text.clone().unwrap_or_default());
                text.map(|_| ())
            }
            b'i' => self.frames.add_instruction(fields, &mut self.builder),
            b't' => {
                let ends =
                    fields.number("an address").and_then(|code| Ok((code, fields.number("a parent")?)));
                let (code, parent) = ends.inspect_err(|_| self.frames.add_no_trace())?;
                let location = if self.is_raw {
                    self.address(code)
                } else {
                    self.frames.instruction(code, &mut self.builder)
                };
                self.frames.add_trace(location, parent, &mut self.builder)
            }
            _ => {
                let size = fields.number("a size");
                let stack = fields.number("a stack").and_then(|trace| self.frames.trace(trace));
                self.events.add_pair(size.unwrap_or(0), stack.unwrap_or(Aggregator::NO_STACK));
                size.and(stack).map(|_| ())
            }
        }
    }

    fn text(&self, fields: &mut Fields<'_>) -> Result<String, NotThere> {
        if self.header.has_sized_strings() { fields.sized() } else { Ok(fields.rest()) }
    }

    fn event(&mut self, kind: u8, fields: &mut Fields<'_>) -> Result<(), NotThere> {
        let first = fields.number("a number")?;
        let has_pointers = self.is_raw || self.header.file_version == 0;
        match (kind, has_pointers) {
            (b'+', true) => {
                let (trace, pointer) = (fields.number("a stack")?, fields.number("a pointer")?);
                let stack = self.frames.trace(trace);
                self.events.alloc_at(pointer, first, stack.unwrap_or(Aggregator::NO_STACK));
                stack?;
            }
            (_, true) => self.events.free_at(first),
            (b'+', false) => self.events.alloc_pair(first)?,
            (_, false) => self.events.free_pair(first)?,
        }
        Ok(())
    }

    fn address(&mut self, code: u64) -> LocationId {
        let avma = self.header.return_address(code);
        let address = self.modules.locate(code, avma);
        self.builder.location(address, Vec::new())
    }

    fn module(&mut self, kind: u8, fields: &mut Fields<'_>) -> Result<(), NotThere> {
        self.is_raw = true;
        if kind == b'x' {
            let path = self.text(fields)?;
            self.modules.set_executable(path);
            return Ok(());
        }
        let path = if self.header.has_sized_strings() { fields.sized()? } else { fields.word("a path")? };
        self.modules.add(&path, fields, &mut self.builder)
    }

    fn clock(&mut self, time_ms: u64) -> Result<(), NotThere> {
        let time_us = time_ms.saturating_mul(1000);
        if self.has_clock && time_us < self.events.time_us() {
            return Err(NotThere("a later time"));
        }
        self.has_clock = true;
        self.events.set_time(time_us);
        self.process.live_samples.push(self.events.live_sample());
        Ok(())
    }

    fn resident(&mut self, pages: u64) -> Result<(), NotThere> {
        let rss_bytes = pages.saturating_mul(self.page_bytes);
        self.process.samples.push(Sample { time_us: self.events.time_us(), rss_bytes });
        Ok(())
    }

    fn comment(&mut self, line: &[u8]) {
        self.has_trailer |= line.starts_with(b"# ips:") || line.starts_with(b"# strings:");
        // The sums of such a file are real; times, timelines and own maxima are not.
        self.is_made_up |= line == MADE_UP_COMMENT.as_bytes();
    }

    /// Returns warnings about missing or doubtful data, and whether the file is complete.
    fn warnings(&self) -> (Vec<String>, bool) {
        let mut warnings = Vec::new();
        warnings.extend(self.torn.clone());
        let lacks_trailer = !self.is_raw && !self.has_trailer;
        if lacks_trailer && self.torn.is_none() {
            warnings.push(String::from(
                "the file does not end with the counts of strings and addresses that heaptrack writes last: the recording may have \
                 been cut off, and blocks that were freed later stand as leaked",
            ));
        }
        warnings.extend(self.skipped.warning());
        warnings.extend(self.frames.warning());
        warnings.extend(self.events.warnings());
        if self.is_attached {
            warnings.push(String::from(
                "heaptrack was attached to a running process: what was allocated before is not in the metrics",
            ));
        }
        if !self.process.samples.is_empty() && self.header.resident_is_doubtful() {
            warnings.push(String::from(
                "heaptrack before 1.2 wrote resident memory in a wrong number base: do not trust it",
            ));
        }
        let complete = self.torn.is_none() && !lacks_trailer && self.skipped.lines == 0;
        (warnings, complete)
    }
}

impl Reader<Aggregator> {
    fn finish(mut self) -> Imported {
        let (warnings, complete) = self.warnings();
        let end_us = self.events.time_us();
        self.builder.recording().duration_us = end_us;
        self.builder.known().times = self.has_clock && !self.is_made_up;
        self.builder.known().own_maximum = !self.is_made_up;
        self.builder.known().own_maximum_blocks = !self.is_made_up;
        if self.is_made_up {
            self.process.live_samples.clear();
        }
        self.process.ended_us = end_us;
        let process = self.builder.add_process(self.process);
        self.events.finish(&mut self.builder, process);
        Imported { profile: self.builder.finish(), warnings, complete }
    }
}

impl Skipped {
    fn add(&mut self, line: u64, expected: &'static str) {
        if self.lines == 0 {
            (self.first, self.expected) = (line, expected);
        }
        self.lines += 1;
    }

    fn warning(&self) -> Option<String> {
        (self.lines > 0).then(|| {
            format!(
                "{} made no sense and {} passed over; the first is line {}, where {} was expected",
                counted(self.lines, "line", "lines"),
                if self.lines == 1 { "was" } else { "were" },
                self.first,
                self.expected
            )
        })
    }
}
