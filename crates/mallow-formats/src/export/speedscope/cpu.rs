//! CPU samples for speedscope: a profile for each thread, its samples in the order of time.

use super::{Frames, SCHEMA};
use crate::export::rooted::Rooted;
use mallow_cpu::{CpuMetric, CpuProfile};
use mallow_stacks::{Metric, Site, Unit};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes a profile.
pub(in crate::export) fn write(
    profile: &CpuProfile,
    metric: CpuMetric,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let rooted = Rooted::of(profile);
    let mut frames = Frames::default();
    let mut profiles = Vec::new();
    let mut add = |title: String, samples: Vec<(Site<()>, u64)>| {
        let mut of_samples: Vec<Vec<usize>> = Vec::new();
        let weights: Vec<u64> = samples.iter().map(|(_, weight)| *weight).collect();
        for (site, _) in &samples {
            of_samples
                .push(rooted.outermost_first(site).into_iter().map(|frame| frames.number(frame)).collect());
        }
        profiles.push(json!({
            "type": "sampled",
            "name": title,
            "unit": if metric.unit() == Unit::Nanoseconds { "nanoseconds" } else { "none" },
            "startValue": 0,
            "endValue": weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(*weight)),
            "samples": of_samples,
            "weights": weights,
        }));
    };
    for (index, thread) in profile.threads.iter().enumerate() {
        let samples = profile.samples.iter().filter(|sample| sample.thread.0 as usize == index);
        let samples: Vec<(Site<()>, u64)> = samples
            .map(|sample| {
                let site = Site { process: thread.process, stack: sample.stack, totals: () };
                (site, metric.of_site(&sample.totals))
            })
            // A wait has no CPU time, and a sample is not a wait.
            .filter(|(_, weight)| *weight > 0)
            .collect();
        if !samples.is_empty() {
            add(format!("{} {}", thread.name, thread.tid), samples);
        }
    }
    if profile.samples.is_empty() {
        let site = |site: &Site<_>| {
            let plain = Site { process: site.process, stack: site.stack, totals: () };
            (plain, metric.of_site(&site.totals))
        };
        let sites = profile.sites.iter().map(site).filter(|(_, weight)| *weight > 0);
        add(metric.subject().to_owned(), sites.collect());
    }
    let command = profile.recording.command.join(" ");
    let document: Value = json!({
        "$schema": SCHEMA,
        "name": if command.is_empty() { "profile" } else { &command },
        "exporter": concat!("mallow@", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": 0,
        "shared": { "frames": frames.table },
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")?;
    Ok(Vec::new())
}
