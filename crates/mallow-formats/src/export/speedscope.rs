//! speedscope's JSON: a sampled profile for each known metric, among which speedscope lets the user choose.
//!
//! A sample is a site and its weight is the metric, so the order of samples means nothing: speedscope's views "left
//! heavy" and "sandwich" are the useful ones. Format: <https://www.speedscope.app/file-format-schema.json>.

mod cpu;

pub(super) use cpu::write as write_cpu;

use super::rooted::Rooted;
use mallow_base::Frame;
use mallow_profile::left_out;
use mallow_profile::{Measure, Profile};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The format's identifier.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a profile; speedscope shows `measure` first.
pub(super) fn write(profile: &Profile, measure: Measure, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let measures: Vec<Measure> =
        Measure::ALL.into_iter().filter(|measure| measure.is_known(&profile.known)).collect();
    let active = measures.iter().position(|known| *known == measure).unwrap_or(0);
    let rooted = Rooted::of(profile);
    let mut frames = Frames::default();
    let stacks: Vec<Vec<usize>> = profile
        .sites
        .iter()
        .map(|site| rooted.outermost_first(site).into_iter().map(|frame| frames.number(frame)).collect())
        .collect();
    let profiles: Vec<Value> = measures.iter().map(|measure| sampled(profile, *measure, &stacks)).collect();
    let command = profile.recording.command.join(" ");
    let document = json!({
        "$schema": SCHEMA,
        // speedscope treats an empty name as missing, looks for one in the first profile, and fails if there is no profile.
        "name": if command.is_empty() { "profile" } else { &command },
        "exporter": concat!("mallow@", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": active,
        "shared": { "frames": frames.table },
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")?;
    let held = ["allocations", "temporary", "peak", "leaked"];
    Ok(left_out::sentence(profile, "speedscope's format", &held).into_iter().collect())
}

/// Returns the sites for which a metric is not 0.
fn sampled(profile: &Profile, measure: Measure, stacks: &[Vec<usize>]) -> Value {
    let with_values =
        profile.sites.iter().zip(stacks).map(|(site, stack)| (measure.of_site(&site.totals), stack));
    let (weights, samples): (Vec<u64>, Vec<&Vec<usize>>) =
        with_values.filter(|(value, _)| *value > 0).unzip();
    let sum = weights.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
    json!({
        "type": "sampled",
        "name": measure.subject(),
        "unit": if measure.is_bytes() { "bytes" } else { "none" },
        "startValue": 0,
        "endValue": sum,
        "samples": samples,
        "weights": weights,
    })
}

/// The table that samples refer to.
#[derive(Default)]
struct Frames<'a> {
    numbers: FxHashMap<(&'a str, Option<&'a str>, Option<u32>), usize>,
    table: Vec<Value>,
}

impl<'a> Frames<'a> {
    fn number(&mut self, frame: &'a Frame) -> usize {
        // A frame without a line shows its library instead.
        let file = frame.file.as_deref().or(frame.module.as_deref());
        let line = frame.line.filter(|_| frame.file.is_some());
        let table = &mut self.table;
        *self.numbers.entry((&frame.function, file, line)).or_insert_with(|| {
            let mut entry = Map::new();
            entry.insert(String::from("name"), frame.function.as_str().into());
            if let Some(file) = file {
                entry.insert(String::from("file"), file.into());
            }
            if let Some(line) = line {
                entry.insert(String::from("line"), line.into());
            }
            table.push(Value::Object(entry));
            table.len() - 1
        })
    }
}
