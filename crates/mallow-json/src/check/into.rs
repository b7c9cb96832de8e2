//! A report read back. The file may come from anywhere.

use super::*;
use crate::spelling::is_word;
use mallow_base::Frame;
use mallow_gate::json_error::placed;
use mallow_gate::measurement::{Environment, Measurement, Metric, Metrics, Run, Site};
use mallow_gate::result::{
    CheckResult, Conclusion, Outcome, Position, SiteChange, TestResult, VaryingSite, Window,
};

#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

impl ReportFile {
    /// Reads a file's content. `path` is for the error's sentence.
    pub fn from_text(text: &str, path: &str) -> Result<ReportFile, ReportFileError> {
        let wrong = |what: String| {
            ReportFileError(format!("{path} is not a report of `mallow check --json`: {what}."))
        };
        let head: Head = serde_json::from_str(text).map_err(|error| wrong(placed(&error)))?;
        match head.schema.as_deref() {
            Some(SCHEMA | BEFORE) => serde_json::from_str(text).map_err(|error| wrong(placed(&error))),
            Some(other) => Err(wrong(format!("its schema is {other:?}, and this mallow reads {SCHEMA:?}"))),
            None => Err(wrong(format!("it does not say `\"schema\": \"{SCHEMA}\"`"))),
        }
    }

    /// The result that it tells. Of each test only the judged run has sites.
    pub fn to_result(&self) -> Result<CheckResult, ReportFileError> {
        let mut reader = Reader { frames: self.frames.iter().map(Frame::from).collect(), read: 0 };
        let tests: Result<Vec<TestResult>, String> =
            self.tests.iter().map(|test| reader.test(test)).collect();
        Ok(CheckResult {
            tests: tests.map_err(|what| ReportFileError(format!("The report cannot be used: {what}.")))?,
            environment: (&self.environment).into(),
            sentences: self.sentences.clone(),
            update_command: self.update_command.clone(),
            folder: self.folder.clone().into(),
        })
    }
}

struct Reader {
    frames: Vec<Frame>,
    /// Frames given out so far.
    read: usize,
}

impl Reader {
    fn test(&mut self, test: &TestJson) -> Result<TestResult, String> {
        let is_it = |outcome: &Outcome| is_word(&test.outcome, outcome.word());
        let outcome = Outcome::ALL
            .into_iter()
            .find(is_it)
            .ok_or_else(|| format!("the outcome {:?} of {} is unknown", test.outcome, test.name))?;
        let measurement = test
            .measurement
            .as_ref()
            .map(|measurement| self.measurement(&test.name, measurement))
            .transpose()?;
        let mut changes = Vec::new();
        for change in &test.changes {
            changes.push(SiteChange {
                frames: self.stack(&change.stack)?,
                before: change.before.as_ref().map(Metrics::from),
                after: change.after.as_ref().map(Metrics::from),
                exact: change.exact,
                blamed: change.blamed,
            });
        }
        let mut varying = Vec::new();
        for site in &test.varying {
            varying.push(VaryingSite {
                frames: self.stack(&site.stack)?,
                allocations: (&site.allocations).into(),
            });
        }
        Ok(TestResult {
            name: test.name.clone(),
            outcome,
            sentences: test.sentences.clone(),
            conclusions: test.conclusions.iter().map(conclusion).collect::<Result<_, _>>()?,
            changes,
            varying,
            left: self.sites(&test.left)?,
            plumbing: Vec::new(),
            measurement,
            duration_us: test.duration_us,
        })
    }

    fn measurement(&mut self, name: &str, json: &MeasurementJson) -> Result<Measurement, String> {
        let mut runs: Vec<Run> = json
            .runs
            .iter()
            .map(|run| Run {
                metrics: (&run.metrics).into(),
                objects: (&run.objects).into(),
                process: (&run.process).into(),
                sites: Vec::new(),
                settled: run.settled,
                waited_us: run.waited_us,
            })
            .collect();
        if let Some(run) = runs.get_mut(json.judged) {
            run.sites = self.sites(&json.sites)?;
        } else if !runs.is_empty() {
            return Err(format!("{name} has no run {}", json.judged));
        }
        Ok(Measurement {
            name: name.to_owned(),
            region: json.region.clone(),
            ops: json.ops,
            runs,
            warmups: json.warmups,
            environment: (&json.environment).into(),
            notes: json.notes.clone(),
            unseen: Vec::new(),
            is_marked: false,
        })
    }

    fn sites(&mut self, sites: &[SiteJson]) -> Result<Vec<Site>, String> {
        sites
            .iter()
            .map(|site| Ok(Site { frames: self.stack(&site.stack)?, metrics: (&site.metrics).into() }))
            .collect()
    }

    fn stack(&mut self, stack: &[u32]) -> Result<Vec<Frame>, String> {
        self.read = self.read.saturating_add(stack.len());
        if self.read > FRAMES_READ_MAX {
            return Err(format!("its stacks have more than {FRAMES_READ_MAX} frames"));
        }
        let frame = |index: &u32| {
            let frame = usize::try_from(*index).ok().and_then(|index| self.frames.get(index));
            frame.cloned().ok_or_else(|| format!("there is no frame {index}"))
        };
        stack.iter().map(frame).collect()
    }
}

fn conclusion(json: &ConclusionJson) -> Result<Conclusion, String> {
    let position = Position::of_word(&json.position);
    Ok(Conclusion {
        metric: Metric::of_word(&json.metric)
            .ok_or_else(|| format!("there is no metric {:?}", json.metric))?,
        spread: (&json.spread).into(),
        reference: json.reference,
        window: json.window.map(|window| Window { min: window.min, max: window.max.unwrap_or(u64::MAX) }),
        position: position.ok_or_else(|| format!("the standing {:?} is unknown", json.position))?,
    })
}

impl From<&EnvironmentJson> for Environment {
    fn from(json: &EnvironmentJson) -> Environment {
        Environment {
            architecture: json.architecture.clone(),
            libc: json.libc.clone(),
            runtime: json.runtime.clone(),
            allocator: json.allocator.clone(),
            processors: json.processors,
            counting: json.counting,
        }
    }
}
