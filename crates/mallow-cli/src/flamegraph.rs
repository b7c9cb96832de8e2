//! `mallow flamegraph`: a profile, or the difference of two, as an SVG or as folded stacks.

use crate::args::AnyMeasure;
use crate::diff::is_of_stacks;
use crate::request::{Flamegraph, FlamegraphForm};
use crate::{exit_code, opening, output};
use mallow_base::Micros;
use mallow_cpu::CpuMetric;
use mallow_flame::FlameGraph;
use mallow_profile::Profile;
use mallow_profile::ReallocAttribution;
use mallow_query::{AnyFile, CpuFile, Failure, ProfileFile, choose, no_time};
use mallow_stacks::{FlameWeight, Metric, MetricOf, StackProfile, Unit};
use mallow_text::{metric, part_words};
use mallow_view::{
    Filter, FlameOptions, FrameVisibility, Measure, PartOf, compared, compared_flames, flames, folded,
};
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::Path;

/// The metric that is drawn by default: the first that the file has and that is not 0.
const PREFERRED: [Measure; 5] =
    [Measure::Peak, Measure::Leaked, Measure::Bytes, Measure::Allocations, Measure::Temporary];

/// Draws one profile, or two.
pub(crate) fn run(request: &Flamegraph) -> Result<u8, Failure> {
    let is_drawing = matches!(request.form, FlamegraphForm::Svg { .. });
    if is_drawing && request.output.file().is_none() && io::stdout().is_terminal() {
        return Err(Failure::new(
            "a flame graph is an SVG file and not for a terminal; write it to a file with -o, or see its stacks \
             with --format folded.",
        ));
    }
    let paths = std::iter::once(&request.file).chain(&request.other);
    // With two files, a filter on stacks is applied to both sides of a site.
    let (mut part, mut filter) = (request.part.clone(), request.filter.clone());
    if request.other.is_some() {
        filter.expression = part.filter.take_if(|filter| is_of_stacks(filter));
    }
    let open = |path: &std::path::PathBuf| {
        let mut file = opening::profile(path, ReallocAttribution::OwnSite)?;
        file.keep(request.process.as_ref())?;
        file.keep_part(&part)?;
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
            AnyFile::Cpu(mut file) => {
                request.scripts.keep_in(&mut file.profile.stacks);
                cpus.push(file);
            }
        }
    }
    let text = match (heaps.as_slice(), cpus.as_slice()) {
        (_, []) => {
            let sources: Vec<_> = heaps
                .iter()
                .map(|file| Drawn::of(&file.path, &file.profile, &file.warnings, &file.part))
                .collect();
            // The given moment implies what was live.
            let at = request.part.at.map(|_| AnyMeasure::Heap(Measure::Leaked));
            drawing(request, &filter, &sources, measure(request.measure.or(at), &heaps)?, request.shown)?
        }
        ([], _) => {
            let sources: Vec<_> = cpus
                .iter()
                .map(|file| Drawn::of(&file.path, &file.profile, &file.warnings, &file.part))
                .collect();
            // The innermost frame is the answer, even if it is the allocator.
            let shown = match request.shown {
                FrameVisibility::All => FrameVisibility::All,
                _ => FrameVisibility::WithoutStart,
            };
            drawing(request, &filter, &sources, metric_of_cpu(request.measure, &cpus)?, shown)?
        }
        _ => {
            return Err(Failure::new(
                "the two cannot be compared: one is a heap profile, the other a CPU profile.",
            ));
        }
    };
    request.output.text(&text)?;
    Ok(exit_code::FINE)
}

/// A profile that is drawn.
struct Drawn<'a, P: StackProfile> {
    path: &'a Path,
    profile: &'a P,
    part: Option<&'a PartOf<P::Weights>>,
}

impl<'a, P: StackProfile> Drawn<'a, P> {
    /// Warns about missing data.
    fn of(
        path: &'a Path,
        profile: &'a P,
        warnings: &[String],
        part: &'a Option<PartOf<P::Weights>>,
    ) -> Drawn<'a, P> {
        output::warn(warnings);
        Drawn { path, profile, part: part.as_ref() }
    }
}

fn drawing<P: StackProfile>(
    request: &Flamegraph,
    filter: &Filter,
    sources: &[Drawn<'_, P>],
    by: MetricOf<P>,
    shown: FrameVisibility,
) -> Result<String, Failure> {
    let profiles: Vec<&P> = sources.iter().map(|source| source.profile).collect();
    match (&request.form, profiles.as_slice()) {
        (FlamegraphForm::Folded, &[before, after]) => {
            Ok(lines(&compared([before, after], shown, filter, by)))
        }
        (FlamegraphForm::Folded, profiles) => Ok(lines(&folded(profiles[0], shown, filter, by))),
        (FlamegraphForm::Svg { icicle, title, unfold }, profiles) => {
            let options = FlameOptions { shown, filter, folds_recursion: !unfold };
            let stacks = match *profiles {
                [before, after] => compared_flames([before, after], options, by),
                _ => flames(profiles[0], options, by),
            };
            let graph = FlameGraph {
                title: title.clone().unwrap_or_else(|| heading(by, sources)),
                subtitle: subtitle(by, filter, sources, stacks.sum()),
                unit: by.unit(),
                counted: counted(by).to_owned(),
                icicle: *icicle,
                is_compared: profiles.len() == 2,
            };
            graph.draw(&stacks).map_err(|error| {
                let name = sources.last().map(|source| source.path.display().to_string()).unwrap_or_default();
                Failure::new(format!("cannot draw the {} of {name}: {error}.", by.subject()))
            })
        }
    }
}

/// Returns the requested metric, or CPU time.
fn metric_of_cpu(asked: Option<AnyMeasure>, files: &[Box<CpuFile>]) -> Result<CpuMetric, Failure> {
    let asked = match asked {
        Some(AnyMeasure::Heap(measure)) => {
            return Err(files[0].has_no_heap_metrics(&format!("--metric {}", measure.word())));
        }
        Some(AnyMeasure::Cpu(metric)) => Some(metric),
        None => None,
    };
    let first = files[0].choose(asked)?;
    files.iter().try_fold(first, |metric, file| file.choose(Some(metric)))
}

/// Returns the best metric that all files have, preferably one that is not 0 in all of them.
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

/// Returns what is counted, if the unit does not say it.
pub(crate) fn counted(metric: impl Metric) -> &'static str {
    match metric.unit() {
        Unit::Bytes | Unit::Nanoseconds => "",
        Unit::Count => metric.subject(),
    }
}

/// Formats `Bytes live at the peak: sort`; the last word is the program.
fn heading<P: StackProfile>(by: MetricOf<P>, sources: &[Drawn<'_, P>]) -> String {
    let window = sources.first().and_then(|source| source.part?.window);
    let subject = match (by.subject().strip_suffix("at the end"), window) {
        (Some(live), Some(window)) => format!("{live}at {}", Micros(window.to_us)),
        _ => by.subject().to_owned(),
    };
    let heading = subject[..1].to_uppercase() + &subject[1..];
    let command = sources.last().and_then(|source| source.profile.command().first());
    match command.and_then(|path| path.rsplit('/').next()) {
        Some(name) => format!("{heading}: {name}"),
        None => heading,
    }
}

/// Formats `sort.1.mallow: 12.3 KiB`, or both files with what a width means; then which part of them is drawn.
fn subtitle<P: StackProfile>(
    by: MetricOf<P>,
    filter: &Filter,
    sources: &[Drawn<'_, P>],
    sum: FlameWeight,
) -> String {
    let sums = if sources.len() == 2 { vec![sum.before, sum.after] } else { vec![sum.after] };
    let parts = sources.iter().zip(sums).map(|(source, sum)| {
        let name = source.path.file_name().unwrap_or_default().to_string_lossy();
        let whole = source.part.map(|part| by.of_site(&part.whole)).filter(|whole| *whole > sum);
        let of = whole.map(|whole| format!(" of {}", metric(by, whole))).unwrap_or_default();
        format!("{name}: {}{of}", metric(by, sum))
    });
    let mut parts: Vec<String> = parts.collect();
    if let [before, after] = parts.as_slice() {
        parts = vec![
            format!("{before} before, {after} after"),
            "a box is as wide as the larger of both".to_owned(),
        ];
    }
    if let Some(part) = sources[0].part {
        parts.extend(part_words(part.window, part.filter.as_deref()));
    }
    let expression = filter.expression.as_ref().map(ToString::to_string);
    parts.extend(part_words(None, expression.as_deref()));
    parts.join("; ")
}

fn lines<T: Display>(rows: &[T]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}
