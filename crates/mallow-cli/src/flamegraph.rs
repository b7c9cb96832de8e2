//! `mallow flamegraph`: a profile, or the difference of two, as an SVG or as folded stacks.

use crate::request::{Flamegraph, FlamegraphForm};
use crate::{exit_code, output};
use mallow_profile::Profile;
use mallow_profile::ReallocAttribution;
use mallow_query::{Failure, ProfileFile, choose};
use mallow_text::flamegraph::FlameGraph;
use mallow_text::metric;
use mallow_view::{ComparedRow, FoldedRow, Measure, compared, folded};
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;

/// Which metric is drawn when none is asked for: the first that the file knows and that is not 0.
const PREFERRED: [Measure; 5] =
    [Measure::Peak, Measure::Leaked, Measure::Bytes, Measure::Allocations, Measure::Temporary];

/// What is drawn.
enum Rows {
    One(Vec<FoldedRow>),
    Two(Vec<ComparedRow>),
}

/// Draws a profile, or two.
pub(crate) fn run(request: &Flamegraph) -> Result<u8, Failure> {
    let is_drawing = matches!(request.form, FlamegraphForm::Svg { .. });
    if is_drawing && request.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::new(
            "a flame graph is an SVG file and not for a terminal; write it to a file with -o, or see its stacks \
             with --folded.",
        ));
    }
    let paths = std::iter::once(&request.file).chain(&request.other);
    let sources: Vec<ProfileFile> = paths.map(|path| read(path)).collect::<Result<_, _>>()?;
    let measure = measure(request.measure, &sources)?;
    let mut of_each: Vec<Vec<FoldedRow>> = sources
        .iter()
        .map(|source| folded(&source.profile, request.shown, &request.filter, measure))
        .collect();
    let sums: Vec<u64> = of_each
        .iter()
        .map(|rows| rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.value)))
        .collect();
    let rows = match of_each.as_slice() {
        [before, after] => Rows::Two(compared(before, after)),
        _ => Rows::One(of_each.swap_remove(0)),
    };
    let text = match &request.form {
        FlamegraphForm::Folded => text(&rows),
        FlamegraphForm::Svg { icicle, title } => {
            let graph = FlameGraph {
                title: title.clone().unwrap_or_else(|| heading(measure, &sources)),
                subtitle: subtitle(measure, &sources, &sums),
                unit: unit(measure).to_owned(),
                icicle: *icicle,
            };
            drawn(&graph, &rows, measure, &sources)?
        }
    };
    write(request, &text)
}

fn read(path: &Path) -> Result<ProfileFile, Failure> {
    let document = ProfileFile::open(path, ReallocAttribution::OwnSite)?;
    output::warn(&document.warnings);
    Ok(document)
}

fn write(request: &Flamegraph, text: &str) -> Result<u8, Failure> {
    match &request.output {
        Some(new) => {
            let mut file = output::create(&new.path, new.force)?;
            output::to_file(&new.path, &mut file, text)?;
        }
        None => output::to_stdout(|out| out.write_all(text.as_bytes()))?,
    }
    Ok(exit_code::FINE)
}

/// The best metric that all files tell: of those that some file has any of, if there are such.
fn measure(asked: Option<Measure>, sources: &[ProfileFile]) -> Result<Measure, Failure> {
    let has = |measure: &Measure| {
        sources.iter().any(|source| source.profile.sites.iter().any(|site| measure.of_site(&site.totals) > 0))
    };
    let files: Vec<(&Path, &Profile)> =
        sources.iter().map(|source| (source.path.as_path(), &source.profile)).collect();
    let order = PREFERRED.into_iter().filter(has).chain(PREFERRED);
    choose(asked, order, &files)
}

fn unit(measure: Measure) -> &'static str {
    if measure.is_bytes() { "bytes" } else { measure.subject() }
}

/// `Bytes live at the peak: sort`, the last word being the program.
fn heading(measure: Measure, sources: &[ProfileFile]) -> String {
    let subject = measure.subject();
    let heading = subject[..1].to_uppercase() + &subject[1..];
    let command = sources.last().and_then(|source| source.profile.recording.command.first());
    match command.and_then(|path| path.rsplit('/').next()) {
        Some(name) => format!("{heading}: {name}"),
        None => heading,
    }
}

/// `sort.1.mallow: 12.3 KiB`, or both files with what the colours mean.
fn subtitle(measure: Measure, sources: &[ProfileFile], sums: &[u64]) -> String {
    let names = sources.iter().map(|source| source.path.file_name().unwrap_or_default().to_string_lossy());
    let metrics = sums.iter().map(|sum| metric(measure, *sum));
    let parts: Vec<String> = names.zip(metrics).map(|(name, sum)| format!("{name}: {sum}")).collect();
    match parts.as_slice() {
        [before, after] => {
            format!("{before} before, {after} after; red is more, blue is less, white is as before")
        }
        _ => parts.concat(),
    }
}

fn text(rows: &Rows) -> String {
    fn text_of<T: Display>(rows: &[T]) -> String {
        rows.iter().map(|row| format!("{row}\n")).collect()
    }
    match rows {
        Rows::One(rows) => text_of(rows),
        Rows::Two(rows) => text_of(rows),
    }
}

fn drawn(
    graph: &FlameGraph,
    rows: &Rows,
    measure: Measure,
    sources: &[ProfileFile],
) -> Result<String, Failure> {
    let mut svg = Vec::new();
    let result = match rows {
        Rows::One(rows) => graph.draw(rows.iter().map(|row| (row.names.join(";"), row.value)), &mut svg),
        Rows::Two(rows) => {
            let rows = rows.iter().map(|row| (row.names.join(";"), row.before, row.after));
            graph.draw_compared(rows, &mut svg)
        }
    };
    match result {
        Ok(()) => Ok(String::from_utf8_lossy(&svg).into_owned()),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let name = sources.last().map(|source| source.path.display().to_string()).unwrap_or_default();
            Err(Failure::new(format!("cannot draw the {} of {name}: {error}.", measure.subject())))
        }
        Err(error) => Err(error.into()),
    }
}
