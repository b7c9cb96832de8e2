//! The first page of help: commands, grouped by purpose.
//!
//! A command that only few people need is not on it. It still has its page in the guide, completions, a man page and
//! `mallow help COMMAND`.

use clap::Command;
use clap::builder::Styles;

/// Headings with their commands, in the order in which a user needs them.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Record", &["record", "stat", "cpu"]),
    ("Look", &["report", "flamegraph", "open", "symbolize"]),
    ("Compare", &["diff", "bench"]),
    ("Gate", &["check"]),
    ("Soak", &["soak"]),
    ("Managed heaps", &["heap"]),
    ("Other tools' files", &["import", "export"]),
    ("About mallow", &["help", "version", "config"]),
];

/// For few people: the log of one Ruby gem.
#[cfg(test)]
const NICHE: [&str; 1] = ["gc-log"];

/// The width of the page: that of the narrowest common terminal.
const WIDTH: usize = 80;
/// Columns before the description of a command.
const INDENT: usize = 14;

/// Returns the page; clap adds the rest around the groups.
pub(super) fn first_page(commands: &Command) -> String {
    let mut page = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let style = Styles::styled();
    let (heading, literal) = (style.get_header(), style.get_literal());
    for (title, names) in GROUPS {
        let rows: Vec<String> = names
            .iter()
            .filter_map(|name| Some((name, about(commands, name)?)))
            .map(|(name, about)| {
                let pad = " ".repeat(INDENT - 2 - name.len());
                format!("  {literal}{name}{literal:#}{pad}{}\n", wrapped(&about))
            })
            .collect();
        // A build without the feature `soak` has no heading for it.
        if !rows.is_empty() {
            page += &format!("\n{heading}{title}:{heading:#}\n{}", rows.concat());
        }
    }
    page + &format!("\n{heading}Options:{heading:#}\n{{options}}{{after-help}}")
}

/// Returns the description of a command; `None` if this build does not have it.
fn about(commands: &Command, name: &str) -> Option<String> {
    match name {
        // clap adds this command later.
        "help" => Some("Show the help of a command".to_owned()),
        name => commands.find_subcommand(name)?.get_about().map(ToString::to_string),
    }
}

/// Wraps text, and indents all lines but the first.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > 0 && INDENT + line + 1 + word.chars().count() > WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join(&format!("\n{}", " ".repeat(INDENT)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LowArgs;
    use clap::{CommandFactory, Parser};

    #[test]
    fn every_command_is_in_one_group_or_is_for_few() {
        let mut told: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).chain(NICHE).collect();
        told.retain(|name| *name != "help" && (cfg!(feature = "soak") || *name != "soak"));
        told.retain(|name| cfg!(feature = "open") || *name != "open");
        told.sort_unstable();
        let command = LowArgs::command();
        let mut there: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        there.sort_unstable();
        assert_eq!(told, there);
    }

    #[test]
    fn the_first_page_fits_a_terminal_and_has_no_niche() {
        for page in [LowArgs::whole().render_help(), LowArgs::whole().render_long_help()] {
            let page = page.to_string();
            assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
            assert!(NICHE.iter().all(|name| !page.contains(name)), "{page}");
            let record = "\nRecord:\n  record      Run a command, record every allocation with its stack, and print a\n              summary\n";
            assert!(page.contains(record), "{page}");
            assert!(page.contains("\nExamples:\n"), "{page}");
        }
    }

    #[test]
    fn compatibility_is_not_on_the_first_page_of_a_command() {
        let mut command = LowArgs::command();
        for (name, flags) in [
            ("diff", &["--compat"][..]),
            ("heap", &["--compat"]),
            #[cfg(feature = "soak")]
            ("soak", &["--compat"]),
            ("check", &["--thresholds", "--thresholds-from-log"]),
        ] {
            let of = command.find_subcommand_mut(name).unwrap();
            let (short, long) = (of.render_help().to_string(), of.render_long_help().to_string());
            for flag in flags {
                assert!(!short.contains(flag) && long.contains(flag), "{name} {flag}");
            }
        }
    }

    /// Every example is a command line that can be parsed.
    #[test]
    fn every_command_has_two_examples_that_can_be_typed() {
        fn of_each(command: &mut Command, above: &str) {
            let name = format!("{above}{}", command.get_name());
            let help = command.render_long_help().to_string();
            let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
            let examples: Vec<&str> = examples.lines().map_while(|line| line.strip_prefix("  ")).collect();
            assert!(examples.len() >= 2, "{name} has not two examples:\n{help}");
            for example in examples {
                assert!(example.starts_with(&name), "{name}: {example}");
                let words = shlex::split(example).unwrap();
                let typed = words.into_iter().take_while(|word| word != ">" && word != "|");
                assert!(LowArgs::try_parse_from(typed).map_err(|error| panic!("{example}: {error}")).is_ok());
            }
            // `help help` is clap's own.
            let below = command.get_subcommands_mut().filter(|below| below.get_name() != "help");
            below.for_each(|below| of_each(below, &format!("{name} ")));
        }
        of_each(&mut LowArgs::command(), "");
    }
}
