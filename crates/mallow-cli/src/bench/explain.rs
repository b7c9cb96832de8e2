//! `--explain`: which lines allocate differently, and which take different time.

mod cpu;

use crate::{interrupts, preload};
use mallow_bench::Session;
use mallow_collect::{CommandLines, Output, RecordOptions};
use mallow_flame::FlameGraph;
use mallow_profile::{Nameless, ReallocAttribution};
use mallow_query::{Failure, Names, ProfileFile, choose};
use mallow_runner::{Bench, Plan};
use mallow_stacks::Unit;
use mallow_text::Style;
use mallow_view::diff::{Comparison, DiffOptions, DiffReport};
use mallow_view::{Filter, FlameOptions, FrameVisibility, Measure, compared_flames};
use std::cell::RefCell;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

/// Sites in a section of the diff.
const SITES: usize = 5;

/// Profiles of the reference and of the other commands.
pub(super) struct Explained {
    profiles: Vec<ProfileFile>,
    /// Or a sentence that says why there are none.
    sampled: Result<cpu::Sampled, String>,
    names: Vec<String>,
    reference: usize,
}

/// Records each command once, and samples it.
pub(super) fn explain(bench: &Bench<'_>, plan: &Plan, session: &Session) -> Result<Explained, Failure> {
    let folder = tempfile::tempdir()?;
    let mut profiles = Vec::new();
    for index in 0..plan.commands.len() {
        let path = folder.path().join(format!("{}.mallow", index + 1));
        bench.beside(index, || record(bench, index, &path))??;
        profiles.push(ProfileFile::open(&path, ReallocAttribution::OwnSite)?);
    }
    let sampled = cpu::sampled(bench, session)?;
    let names = session.commands.iter().enumerate();
    let names = names.map(|(index, command)| format!("{}: {}", index + 1, command.name)).collect();
    Ok(Explained { profiles, sampled, names, reference: session.reference })
}

fn record(bench: &Bench<'_>, index: usize, path: &Path) -> Result<(), Failure> {
    let (command, spawn) = bench.quiet_start(index)?;
    let output = Output::File { path: path.to_owned(), force: true };
    let options = RecordOptions {
        command,
        command_lines: CommandLines::Whole,
        output,
        summary_only: true,
        delay: Duration::ZERO,
        regions: None,
        spawn,
        preload: preload::LIBRARY,
        started: None,
        ended: Some(interrupts::end_waits_for_names),
    };
    let names = RefCell::new(Names::new());
    let mut resolve = |module: &_, calls: &[u64]| names.borrow_mut().of_calls(module, calls);
    let nameless = || names.borrow().nameless();
    let outcome = mallow_collect::record(&options, &mut resolve, &nameless, None, &mut |_| false)?;
    crate::output::warn(&outcome.warnings);
    crate::output::warn(&nameless().iter().map(Nameless::sentence).collect::<Vec<_>>());
    Ok(())
}

impl Explained {
    /// Returns the largest differences of each command from the reference.
    pub(super) fn text(&self, is_markdown: bool, style: Style) -> String {
        let mut text = String::new();
        for index in (0..self.profiles.len()).filter(|index| *index != self.reference) {
            let sides = [&self.profiles[self.reference], &self.profiles[index]];
            let files = sides.map(|side| (side.path.as_path(), &side.profile));
            let by = choose(None, Measure::ALL, &files).unwrap_or(Measure::Allocations);
            let options = DiffOptions { by, ..DiffOptions::default() };
            let comparison = &Comparison::of(&sides[0].profile, &sides[1].profile, &options);
            let diff = DiffReport {
                sides: sides.map(ProfileFile::side),
                options: &options,
                per: NonZeroU64::MIN,
                limit: Some(SITES),
                comparison,
                verdicts: &[],
                shares: &[],
            };
            let title =
                format!("What {} allocates otherwise than {}", self.names[index], self.names[self.reference]);
            text += &match is_markdown {
                true => format!("\n#### {title}\n\n{}", mallow_text::diff::markdown(&diff)),
                false => format!("\n{}\n\n{}", style.bold(&title), mallow_text::diff::text(&diff, style)),
            };
            if let Ok(sampled) = &self.sampled {
                text += &cpu::text(sampled, [self.reference, index], &self.names, SITES, is_markdown, style);
            }
        }
        if let Err(sentence) = &self.sampled {
            text += &format!("\nTheir CPU profiles are missing: {sentence}\n");
        }
        text
    }

    /// Draws the difference of the first other command from the reference, by time; `None` if nothing was sampled.
    pub(super) fn cpu_flamegraph(&self) -> Result<Option<String>, Failure> {
        let other = usize::from(self.reference == 0);
        let Ok(sampled) = &self.sampled else { return Ok(None) };
        cpu::flamegraph(sampled, [self.reference, other], &self.names)
    }

    /// Draws the difference of the first other command from the reference, by bytes.
    pub(super) fn flamegraph(&self) -> Result<String, Failure> {
        let other = usize::from(self.reference == 0);
        let profiles = [self.reference, other].map(|index| &self.profiles[index].profile);
        let shown = FrameVisibility::WithoutPlumbing;
        let options = FlameOptions { shown, filter: &Filter::default(), folds_recursion: true };
        let graph = FlameGraph {
            title: format!("Bytes allocated: {}", self.names[other]),
            subtitle: format!(
                "against {}; a box is as wide as the larger of both",
                self.names[self.reference]
            ),
            unit: Unit::Bytes,
            counted: String::new(),
            icicle: false,
            is_compared: true,
        };
        let stacks = compared_flames(profiles, options, Measure::Bytes);
        graph.draw(&stacks).map_err(|error| Failure::new(format!("the bytes cannot be drawn: {error}.")))
    }
}
