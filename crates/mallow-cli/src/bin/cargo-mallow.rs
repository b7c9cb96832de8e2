//! `cargo mallow run|test|bench`: cargo builds with line tables and runs its programs as ever, each of them under mallow.
//!
//! It becomes cargo, with mallow as the runner of programs (`target.TRIPLE.runner`). So cargo decides which programs there are,
//! in which folder and with which variables they run, and neither cargo nor the compiler is recorded. It reads no project and
//! must change none: what it sets is for this one cargo.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo mallow [COMMAND [OPTIONS]] run|test|bench [CARGO'S OPTIONS] [-- ARGUMENTS]

Builds like cargo, with line tables, and runs each program under mallow.
COMMAND is mallow's, with its options; `record` if it is left out.

Examples:
  cargo mallow run --release -- input.csv
  cargo mallow test -p parser parse_headers
  cargo mallow stat --runs 5 run --release
  cargo mallow cpu -o app.pb.gz bench encode

Profiles that optimize get debug = \"line-tables-only\" and strip = \"none\", unless CARGO_PROFILE_…_DEBUG is set.
";

/// What to do with cargo's programs.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Mallow's command with its options.
    mallow: Vec<String>,
    /// Cargo's, which begins with its subcommand.
    cargo: Vec<String>,
}

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).map(OsString::into_string);
    let outcome = words.collect::<Result<Vec<String>, OsString>>();
    let outcome = outcome.map_err(|word| format!("{} is not UTF-8.", word.display())).and_then(|words| {
        match request(&words) {
            Some(request) => execute(&request),
            None => Ok(()),
        }
    });
    match outcome {
        Ok(()) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("mallow: {sentence}");
            ExitCode::from(125)
        }
    }
}

/// What was typed; none where help is wanted.
fn request(words: &[String]) -> Option<Request> {
    // Cargo passes the subcommand's own name on.
    let words = words.strip_prefix(&["mallow".to_owned()]).unwrap_or(words);
    let at = words.iter().position(|word| matches!(word.as_str(), "run" | "test" | "bench" | "r" | "t"))?;
    let (mallow, cargo) = words.split_at(at);
    if mallow.iter().any(|word| word == "--help" || word == "-h") {
        return None;
    }
    let mallow = if mallow.is_empty() { vec!["record".to_owned()] } else { mallow.to_vec() };
    Some(Request { mallow, cargo: cargo.to_vec() })
}

/// Becomes cargo. Returns only why that was not possible.
fn execute(request: &Request) -> Result<(), String> {
    let own = std::env::current_exe().unwrap_or_default();
    let mallow =
        program(&own).ok_or("mallow is not installed: it is neither beside cargo-mallow nor on PATH.")?;
    let triple = match option(&request.cargo, "--target") {
        // A file that describes a target is called after it.
        Some(target) => Path::new(target).file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        None => host()?,
    };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let mallow = mallow.to_str().ok_or_else(|| format!("{} is not UTF-8.", mallow.display()))?;
    cargo.args(["--config", &runner(&triple, mallow, &request.mallow)]).args(&request.cargo);
    for (name, value) in profile_variables(&request.cargo) {
        if std::env::var_os(&name).is_none() {
            cargo.env(name, value);
        }
    }
    Err(format!("cargo cannot be started: {}.", cargo.exec()))
}

/// `mallow`: of the same installation, otherwise the first on PATH.
fn program(own: &Path) -> Option<PathBuf> {
    let beside = own.with_file_name("mallow");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&path).map(|folder| folder.join("mallow"));
    std::iter::once(beside).chain(paths).find(|path| path.is_file())
}

/// The target that cargo builds for if nothing else is said.
fn host() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsStr::new("rustc").to_owned());
    let output = Command::new(&rustc).arg("-vV").output();
    let output = output.map_err(|error| format!("{} cannot be started: {error}.", rustc.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("`{} -vV` names no host.", rustc.display()))
}

/// Cargo's setting of the program that runs programs. Of all its forms only a list may have blanks in its words, and only that of a
/// target comes before what a project says.
fn runner(triple: &str, mallow: &str, words: &[String]) -> String {
    let words = std::iter::once(mallow).chain(words.iter().map(String::as_str)).chain(["--"]);
    let words: Vec<String> = words.map(quoted).collect();
    format!("target.{}.runner=[{}]", quoted(triple), words.join(","))
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            _ if letter.is_control() => out += &format!("\\u{:04X}", u32::from(letter)),
            _ => out.push(letter),
        }
    }
    out + "\""
}

/// The value of an option of cargo's, in either form, before the program's own arguments.
fn option<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    let at = own.iter().position(|word| word.split('=').next() == Some(name))?;
    let after = own.get(at + 1).map(String::as_str);
    own[at].split_once('=').map(|(_, value)| value).or(after)
}

/// Line tables and symbols for the profiles that have none by themselves. `dev` and `test` have both.
fn profile_variables(words: &[String]) -> Vec<(String, &'static str)> {
    let own = option(words, "--profile").map(|name| name.to_uppercase().replace('-', "_"));
    let own = own.filter(|name| !matches!(name.as_str(), "DEV" | "TEST" | "RELEASE" | "BENCH"));
    let profiles = ["RELEASE".to_owned(), "BENCH".to_owned()].into_iter().chain(own);
    let variables = profiles.map(|profile| {
        [
            (format!("CARGO_PROFILE_{profile}_DEBUG"), "line-tables-only"),
            (format!("CARGO_PROFILE_{profile}_STRIP"), "none"),
        ]
    });
    variables.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_before_cargos_command_are_mallows() {
        let asked = |line: &str| request(&words(line)).map(|it| (it.mallow.join(" "), it.cargo.join(" ")));
        let pair = |mallow: &str, cargo: &str| Some((mallow.to_owned(), cargo.to_owned()));
        assert_eq!(asked("mallow run --release -- run"), pair("record", "run --release -- run"));
        assert_eq!(asked("test -p parser"), pair("record", "test -p parser"));
        assert_eq!(asked("mallow stat --runs 5 bench"), pair("stat --runs 5", "bench"));
        for line in ["mallow", "mallow --help", "mallow record --help run", "mallow build"] {
            assert_eq!(asked(line), None, "{line}");
        }
        assert_eq!(asked("mallow run --help"), pair("record", "run --help"));
    }

    #[test]
    fn the_runner_is_a_list_of_words() {
        let setting = runner("x86_64-unknown-linux-gnu", "/opt/my tools/mallow", &words("record -o a\"b\\c"));
        assert_eq!(
            setting,
            r#"target."x86_64-unknown-linux-gnu".runner=["/opt/my tools/mallow","record","-o","a\"b\\c","--"]"#
        );
        assert_eq!(quoted("a\nb"), "\"a\\u000Ab\"");
    }

    #[test]
    fn options_are_cargos_and_not_the_programs() {
        assert_eq!(option(&words("run --target a -- --target b"), "--target"), Some("a"));
        assert_eq!(option(&words("run --target=a"), "--target"), Some("a"));
        assert_eq!(option(&words("run --target-dir a -- --target b"), "--target"), None);
    }

    #[test]
    fn profiles_that_optimize_get_line_tables() {
        let names = |line: &str| {
            let names = profile_variables(&words(line)).into_iter().map(|(name, _)| name);
            names.filter(|name| name.ends_with("_DEBUG")).collect::<Vec<_>>()
        };
        let usual = ["CARGO_PROFILE_RELEASE_DEBUG", "CARGO_PROFILE_BENCH_DEBUG"];
        assert_eq!(names("run --release"), usual);
        assert_eq!(names("test --profile dev"), usual);
        assert_eq!(names("run --profile with-lto"), [&usual[..], &["CARGO_PROFILE_WITH_LTO_DEBUG"]].concat());
    }
}
