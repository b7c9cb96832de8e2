//! massif's text: live memory over time, and at some moments by stack.
//!
//! The format is what Valgrind's `massif/ms_main.c` and `coregrind/m_xtree.c` write and `ms_print` reads. Snapshots
//! become live samples; the peak's tree becomes what sites held at the peak, the last snapshot's tree what they had
//! not freed. A tree has bytes and no blocks. It must never allocate memory according to a number in the file.

mod built;
mod snapshot;
mod text;
mod tree;
mod xtree;

use crate::import::valgrind_frames::{Frames, Overgrown};
use crate::lines::Lines;
use crate::{ImportError, Imported};
use built::{add_site, builder_of, overgrown, process_of};
use mallow_base::Bytes;
use mallow_profile::{Availability, LiveSample, Process, ProcessIndex, ProfileBuilder, SiteTotals};
use snapshot::{Clock, Snapshot};
use tree::Names;

/// The header, before the first snapshot.
struct Head {
    command: String,
    clock: Clock,
    /// Whether its snapshots are metrics and not moments.
    is_xtree: bool,
}

/// The snapshots that are used.
#[derive(Default)]
struct Found {
    samples: Vec<LiveSample>,
    /// The one that massif marks as the peak.
    peak: Option<Snapshot>,
    /// The one with the most bytes, of equal ones the last.
    highest: Option<Snapshot>,
    last: Option<Snapshot>,
}

/// Parses a file.
pub(crate) fn read(lines: Lines<'_>) -> Result<Imported, ImportError> {
    let mut text = text::Text::new(lines);
    let head = read_head(&mut text)?;
    let mut names = Names::default();
    if head.is_xtree {
        return xtree::read(&mut text, head, &mut names);
    }
    let mut found = Found::default();
    while let Some(snapshot) = snapshot::next(&mut text, head.clock, &mut names)? {
        found.add(snapshot);
    }
    let Some(last) = &found.last else { return Err(text.expected("snapshot=0")) };

    let warnings = found.warnings();
    let mut builder = builder_of(&head, last, Availability { peak: true, ..Availability::NOTHING });
    let live_samples = found.samples.clone();
    let process = builder.add_process(Process { live_samples, ..process_of(&head, last) });
    let mut frames = names.frames(text.bytes());
    found.add_sites(&mut builder, process, &mut frames).map_err(overgrown)?;
    Ok(Imported { profile: builder.finish(), warnings, complete: true })
}

/// Parses three lines; a command may contain line breaks.
fn read_head(text: &mut text::Text<'_>) -> Result<Head, ImportError> {
    let mut line = text.next()?;
    let mut is_xtree = false;
    while let Some(desc) = line.as_deref().and_then(|line| line.strip_prefix("desc:")) {
        is_xtree |= desc.trim().starts_with("xtree.");
        line = text.next()?;
    }
    let Some(first) = line.as_deref().and_then(|line| line.strip_prefix("cmd:")) else {
        return Err(text.expected("cmd: and a command"));
    };
    let mut command = first.trim().to_owned();
    loop {
        let Some(line) = text.next()? else { return Err(text.expected("time_unit: and i, ms or B")) };
        if let Some(unit) = line.strip_prefix("time_unit:") {
            let clock = Clock::of_word(unit.trim());
            let clock = clock.ok_or_else(|| text.expected("a time_unit of i, ms or B"))?;
            return Ok(Head { command, clock, is_xtree });
        }
        command.push(' ');
        command.push_str(line.trim());
    }
}

impl Found {
    fn add(&mut self, snapshot: Snapshot) {
        self.samples.push(snapshot.sample);
        if snapshot.is_peak {
            self.peak = Some(snapshot.clone());
        }
        if self.highest.as_ref().is_none_or(|highest| highest.bytes() <= snapshot.bytes()) {
            self.highest = Some(snapshot.clone());
        }
        self.last = Some(snapshot);
    }

    /// Returns the peak, as far as the file has it.
    fn top(&self) -> Option<&Snapshot> {
        self.peak.as_ref().or(self.highest.as_ref())
    }

    /// Returns what is live at the end, if the last snapshot has it: nothing, or a tree.
    fn end(&self) -> Option<&Snapshot> {
        self.last.as_ref().filter(|last| last.tree.is_some() || last.bytes() == 0)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let is_of_pages =
            |top: &Snapshot| top.tree.as_ref().is_some_and(|tree| tree.title.contains("page allocation"));
        if self.top().is_some_and(is_of_pages) {
            warnings.push(String::from(
                "the numbers are pages taken from the kernel (--pages-as-heap) and not requests to malloc",
            ));
        }
        if self.top().is_some_and(|top| top.tree.is_none() && top.bytes() > 0) {
            warnings.push(String::from(
                "no snapshot tells what the peak was made of, so its bytes stand at no site; massif finds a peak only when \
                 something is freed",
            ));
        }
        if let (Some(peak), Some(highest)) = (&self.peak, &self.highest)
            && peak.bytes() < highest.bytes()
        {
            warnings.push(format!(
                "massif's peak of {} is not the most that its snapshots show, which is {}; see its option --peak-inaccuracy",
                Bytes(peak.bytes()),
                Bytes(highest.bytes())
            ));
        }
        warnings.push(match self.end() {
            Some(_) => {
                String::from("what was leaked is what lived at the last snapshot, which is not quite the end")
            }
            None => String::from("what was leaked is not known: the last snapshot has no tree"),
        });
        warnings
    }

    fn add_sites(
        &self,
        builder: &mut ProfileBuilder,
        process: ProcessIndex,
        frames: &mut Frames,
    ) -> Result<(), Overgrown> {
        if let Some(top) = self.top() {
            builder.process(process).totals.peak_bytes = top.bytes();
            builder.process(process).peak_us = top.sample.time_us;
            for leaf in top.leaves() {
                let totals = SiteTotals { peak_bytes: leaf.bytes, ..SiteTotals::default() };
                add_site(builder, process, frames, &leaf, &totals)?;
            }
        }
        if let Some(end) = self.end() {
            builder.known().leaked = true;
            builder.process(process).totals.leaked_bytes = end.bytes();
            for leaf in end.leaves() {
                let totals = SiteTotals { leaked_bytes: leaf.bytes, ..SiteTotals::default() };
                add_site(builder, process, frames, &leaf, &totals)?;
            }
        }
        Ok(())
    }
}
