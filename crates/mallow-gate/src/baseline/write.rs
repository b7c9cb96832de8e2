//! A baseline as text.

use super::lines::{EnvironmentLine, FrameLine, LeftOutLine, MachineLine, SiteLine, SpreadLine};
use super::{Baseline, Machine, SCHEMA};
use crate::measurement::{Metric, Metrics, Site};
use mallow_base::Frame;
use serde::Serialize;
use std::collections::BTreeMap;

/// Digits of frames' keys.
const KEY_DIGITS: usize = 5;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

impl Baseline {
    /// The file's content: sorted keys, a line for each frame and site, a newline at the end.
    pub fn to_text(&self) -> String {
        let keys = keys(&self.sites);
        let frames: BTreeMap<&String, &Frame> = keys.iter().map(|(frame, key)| (key, *frame)).collect();
        let mut parts = vec![
            ("environment", json(&EnvironmentLine::from(&self.environment))),
            ("figures", object(self.metrics())),
            (
                "frames",
                object(frames.iter().map(|(key, frame)| (key.as_str(), json(&FrameLine::from(*frame))))),
            ),
        ];
        if self.left_out.sites > 0 {
            parts.push(("left_out", json(&LeftOutLine::from(self.left_out))));
        }
        if self.machine != Machine::default() {
            parts.push(("machine", json(&MachineLine::from(&self.machine))));
        }
        parts.push(("name", json(&self.name)));
        parts.extend(self.ops.map(|ops| ("ops", json(&ops))));
        if !self.region.is_empty() {
            parts.push(("region", json(&self.region)));
        }
        parts.push(("runs", json(&self.runs)));
        parts.push(("schema", json(&SCHEMA)));
        parts.push(("sites", array(site_lines(&self.sites, &keys))));
        let lines: Vec<String> =
            parts.into_iter().map(|(key, value)| format!("  \"{key}\": {value}")).collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    fn metrics(&self) -> impl Iterator<Item = (&'static str, String)> {
        let mut metrics = Metric::ALL;
        metrics.sort_by_key(|metric| metric.word());
        metrics.into_iter().filter_map(|metric| {
            let spread = self.spread(metric)?;
            let line =
                SpreadLine { at_min: spread.at_min, max: spread.max, min: spread.min, mode: spread.mode };
            Some((metric.word(), json(&line)))
        })
    }
}

/// Returns a key for each frame, a hash of its contents, so that a new frame does not renumber the others.
fn keys(sites: &[Site]) -> BTreeMap<&Frame, String> {
    let mut keys: BTreeMap<&Frame, String> =
        sites.iter().flat_map(|site| &site.frames).map(|frame| (frame, String::new())).collect();
    let mut taken = std::collections::BTreeSet::new();
    for (frame, key) in &mut keys {
        let mut hash = fnv(json(&FrameLine::from(*frame)).as_bytes());
        let mut text = String::new();
        while text.len() < KEY_DIGITS || taken.contains(&text) {
            // If all digits of the hash are used up, sixteen more come from its own hash.
            if hash == 0 {
                hash = fnv(text.as_bytes());
            }
            text.push(char::from(DIGITS[(hash % 36) as usize]));
            hash /= 36;
        }
        taken.insert(text.clone());
        *key = text;
    }
    keys
}

/// FNV-1a, which is the same on every machine and in every version.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Stacks share their callers, so each line has only what differs from the one before.
fn site_lines(sites: &[Site], keys: &BTreeMap<&Frame, String>) -> Vec<String> {
    let mut before: &[Frame] = &[];
    let mut lines = Vec::new();
    for site in sites {
        let shared = before.iter().rev().zip(site.frames.iter().rev()).take_while(|(a, b)| a == b).count();
        let own = &site.frames[..site.frames.len() - shared];
        let stack: Vec<&str> = own.iter().filter_map(|frame| keys.get(frame).map(String::as_str)).collect();
        let Metrics { allocations, bytes, remaining_blocks, remaining_bytes, descriptors, temporary, .. } =
            site.metrics;
        lines.push(json(&SiteLine {
            allocations,
            bytes,
            descriptors,
            outer: shared as u64,
            remaining: remaining_blocks,
            remaining_bytes,
            stack: stack.join(" "),
            temporary: temporary.unwrap_or(0),
        }));
        before = &site.frames;
    }
    lines
}

fn object<'a>(entries: impl Iterator<Item = (&'a str, String)>) -> String {
    let lines: Vec<String> = entries.map(|(key, value)| format!("    {}: {value}", json(&key))).collect();
    if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n  }}", lines.join(",\n")) }
}

fn array(values: Vec<String>) -> String {
    let lines: Vec<String> = values.into_iter().map(|value| format!("    {value}")).collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", lines.join(",\n")) }
}

/// Numbers, texts and flat structures of them always can be written.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
