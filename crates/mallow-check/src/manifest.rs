//! `mallow.toml`: which tests a project has, how they are built and run, and what they may cost.
//!
//! A manifest is read whole or not at all: whatever is misspelled, out of range or contradicts itself is one sentence
//! with its line and column. Paths are relative to the manifest's folder and come out absolute. The file system is not
//! asked for anything here.

mod error;
mod flags;
mod limits;
mod raw;
mod resolve;
mod values;

#[cfg(test)]
mod guide_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod tests;

use mallow_base::words;
use mallow_collect::PYTHON_OBJECTS;
use mallow_gate::limit::{Limits, Tolerance};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::ManifestError;
pub use flags::{Colour, FlagValues, Width};
pub(crate) use values::wrong_name;

/// The default name of a manifest; `NAME.mallow.toml` is one, too.
pub const MANIFEST_NAME: &str = "mallow.toml";

/// Variables that every test sees unless its manifest sets them: those that change counts between machines, and those
/// that make each of Python's objects an allocation.
pub const PINNED: [(&str, &str); 5] = [
    ("LC_ALL", "C"),
    ("PERL_HASH_SEED", "0"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONMALLOC", "malloc"),
    ("TZ", "UTC"),
];

/// A manifest, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its path.
    pub path: PathBuf,
    /// The folder that its paths are relative to.
    pub folder: PathBuf,
    /// Settings of all tests.
    pub gate: Gate,
    /// The tests it spells out. Those of its suite folders are not among them.
    pub tests: Vec<TestSpec>,
}

/// Settings of all tests of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The default settings of a test.
    pub defaults: Settings,
    /// The folder of baselines.
    pub baselines: PathBuf,
    /// Folders whose `test_*` files are tests.
    pub suites: Vec<PathBuf>,
    /// A file of limits as SwiftNIO's framework has them: a flat map of names and counts.
    pub thresholds: Option<PathBuf>,
    /// A shell command that is run once, before anything is built.
    pub build: Option<String>,
    /// Flags for every C file.
    pub c_flags: Vec<String>,
    /// Flags for every C++ file.
    pub cxx_flags: Vec<String>,
    /// Flags for every Rust file.
    pub rust_flags: Vec<String>,
    /// Source files that are built into every C and C++ test.
    pub sources: Vec<PathBuf>,
    /// How tests in Swift are built.
    pub swift: SwiftSettings,
}

/// How tests in Swift are built that have `func run(identifier:)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwiftSettings {
    /// The package whose modules they import; without one they are compiled by `swiftc` alone.
    pub package: Option<SwiftPackage>,
    /// Source files that are compiled with each of them.
    pub sources: Vec<PathBuf>,
}

/// A Swift package that tests depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwiftPackage {
    /// Its folder, with `Package.swift`.
    pub folder: PathBuf,
    /// The products that tests import.
    pub modules: Vec<String>,
    /// Further dependencies, as in a `Package.swift`: `.package(url: …)`.
    pub dependencies: Vec<String>,
}

/// How a test is run, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Runs that count, at least 1.
    pub runs: u32,
    /// Runs before them that do not.
    pub warmup: u32,
    /// After which the program is ended and the test an error.
    pub timeout: Duration,
    /// The maximal time to wait for frees after a region, in milliseconds; `None` for mallow's default.
    pub quiesce_ms: Option<u32>,
    /// How many CPUs the program sees; `None` for all of them.
    pub cpus: Option<u32>,
    /// Whether the objects of the program's language have to be counted; false if only calls of malloc are meant.
    pub objects: bool,
    /// Variables that are set for the program, [`PINNED`] among them.
    pub environment: BTreeMap<String, String>,
    /// Its limits. Metrics without one have [`Settings::tolerance`] around their baseline.
    pub limits: Limits,
    /// How far metrics without a limit may differ from their baseline; `None` for mallow's default.
    pub tolerance: Option<Tolerance>,
    /// Globs of functions that allocate on behalf of their caller, which is shown and blamed in their place.
    pub plumbing: Vec<String>,
}

impl Settings {
    /// Has the objects of Python's own allocator counted at the interpreter's interface for allocators, or has each made by `malloc`.
    pub fn count_python_objects(&mut self, is_wanted: bool) {
        // Python treats a variable without text as unset.
        let allocator = if is_wanted { "" } else { "malloc" };
        self.environment.insert("PYTHONMALLOC".to_owned(), allocator.to_owned());
        match is_wanted {
            true => _ = self.environment.insert(PYTHON_OBJECTS.to_owned(), "1".to_owned()),
            false => _ = self.environment.remove(PYTHON_OBJECTS),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            runs: 10,
            warmup: 1,
            timeout: Duration::from_secs(60),
            quiesce_ms: None,
            cpus: None,
            objects: true,
            environment: PINNED
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            limits: Limits::default(),
            tolerance: None,
            plumbing: Vec::new(),
        }
    }
}

impl Gate {
    /// Returns the settings without a manifest, with paths in `folder`.
    pub fn without_manifest(folder: &Path) -> Gate {
        Gate {
            defaults: Settings::default(),
            baselines: folder.join("mallow/baselines"),
            suites: Vec::new(),
            thresholds: None,
            build: None,
            c_flags: Vec::new(),
            cxx_flags: Vec::new(),
            rust_flags: Vec::new(),
            sources: Vec::new(),
            swift: SwiftSettings::default(),
        }
    }
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSpec {
    /// Its name: letters, digits, `_`, `-` and `.`, so that it can name files.
    pub name: String,
    /// The program. `None` only in a manifest, for a test whose file is in a suite folder.
    pub program: Option<Program>,
    /// Operations in one run, at least 1; none leaves it to the program.
    pub ops: Option<u64>,
    /// The mode.
    pub mode: Mode,
    /// Arguments for a program that was built from a source file.
    pub arguments: Vec<String>,
    /// Flags for its own compiler, after those of the gate.
    pub flags: Vec<String>,
    /// Further source files that are built into it.
    pub sources: Vec<PathBuf>,
    /// Libraries that it is linked with: names, as after `-l`, or paths of files.
    pub libs: Vec<String>,
    /// Its working folder.
    pub directory: PathBuf,
    /// How it is run, and its limits.
    pub settings: Settings,
}

impl TestSpec {
    /// Returns a test with default settings, run in `folder`.
    pub fn new(name: &str, program: Option<Program>, folder: &Path, settings: Settings) -> TestSpec {
        TestSpec {
            name: name.to_owned(),
            program,
            ops: None,
            mode: Mode::Region,
            arguments: Vec::new(),
            flags: Vec::new(),
            sources: Vec::new(),
            libs: Vec::new(),
            directory: folder.to_owned(),
            settings,
        }
    }
}

/// The program of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A command and its arguments; a first word with a slash is relative to the manifest's folder.
    Command(Vec<String>),
    /// A source file, which is built or interpreted.
    Source(PathBuf, Language),
}

/// The language of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// `.c`
    C,
    /// `.cc`, `.cpp`, `.cxx`
    Cxx,
    /// `.rs`
    Rust,
    /// `.swift`
    Swift,
    /// `.py`
    Python,
    /// `.rb`
    Ruby,
    /// `.js`, `.mjs`
    Node,
}

impl Language {
    /// Every ending that is known, with its language.
    pub const ENDINGS: [(&'static str, Language); 10] = [
        ("c", Language::C),
        ("cc", Language::Cxx),
        ("cpp", Language::Cxx),
        ("cxx", Language::Cxx),
        ("rs", Language::Rust),
        ("swift", Language::Swift),
        ("py", Language::Python),
        ("rb", Language::Ruby),
        ("js", Language::Node),
        ("mjs", Language::Node),
    ];

    /// The language of a file, by its ending.
    pub fn of(path: &Path) -> Option<Language> {
        let ending = path.extension()?.to_str()?;
        Language::ENDINGS.into_iter().find(|(known, _)| *known == ending).map(|(_, language)| language)
    }

    /// Returns its name for people.
    pub const fn word(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cxx => "C++",
            Language::Rust => "Rust",
            Language::Swift => "Swift",
            Language::Python => "Python",
            Language::Ruby => "Ruby",
            Language::Node => "Node",
        }
    }
}

/// What is counted of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Between a program's own calls of begin and end. The program repeats itself.
    Region,
    /// In one whole process; the process is repeated.
    Process,
    /// From the first marker, or else from `main`, to the end of the process; the process is repeated.
    Repeat,
    /// The cost of one more operation: a process with `k` operations is subtracted from one with `2k`.
    Slope,
}

words! { Mode { Region = "region", Process = "process", Repeat = "repeat", Slope = "slope" } }
