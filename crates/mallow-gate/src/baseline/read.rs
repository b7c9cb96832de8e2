//! A baseline from text. The file may be anything: it was edited, merged, cut.

use super::kept::DEPTH_MAX;
use super::lines::{EnvironmentLine, FrameLine, LeftOutLine, MachineLine, SiteLine, SpreadLine};
use super::{Baseline, BaselineError, SCHEMA};
use crate::json_error::placed;
use crate::measurement::{Metric, Metrics, Site};
use crate::result::Spread;
use mallow_base::Frame;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// More sites than any build writes: stacks that share frames would make much memory of a small file.
const SITES_READ_MAX: usize = 1000;

#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

#[derive(Deserialize)]
struct File {
    environment: EnvironmentLine,
    #[serde(rename = "figures")]
    metrics: MetricLines,
    frames: HashMap<String, FrameLine>,
    #[serde(default)]
    left_out: LeftOutLine,
    #[serde(default)]
    machine: MachineLine,
    name: String,
    ops: Option<u64>,
    #[serde(default)]
    region: String,
    runs: u32,
    sites: Vec<SiteLine>,
}

#[derive(Deserialize)]
struct MetricLines {
    allocations: SpreadLine,
    bytes: SpreadLine,
    descriptors: SpreadLine,
    peak: SpreadLine,
    remaining: SpreadLine,
    remaining_bytes: SpreadLine,
    objects: Option<SpreadLine>,
    object_bytes: Option<SpreadLine>,
    remaining_objects: Option<SpreadLine>,
    remaining_object_bytes: Option<SpreadLine>,
    temporary: Option<SpreadLine>,
    peak_rss: Option<SpreadLine>,
}

impl MetricLines {
    fn by_metric(self) -> [(Metric, Option<SpreadLine>); 12] {
        [
            (Metric::Allocations, Some(self.allocations)),
            (Metric::Bytes, Some(self.bytes)),
            (Metric::Peak, Some(self.peak)),
            (Metric::Remaining, Some(self.remaining)),
            (Metric::RemainingBytes, Some(self.remaining_bytes)),
            (Metric::Descriptors, Some(self.descriptors)),
            (Metric::Objects, self.objects),
            (Metric::ObjectBytes, self.object_bytes),
            (Metric::RemainingObjects, self.remaining_objects),
            (Metric::RemainingObjectBytes, self.remaining_object_bytes),
            (Metric::Temporary, self.temporary),
            (Metric::PeakRss, self.peak_rss),
        ]
    }
}

impl Baseline {
    /// Reads a file's content. `path` is for the error's sentence.
    pub fn from_text(text: &str, path: &str) -> Result<Baseline, BaselineError> {
        let wrong = |what: String| BaselineError(format!("{path} is not a baseline: {what}."));
        let head: Head = serde_json::from_str(text).map_err(|error| wrong(placed(&error)))?;
        match head.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(other) => {
                return Err(wrong(format!("its schema is {other:?}, and this mallow reads {SCHEMA:?}")));
            }
            None => return Err(wrong(format!("it does not say `\"schema\": \"{SCHEMA}\"`"))),
        }
        let file: File = serde_json::from_str(text).map_err(|error| wrong(placed(&error)))?;
        file.into_baseline().map_err(wrong)
    }
}

impl File {
    fn into_baseline(self) -> Result<Baseline, String> {
        let runs = self.runs;
        let mut spreads = BTreeMap::new();
        for (metric, line) in self.metrics.by_metric() {
            let Some(line) = line else { continue };
            let spread = line.into_spread(runs).ok_or_else(|| contradiction(metric.word()))?;
            spreads.insert(metric, spread);
        }
        let frames: HashMap<String, Frame> =
            self.frames.into_iter().map(|(key, line)| (key, Frame::from(&line))).collect();
        let knows_temporary = spreads.contains_key(&Metric::Temporary);
        Ok(Baseline {
            name: self.name,
            region: self.region,
            environment: (&self.environment).into(),
            machine: (&self.machine).into(),
            ops: self.ops,
            runs,
            spreads,
            sites: sites(self.sites, &frames, knows_temporary)?,
            left_out: (&self.left_out).into(),
        })
    }
}

fn contradiction(word: &str) -> String {
    format!("its metrics of {word} contradict each other")
}

impl SpreadLine {
    fn into_spread(self, runs: u32) -> Option<Spread> {
        let SpreadLine { at_min, max, min, mode } = self;
        let is_possible = min <= mode && mode <= max && at_min <= runs;
        is_possible.then_some(Spread { min, mode, max, at_min, runs })
    }
}

fn sites(
    lines: Vec<SiteLine>,
    frames: &HashMap<String, Frame>,
    knows_temporary: bool,
) -> Result<Vec<Site>, String> {
    if lines.len() > SITES_READ_MAX {
        return Err(format!("it has {} sites, and at most {SITES_READ_MAX} are read", lines.len()));
    }
    let mut sites: Vec<Site> = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        let number = index + 1;
        let before = sites.last().map_or(&[][..], |site| &site.frames);
        let outer =
            usize::try_from(line.outer).ok().filter(|outer| *outer <= before.len()).ok_or_else(|| {
                format!(
                    "site {number} shares {} frames with the one before, which has {}",
                    line.outer,
                    before.len()
                )
            })?;
        let mut stack = Vec::new();
        for key in line.stack.split(' ').filter(|key| !key.is_empty()) {
            stack.push(
                frames
                    .get(key)
                    .ok_or_else(|| format!("site {number} names the frame {key:?}, which is not there"))?,
            );
        }
        if stack.len() + outer > DEPTH_MAX {
            return Err(format!("site {number} has more than {DEPTH_MAX} frames"));
        }
        let frames = stack.into_iter().chain(&before[before.len() - outer..]).cloned().collect();
        let metrics = Metrics {
            allocations: line.allocations,
            bytes: line.bytes,
            peak_bytes: 0,
            remaining_blocks: line.remaining,
            remaining_bytes: line.remaining_bytes,
            descriptors: line.descriptors,
            temporary: knows_temporary.then_some(line.temporary),
        };
        sites.push(Site { frames, metrics });
    }
    Ok(sites)
}
