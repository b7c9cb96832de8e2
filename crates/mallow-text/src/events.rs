//! Reports of events, one section for each question: their heading, and what they share.

mod bars;
mod chains;
mod histogram;
mod short_lived;
mod threads;
mod timeline;
mod window;

use crate::columns::Columns;
use crate::wording::callers;
use crate::{Style, cut_end, frame_text, part_words, printable};
use chains::chains;
use histogram::histograms;
use mallow_base::{Bytes, Count, Micros};
use mallow_profile::{Profile, TimeUnit};
use mallow_view::{EventReport, SiteOptions};
use mallow_view::{PlaceRow, lines};
use short_lived::short_lived;
use threads::threads;
use timeline::timeline;
use window::window;

/// Columns left of a plot.
pub const GUTTER: usize = 10;
/// Rows of a table.
const LIMIT: usize = 10;

/// Returns all sections that were requested.
pub fn text(shows: &EventReport<'_>, sites: SiteOptions<'_>, style: Style) -> String {
    let page = Page { profile: shows.profile, sites, style };
    let mut out = vec![page.title(shows)];
    out.extend(part_words(None, shows.filter).iter().map(|line| cut_end(line, style.width)));
    let mut add = |section: Vec<String>| {
        out.push(String::new());
        out.extend(section);
    };
    shows.timeline.iter().for_each(|found| add(timeline(&page, found)));
    shows.window_sites.iter().for_each(|found| add(window(&page, found, shows.at_only)));
    shows.histograms.iter().for_each(|found| add(histograms(&page, found)));
    shows.threads.iter().for_each(|found| add(threads(&page, found)));
    shows.chains.iter().for_each(|found| add(chains(&page, found)));
    if let Some((within, found)) = &shows.temporary {
        let what = match within {
            1 => "freed before their thread allocated again".to_owned(),
            within => format!("freed before {within} further allocations"),
        };
        add(short_lived(&page, "temporary", &what, found));
    }
    if let Some((us, found)) = &shows.short_lived {
        add(short_lived(&page, "short-lived", &format!("lived shorter than {}", Micros(*us)), found));
    }
    out.join("\n") + "\n"
}

/// What every section needs.
pub(super) struct Page<'a> {
    pub(super) profile: &'a Profile,
    pub(super) sites: SiteOptions<'a>,
    pub(super) style: Style,
}

impl Page<'_> {
    /// Formats `./app: 2.58 s`, and the window.
    fn title(&self, shows: &EventReport<'_>) -> String {
        let recording = &self.profile.recording;
        let end = match shows.window {
            None => self.time(recording.duration_us),
            Some(window) if shows.at_only => {
                let at = window.to_us.min(recording.duration_us);
                format!("at {} of {}", self.time(at), self.time(recording.duration_us))
            }
            Some(window) => format!(
                "{} to {} of {}",
                self.time(window.from_us),
                self.time(window.to_us.min(recording.duration_us)),
                self.time(recording.duration_us)
            ),
        };
        let left = self.style.width.saturating_sub(end.columns() + 2);
        let command = match recording.command.is_empty() {
            true => "a program that is not named".to_owned(),
            false => printable(&recording.command.join(" ")),
        };
        format!("{}: {end}", self.style.bold(&cut_end(&command, left)))
    }

    /// Formats a time of the recording in its unit.
    pub(super) fn time(&self, time: u64) -> String {
        match self.profile.recording.time_unit {
            TimeUnit::Microseconds => Micros(time).to_string(),
            TimeUnit::Instructions => format!("{} instr.", Count(time)),
            TimeUnit::Bytes => format!("{} allocated", Bytes(time)),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.sites.limit.unwrap_or(LIMIT)
    }

    /// Formats the frame that names a row, in the columns that `taken` leaves.
    pub(super) fn name<T>(&self, row: &PlaceRow<T>, taken: usize) -> String {
        frame_text(row.frames(self.profile).next(), self.style.name_width(taken))
    }

    /// Formats its callers, for the line below its name; `None` if there are none.
    pub(super) fn callers<T>(&self, row: &PlaceRow<T>, indent: usize) -> Option<String> {
        let stack = lines(row.frames(self.profile), self.sites.shown);
        let width = self.style.width.saturating_sub(indent);
        let callers = callers(stack.iter().skip(1).map(|line| line.frame), width)?;
        Some(format!("{:indent$}{}", "", self.style.dim(&callers)))
    }

    /// Returns how many rows the limit left out.
    pub(super) fn more(&self, rows: usize) -> Option<String> {
        let left = rows.saturating_sub(self.limit());
        let sites = crate::plural(left as u64, "more site");
        (left > 0).then(|| format!("{sites} not shown; use --top to see more."))
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
