//! A profile from a file, whatever it counts.

use crate::events::Moment;
use crate::failure::Failure;
use crate::names::Names;
use crate::part::{PartRequest, keep_wanted_time};
use crate::processes::ProcessChoice;
use crate::profile_file::{ProfileFile, refused};
use crate::proportion::keep_in_proportion;
use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals, Window};
use mallow_formats::{AnyImported, Format, ImportedCpu};
use mallow_profile::ReallocAttribution;
use mallow_view::diff::DiffInput;
use mallow_view::filter::Expression;
use mallow_view::{PartOf, PartWindow};
use std::path::{Path, PathBuf};

/// A profile of a processor's time and what is known of its file.
#[derive(Debug)]
pub struct CpuFile {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Its contents.
    pub profile: CpuProfile,
    /// Whether nothing of it is missing.
    pub complete: bool,
    /// Warnings of the reader.
    pub warnings: Vec<String>,
    /// Which part of it is in the profile, if that is not all.
    pub part: Option<PartOf<CpuTotals>>,
}

/// A profile and what is known of its file.
#[derive(Debug)]
pub enum AnyFile {
    /// A heap profile.
    Heap(Box<ProfileFile>),
    /// A CPU profile.
    Cpu(Box<CpuFile>),
}

/// A requested part of a profile's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuWindow {
    /// From here on.
    pub from: Option<Moment>,
    /// Up to here.
    pub to: Option<Moment>,
    /// Only this process.
    pub process: Option<ProcessChoice>,
    /// The filter.
    pub filter: Option<Expression>,
}

impl AnyFile {
    /// Reads a file of any known format.
    ///
    /// # Errors
    /// The file cannot be read, or is none that is known.
    pub fn open(path: &Path, attribution: ReallocAttribution) -> Result<AnyFile, Failure> {
        let opened = mallow_formats::open_any_profile(path, attribution);
        let (format, imported) = opened.map_err(|error| refused(path, &error))?;
        Ok(match imported {
            AnyImported::Heap(imported) => {
                AnyFile::Heap(Box::new(ProfileFile::of(path, format, imported, attribution)))
            }
            AnyImported::Cpu(ImportedCpu { mut profile, mut warnings, complete }) => {
                let path = path.to_owned();
                if format == Format::PerfData {
                    // perf leaves symbolization to the reader of its file.
                    let mut names = Names::new();
                    names.complete(&mut profile.stacks);
                    warnings.extend(names.warnings());
                }
                keep_in_proportion(&path, &mut profile.stacks, &profile.sites, &mut warnings);
                AnyFile::Cpu(Box::new(CpuFile { path, format, profile, complete, warnings, part: None }))
            }
        })
    }

    /// Keeps only the chosen processes.
    ///
    /// # Errors
    /// There is none; the sentence lists the processes.
    pub fn keep(&mut self, choice: Option<&ProcessChoice>) -> Result<(), Failure> {
        let Some(choice) = choice else { return Ok(()) };
        match self {
            AnyFile::Heap(file) => file.keep(choice),
            AnyFile::Cpu(file) => {
                file.cut(&CpuWindow { process: Some(choice.clone()), ..CpuWindow::default() })
            }
        }
    }

    /// Keeps only a part.
    ///
    /// # Errors
    /// The file does not contain the requested metric.
    pub fn keep_part(&mut self, part: &PartRequest) -> Result<(), Failure> {
        match self {
            AnyFile::Heap(file) => file.keep_part(part),
            AnyFile::Cpu(file) if part.at.is_some() => Err(file.has_no_heap_metrics("--at")),
            AnyFile::Cpu(file) => {
                let PartRequest { from, to, ref filter, .. } = *part;
                file.cut(&CpuWindow { from, to, filter: filter.clone(), process: None })
            }
        }
    }
}

/// Returns the error for a query about time if the file is a heap profile.
pub fn no_time(path: &Path, word: &str) -> Failure {
    Failure::new(format!("{} is a heap profile and has no {word}.", path.display()))
}

impl CpuFile {
    /// Returns the requested metric, if the file has it, or the one for time.
    ///
    /// # Errors
    /// The file does not have it.
    pub fn choose(&self, asked: Option<CpuMetric>) -> Result<CpuMetric, Failure> {
        let Some(metric) = asked else { return Ok(self.profile.main_metric()) };
        if self.profile.known.knows(metric) {
            return Ok(metric);
        }
        let known: Vec<&str> = CpuMetric::ALL
            .into_iter()
            .filter(|metric| self.profile.known.knows(*metric))
            .map(CpuMetric::word)
            .collect();
        let (path, subject) = (self.path.display(), mallow_stacks::Metric::subject(metric));
        Err(Failure::new(format!("{path} does not contain {subject}; it contains {}.", known.join(", "))))
    }

    /// One side of a diff.
    pub fn side(&self) -> DiffInput<'_, CpuProfile> {
        let CpuFile { path, profile, complete, warnings, .. } = self;
        DiffInput { file: path, profile, complete: *complete, warnings }
    }

    /// The sentence for a question about what allocated.
    pub fn has_no_heap_metrics(&self, asked: &str) -> Failure {
        let known: Vec<&str> = CpuMetric::ALL
            .into_iter()
            .filter(|metric| self.profile.known.knows(*metric))
            .map(CpuMetric::word)
            .collect();
        Failure::new(format!(
            "{} is a CPU profile and not a heap profile, so {asked} means nothing there; it contains {}.",
            self.path.display(),
            known.join(", ")
        ))
    }

    /// Keeps only a window.
    ///
    /// # Errors
    /// The file has no times of samples, or there is no such process.
    pub fn cut(&mut self, window: &CpuWindow) -> Result<(), Failure> {
        if *window == CpuWindow::default() {
            return Ok(());
        }
        let whole = self.part.take().map_or_else(|| self.profile.totals(), |part| part.whole);
        if let Some(filter) = &window.filter {
            keep_wanted_time(&mut self.profile, &self.path, filter)?;
        }
        let is_windowed = window.from.is_some() || window.to.is_some();
        if is_windowed || window.filter.is_some() {
            let of_us = self.profile.recording.duration_ns / 1000;
            let in_us = |moment: Moment| match moment {
                Moment::Micros(us) => us.min(of_us),
                Moment::Share(millionths) => (u128::from(of_us) * u128::from(millionths) / 1_000_000) as u64,
            };
            let from_us = window.from.map_or(0, in_us);
            let part = PartWindow { from_us, to_us: window.to.map_or(of_us, in_us), of_us };
            let filter = window.filter.as_ref().map(ToString::to_string);
            self.part = Some(PartOf { window: is_windowed.then_some(part), filter, whole });
        }
        if window.from.is_none() && window.to.is_none() && window.process.is_none() {
            return Ok(());
        }
        let path = self.path.display();
        if self.profile.samples.is_empty() {
            return Err(Failure::new(format!(
                "{path} has sums by stack and no times of samples, so no part of its time can be shown."
            )));
        }
        let pid =
            window.process.as_ref().map(|choice| choice.of_cpu(&self.profile, &self.path)).transpose()?;
        let duration = self.profile.recording.duration_ns;
        let in_ns = |moment: Moment| match moment {
            Moment::Micros(us) => us.saturating_mul(1000),
            Moment::Share(millionths) => (u128::from(duration) * u128::from(millionths) / 1_000_000) as u64,
        };
        // A window that ends at or after the recording's end includes its last moment.
        let to_ns = window.to.map(in_ns).filter(|to| *to < duration);
        Window { from_ns: window.from.map(in_ns), to_ns, pid }.cut(&mut self.profile);
        Ok(())
    }
}
