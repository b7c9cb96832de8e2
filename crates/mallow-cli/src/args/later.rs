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
    use crate::args::LowArgs;
    use clap::CommandFactory;

    /// What this is for. That help is the same is held by the snapshots of it.
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
