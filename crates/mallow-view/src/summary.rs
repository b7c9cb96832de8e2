//! What a person wants to know when the program has ended, and what to look at next.

use crate::Measure;
use crate::processes::Programs;
use crate::tops::{Top, tops};
use mallow_base::Percent;
use mallow_profile::{Availability, EventsLost, Exit, Process, Profile, SiteTotals, Totals};
use mallow_stacks::SiteList;

/// From this leaked share of the peak on, a report of leaks is suggested.
const LEAKED_SHARE_MIN: f64 = 0.10;
/// From this share of temporary allocations on, a report of them is suggested.
const TEMPORARY_SHARE_MIN: f64 = 0.20;

/// A recording in a few metrics.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// The command with its arguments.
    pub command: String,
    /// How its first process ended.
    pub exit: Option<Exit>,
    /// Its duration, in microseconds.
    pub duration_us: u64,
    /// How many processes there were; an `exec` does not count as another one.
    pub processes: usize,
    /// Whether anything was recorded: without it no metric is known.
    pub is_recorded: bool,
    /// The metrics of all processes.
    pub totals: Totals,
    /// How many of the allocated blocks were freed. A forked child frees its parent's, too.
    pub freed_blocks: u64,
    /// The process with the highest peak.
    pub peak_process: Option<&'a Process>,
    /// The programs, if there was more than one.
    pub programs: Programs<'a>,
    /// Events that were not recorded, over all processes.
    pub events_lost: EventsLost,
    /// The top sites by each measure that has any.
    pub tops: Vec<Top<'a>>,
    /// The path of a module that lacks the names of much of this.
    pub nameless: Option<&'a str>,
    /// Suggested reports; the most important first.
    pub next: Vec<Next>,
}

/// A report worth opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// By which measure to sort; none for the report over all.
    pub sort: Option<Measure>,
    /// The reason.
    pub why: String,
}

impl<'a> Summary<'a> {
    /// Sums up a profile.
    pub fn of(profile: &'a Profile) -> Self {
        Self::of_sites(profile, profile.sites.as_slice())
    }

    /// Sums up a profile whose sites are these, and not its own.
    pub fn of_sites(profile: &'a Profile, sites: &(impl SiteList<SiteTotals> + ?Sized)) -> Self {
        let totals = profile.totals();
        let (tops, nameless) = tops(&profile.stacks, sites);
        let first_pid = profile.processes.first().map(|process| process.pid);
        Self {
            command: profile.recording.command.join(" "),
            exit: profile.processes.iter().rev().find(|p| Some(p.pid) == first_pid).and_then(|p| p.exit),
            duration_us: profile.recording.duration_us,
            processes: profile.processes.iter().filter(|p| p.exit != Some(Exit::Exec)).count(),
            is_recorded: profile.known != Availability::NOTHING,
            totals,
            freed_blocks: totals.frees.saturating_sub(profile.frees_unmatched()),
            peak_process: profile.processes.iter().max_by_key(|process| process.totals.peak_bytes),
            programs: Programs::of(profile),
            events_lost: profile.events_lost(),
            tops,
            // Of one whose names could not be looked up a warning says more.
            nameless: nameless
                .filter(|module| !profile.recording.nameless.iter().any(|known| known.module == *module)),
            next: next(&totals),
        }
    }

    /// A metric per second of the recording; none when it took no time.
    pub fn per_second(&self, value: u64) -> Option<u64> {
        (self.duration_us > 0).then(|| (value as f64 * 1e6 / self.duration_us as f64) as u64)
    }
}

fn next(totals: &Totals) -> Vec<Next> {
    let mut next = Vec::new();
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    if share(totals.leaked_bytes, totals.peak_bytes) >= LEAKED_SHARE_MIN {
        let percent = Percent { part: totals.leaked_bytes, whole: totals.peak_bytes };
        next.push(Next { sort: Some(Measure::Leaked), why: format!("{percent} of the peak leaked") });
    }
    if share(totals.temporary, totals.allocations) >= TEMPORARY_SHARE_MIN {
        let percent = Percent { part: totals.temporary, whole: totals.allocations };
        next.push(Next { sort: Some(Measure::Temporary), why: format!("{percent} freed at once") });
    }
    if totals.peak_bytes > 0 {
        next.push(Next { sort: Some(Measure::Peak), why: "live at the peak".into() });
    }
    if totals.allocations > 0 && next.len() < 3 {
        next.push(Next { sort: None, why: "all tables".into() });
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{allocated, frame, profile, site};
    use mallow_profile::{Nameless, SiteTotals};

    fn sorts(totals: Totals) -> Vec<Option<Measure>> {
        next(&totals).into_iter().map(|next| next.sort).collect()
    }

    #[test]
    fn the_data_choose_what_comes_next() {
        let quiet = Totals { allocations: 100, bytes: 1000, peak_bytes: 500, ..Totals::default() };
        assert_eq!(sorts(quiet), [Some(Measure::Peak), None]);
        let leaky = Totals { leaked_bytes: 50, ..quiet };
        assert_eq!(sorts(leaky), [Some(Measure::Leaked), Some(Measure::Peak), None]);
        let both = Totals { temporary: 20, ..leaky };
        assert_eq!(sorts(both), [Some(Measure::Leaked), Some(Measure::Temporary), Some(Measure::Peak)]);
        assert_eq!(sorts(Totals { leaked_bytes: 49, temporary: 19, ..quiet }), [Some(Measure::Peak), None]);
        assert_eq!(sorts(Totals::default()), []);
    }

    #[test]
    fn top_sites_are_named_once_each() {
        let mut profile = profile();
        let stack = |caller: &str| vec![vec![frame("strdup", "libc")], vec![frame(caller, "app")]];
        site(&mut profile, 0, &stack("a"), allocated(3, 30));
        site(&mut profile, 0, &stack("b"), allocated(3, 30));
        site(&mut profile, 0, &[vec![frame("load", "app")]], allocated(4, 99));
        let summary = Summary::of(&profile);
        let top = |at: usize| -> Vec<(u64, &str)> {
            summary.tops[at]
                .rows
                .iter()
                .map(|row| (row.value, row.frame.map_or("", |f| f.function.as_str())))
                .collect()
        };
        assert_eq!(top(0), [(6, "strdup"), (4, "load")]);
        assert_eq!(top(1), [(99, "load"), (60, "strdup")]);
        assert_eq!(summary.tops.len(), 2, "nothing at the peak, leaked or temporary");
    }

    #[test]
    fn the_module_that_lacks_most_names_is_named_where_that_is_much() {
        let mut profile = profile();
        let place = |function: &str, module: &str| vec![vec![frame(function, module)]];
        site(&mut profile, 0, &place("0x1a", "/bin/app"), allocated(20, 1));
        site(&mut profile, 0, &place("0x2b", "/bin/app"), allocated(10, 1));
        site(&mut profile, 0, &place("0x2b", "/lib/other.so"), allocated(20, 1));
        site(&mut profile, 0, &place("0x3c", "[anon]"), allocated(25, 1));
        site(&mut profile, 0, &place("main", "/bin/app"), allocated(45, 1));
        assert_eq!(Summary::of(&profile).nameless, Some("/bin/app"));
        let mut interrupted = profile.clone();
        let reason = "was not waited for, because of an interrupt".to_owned();
        interrupted.recording.nameless = vec![Nameless { module: "/bin/app".to_owned(), reason }];
        assert_eq!(Summary::of(&interrupted).nameless, None, "it may not be stripped at all");
        site(&mut profile, 0, &place("load", "/bin/app"), allocated(1, 1));
        assert_eq!(Summary::of(&profile).nameless, None, "less than a quarter");
    }

    #[test]
    fn the_exit_is_that_of_the_last_image_of_the_first_process() {
        let mut profile = profile();
        profile.processes[0].exit = Some(Exit::Exec);
        profile.processes.push(Process { pid: 7, exit: Some(Exit::Signal(9)), ..Process::default() });
        profile.processes.push(Process { pid: 1, exit: Some(Exit::Status(3)), ..Process::default() });
        site(&mut profile, 1, &[], SiteTotals { peak_bytes: 5, ..SiteTotals::default() });
        let summary = Summary::of(&profile);
        assert_eq!(summary.exit, Some(Exit::Status(3)));
        assert_eq!(summary.processes, 2);
        assert_eq!(summary.peak_process.map(|process| process.pid), Some(7));
    }

    #[test]
    fn rates_need_time() {
        let mut profile = profile();
        assert_eq!(Summary::of(&profile).per_second(5), None);
        profile.recording.duration_us = 500_000;
        assert_eq!(Summary::of(&profile).per_second(5), Some(10));
    }
}
