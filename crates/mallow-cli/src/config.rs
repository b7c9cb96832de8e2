//! Defaults of flags, and their sources: the environment, the project's `mallow.toml`, the user's own file, in this
//! order.
//!
//! Only flags that affect how results are shown and where files are found have such defaults; what is measured and
//! judged must be typed.

use crate::args::{LowArgs, LowCommand, LowConfig, LowHeapCommand, TextOrJson};
use crate::destination::Destination;
use crate::{exit_code, pager};
use clap::{ColorChoice, ValueEnum};
use mallow_check::manifest::{Colour, FlagValues, MANIFEST_NAME, Width};
use mallow_json::config::{ConfigJson, FlagJson};
use mallow_query::{Failure, reason};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The values and their sources.
#[derive(Debug, Default)]
pub(crate) struct Config {
    layers: Vec<Layer>,
}

/// One source of values.
#[derive(Debug)]
struct Layer {
    source: Source,
    values: FlagValues,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Environment,
    File(PathBuf),
}

/// Returns the environment variable of a flag.
fn variable(flag: &str) -> String {
    format!("MALLOW_{}", flag.to_uppercase().replace('-', "_"))
}

impl Config {
    /// Reads all sources.
    pub(crate) fn read() -> Result<Config, Failure> {
        let get = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // An empty one is a value: no pager.
        let pager = std::env::var(variable("pager")).ok();
        let values = FlagValues { pager, ..of_environment(&get)? };
        let mut layers = vec![Layer { source: Source::Environment, values }];
        if let Some(text) = text(Path::new(MANIFEST_NAME))? {
            let here = std::env::current_dir()?;
            let path = Path::new(MANIFEST_NAME);
            let values = FlagValues::of_project(&text, path, &here).map_err(unusable)?;
            layers.push(Layer { source: Source::File(path.to_owned()), values });
        }
        if let Some(path) = of_user(&get)
            && let Some(text) = text(&path)?
        {
            let values = FlagValues::of_user(&text, &path).map_err(unusable)?;
            layers.push(Layer { source: Source::File(path), values });
        }
        Ok(Config { layers })
    }

    /// Returns the value with the highest precedence, and its source.
    fn first<'a, T>(
        &'a self,
        flag: &'static str,
        value: impl Fn(&'a FlagValues) -> Option<T>,
    ) -> Option<(T, String)> {
        self.layers.iter().find_map(|layer| {
            let from = match &layer.source {
                Source::Environment => variable(flag),
                Source::File(path) => path.display().to_string(),
            };
            value(&layer.values).map(|value| (value, from))
        })
    }

    /// Sets flags that were not typed.
    pub(crate) fn fill(&self, args: &mut LowArgs) {
        let color = self.first("color", |values| values.color).map(|(colour, _)| choice(colour));
        args.color = args.color.or(color);
        args.width = args.width.or(self.first("width", |values| values.width).map(|(Width(width), _)| width));
        args.sysroot =
            args.sysroot.take().or_else(|| Some(self.first("sysroot", |values| values.sysroot.clone())?.0));
        let paths = self.first("debug-path", debug_path).map(|(paths, _)| paths.to_vec());
        args.debug_path.splice(0..0, paths.unwrap_or_default());
        if let Some((command, _)) = self.first("pager", |values| values.pager.clone()) {
            pager::use_command(command);
        }
        if let (Some(limit), Some((top, _))) =
            (limit(&mut args.command), self.first("top", |values| values.top))
        {
            limit.get_or_insert(top);
        }
    }

    fn rows(&self) -> Vec<FlagJson> {
        let row = |flag, found: Option<(String, String)>| {
            let (value, from) = found.unzip();
            FlagJson { flag, value, from }
        };
        let shown = |path: &PathBuf| path.display().to_string();
        let color = self
            .first("color", |values| Some(choice(values.color?).to_possible_value()?.get_name().to_owned()));
        let paths = |values| Some(debug_path(values)?.iter().map(shown).collect::<Vec<_>>().join(":"));
        vec![
            row("color", color),
            row("debug-path", self.first("debug-path", paths)),
            row("pager", self.first("pager", |values| values.pager.clone())),
            row("sysroot", self.first("sysroot", |values| values.sysroot.as_ref().map(shown))),
            row("top", self.first("top", |values| Some(values.top?.to_string()))),
            row("width", self.first("width", |values| Some(values.width?.0.to_string()))),
        ]
    }
}

/// Prints the defaults of flags.
pub(crate) fn run(low: &LowConfig) -> Result<u8, Failure> {
    let rows = Config::read()?.rows();
    let output = Destination::from(low.form.output.clone());
    match low.form.form() {
        TextOrJson::Json => output.json(&ConfigJson { schema: "mallow.config/1", flags: &rows })?,
        TextOrJson::Text => output.text(&table(&rows))?,
    }
    Ok(exit_code::FINE)
}

fn table(rows: &[FlagJson]) -> String {
    let line = |row: &FlagJson| match (&row.value, &row.from) {
        (Some(value), Some(from)) => format!("{:<12}{value:<24}  {from}\n", row.flag),
        _ => format!("{:<12}{:<24}  {} and no file sets it\n", row.flag, "-", variable(row.flag)),
    };
    rows.iter().map(|row| mallow_text::printable(line(row).trim_end()) + "\n").collect()
}

/// Returns where a command stores the number of rows.
fn limit(command: &mut LowCommand) -> Option<&mut Option<usize>> {
    match command {
        LowCommand::Report(low) => Some(&mut low.limit),
        LowCommand::Diff(low) => Some(&mut low.limit),
        LowCommand::Check(low) => Some(&mut low.shown.limit),
        #[cfg(feature = "soak")]
        LowCommand::Soak(low) => Some(&mut low.shown.limit),
        LowCommand::Heap(low) => match &mut low.command {
            None => Some(&mut low.report.rows.limit),
            Some(LowHeapCommand::Diff(low)) => Some(&mut low.rows.limit),
            Some(LowHeapCommand::Growth(low)) => Some(&mut low.rows.limit),
            Some(LowHeapCommand::Explain(low)) => Some(&mut low.rows.limit),
            Some(_) => None,
        },
        _ => None,
    }
}

fn debug_path(values: &FlagValues) -> Option<&[PathBuf]> {
    Some(&values.debug_path[..]).filter(|paths| !paths.is_empty())
}

fn choice(colour: Colour) -> ColorChoice {
    match colour {
        Colour::Auto => ColorChoice::Auto,
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
    }
}

/// Reads values from variables. The pager, which may also be in PAGER, is read where pages are shown.
fn of_environment(get: &dyn Fn(&str) -> Option<OsString>) -> Result<FlagValues, Failure> {
    let word = |flag: &str| get(&variable(flag)).map(|value| value.to_string_lossy().into_owned());
    let wrong = |flag: &str, wanted: &str| {
        Failure::new(format!(
            "{} is {}, and {wanted} was expected.",
            variable(flag),
            word(flag).unwrap_or_default()
        ))
    };
    let color = word("color").map(|typed| {
        ColorChoice::from_str(&typed, true).map_err(|_| wrong("color", "auto, always or never"))
    });
    let color = color.transpose()?.map(|choice| match choice {
        ColorChoice::Auto => Colour::Auto,
        ColorChoice::Always => Colour::Always,
        ColorChoice::Never => Colour::Never,
    });
    let width = word("width").map(|typed| {
        let columns = typed.parse().ok().and_then(|columns: u16| Width::try_from(columns).ok());
        columns.ok_or_else(|| wrong("width", "a number of columns, 60 or more,"))
    });
    let top = word("top").map(|typed| typed.parse().map_err(|_| wrong("top", "a number of rows")));
    let paths = get(&variable("debug-path"));
    Ok(FlagValues {
        color,
        pager: None,
        width: width.transpose()?,
        top: top.transpose()?,
        debug_path: paths.iter().flat_map(std::env::split_paths).collect(),
        sysroot: get(&variable("sysroot")).map(PathBuf::from),
    })
}

/// Returns the user's `config.toml`, as the XDG Base Directory Specification defines it.
fn of_user(get: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    folder.map(|folder| folder.join("mallow/config.toml"))
}

/// Reads a file; `None` if it does not exist or belongs to another user, whose settings must have no effect.
fn text(path: &Path) -> Result<Option<String>, Failure> {
    let own = rustix::process::geteuid().as_raw();
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && [own, 0].contains(&found.uid()) => {}
        _ => return Ok(None),
    }
    let read = std::fs::read_to_string(path);
    read.map(Some)
        .map_err(|error| Failure::new(format!("cannot read {}: {}.", path.display(), reason(&error))))
}

fn unusable(error: mallow_check::manifest::ManifestError) -> Failure {
    let told = format!("cannot use {error}");
    Failure::new(if told.ends_with('?') { told } else { told + "." })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn layer(source: Source, text: &str) -> Layer {
        Layer { source, values: FlagValues::of_user(text, Path::new("x")).unwrap() }
    }

    fn example() -> Config {
        let file = |name: &str| Source::File(name.into());
        Config {
            layers: vec![
                layer(Source::Environment, "top = 7"),
                layer(file("mallow.toml"), "top = 3\nwidth = 100\ndebug-path = [\"/p\"]"),
                layer(file("/h/config.toml"), "color = \"never\"\nwidth = 90\ndebug-path = [\"/u\"]"),
            ],
        }
    }

    fn filled(line: &str) -> LowArgs {
        let mut args = LowArgs::try_parse_from(line.split(' ')).unwrap();
        example().fill(&mut args);
        args
    }

    #[test]
    fn what_was_typed_comes_before_what_is_set() {
        let args = filled("mallow report f");
        assert_eq!((args.width, args.color), (Some(100), Some(ColorChoice::Never)));
        assert_eq!(args.debug_path, [PathBuf::from("/p")]);
        let LowCommand::Report(report) = args.command else { panic!("not a report") };
        assert_eq!(report.limit, Some(7));
        let args = filled("mallow heap f --top 2 --width 70 --color always --debug-path /t");
        assert_eq!((args.width, args.color), (Some(70), Some(ColorChoice::Always)));
        assert_eq!(args.debug_path, ["/p", "/t"].map(PathBuf::from));
        let LowCommand::Heap(heap) = args.command else { panic!("not a heap") };
        assert_eq!(heap.report.rows.limit, Some(2));
    }

    #[test]
    fn it_is_shown_where_each_value_comes_from() {
        let rows = example().rows();
        let told: Vec<(&str, Option<&str>, Option<&str>)> =
            rows.iter().map(|row| (row.flag, row.value.as_deref(), row.from.as_deref())).collect();
        let expected = [
            ("color", Some("never"), Some("/h/config.toml")),
            ("debug-path", Some("/p"), Some("mallow.toml")),
            ("pager", None, None),
            ("sysroot", None, None),
            ("top", Some("7"), Some("MALLOW_TOP")),
            ("width", Some("100"), Some("mallow.toml")),
        ];
        assert_eq!(told, expected);
        assert!(
            table(&rows).starts_with("color       never                     /h/config.toml\n"),
            "{}",
            table(&rows)
        );
    }

    #[test]
    fn variables_have_the_values_of_flags() {
        let get = |name: &str| {
            let set = [("MALLOW_WIDTH", "70"), ("MALLOW_DEBUG_PATH", "/a:/b"), ("MALLOW_COLOR", "Always")];
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let values = of_environment(&get).unwrap();
        assert_eq!((values.width, values.color), (Some(Width(70)), Some(Colour::Always)));
        assert_eq!(values.debug_path, ["/a", "/b"].map(PathBuf::from));
        let wrong = |name: &str| (name == "MALLOW_TOP").then(|| OsString::from("many"));
        let refused = of_environment(&wrong).unwrap_err();
        assert_eq!(refused.sentence(), "MALLOW_TOP is many, and a number of rows was expected.");
    }
}
