//! Baselines with names: folders `@NAME` beside the classes of those without one, with the same files in them.

use super::{Baselines, sorted};
use mallow_gate::baseline::BaselineError;
use std::path::Path;

/// The first character of the folder of a named baseline: no class begins with it.
const MARK: char = '@';

/// The longest name. Its folder's name may have three letters for each of its own.
const NAME_MAX: usize = 80;

/// A baseline with a name, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedBaseline {
    /// Its name.
    pub name: String,
    /// The number of tests, each counted once.
    pub tests: usize,
    /// The classes of environments that it has, in order.
    pub classes: Vec<String>,
}

impl Baselines {
    /// The baseline of a name among these, whether it is there or not.
    ///
    /// # Errors
    /// When no baseline can have this name.
    pub fn named(&self, name: &str) -> Result<Baselines, BaselineError> {
        match wrong_name(name) {
            Some(reason) => Err(BaselineError(reason)),
            None => Ok(Baselines { folder: self.folder.join(folder_name(name)) }),
        }
    }

    /// Returns whether anything is there.
    pub fn is_there(&self) -> bool {
        self.folder.is_dir()
    }

    /// All that have a name, in the order of their names.
    ///
    /// # Errors
    /// When a folder or a file in it cannot be read.
    pub fn list_named(&self) -> Result<Vec<NamedBaseline>, BaselineError> {
        let mut found = Vec::new();
        for folder in sorted(&self.folder)? {
            let Some(name) = name_of(&folder).filter(|_| folder.is_dir()) else { continue };
            let named = Baselines { folder };
            let classes = sorted(&named.folder)?.into_iter().filter(|class| class.is_dir());
            let classes = classes.filter_map(|class| Some(class.file_name()?.to_string_lossy().into_owned()));
            found.push(NamedBaseline { name, tests: named.all_names()?.len(), classes: classes.collect() });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

/// Why a text is no name of a baseline. Those of branches are.
fn wrong_name(name: &str) -> Option<String> {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '+');
    if name.is_empty() {
        Some("The name of a baseline cannot be empty.".to_owned())
    } else if let Some(letter) = name.chars().find(|letter| !is_plain(*letter)) {
        Some(format!(
            "The name of the baseline {name:?} has {letter:?} in it; names are made of letters, digits, `_`, `-`, `.`, `/` and `+`."
        ))
    } else if name.starts_with(['-', '.', '/']) {
        Some(format!("The name of the baseline {name:?} must begin with a letter, a digit, `_` or `+`."))
    } else if name.len() > NAME_MAX {
        Some(format!("The name of the baseline has {} letters; it can have {NAME_MAX}.", name.len()))
    } else {
        None
    }
}

/// A slash is no part of a folder's name, and is written as bytes of tests' names are.
fn folder_name(name: &str) -> String {
    format!("{MARK}{}", name.replace('/', "%2f"))
}

fn name_of(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_str()?.strip_prefix(MARK)?.replace("%2f", "/");
    wrong_name(&name).is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_gate::baseline::{Baseline, Found};
    use mallow_gate::sample::{baseline, counts, environment};

    fn sample(allocations: u64) -> Baseline {
        baseline(&counts(Some(1000), &[allocations; 10]))
    }

    #[test]
    fn each_name_has_its_own_and_none_has_another_ones() {
        let folder = tempfile::tempdir().unwrap();
        let plain = Baselines::open(folder.path()).unwrap();
        let named = |name: &str| plain.named(name).unwrap();
        assert!(!named("main").is_there());
        plain.write(&sample(1000)).unwrap();
        let path = named("main").write(&sample(2000)).unwrap();
        assert!(path.starts_with(folder.path().join("@main")), "{path:?}");
        let path = named("feature/x").write(&sample(3000)).unwrap();
        assert!(path.starts_with(folder.path().join("@feature%2fx")), "{path:?}");
        let mut other = sample(4000);
        other.environment.processors = 8;
        named("main").write(&other).unwrap();
        let least = |baselines: &Baselines| match baselines.find("encode", &environment()).unwrap() {
            Found::Exact(baseline) => {
                baseline.spread(mallow_gate::measurement::Metric::Allocations).unwrap().min
            }
            other => panic!("{other:?}"),
        };
        assert_eq!([least(&plain), least(&named("main")), least(&named("feature/x"))], [1000, 2000, 3000]);
        assert_eq!(named("none").find("encode", &environment()), Ok(Found::None));
        assert_eq!(plain.all_names(), Ok(vec!["encode".to_owned()]));
        let classes = ["x86_64-glibc2.36-native-libc-2cpu-c1", "x86_64-glibc2.36-native-libc-8cpu-c1"];
        let one = |name: &str, classes: &[&str]| NamedBaseline {
            name: name.to_owned(),
            tests: 1,
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        };
        assert_eq!(plain.list_named(), Ok(vec![one("feature/x", &classes[..1]), one("main", &classes)]));
    }

    #[test]
    fn what_no_folder_can_be_called_is_refused() {
        let plain = Baselines::open("/nonexistent").unwrap();
        for name in ["", "a b", "../up", "-x", ".hidden", "/main", "ä", "a%2f", &"x".repeat(81)] {
            assert!(plain.named(name).is_err(), "{name}");
        }
        for name in ["main", "release/1.2", "x86_64-linux", "gcc+13", "_", "a..b"] {
            assert!(plain.named(name).is_ok(), "{name}");
        }
        assert_eq!(plain.list_named(), Ok(Vec::new()));
    }
}
