//! The table of `mallow stat`. It has exact counts, because they are meant to be compared.

mod compared;

pub use compared::side_by_side;

use crate::columns::Columns;
use crate::summary::not_its_heap;
use crate::{Style, cut_end, exit_text, grouped, plural, printable};
use mallow_base::{Bytes, Count, Micros};
use mallow_profile::Exit;
use mallow_view::{Metric, MetricRow, Run, metric_rows};

/// What `mallow stat` measured.
pub struct Measured<'a> {
    /// The command with its arguments.
    pub command: String,
    /// The runs.
    pub runs: &'a [Run],
    /// The number of runs that were requested.
    pub planned: usize,
    /// How the last run ended.
    pub exit: Option<Exit>,
    /// The maximum number of processes of a run.
    pub processes: usize,
    /// The maximum number of them whose metrics are not those of their heaps.
    pub blind: usize,
    /// Whether each run was counted. If not, only its time is known.
    pub is_counted: bool,
}

/// The rows that are known of runs.
fn known_rows(runs: &[Run], are_counted: bool) -> Vec<MetricRow> {
    let is_known = |row: &MetricRow| are_counted || row.metric == Metric::Micros;
    metric_rows(runs).into_iter().filter(is_known).collect()
}

/// Returns the table: one column of metrics for one run, three for several.
pub fn table(measured: &Measured<'_>, style: Style) -> String {
    let rows = known_rows(measured.runs, measured.is_counted);
    let mut lines = vec![title(measured, style), String::new()];
    if measured.blind > 0 {
        lines.insert(0, style.bold(&not_its_heap(measured.blind, measured.processes)));
    }
    if measured.runs.len() > 1 {
        let head = format!("{:<13}{:>18}{:>18}{:>18}", "", "min", "median", "max");
        lines.push(style.dim(&head));
        lines.extend(rows.iter().map(several));
        lines.push(String::new());
        lines.extend(measured.is_counted.then(|| verdict(&rows, measured.runs.len())));
    } else {
        let wall_us = measured.runs.first().map_or(0, |run| run.wall_us);
        lines.extend(rows.iter().map(|row| single(row, wall_us)));
    }
    lines.join("\n") + "\n"
}

fn title(measured: &Measured<'_>, style: Style) -> String {
    let mut end = exit_text(measured.exit);
    if measured.processes > 1 {
        end += &format!(", {} processes", Count(measured.processes as u64));
    }
    if measured.runs.len() < measured.planned {
        end += &format!(", {} of {}", measured.runs.len(), plural(measured.planned as u64, "run"));
    } else if measured.runs.len() > 1 {
        end += &format!(", {}", plural(measured.runs.len() as u64, "run"));
    }
    let left = style.width.saturating_sub(end.columns() + 2);
    format!("{}: {end}", style.bold(&cut_end(&printable(&measured.command), left)))
}

fn single(row: &MetricRow, wall_us: u64) -> String {
    let value = row.spread.median;
    let per_second = |value: u64| (value as f64 * 1e6 / wall_us as f64) as u64;
    let note = match (row.metric, row.name) {
        (Metric::Count, "allocations") if wall_us > 0 => format!("{}/s", Count(per_second(value))),
        (Metric::Bytes, "bytes") if wall_us > 0 => {
            format!("{}, {}/s", Bytes(value), Bytes(per_second(value)))
        }
        (Metric::Bytes, _) if row.error > 0 => format!("{}, give or take {}", Bytes(value), Bytes(row.error)),
        (Metric::Bytes, _) if value >= 1024 => Bytes(value).to_string(),
        _ => String::new(),
    };
    format!("{:<13}{:>18}  {note}", row.name, exact(row.metric, value)).trim_end().to_owned()
}

fn several(row: &MetricRow) -> String {
    let text = |value| exact(row.metric, value);
    let mark = if row.metric == Metric::Micros || row.is_equal() { "" } else { "  differs" };
    let spread = row.spread;
    format!(
        "{:<13}{:>18}{:>18}{:>18}{mark}",
        row.name,
        text(spread.min),
        text(spread.median),
        text(spread.max)
    )
}

/// Returns whether everything except the time can be the same in all runs.
pub fn are_equal(rows: &[MetricRow]) -> bool {
    rows.iter().all(|row| row.metric == Metric::Micros || row.is_equal())
}

fn verdict(rows: &[MetricRow], runs: usize) -> String {
    if are_equal(rows) {
        format!("Counts were equal in all {runs} runs.")
    } else {
        format!("Counts differed between the {runs} runs.")
    }
}

/// Formats every digit of a count.
fn exact(metric: Metric, value: u64) -> String {
    if metric == Metric::Micros { Micros(value).to_string() } else { grouped(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use mallow_samples::profile as sample;

    fn run(allocations: u64, wall_us: u64) -> Run {
        let mut totals = sample::leaky_c().totals();
        totals.allocations = allocations;
        Run { totals, wall_us, ..Run::default() }
    }

    fn text(runs: &[Run], processes: usize) -> String {
        let command = "./app --rows 37449".to_owned();
        let text = table(
            &Measured {
                command,
                runs,
                planned: runs.len(),
                exit: Some(Exit::Status(0)),
                processes,
                blind: 0,
                is_counted: true,
            },
            Style::PLAIN,
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn what_was_not_counted_is_not_zero() {
        let runs = [Run { wall_us: 25_900, ..Run::default() }, Run { wall_us: 27_000, ..Run::default() }];
        let measured = |runs| Measured {
            command: "./app".to_owned(),
            runs,
            planned: runs.len(),
            exit: Some(Exit::Status(0)),
            processes: 1,
            blind: 0,
            is_counted: false,
        };
        let one = table(&measured(&runs[..1]), Style::PLAIN);
        assert_eq!(one, "./app: exit status 0\n\nwall time               25.9 ms\n");
        let several = table(&measured(&runs), Style::PLAIN);
        let beside = side_by_side(&[measured(&runs[..1]), measured(&runs[1..])], Style::PLAIN);
        for text in [several, beside] {
            assert!(text.contains("wall time") && !text.contains("allocations"), "{text}");
            assert!(!text.contains("Counts"), "{text}");
        }
    }

    #[test]
    fn of_one_run() {
        assert_snapshot!(text(&[run(374_531, 1_230_000)], 1));
    }

    #[test]
    fn of_equal_runs() {
        assert_snapshot!(text(
            &[run(374_531, 1_230_000), run(374_531, 1_100_000), run(374_531, 1_300_000)],
            2
        ));
    }

    #[test]
    fn of_differing_runs() {
        assert_snapshot!(text(&[run(374_531, 1_230_000), run(374_540, 1_100_000)], 1));
    }
}
