//! What flags are when nobody types them: `[defaults]` of a project's `mallow.toml`, and the keys of a user's own file.

use super::ManifestError;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Values for flags that were not typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FlagValues {
    /// `--color`.
    pub color: Option<Colour>,
    /// The command that shows pages, as a shell would be given it; empty for none. It is run, so only a user's own file may name one.
    pub pager: Option<String>,
    /// `--width`.
    pub width: Option<Width>,
    /// `--top`.
    pub top: Option<usize>,
    /// `--debug-path`, before those that are typed.
    pub debug_path: Vec<PathBuf>,
    /// `--sysroot`.
    pub sysroot: Option<PathBuf>,
}

/// The words of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Anywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Columns: 60 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
pub struct Width(pub u16);

impl TryFrom<u16> for Width {
    type Error = String;

    fn try_from(columns: u16) -> Result<Width, String> {
        let narrow = || format!("a line of {columns} columns is too narrow, 60 are the least");
        Some(Width(columns)).filter(|_| columns >= 60).ok_or_else(narrow)
    }
}

impl FlagValues {
    /// Those of a user's file, whose keys they are.
    ///
    /// # Errors
    /// A key or a value that is none, with its place.
    pub fn of_user(text: &str, path: &Path) -> Result<FlagValues, ManifestError> {
        toml::from_str(text).map_err(|error| ManifestError::from_toml(path, text, &error))
    }

    /// Those of a project's `mallow.toml`: its table `[defaults]`. The rest of that file is for `mallow check`. Its paths are relative to its folder.
    ///
    /// # Errors
    /// As [`FlagValues::of_user`], and where it names a pager.
    pub fn of_project(text: &str, path: &Path, folder: &Path) -> Result<FlagValues, ManifestError> {
        #[derive(Deserialize)]
        struct Project {
            #[serde(default)]
            defaults: FlagValues,
        }
        let read: Result<Project, _> = toml::from_str(text);
        let mut flags = read.map_err(|error| ManifestError::from_toml(path, text, &error))?.defaults;
        if flags.pager.is_some() {
            let at = text.find("pager").unwrap_or(0);
            let reason = "a project names no pager, since that is a command that would be run; ~/.config/mallow/config.toml may";
            return Err(ManifestError::at(path, text, at..at, reason.to_owned()));
        }
        for place in flags.debug_path.iter_mut().chain(&mut flags.sysroot) {
            *place = folder.join(&place);
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_user(text: &str) -> Result<FlagValues, String> {
        FlagValues::of_user(text, Path::new("config.toml")).map_err(|error| error.to_string())
    }

    fn of_project(text: &str) -> Result<FlagValues, String> {
        let read = FlagValues::of_project(text, Path::new("mallow.toml"), Path::new("/project"));
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn every_key_has_its_value() {
        let text = "color = \"never\"\npager = \"less -S\"\nwidth = 100\ntop = 3\ndebug-path = [\"/d\"]\nsysroot = \"/s\"\n";
        let expected = FlagValues {
            color: Some(Colour::Never),
            pager: Some("less -S".into()),
            width: Some(Width(100)),
            top: Some(3),
            debug_path: vec!["/d".into()],
            sysroot: Some("/s".into()),
        };
        assert_eq!(of_user(text), Ok(expected));
        assert_eq!(of_user(""), Ok(FlagValues::default()));
    }

    #[test]
    fn a_project_has_a_table_of_its_own_and_paths_from_its_folder() {
        let text = "[gate]\nruns = 3\n[defaults]\ntop = 3\ndebug-path = [\"debug\", \"/d\"]\n";
        let flags = of_project(text).unwrap();
        assert_eq!((flags.top, flags.debug_path), (Some(3), vec!["/project/debug".into(), "/d".into()]));
        assert_eq!(of_project("[gate]\nruns = 3\n"), Ok(FlagValues::default()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, told) in [
            ("tpo = 3", "config.toml, line 1, column 1: there is no key `tpo` here; did you mean `top`?"),
            (
                "debug_path = []",
                "config.toml, line 1, column 1: there is no key `debug_path` here; did you mean `debug-path`?",
            ),
            (
                "\nwidth = 20",
                "config.toml, line 2, column 9: a line of 20 columns is too narrow, 60 are the least",
            ),
        ] {
            assert_eq!(of_user(text), Err(told.to_owned()));
        }
        assert!(of_user("color = \"pink\"").is_err() && of_user("top = -1").is_err());
        let refused = of_project("[defaults]\npager = \"sh evil\"\n").unwrap_err();
        assert!(refused.starts_with("mallow.toml, line 2, column 1: a project names no pager"), "{refused}");
    }
}
