//! The options of a command that are built only when that command was typed.
//!
//! All commands together have some three hundred options, which are 400 KB of heap: a third of the page faults of a command
//! that does little else.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};
use std::ops::{Deref, DerefMut};

/// The options of one command. Not for one with commands below it: `help` lists those before they would be built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Later<T>(pub(crate) T);

impl<T: Args> Args for Later<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        command.defer(built::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(built::<T>)
    }
}

/// Adds the options, and leaves `command` as if they had been there first: it has its description, and the global options, which
/// its parent gave it, come last in help.
fn built<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let global: Vec<Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    let built = T::augment_args(command).about(about).long_about(None);
    // What is changed goes to the end.
    global.iter().fold(built, |command, id| command.mut_arg(id, |argument| argument))
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Later)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Later)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Later<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Later;
    use crate::args::LowArgs;
    use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

    /// One command below another, with a global option.
    #[derive(Debug, Parser)]
    #[command(name = "top")]
    struct Top<T: Args + FromArgMatches> {
        /// Columns
        #[arg(long, global = true, help_heading = "Global options")]
        width: Option<u16>,
        #[command(subcommand)]
        command: Commands<T>,
    }

    #[derive(Debug, Subcommand)]
    enum Commands<T: Args + FromArgMatches> {
        /// Do it
        #[command(after_help = "Examples: none")]
        Act(T),
    }

    /// Not what help says of the command.
    #[derive(Debug, PartialEq, Args)]
    #[command(mut_arg("twice", |flag| flag.help("Do it two times")))]
    struct Own {
        /// A file
        file: Option<String>,
        /// Do it once
        #[arg(long)]
        twice: bool,
        /// How fast
        #[arg(long, help_heading = "Speed")]
        fast: bool,
    }

    #[test]
    fn options_that_are_built_later_are_those_that_are_built_at_once() {
        fn told<T: Args + FromArgMatches>(line: &str) -> String {
            let told = Top::<T>::try_parse_from(line.split(' '));
            told.map_or_else(|error| error.to_string(), |top| format!("{:?}", top.width))
        }
        for line in
            ["top --help", "top act --help", "top act -h", "top help act", "top act --tvice", "top act a b"]
        {
            let later = told::<Later<Own>>(line);
            assert_eq!(later, told::<Own>(line), "{line}");
            assert!(later.len() > 30, "{line}: {later}");
        }
        let line = "top act --width 70 --fast name";
        let Commands::Act(own) = Top::<Later<Own>>::try_parse_from(line.split(' ')).unwrap().command;
        assert_eq!(own.0, Own { file: Some("name".into()), twice: false, fast: true });
        assert_eq!(told::<Later<Own>>(line), "Some(70)");
    }

    /// What this is for.
    #[test]
    fn only_the_command_that_was_typed_has_options() {
        let mut command = LowArgs::command();
        let options = |command: &clap::Command| -> Vec<(String, usize)> {
            let of = command.get_subcommands().filter(|below| !["heap", "help"].contains(&below.get_name()));
            of.map(|below| (below.get_name().to_owned(), below.get_arguments().count())).collect()
        };
        assert!(options(&command).iter().all(|(_, count)| *count == 0), "{:?}", options(&command));
        assert!(command.try_get_matches_from_mut(["mallow", "report", "file"]).is_ok());
        let built: Vec<(String, usize)> =
            options(&command).into_iter().filter(|(_, count)| *count > 15).collect();
        assert_eq!(built.len(), 1, "{built:?}");
        assert_eq!(built[0].0, "report");
    }
}
