//! The tables of a manifest, key by key. Every key of `mallow.toml` is a field here and a row in the guide.

use super::flags::FlagValues;
use super::limits::{RawLimit, RawSizeLimit, RawTolerance, RawWall};
use super::values::{Flags, Name, Positive, RawMode, RawQuiesce, RawTimeout, Words};
use mallow_gate::measurement::Metric;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawManifest {
    #[serde(default)]
    pub(super) gate: RawGate,
    #[serde(default)]
    pub(super) swift: RawSwift,
    #[serde(default)]
    pub(super) test: Vec<Spanned<RawTest>>,
    /// What flags are when nobody types them, whatever the command. It is read here so that a slip in it is told.
    #[serde(default, rename = "defaults")]
    pub(super) _defaults: FlagValues,
}

/// `[gate]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGate {
    pub(super) runs: Option<Positive>,
    pub(super) warmup: Option<u32>,
    pub(super) timeout: Option<RawTimeout>,
    #[serde(alias = "quiesce_ms")]
    pub(super) quiesce: Option<RawQuiesce>,
    pub(super) cpus: Option<Positive>,
    pub(super) objects: Option<bool>,
    pub(super) python_objects: Option<bool>,
    pub(super) env: Variables,
    pub(super) limit: RawLimits,
    pub(super) tolerance: Option<RawTolerance>,
    pub(super) ignore_sites: Vec<String>,
    pub(super) plumbing: Vec<String>,
    pub(super) baselines: Option<String>,
    pub(super) suites: Vec<String>,
    pub(super) thresholds: Option<String>,
    pub(super) build: Option<String>,
    pub(super) c_flags: Flags,
    pub(super) cxx_flags: Flags,
    pub(super) rust_flags: Flags,
    pub(super) sources: Vec<String>,
}

/// `[swift]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSwift {
    pub(super) package: Option<String>,
    pub(super) modules: Option<Spanned<Vec<String>>>,
    pub(super) dependencies: Option<Spanned<Vec<String>>>,
    pub(super) sources: Vec<String>,
}

/// `[[test]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTest {
    pub(super) name: Spanned<Name>,
    pub(super) cmd: Option<Spanned<Words>>,
    pub(super) source: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) args: Option<Spanned<Vec<String>>>,
    pub(super) ops: Option<Positive>,
    pub(super) mode: Option<Spanned<RawMode>>,
    pub(super) runs: Option<Positive>,
    pub(super) warmup: Option<u32>,
    pub(super) timeout: Option<RawTimeout>,
    #[serde(alias = "quiesce_ms")]
    pub(super) quiesce: Option<RawQuiesce>,
    pub(super) cpus: Option<Positive>,
    pub(super) objects: Option<bool>,
    pub(super) python_objects: Option<bool>,
    #[serde(default)]
    pub(super) env: Variables,
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) flags: Option<Spanned<Flags>>,
    #[serde(default)]
    pub(super) sources: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    pub(super) libs: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    pub(super) limit: RawLimits,
    pub(super) tolerance: Option<RawTolerance>,
    #[serde(default)]
    pub(super) ignore_sites: Vec<String>,
    #[serde(default)]
    pub(super) plumbing: Vec<String>,
}

/// `env`
pub(super) type Variables = BTreeMap<super::values::VariableName, super::values::VariableValue>;

/// `limit`: a key for each word of [`Metric`].
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    allocations: Option<RawLimit>,
    bytes: Option<RawSizeLimit>,
    peak: Option<RawSizeLimit>,
    remaining: Option<RawLimit>,
    remaining_bytes: Option<RawSizeLimit>,
    descriptors: Option<RawLimit>,
    objects: Option<RawLimit>,
    object_bytes: Option<RawSizeLimit>,
    remaining_objects: Option<RawLimit>,
    remaining_object_bytes: Option<RawSizeLimit>,
    temporary: Option<RawLimit>,
    peak_rss: Option<RawSizeLimit>,
    wall: Option<RawWall>,
}

impl RawLimits {
    pub(super) fn of(&self, metric: Metric) -> Option<RawLimit> {
        match metric {
            Metric::Allocations => self.allocations,
            Metric::Bytes => self.bytes.map(RawSizeLimit::limit),
            Metric::Peak => self.peak.map(RawSizeLimit::limit),
            Metric::Remaining => self.remaining,
            Metric::RemainingBytes => self.remaining_bytes.map(RawSizeLimit::limit),
            Metric::Descriptors => self.descriptors,
            Metric::Objects => self.objects,
            Metric::ObjectBytes => self.object_bytes.map(RawSizeLimit::limit),
            Metric::RemainingObjects => self.remaining_objects,
            Metric::RemainingObjectBytes => self.remaining_object_bytes.map(RawSizeLimit::limit),
            Metric::Temporary => self.temporary,
            Metric::PeakRss => self.peak_rss.map(RawSizeLimit::limit),
            Metric::Wall => self.wall.map(RawWall::limit),
        }
    }
}
