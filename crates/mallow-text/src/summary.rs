//! The summary that ends `mallow record`: everything in 24 lines of 80 columns.

use crate::columns::Columns;
use crate::{Style, cut_end, exit_text, frame_with_caller, grouped, metric, plural, printable, shell_word};
use mallow_base::{Bytes, Count, Micros, Percent};
use mallow_profile::{EventsLost, Totals};
use mallow_view::{Measure, Next, OtherPrograms, Programs, Summary, Top, TopRow, short_command};

/// The lines of a small terminal, without one for the shell's prompt.
const LINES_MAX: usize = 23;
/// The note if the number of missing events is unknown.
pub(crate) const LOST_UNKNOWN: &str = "counts may be too low: how many events were lost is not known";
/// The note if nothing was recorded.
pub(crate) const NO_METRICS: &str = "this trace contains no metrics";
/// The number of sites for each metric, if programs have rows too.
const ROWS_BESIDE_PROGRAMS: usize = 2;

/// Returns the summary of the trace file `trace`. `blind` names the processes whose metrics are not those of their heaps.
pub fn summary(summary: &Summary<'_>, blind: &[String], trace: &str, style: Style) -> String {
    let mut lines = vec![title(summary, style)];
    if !summary.is_recorded {
        lines.extend([NO_METRICS.to_owned(), String::new(), format!("trace: {}", shell_word(trace))]);
        return lines.join("\n") + "\n";
    }
    if !blind.is_empty() {
        lines.insert(0, style.bold(&not_its_heap(blind.len(), summary.processes)));
    }
    match summary.events_lost {
        EventsLost::Exactly(0) => {}
        EventsLost::Exactly(events) => {
            let seen = summary.totals.allocations + summary.totals.frees + summary.totals.failed;
            let share = Percent { part: events, whole: seen.saturating_add(events) };
            let lost = plural(events, "event");
            lines.push(format!("counts are too low: {lost} ({share} of all) were lost"));
        }
        EventsLost::Unknown => lines.push(LOST_UNKNOWN.to_owned()),
    }
    lines.extend(program_lines(&summary.programs, style));
    for measure in Measure::ALL {
        lines.push(head(summary, measure, !blind.is_empty(), style));
        lines.extend(
            summary
                .tops
                .iter()
                .filter(|top| top.measure == measure)
                .flat_map(|top| top_lines(summary, top, style)),
        );
    }
    let names = summary.nameless.map(|module| nameless_line(module, style));
    let room = LINES_MAX.saturating_sub(lines.len() + usize::from(names.is_some()));
    let mut next = next_lines(&summary.next, trace, room.max(if names.is_some() { 1 } else { 2 }), style);
    next.extend(names);
    if lines.len() + next.len() + 2 <= LINES_MAX {
        lines.insert(1 + usize::from(!blind.is_empty()), String::new());
        lines.push(String::new());
    }
    lines.extend(next);
    lines.join("\n") + "\n"
}

/// Returns a row for each important program, and one for all others.
fn program_lines(programs: &Programs<'_>, style: Style) -> Vec<String> {
    let row = |who: &str, totals: &Totals, what: &str| {
        let peak = format!("{} peak", Bytes(totals.peak_bytes));
        let allocations = format!("{} allocations", Count(totals.allocations));
        let line = format!("{who:<16} {peak:>12}  {allocations:>18}  ");
        let left = style.width.saturating_sub(line.columns());
        line + &cut_end(&printable(what), left)
    };
    let mut lines: Vec<String> = programs
        .first
        .iter()
        .map(|process| {
            row(&format!("process {}", process.pid), &process.totals, short_command(&process.command))
        })
        .collect();
    let others = &programs.others;
    if others.count > 0 {
        // A process that executes another program counts with each.
        let who = format!("{} more program{}", others.count, if others.count == 1 { "" } else { "s" });
        lines.push(row(&who, &others.totals, &names(others)));
    }
    lines
}

/// Formats `bash (38), sed`.
pub(crate) fn names(others: &OtherPrograms) -> String {
    let name = |(name, count): &(String, usize)| match count {
        1 => name.clone(),
        many => format!("{name} ({many})"),
    };
    others.names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns a line about so many of all processes; the reason is above, among the warnings.
pub(crate) fn not_its_heap(blind: usize, processes: usize) -> String {
    match blind {
        1 if processes > 1 => {
            format!("1 of {processes} processes: metrics without its heap, which does not come from malloc")
        }
        some if processes > some => {
            format!(
                "{some} of {processes} processes: metrics without their heaps, which do not come from malloc"
            )
        }
        1 => "these are not the metrics of its heap, which does not come from malloc".to_owned(),
        many => {
            format!(
                "these are not the metrics of the heaps of {many} processes, which do not come from malloc"
            )
        }
    }
}

fn title(summary: &Summary<'_>, style: Style) -> String {
    let mut end = format!("{} after {}", exit_text(summary.exit), Micros(summary.duration_us));
    if summary.processes > 1 {
        end += &format!(", {}", plural(summary.processes as u64, "process"));
    }
    let left = style.width.saturating_sub(end.columns() + 2);
    format!("{}: {end}", style.bold(&cut_end(&printable(&summary.command), left)))
}

/// Formats `names: git is stripped; its debug package, or DEBUGINFOD_URLS, brings them`. A longer name has fewer words
/// behind it rather than letters left out: it is what has to be looked for.
fn nameless_line(module: &str, style: Style) -> String {
    const CURES: [&str; 2] = [
        " is stripped; its debug package, or DEBUGINFOD_URLS, brings them",
        " is stripped; its debug package brings them",
    ];
    let label = "names: ";
    let name = printable(module.rsplit('/').next().unwrap_or(module));
    let left = |cure: &str| style.width.saturating_sub(label.len() + cure.len());
    let cure = CURES.into_iter().find(|cure| name.columns() <= left(cure)).unwrap_or(CURES[1]);
    format!("{label}{}{cure}", cut_end(&name, left(cure)))
}

/// Formats one measure's total, with related metrics.
fn head(summary: &Summary<'_>, measure: Measure, is_blind: bool, style: Style) -> String {
    let totals = &summary.totals;
    let per_second = |text: Option<String>| text.map(|text| format!("{text}/s")).unwrap_or_default();
    let note = match measure {
        Measure::Allocations => {
            let rate = per_second(summary.per_second(totals.allocations).map(|n| Count(n).to_string()));
            let failed = (totals.failed > 0).then(|| format!("{} failed", grouped(totals.failed)));
            let realloc =
                (totals.reallocations > 0).then(|| format!("{} by realloc", grouped(totals.reallocations)));
            let parts =
                [Some(rate), realloc, Some(format!("{} freed", grouped(summary.freed_blocks))), failed];
            parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
        }
        Measure::Bytes => match per_second(summary.per_second(totals.bytes).map(|n| Bytes(n).to_string())) {
            rate if totals.bytes < 1024 => rate,
            rate => format!("{rate}, {} bytes", grouped(totals.bytes)),
        },
        Measure::Peak => peak_note(summary),
        Measure::Leaked => match totals.leaked_blocks {
            0 if is_blind => "nothing of what was recorded was live at the end".to_owned(),
            0 => "nothing was live at the end".to_owned(),
            blocks => format!("in {}, live at the end", plural(blocks, "block")),
        },
        Measure::Temporary => {
            let share = Percent { part: totals.temporary, whole: totals.allocations };
            if totals.temporary == 0 {
                String::new()
            } else {
                format!("{share} of the allocations, freed at once")
            }
        }
    };
    let label = style.bold(&format!("{:<11}", measure.word()));
    format!("{label} {:>10}  {note}", metric(measure, measure.of_totals(totals))).trim_end().to_owned()
}

fn peak_note(summary: &Summary<'_>) -> String {
    let blocks = plural(summary.totals.peak_blocks, "block");
    match summary.peak_process {
        _ if summary.totals.peak_blocks == 0 => String::new(),
        Some(_) if summary.processes > 1 => format!("in {blocks}, the sum of each process's own peak"),
        Some(process) => format!("in {blocks}, after {}", Micros(process.peak_us)),
        None => format!("in {blocks}"),
    }
}

fn top_lines(summary: &Summary<'_>, top: &Top<'_>, style: Style) -> Vec<String> {
    let whole = top.measure.of_totals(&summary.totals);
    // If programs have rows, sites have fewer.
    let rows_max = if summary.programs.first.is_empty() { usize::MAX } else { ROWS_BESIDE_PROGRAMS };
    let line = |row: &TopRow<'_>| {
        let share = Percent { part: row.value, whole }.to_string();
        let name = frame_with_caller(row.frame, row.caller, style.width.saturating_sub(32));
        format!("{:>22}  {share:>6}  {name}", metric(top.measure, row.value))
    };
    top.rows.iter().take(rows_max).map(line).collect()
}

fn next_lines(next: &[Next], trace: &str, room: usize, style: Style) -> Vec<String> {
    let commands: Vec<String> = next
        .iter()
        .take(room.min(3))
        .map(|next| match next.sort {
            Some(measure) => format!("mallow report {} --metric {}", shell_word(trace), measure.word()),
            None => format!("mallow report {}", shell_word(trace)),
        })
        .collect();
    if commands.is_empty() {
        return vec![format!("trace: {}", shell_word(trace))];
    }
    let width = commands.iter().map(|command| command.columns()).max().unwrap_or_default();
    let lines = commands.iter().zip(next).enumerate().map(|(index, (command, next))| {
        let label = if index == 0 { "next:" } else { "" };
        let line = format!("{label:<6}{command:<width$}  # {}", next.why);
        if line.columns() <= style.width {
            format!("{label:<6}{command:<width$}  {}", style.dim(&format!("# {}", next.why)))
        } else {
            format!("{label:<6}{command}")
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use mallow_profile::Profile;
    use mallow_samples::profile as sample;

    #[test]
    fn a_library_that_has_to_be_looked_for_has_its_whole_name() {
        let line = |module: &str| nameless_line(module, Style { width: 80, ..Style::PLAIN });
        assert_eq!(
            line("/usr/bin/git"),
            "names: git is stripped; its debug package, or DEBUGINFOD_URLS, brings them"
        );
        let long = line("/usr/lib/libsqlite3.so.0");
        assert_eq!(long, "names: libsqlite3.so.0 is stripped; its debug package brings them");
        assert_eq!(line(&"x".repeat(200)).columns(), 80);
    }

    #[test]
    fn processes_without_their_heaps_are_counted_among_all() {
        assert_eq!(
            not_its_heap(1, 1),
            "these are not the metrics of its heap, which does not come from malloc"
        );
        assert_eq!(
            not_its_heap(1, 9),
            "1 of 9 processes: metrics without its heap, which does not come from malloc"
        );
        let some = not_its_heap(30, 100);
        assert_eq!(some, "30 of 100 processes: metrics without their heaps, which do not come from malloc");
        assert!(some.len() <= 80);
        assert_eq!(
            not_its_heap(9, 9),
            "these are not the metrics of the heaps of 9 processes, which do not come from malloc"
        );
    }

    /// A build has hundreds of programs, and its peak as many letters as one can have.
    #[test]
    fn many_programs_stay_apart_from_their_peak() {
        let others = OtherPrograms {
            count: 449,
            totals: Totals { peak_bytes: 372 << 20, ..Totals::default() },
            names: vec![("as".to_owned(), 150)],
        };
        let lines = program_lines(&Programs { first: Vec::new(), others }, Style::PLAIN);
        assert!(lines[0].starts_with("449 more programs 372 MiB peak "), "{lines:?}");
        assert!(lines[0].len() <= 80);
    }

    fn text(profile: &Profile) -> String {
        text_of(profile, &[])
    }

    fn text_of(profile: &Profile, blind: &[String]) -> String {
        let text = summary(&Summary::of(profile), blind, "app.4242.mallow", Style::PLAIN);
        assert!(text.lines().count() <= LINES_MAX, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn of_a_leaky_c_program() {
        assert_snapshot!(text(&sample::leaky_c()));
    }

    #[test]
    fn of_a_rust_program() {
        assert_snapshot!(text(&sample::rust()));
    }

    #[test]
    fn of_a_python_program_with_children() {
        assert_snapshot!(text(&sample::python()));
    }

    #[test]
    fn of_a_program_that_allocates_nothing() {
        assert_snapshot!(text(&sample::nothing()));
    }

    #[test]
    fn of_a_program_with_an_allocator_of_its_own() {
        let text = text_of(&sample::nothing(), &["process 7: it is linked with mimalloc".to_owned()]);
        assert_snapshot!(text);
        assert!(!text.contains("  nothing was live"));
    }

    #[test]
    fn of_a_program_that_is_stripped() {
        let mut profile = sample::leaky_c();
        for frame in profile.stacks.locations.iter_mut().flat_map(|location| &mut location.frames) {
            if frame.module.as_deref() == Some("/usr/bin/app") {
                *frame =
                    mallow_base::Frame { function: "0x1a2b".into(), file: None, line: None, ..frame.clone() };
            }
        }
        assert_snapshot!(text(&profile));
    }

    #[test]
    fn of_a_program_that_was_killed_with_events_lost() {
        let mut profile = sample::leaky_c();
        profile.processes[0].exit = Some(mallow_profile::Exit::Signal(9));
        profile.processes[0].events_lost = mallow_profile::EventsLost::Exactly(12);
        assert_snapshot!(text(&profile).lines().take(3).collect::<Vec<_>>().join("\n"));
    }
}
