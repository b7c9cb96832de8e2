//! From the tables of a manifest to tests: defaults filled in, paths made absolute, contradictions refused.

use super::raw::{RawGate, RawLimits, RawManifest, RawSwift, RawTest, Variables};
use super::{
    Gate, Language, Manifest, ManifestError, Mode, Program, Settings, SwiftPackage, SwiftSettings, TestSpec,
};
use mallow_gate::limit::Tolerance;
use mallow_gate::measurement::Metric;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use toml::Spanned;

impl Manifest {
    /// Reads a manifest's text. `path` is what errors call it, `folder` what its paths are relative to.
    pub fn parse(text: &str, path: &Path, folder: &Path) -> Result<Manifest, ManifestError> {
        let raw: RawManifest =
            toml::from_str(text).map_err(|error| ManifestError::from_toml(path, text, &error))?;
        let reader = Reader { path, text, folder };
        let gate = Gate { swift: reader.swift(&raw.swift)?, ..reader.gate(&raw.gate) };
        let tests = reader.tests(&raw.test, &gate)?;
        Ok(Manifest { path: path.to_owned(), folder: folder.to_owned(), gate, tests })
    }
}

struct Reader<'text> {
    path: &'text Path,
    text: &'text str,
    folder: &'text Path,
}

/// Settings that both a gate and a test may have. Their types have fields of the same names and nothing else in
/// common.
macro_rules! given {
    ($raw:expr) => {
        TableSettings {
            runs: $raw.runs.map(super::values::Positive::small),
            warmup: $raw.warmup,
            timeout: $raw.timeout.map(|timeout| timeout.0),
            quiesce_ms: $raw.quiesce.map(|time| time.0),
            cpus: $raw.cpus.map(super::values::Positive::small),
            objects: $raw.objects,
            python_objects: $raw.python_objects,
            env: &$raw.env,
            limit: $raw.limit,
            tolerance: $raw.tolerance.map(|tolerance| tolerance.0),
            ignore_sites: &$raw.ignore_sites,
            plumbing: &$raw.plumbing,
        }
    };
}

impl Reader<'_> {
    fn wrong<T>(&self, span: Range<usize>, reason: String) -> Result<T, ManifestError> {
        Err(ManifestError::at(self.path, self.text, span, reason))
    }

    fn paths(&self, paths: &[String]) -> Vec<PathBuf> {
        paths.iter().map(|path| inside(self.folder, path)).collect()
    }

    fn gate(&self, raw: &RawGate) -> Gate {
        let without = Gate::without_manifest(self.folder);
        let mut defaults = without.defaults;
        given!(raw).put_over(&mut defaults);
        Gate {
            defaults,
            baselines: raw.baselines.as_deref().map_or(without.baselines, |path| inside(self.folder, path)),
            suites: self.paths(&raw.suites),
            thresholds: raw.thresholds.as_deref().map(|path| inside(self.folder, path)),
            build: raw.build.clone(),
            c_flags: raw.c_flags.0.clone(),
            cxx_flags: raw.cxx_flags.0.clone(),
            rust_flags: raw.rust_flags.0.clone(),
            sources: self.paths(&raw.sources),
            swift: without.swift,
        }
    }

    fn swift(&self, raw: &RawSwift) -> Result<SwiftSettings, ManifestError> {
        let list = |list: &Option<Spanned<Vec<String>>>| {
            list.as_ref().map_or_else(Vec::new, |list| list.as_ref().clone())
        };
        let package = raw.package.as_deref().map(|path| SwiftPackage {
            folder: inside(self.folder, path),
            modules: list(&raw.modules),
            dependencies: list(&raw.dependencies),
        });
        if let (None, Some(list)) = (&package, raw.modules.as_ref().or(raw.dependencies.as_ref())) {
            let reason = "`modules` and `dependencies` need `package`: the folder of a Package.swift";
            return self.wrong(list.span(), reason.to_owned());
        }
        Ok(SwiftSettings { package, sources: self.paths(&raw.sources) })
    }

    fn tests(&self, raw: &[Spanned<RawTest>], gate: &Gate) -> Result<Vec<TestSpec>, ManifestError> {
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        let mut tests = Vec::with_capacity(raw.len());
        for test in raw {
            let name = &test.as_ref().name;
            let line = self.text[..name.span().start].matches('\n').count() + 1;
            if let Some(before) = lines.insert(name.as_ref().0.clone(), line) {
                let reason = format!("the test {:?} is in line {before} already", name.as_ref().0);
                return self.wrong(name.span(), reason);
            }
            tests.push(self.test(test.as_ref(), gate)?);
        }
        Ok(tests)
    }

    fn test(&self, raw: &RawTest, gate: &Gate) -> Result<TestSpec, ManifestError> {
        let mut settings = gate.defaults.clone();
        given!(raw).put_over(&mut settings);
        let program = self.program(raw)?;
        let mode = raw.mode.as_ref().map_or(Mode::Region, |mode| mode.as_ref().0);
        if let (Mode::Slope, None, Some(word)) = (mode, raw.ops, &raw.mode) {
            let reason = "mode \"slope\" needs `ops`: how many operations the program is asked for first";
            return self.wrong(word.span(), reason.to_owned());
        }
        let name = &raw.name.as_ref().0;
        Ok(TestSpec {
            ops: raw.ops.map(|ops| ops.0),
            mode,
            arguments: raw.args.as_ref().map_or_else(Vec::new, |args| args.as_ref().clone()),
            flags: raw.flags.as_ref().map_or_else(Vec::new, |flags| flags.as_ref().0.clone()),
            sources: raw.sources.as_ref().map_or_else(Vec::new, |sources| self.paths(sources.as_ref())),
            libs: raw.libs.as_ref().map_or_else(Vec::new, |libs| libs.as_ref().clone()),
            directory: raw.cwd.as_deref().map_or(self.folder.to_owned(), |path| inside(self.folder, path)),
            ..TestSpec::new(name, program, self.folder, settings)
        })
    }

    fn program(&self, raw: &RawTest) -> Result<Option<Program>, ManifestError> {
        match (&raw.cmd, &raw.source) {
            (Some(_), Some(source)) => {
                let reason =
                    "a test has `cmd` or `source`, not both: either there is a program or it is built";
                self.wrong(source.span(), reason.to_owned())
            }
            (Some(cmd), None) => {
                self.only_of_sources(raw)?;
                Ok(Some(Program::Command(cmd.as_ref().0.clone())))
            }
            (None, Some(source)) => {
                let path = inside(self.folder, source.as_ref());
                match Language::of(&path) {
                    Some(language) => Ok(Some(Program::Source(path, language))),
                    None => {
                        let endings = Language::ENDINGS.map(|(ending, _)| ending).join(", .");
                        let file = source.as_ref();
                        let reason =
                            format!("nothing is known about how to build {file}; sources end in .{endings}");
                        self.wrong(source.span(), reason)
                    }
                }
            }
            (None, None) => Ok(None),
        }
    }

    /// Refuses keys that would do nothing: a command is neither built nor does it need arguments of its own.
    fn only_of_sources(&self, raw: &RawTest) -> Result<(), ManifestError> {
        let keys = [
            ("args", raw.args.as_ref().map(Spanned::span)),
            ("flags", raw.flags.as_ref().map(Spanned::span)),
            ("sources", raw.sources.as_ref().map(Spanned::span)),
            ("libs", raw.libs.as_ref().map(Spanned::span)),
        ];
        match keys.into_iter().find_map(|(key, span)| Some((key, span?))) {
            Some(("args", span)) => {
                self.wrong(span, "a command's arguments belong in `cmd`; `args` is for `source`".to_owned())
            }
            Some((key, span)) => {
                self.wrong(span, format!("`{key}` is for tests with `source`; a command is not built"))
            }
            None => Ok(()),
        }
    }
}

/// The contents of a table of [`Settings`].
struct TableSettings<'raw> {
    runs: Option<u32>,
    warmup: Option<u32>,
    timeout: Option<std::time::Duration>,
    quiesce_ms: Option<u32>,
    cpus: Option<u32>,
    objects: Option<bool>,
    python_objects: Option<bool>,
    env: &'raw Variables,
    limit: RawLimits,
    tolerance: Option<Tolerance>,
    ignore_sites: &'raw [String],
    plumbing: &'raw [String],
}

impl TableSettings<'_> {
    /// Single values replace, lists and tables add.
    fn put_over(self, settings: &mut Settings) {
        settings.runs = self.runs.unwrap_or(settings.runs);
        settings.warmup = self.warmup.unwrap_or(settings.warmup);
        settings.timeout = self.timeout.unwrap_or(settings.timeout);
        settings.quiesce_ms = self.quiesce_ms.or(settings.quiesce_ms);
        settings.cpus = self.cpus.or(settings.cpus);
        settings.objects = self.objects.unwrap_or(settings.objects);
        settings.tolerance = self.tolerance.or(settings.tolerance);
        // Variables that are spelled out have the last word.
        if let Some(python_objects) = self.python_objects {
            settings.count_python_objects(python_objects);
        }
        for (name, value) in self.env {
            settings.environment.insert(name.0.clone(), value.0.clone());
        }
        for metric in Metric::ALL {
            if let Some(limit) = self.limit.of(metric) {
                settings.limits.by_metric.retain(|(of, _)| *of != metric);
                settings.limits.by_metric.push((metric, limit.0));
            }
        }
        settings.limits.ignore_sites.extend_from_slice(self.ignore_sites);
        settings.plumbing.extend_from_slice(self.plumbing);
    }
}

/// `path` from `folder`, without single dots.
fn inside(folder: &Path, path: impl AsRef<Path>) -> PathBuf {
    let mut whole = folder.to_owned();
    for part in path.as_ref().components() {
        match part {
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}
