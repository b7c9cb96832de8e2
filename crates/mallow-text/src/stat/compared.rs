//! Commands side by side: what each of them counted beside the first.

use super::{Measured, exact, known_rows, title};
use crate::diff::percent;
use crate::summary::not_its_heap;
use crate::{Style, grouped, plural};
use mallow_view::diff::Change;
use mallow_view::{Metric, MetricRow};

/// Returns a title for each command, and a table of the first with each of the others. Of several runs the medians are shown.
pub fn side_by_side(all: &[Measured<'_>], style: Style) -> String {
    let narrower = Style { width: style.width.saturating_sub(3), ..style };
    let mut lines: Vec<String> = Vec::new();
    for (number, one) in (1..).zip(all) {
        lines.push(format!("{number}: {}", title(one, narrower)));
        lines.extend((one.blind > 0).then(|| style.bold(&not_its_heap(one.blind, one.processes))));
    }
    let are_counted = all.iter().all(|one| one.is_counted);
    let rows: Vec<Vec<MetricRow>> = all.iter().map(|one| known_rows(one.runs, are_counted)).collect();
    let Some((first, others)) = rows.split_first() else { return String::new() };
    for (number, other) in (2..).zip(others) {
        lines.push(String::new());
        lines.push(style.dim(&format!("{:<13}{:>18}{:>18}{:>18}", "", "1", number, "difference")));
        lines.extend(first.iter().zip(other).map(|(first, other)| line(first, other)));
    }
    lines.push(String::new());
    lines.extend(notes(all, &rows));
    lines.join("\n") + "\n"
}

fn line(first: &MetricRow, other: &MetricRow) -> String {
    let values = [first, other].map(|row| exact(row.metric, row.spread.median));
    let change = Change { before: first.spread.median, after: other.spread.median };
    // Two runs never take the same time.
    let [difference, share] = match first.metric {
        Metric::Micros => Default::default(),
        Metric::Count | Metric::Bytes => [difference(first, other, change), percent(change)],
    };
    format!("{:<13}{:>18}{:>18}{difference:>18}{share:>10}", first.name, values[0], values[1])
        .trim_end()
        .to_owned()
}

fn difference(first: &MetricRow, other: &MetricRow, change: Change) -> String {
    let size = grouped(u64::try_from(change.difference().unsigned_abs()).unwrap_or(u64::MAX));
    let sign = match change.difference() {
        0 => return "0".to_owned(),
        1.. => '+',
        _ => '-',
    };
    let mark = if are_apart(first, other) { "" } else { UNCLEAR };
    format!("{mark}{sign}{size}")
}

/// Before a difference that is none for certain.
const UNCLEAR: &str = "~";

/// Returns whether each run of one command counted less than each of the other.
fn are_apart(first: &MetricRow, other: &MetricRow) -> bool {
    let above = |high: &MetricRow, low: &MetricRow| {
        high.spread.min.saturating_sub(high.error) > low.spread.max.saturating_add(low.error)
    };
    above(first, other) || above(other, first)
}

fn notes(all: &[Measured<'_>], rows: &[Vec<MetricRow>]) -> Vec<String> {
    let mut notes = Vec::new();
    let is_unclear = rows.iter().skip(1).any(|other| {
        rows[0].iter().zip(other).any(|(first, other)| {
            first.metric != Metric::Micros
                && first.spread.median != other.spread.median
                && !are_apart(first, other)
        })
    });
    if is_unclear {
        notes.push(format!("{UNCLEAR}: within what runs of one command differ by."));
    }
    let runs = all.iter().map(|one| one.runs.len()).min().unwrap_or_default();
    if runs == 1 {
        notes.push("One run of each; whether counts are always the same, -r 5 shows.".to_owned());
    } else {
        notes.extend((1..).zip(rows).filter(|(_, rows)| !super::are_equal(rows)).map(|(number, _)| {
            format!("Counts differed between the {} of {number}.", plural(runs as u64, "run"))
        }));
    }
    notes.push("Which is faster: mallow bench.".to_owned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use mallow_profile::Exit;
    use mallow_samples::profile as sample;
    use mallow_view::Run;

    fn run(allocations: u64, more_bytes: u64, wall_us: u64) -> Run {
        let mut totals = sample::leaky_c().totals();
        totals.allocations = allocations;
        totals.bytes += more_bytes;
        Run { totals, wall_us, ..Run::default() }
    }

    fn text(all: &[(&str, &[Run])]) -> String {
        let measured = |(command, runs): &(&str, &'static [Run])| -> Measured<'static> {
            Measured {
                command: (*command).to_owned(),
                runs,
                planned: runs.len(),
                exit: Some(Exit::Status(0)),
                processes: 1,
                blind: 0,
                is_counted: true,
            }
        };
        let all: Vec<(&str, &'static [Run])> =
            all.iter().map(|(command, runs)| (*command, &*runs.to_vec().leak())).collect();
        let text = side_by_side(&Vec::from_iter(all.iter().map(measured)), Style::PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn of_one_run_each() {
        assert_snapshot!(text(&[
            ("./app --rows 37449", &[run(374_531, 0, 1_230_000)]),
            (
                "./app --rows 37449 --with-an-option-that-is-long-enough-to-be-cut-somewhere",
                &[run(45, 8, 1_100_000)]
            ),
        ]));
    }

    #[test]
    fn what_runs_of_one_command_differ_by_is_no_difference_between_two() {
        let differing = [run(100, 0, 1000), run(110, 0, 1000), run(104, 0, 1000)];
        let within = [run(105, 0, 1000), run(107, 0, 1000), run(109, 0, 1000)];
        let apart = [run(111, 0, 1000); 3];
        assert_snapshot!(text(&[("./a", &differing), ("./b", &within), ("./c", &apart)]));
    }

    #[test]
    fn a_command_whose_heap_was_not_seen_is_told_as_such() {
        let one = |blind| Measured {
            is_counted: true,
            command: "./a".to_owned(),
            runs: &[],
            planned: 1,
            exit: None,
            processes: 1,
            blind,
        };
        let text = side_by_side(&[one(0), one(2)], Style::PLAIN);
        let lines: Vec<&str> = text.lines().take(3).collect();
        assert!(lines[1].starts_with("2: ./a") && lines[2] == not_its_heap(2, 1), "{text}");
    }

    #[test]
    fn a_peak_that_is_not_exact_is_not_told_apart_closer_than_it_is() {
        let inexact = Run { peak_error_bytes: 4096, ..run(100, 0, 1000) };
        let mut more = inexact;
        more.totals.peak_bytes += 8192;
        let text = text(&[("./a", &[inexact]), ("./b", &[more])]);
        assert!(text.contains("~+8,192") && text.contains("~: within"), "{text}");
        more.totals.peak_bytes += 1;
        let text = self::text(&[("./a", &[inexact]), ("./b", &[more])]);
        assert!(text.contains(" +8,193") && !text.contains('~'), "{text}");
    }
}
