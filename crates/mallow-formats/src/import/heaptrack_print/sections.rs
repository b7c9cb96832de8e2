//! Parses the entries of `heaptrack_print`'s text, without interpreting their metrics.
//!
//! With merged backtraces (the default) a group begins with its sum and the innermost frame that its entries share;
//! its entries follow with the rest of their stacks, indented by four blanks. The shared frame is followed by the
//! calls that were inlined at it in one of the entries, but it is unknown in which: they can be used only if the
//! group has a single entry. Without merging, an entry has its sum and its whole stack, indented by two blanks.

use crate::ImportError;
use crate::lines::Lines;
use crate::rust_name;
use mallow_base::Frame;

/// The limit of bytes of shared frames that are repeated in each entry, per line of the file.
const REPEATED_PER_LINE_MAX: u64 = 1024;
/// The limit for any file.
const REPEATED_MIN: u64 = 1 << 20;

/// The metrics of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metrics {
    /// Calls, and bytes live at the peak.
    Calls { calls: u64, peak_bytes: u64 },
    /// Bytes live at the peak, and calls.
    Peak { peak_bytes: u64, calls: u64 },
    /// Bytes live at the end.
    Leaked { leaked_bytes: u64 },
    /// Temporary allocations, and calls.
    Temporary { temporary: u64, calls: u64 },
}

/// An item of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A stack, innermost first, with its metrics.
    Entry(Metrics, Vec<Frame>),
    /// A metric of the whole run, such as `total memory leaked` and `1.70K`.
    Total(String, String),
    /// `and 509 from 6 other places`.
    Omitted,
    /// Inlined calls after a group's shared frame that do not belong to each of its entries.
    Inlined,
}

/// The part of an entry or of a group that was read so far.
#[derive(Default)]
struct Open {
    metrics: Option<Metrics>,
    frames: Vec<Frame>,
}

/// Parses one item after the other.
pub(crate) struct Items<'a> {
    lines: Lines<'a>,
    group: Open,
    /// The group's entries so far, without the shared frame.
    entries: Vec<(Metrics, Vec<Frame>)>,
    /// Whether the group has further entries that are not shown.
    is_partial: bool,
    entry: Open,
    repeated: u64,
}

/// The kind of a line.
enum Kind {
    Group(Metrics),
    Entry(Metrics),
    /// The name of a function, indented by this number of blanks.
    Name(usize),
    /// The place of the frame before it.
    Place,
    Omitted,
    Other,
}

impl<'a> Items<'a> {
    pub(crate) fn new(lines: Lines<'a>) -> Items<'a> {
        let (group, entry) = (Open::default(), Open::default());
        Items { lines, group, entries: Vec::new(), is_partial: false, entry, repeated: 0 }
    }

    /// Calls `each` with every item.
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(Item)) -> Result<(), ImportError> {
        while let Some(line) = self.lines.next_text()? {
            match kind(&line) {
                Kind::Group(metrics) => {
                    self.close_group(&mut each)?;
                    self.group.metrics = Some(metrics);
                }
                Kind::Entry(metrics) => {
                    self.close_entry();
                    self.entry.metrics = Some(metrics);
                }
                Kind::Name(indent) => self.name(line.trim(), indent),
                Kind::Place => self.place(line.trim()),
                Kind::Omitted => {
                    self.is_partial = true;
                    each(Item::Omitted);
                }
                Kind::Other => {
                    self.close_group(&mut each)?;
                    if let Some((name, value)) = line.split_once(": ") {
                        each(Item::Total(name.to_owned(), value.trim().to_owned()));
                    }
                }
            }
        }
        self.close_group(&mut each)
    }

    /// Returns an error about the file as a whole.
    pub(crate) fn expected(&self, expected: &str) -> ImportError {
        self.lines.expected(expected)
    }

    fn name(&mut self, name: &str, indent: usize) {
        let function = rust_name::made_readable(name);
        let frame = Frame { function, ..Frame::default() };
        if self.entry.metrics.is_some() && indent >= 4 {
            self.entry.frames.push(frame);
        } else if self.group.metrics.is_some() && self.entries.is_empty() && self.entry.metrics.is_none() {
            self.group.frames.push(frame);
        }
    }

    fn place(&mut self, place: &str) {
        let open = if self.entry.metrics.is_some() { &mut self.entry } else { &mut self.group };
        let Some(frame) = open.frames.last_mut() else { return };
        if let Some(module) = place.strip_prefix("in ") {
            frame.module = Some(module.to_owned());
        } else if let Some((file, line)) = place.strip_prefix("at ").and_then(|place| place.rsplit_once(':'))
        {
            frame.file = Some(file.to_owned());
            frame.line = line.parse().ok().filter(|line| *line > 0);
        }
    }

    fn close_entry(&mut self) {
        let entry = std::mem::take(&mut self.entry);
        self.entries.extend(entry.metrics.map(|metrics| (metrics, entry.frames)));
    }

    fn close_group(&mut self, each: &mut impl FnMut(Item)) -> Result<(), ImportError> {
        self.close_entry();
        let group = std::mem::take(&mut self.group);
        let is_partial = std::mem::take(&mut self.is_partial);
        let mut entries = std::mem::take(&mut self.entries);
        if entries.is_empty() {
            entries.extend(group.metrics.map(|metrics| (metrics, Vec::new())));
        }
        let is_certain = entries.len() <= 1 && !is_partial;
        if !is_certain && group.frames.len() > 1 {
            each(Item::Inlined);
        }
        let shared = if is_certain { &group.frames[..] } else { &group.frames[..group.frames.len().min(1)] };
        let bytes = shared.iter().map(|frame| frame.function.len() as u64).sum::<u64>();
        for (metrics, frames) in entries {
            self.repeated = self.repeated.saturating_add(if is_certain { 0 } else { bytes });
            if self.repeated > REPEATED_MIN.max(self.lines.number() * REPEATED_PER_LINE_MAX) {
                return Err(self.lines.expected("a group of shorter names than the file's size allows"));
            }
            each(Item::Entry(metrics, with_modules([shared, &frames[..]].concat())));
        }
        Ok(())
    }
}

/// Adds modules: of frames that are inlined into one another, only the innermost has its module, and the others are recognised by having none.
fn with_modules(mut frames: Vec<Frame>) -> Vec<Frame> {
    for at in 1..frames.len() {
        if frames[at].module.is_none() && frames[at].file.is_some() {
            frames[at].module = frames[at - 1].module.clone();
            frames[at - 1].inlined = true;
        }
    }
    frames
}

fn kind(line: &str) -> Kind {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let text = &line[indent..];
    if indent == 0
        && let Some((metrics, is_group)) = metrics(text)
    {
        return if is_group { Kind::Group(metrics) } else { Kind::Entry(metrics) };
    }
    let is_place = text.starts_with("at ") || text.starts_with("in ");
    match indent {
        _ if text.is_empty() => Kind::Other,
        2.. if text.starts_with("and ") && text.ends_with(" other places") => Kind::Omitted,
        2.. if is_place => Kind::Place,
        0 if is_heading(text) => Kind::Other,
        _ => Kind::Name(indent),
    }
}

/// Returns whether a line is a section's title, a total, or a message of the program itself. A function's name may
/// contain a colon, but not a colon and a blank outside of its arguments.
fn is_heading(text: &str) -> bool {
    let is_title = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b' ') && text.contains(' ');
    let is_total =
        ["total ", "calls to ", "temporary memory ", "peak ", "Debuggee command was", "bytes allocated "]
            .iter()
            .any(|start| text.starts_with(start) && text.contains(": "));
    is_title || is_total || text.starts_with("reading file ") || text.starts_with("finished reading ")
}

/// Parses the metrics of a line such as `12 calls with 3.40K peak consumption from:`; also returns whether it begins a group.
fn metrics(text: &str) -> Option<(Metrics, bool)> {
    let is_group = !text.ends_with(':');
    let text = text.trim_end_matches(':').strip_suffix(" from")?;
    let (first, rest) = text.split_once(' ')?;
    let metrics = if let Some(middle) =
        rest.strip_prefix("calls to allocation functions with ").or_else(|| rest.strip_prefix("calls with "))
    {
        let peak_bytes = bytes(middle.strip_suffix(" peak consumption")?)?;
        Metrics::Calls { calls: first.parse().ok()?, peak_bytes }
    } else if let Some(middle) =
        rest.strip_prefix("peak memory consumed over ").or_else(|| rest.strip_prefix("consumed over "))
    {
        Metrics::Peak { peak_bytes: bytes(first)?, calls: middle.strip_suffix(" calls")?.parse().ok()? }
    } else if let Some(middle) = rest.strip_prefix("leaked over ") {
        middle.strip_suffix(" calls")?.parse::<u64>().ok()?;
        Metrics::Leaked { leaked_bytes: bytes(first)? }
    } else {
        let (calls, share) = rest.strip_prefix("temporary allocations of ")?.split_once(' ')?;
        share.starts_with("allocations in total").then_some(())?;
        Metrics::Temporary { temporary: first.parse().ok()?, calls: calls.parse().ok()? }
    };
    Some((metrics, is_group))
}

/// Parses a number of bytes with two decimals: `900B`, `72.70K`, in steps of 1,000.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let number: f64 = text[..text.len() - unit.len()].parse().ok()?;
    let steps = ["B", "K", "M", "G", "T", "P"].iter().position(|name| *name == unit)?;
    // A cast saturates.
    Some((number * 1000_f64.powi(steps as i32)).round() as u64)
}
