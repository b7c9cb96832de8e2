//! `mallow flamegraph`: a profile, or the difference of two, as an SVG or as folded stacks.

use crate::args::AnyMeasure;
use crate::request::{Flamegraph, FlamegraphForm};
use crate::{exit_code, output};
use mallow_cpu::CpuMetric;
use mallow_profile::Profile;
use mallow_profile::ReallocAttribution;
use mallow_query::{AnyFile, CpuFile, Failure, ProfileFile, choose, no_time};
use mallow_stacks::{Metric, MetricOf, StackProfile, Unit};
use mallow_text::flamegraph::FlameGraph;
use mallow_text::metric;
use mallow_view::{ComparedRow, FoldedRow, FrameVisibility, Measure, compared, folded};
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
    let open = |path: &std::path::PathBuf| {
        let mut file = AnyFile::open(path, ReallocAttribution::OwnSite)?;
        file.keep(request.process.as_ref())?;
        Ok(file)
    };
    let files = paths.map(open).collect::<Result<Vec<_>, Failure>>()?;
    let (mut heaps, mut cpus) = (Vec::new(), Vec::new());
    for file in files {
        match file {
            AnyFile::Heap(mut file) => {
                request.scripts.keep_in(&mut file.profile.stacks);
                heaps.push(file);
            }
            AnyFile::Cpu(file) => cpus.push(file),
        }
    }
    let text = match (heaps.as_slice(), cpus.as_slice()) {
        (_, []) => {
            let sources: Vec<_> =
                heaps.iter().map(|file| Drawn::of(&file.path, &file.profile, &file.warnings)).collect();
            drawing(request, &sources, measure(request.measure, &heaps)?, request.shown)?
        }
        ([], _) => {
            let sources: Vec<_> =
                cpus.iter().map(|file| Drawn::of(&file.path, &file.profile, &file.warnings)).collect();
            // The innermost frame is the answer, be it the allocator.
            let shown = match request.shown {
                FrameVisibility::All => FrameVisibility::All,
                _ => FrameVisibility::WithoutStart,
            };
            drawing(request, &sources, metric_of_cpu(request.measure, &cpus)?, shown)?
        }
        _ => {
            return Err(Failure::new(
                "the two cannot be compared: one tells what allocated, the other where time went.",
            ));
        }
    };
    write(request, &text)
}

/// A profile that is drawn.
struct Drawn<'a, P> {
    path: &'a Path,
    profile: &'a P,
}

impl<'a, P> Drawn<'a, P> {
    /// Warns of what was missing.
    fn of(path: &'a Path, profile: &'a P, warnings: &[String]) -> Drawn<'a, P> {
        output::warn(warnings);
        Drawn { path, profile }
    }
}

fn drawing<P: StackProfile>(
    request: &Flamegraph,
    sources: &[Drawn<'_, P>],
    measure: MetricOf<P>,
    shown: FrameVisibility,
) -> Result<String, Failure> {
    let mut of_each: Vec<Vec<FoldedRow>> =
        sources.iter().map(|source| folded(source.profile, shown, &request.filter, measure)).collect();
    let sums: Vec<u64> = of_each
        .iter()
        .map(|rows| rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.value)))
        .collect();
    let rows = match of_each.as_slice() {
        [before, after] => Rows::Two(compared(before, after)),
        _ => Rows::One(of_each.swap_remove(0)),
    };
    Ok(match &request.form {
        FlamegraphForm::Folded => text(&rows),
        FlamegraphForm::Svg { icicle, title } => {
            let graph = FlameGraph {
                title: title.clone().unwrap_or_else(|| heading(measure, sources)),
                subtitle: subtitle(measure, sources, &sums),
                unit: unit(measure).to_owned(),
                icicle: *icicle,
            };
            drawn(&graph, &rows, measure, sources)?
        }
    })
}

/// The metric that was asked for, or the one that says where time went.
fn metric_of_cpu(asked: Option<AnyMeasure>, files: &[Box<CpuFile>]) -> Result<CpuMetric, Failure> {
    let asked = match asked {
        Some(AnyMeasure::Heap(measure)) => {
            return Err(files[0].tells_no_memory(&format!("--measure {}", measure.word())));
        }
        Some(AnyMeasure::Cpu(metric)) => Some(metric),
        None => None,
    };
    let first = files[0].choose(asked)?;
    files.iter().try_fold(first, |metric, file| file.choose(Some(metric)))
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
fn measure(asked: Option<AnyMeasure>, sources: &[Box<ProfileFile>]) -> Result<Measure, Failure> {
    let asked = match asked {
        Some(AnyMeasure::Cpu(metric)) => return Err(no_time(&sources[0].path, metric.word())),
        Some(AnyMeasure::Heap(measure)) => Some(measure),
        None => None,
    };
    let has = |measure: &Measure| {
        sources.iter().any(|source| source.profile.sites.iter().any(|site| measure.of_site(&site.totals) > 0))
    };
    let files: Vec<(&Path, &Profile)> =
        sources.iter().map(|source| (source.path.as_path(), &source.profile)).collect();
    let order = PREFERRED.into_iter().filter(has).chain(PREFERRED);
    choose(asked, order, &files)
}

fn unit(measure: impl Metric) -> &'static str {
    match measure.unit() {
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count => measure.subject(),
    }
}

/// `Bytes live at the peak: sort`, the last word being the program.
fn heading<P: StackProfile>(measure: MetricOf<P>, sources: &[Drawn<'_, P>]) -> String {
    let subject = measure.subject();
    let heading = subject[..1].to_uppercase() + &subject[1..];
    let command = sources.last().and_then(|source| source.profile.command().first());
    match command.and_then(|path| path.rsplit('/').next()) {
        Some(name) => format!("{heading}: {name}"),
        None => heading,
    }
}

/// `sort.1.mallow: 12.3 KiB`, or both files with what the colours mean.
fn subtitle<P: StackProfile>(measure: MetricOf<P>, sources: &[Drawn<'_, P>], sums: &[u64]) -> String {
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

fn drawn<P: StackProfile>(
    graph: &FlameGraph,
    rows: &Rows,
    measure: MetricOf<P>,
    sources: &[Drawn<'_, P>],
) -> Result<String, Failure> {
    let mut svg = Vec::new();
    let result = match rows {
        Rows::One(rows) => graph.draw_rows(rows, &mut svg),
        Rows::Two(rows) => {
            let rows = rows.iter().map(|row| (row.stack(), row.before, row.after));
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
