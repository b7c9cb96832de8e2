//! Tables of times in the formats that hyperfine writes, for documents and scripts that use these.
//!
//! Their contents are hyperfine's: the mean with its standard deviation, and the ratio of means to the fastest
//! command, or to the reference, with an error that is propagated from both deviations. That error is not a
//! confidence interval, which is in the text and in JSON.

use super::parts::shown_name;
use super::units::TimeUnit;
use mallow_bench::{BenchCommand, Session};
use mallow_stats::Summary;

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// In the order of the command line.
    #[default]
    Auto,
    /// In the order of the command line.
    Command,
    /// Fastest first.
    MeanTime,
}

impl SortOrder {
    /// All orders.
    pub const ALL: [SortOrder; 3] = [SortOrder::Auto, SortOrder::Command, SortOrder::MeanTime];

    /// Returns its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            SortOrder::Auto => "auto",
            SortOrder::Command => "command",
            SortOrder::MeanTime => "mean-time",
        }
    }
}

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// GitHub's Markdown.
    Markdown,
    /// AsciiDoc.
    AsciiDoc,
    /// Emacs' org-mode.
    OrgMode,
}

struct Row {
    name: String,
    times: Summary,
    relative: (f64, Option<f64>),
}

/// Returns the seconds of all runs.
fn times(command: &BenchCommand) -> Vec<f64> {
    command.runs.iter().map(|run| run.wall_ns as f64 / 1e9).collect()
}

fn rows(session: &Session, has_reference: bool, order: SortOrder) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let summaries: Vec<Option<Summary>> =
        session.commands.iter().map(|command| Summary::of(&times(command))).collect();
    let fastest = summaries.iter().flatten().min_by(|one, other| one.mean.total_cmp(&other.mean)).copied();
    let base = if has_reference { summaries.get(session.reference).copied().flatten() } else { fastest };
    for (command, times) in session.commands.iter().zip(&summaries) {
        let (Some(times), Some(base)) = (*times, base) else { continue };
        let ratio = times.mean / base.mean;
        let relative = |summary: &Summary| summary.deviation.map(|it| it / summary.mean);
        let error = match times == base {
            true => None,
            false => relative(&times).zip(relative(&base)).map(|(one, other)| ratio * one.hypot(other)),
        };
        rows.push(Row { name: shown_name(command), times, relative: (ratio, error) });
    }
    if order == SortOrder::MeanTime {
        rows.sort_by(|one, other| one.times.mean.total_cmp(&other.times.mean));
    }
    rows
}

/// Returns a table.
pub fn table(
    session: &Session,
    form: TableForm,
    unit: Option<TimeUnit>,
    has_reference: bool,
    order: SortOrder,
) -> String {
    let rows = rows(session, has_reference, order);
    let unit = unit.unwrap_or_else(|| match rows.first() {
        Some(row) if row.times.mean >= 1.0 => TimeUnit::Second,
        _ => TimeUnit::Millisecond,
    });
    let heads = ["Mean", "Min", "Max"].map(|head| format!("{head} [{}]", unit.letters()));
    let mut text = match form {
        TableForm::Markdown => format!(
            "| Command | {} | {} | {} | Relative |\n|:---|---:|---:|---:|---:|\n",
            heads[0], heads[1], heads[2]
        ),
        TableForm::AsciiDoc => format!(
            "[cols=\"<,>,>,>,>\"]\n|===\n| Command \n| {} \n| {} \n| {} \n| Relative \n",
            heads[0], heads[1], heads[2]
        ),
        TableForm::OrgMode => {
            format!(
                "| Command  |  {} |  {} |  {} |  Relative |\n|--+--+--+--+--|\n",
                heads[0], heads[1], heads[2]
            )
        }
    };
    for row in &rows {
        text += &line(row, form, unit);
    }
    if form == TableForm::AsciiDoc {
        text += "|===\n";
    }
    text
}

fn line(row: &Row, form: TableForm, unit: TimeUnit) -> String {
    let digits = unit.digits();
    let number = |seconds: f64| format!("{:.digits$}", unit.of_ns(seconds * 1e9));
    let mean = match row.times.deviation {
        Some(deviation) => format!("{} ± {}", number(row.times.mean), number(deviation)),
        None => number(row.times.mean),
    };
    let relative = match row.relative {
        (ratio, Some(error)) => format!("{ratio:.2} ± {error:.2}"),
        (ratio, None) => format!("{ratio:.2}"),
    };
    let (min, max) = (number(row.times.min), number(row.times.max));
    match form {
        TableForm::Markdown => {
            format!("| `{}` | {mean} | {min} | {max} | {relative} |\n", row.name.replace('|', "\\|"))
        }
        TableForm::AsciiDoc => {
            let name = row.name.replace('|', "\\|");
            format!("\n| `{name}` \n| {mean} \n| {min} \n| {max} \n| {relative} \n")
        }
        TableForm::OrgMode => {
            format!(
                "| ={}=  |  {mean} |  {min} |  {max} |  {relative} |\n",
                row.name.replace('|', "\\vert{}")
            )
        }
    }
}

/// Returns comma-separated values, in seconds.
pub fn csv(session: &Session) -> String {
    let parameters: Vec<&str> = session
        .commands
        .first()
        .map(|command| command.parameters.iter().map(|(name, _)| name.as_str()).collect())
        .unwrap_or_default();
    let mut text = String::from("command,mean,stddev,median,user,system,min,max");
    for name in &parameters {
        text += &format!(",parameter_{name}");
    }
    text.push('\n');
    for command in &session.commands {
        let Some(times) = Summary::of(&times(command)) else { continue };
        let mean = |of: fn(&mallow_bench::Run) -> u64| {
            let values: Vec<f64> = command.runs.iter().map(|run| of(run) as f64 / 1e9).collect();
            Summary::of(&values).map_or(0.0, |summary| summary.mean)
        };
        let deviation = times.deviation.map_or(String::new(), |it| it.to_string());
        text += &format!(
            "{},{},{deviation},{},{},{},{},{}",
            quoted(&command.name),
            times.mean,
            times.median,
            mean(|run| run.user_ns),
            mean(|run| run.system_ns),
            times.min,
            times.max
        );
        for (_, value) in &command.parameters {
            text += &format!(",{}", quoted(value));
        }
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
