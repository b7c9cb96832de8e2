//! A result as a report.

use super::frames::Table;
use super::*;
use crate::spelling::spelled;
use mallow_gate::measurement::{Environment, Measurement, Site, judged_run};
use mallow_gate::result::{CheckResult, Conclusion, TestResult, Window};

impl From<&CheckResult> for ReportFile {
    fn from(check: &CheckResult) -> ReportFile {
        let mut table = Table::default();
        let tests = check.tests.iter().map(|test| test_json(test, &mut table)).collect();
        ReportFile {
            schema: SCHEMA.to_owned(),
            environment: (&check.environment).into(),
            sentences: check.sentences.clone(),
            update_command: check.update_command.clone(),
            folder: check.folder.display().to_string(),
            frames: table.frames,
            tests,
        }
    }
}

fn test_json<'a>(test: &'a TestResult, table: &mut Table<'a>) -> TestJson {
    let change = |change: &'a mallow_gate::result::SiteChange, table: &mut Table<'a>| ChangeJson {
        stack: table.stack(&change.frames),
        before: change.before.as_ref().map(MetricsJson::from),
        after: change.after.as_ref().map(MetricsJson::from),
        exact: change.exact,
        blamed: change.blamed,
    };
    TestJson {
        name: test.name.clone(),
        outcome: spelled(test.outcome.word()).into_owned(),
        sentences: test.sentences.clone(),
        duration_us: test.duration_us,
        conclusions: test.conclusions.iter().map(ConclusionJson::from).collect(),
        changes: test.changes.iter().map(|of| change(of, table)).collect(),
        varying: test
            .varying
            .iter()
            .map(|site| VaryingJson {
                stack: table.stack(&site.frames),
                allocations: (&site.allocations).into(),
            })
            .collect(),
        left: sites(&test.left, table),
        measurement: test.measurement.as_ref().map(|measurement| measurement_json(measurement, table)),
    }
}

fn measurement_json<'a>(measurement: &'a Measurement, table: &mut Table<'a>) -> MeasurementJson {
    let runs = &measurement.runs;
    let judged = judged_run(runs);
    let index = judged.and_then(|judged| runs.iter().position(|run| std::ptr::eq(run, judged)));
    MeasurementJson {
        region: measurement.region.clone(),
        ops: measurement.ops,
        warmups: measurement.warmups,
        environment: (&measurement.environment).into(),
        notes: measurement.notes.clone(),
        runs: runs
            .iter()
            .map(|run| RunJson {
                metrics: (&run.metrics).into(),
                objects: (&run.objects).into(),
                process: (&run.process).into(),
                settled: run.settled,
                waited_us: run.waited_us,
            })
            .collect(),
        judged: index.unwrap_or(0),
        sites: judged.map_or_else(Vec::new, |run| largest(&run.sites, table)),
    }
}

/// The sites from which a baseline takes its own, in their order.
fn largest<'a>(all: &'a [Site], table: &mut Table<'a>) -> Vec<SiteJson> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| {
        let metrics = &all[*index].metrics;
        let has_left = metrics.remaining_blocks > 0 || metrics.descriptors > 0;
        std::cmp::Reverse((has_left, metrics.allocations, metrics.bytes))
    });
    order.truncate(SITES_MAX);
    order.sort_unstable();
    order.into_iter().map(|index| site(&all[index], table)).collect()
}

fn sites<'a>(sites: &'a [Site], table: &mut Table<'a>) -> Vec<SiteJson> {
    sites.iter().map(|of| site(of, table)).collect()
}

fn site<'a>(site: &'a Site, table: &mut Table<'a>) -> SiteJson {
    SiteJson { stack: table.stack(&site.frames), metrics: (&site.metrics).into() }
}

impl From<&Environment> for EnvironmentJson {
    fn from(environment: &Environment) -> Self {
        Self {
            architecture: environment.architecture.clone(),
            libc: environment.libc.clone(),
            runtime: environment.runtime.clone(),
            allocator: environment.allocator.clone(),
            processors: environment.processors,
            counting: environment.counting,
            class: environment.class_name(),
        }
    }
}

impl From<&Conclusion> for ConclusionJson {
    fn from(conclusion: &Conclusion) -> Self {
        Self {
            metric: conclusion.metric.word().to_owned(),
            position: conclusion.position.word().to_owned(),
            spread: (&conclusion.spread).into(),
            reference: conclusion.reference,
            window: conclusion.window.map(WindowJson::from),
        }
    }
}

impl From<Window> for WindowJson {
    fn from(window: Window) -> Self {
        Self { min: window.min, max: (window.max != u64::MAX).then_some(window.max) }
    }
}
