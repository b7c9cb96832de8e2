//! Profiles from inside: a file that `mallow report` reads, or `dh_view`, of what happens while a guard lives.

use crate::recording::{self, InsideError, OUTSIDE, unrecorded};
use crate::stats::Stats;
use mallow_collect::{Output, OwnQuery};
use mallow_recorder::watchers;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// What kind of file a profile is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// mallow's trace, with every event.
    #[default]
    Mallow,
    /// DHAT's, which `dh_view` shows.
    Dhat,
}

/// Records the program from here on, into a trace, until the guard is dropped. An existing file is overwritten.
///
/// What stands in the way is told on stderr, and the program goes on without a profile; [`ProfileBuilder::begin`] gives it as an error.
#[must_use = "the profile ends when the guard is dropped"]
pub fn profile(path: impl AsRef<Path>) -> Profile {
    if watchers::is_outside() {
        // Said without an allocation, which would be one of the program's to who records it.
        eprintln!("mallow: {OUTSIDE}; '{}' is not written", path.as_ref().display());
        return Profile { number: None };
    }
    builder(path).begin().unwrap_or_else(|error| {
        unrecorded(|| eprintln!("mallow: {error}"));
        Profile { number: None }
    })
}

/// A profile with other settings.
pub fn builder(path: impl AsRef<Path>) -> ProfileBuilder {
    ProfileBuilder { path: unrecorded(|| path.as_ref().to_owned()), format: Format::Mallow }
}

/// Settings of a profile.
#[derive(Clone, Debug)]
pub struct ProfileBuilder {
    path: PathBuf,
    format: Format,
}

impl ProfileBuilder {
    /// Another kind of file.
    #[must_use]
    pub fn format(mut self, format: Format) -> ProfileBuilder {
        self.format = format;
        self
    }

    /// Begins.
    ///
    /// # Errors
    /// When a profile is under way, when the program runs under mallow, when its allocator is not [`crate::Mallow`], when the file
    /// cannot be written.
    pub fn begin(self) -> Result<Profile, InsideError> {
        let ProfileBuilder { path, format } = self;
        if watchers::is_outside() {
            return Err(InsideError::Outside(unrecorded(|| path.display().to_string())));
        }
        let (output, dhat) = unrecorded(|| match format {
            Format::Mallow => (Some(Output::File { path: path.clone(), force: true }), None),
            Format::Dhat => (None, Some(path.clone())),
        });
        let begun = recording::begin_profile(output, dhat);
        unrecorded(|| drop(path));
        let number = begun?;
        static EXIT: Once = Once::new();
        extern "C" fn exiting() {
            finish(None);
        }
        // SAFETY: the function may be called when the program exits.
        EXIT.call_once(|| unsafe { _ = libc::atexit(exiting) });
        Ok(Profile { number: Some(number) })
    }
}

/// A profile under way. When it is dropped, or when the program calls `exit`, the file is complete.
#[derive(Debug)]
pub struct Profile {
    /// The recording's; none when it could not begin.
    number: Option<u64>,
}

impl Profile {
    /// The profile of a number that [`Profile::into_raw`] gave, for languages that keep no guard. Two of the same number are one profile.
    pub fn from_raw(number: u64) -> Profile {
        Profile { number: Some(number) }
    }

    /// Its number, which is never 0 while there is a recording; it goes on until the program exits, or until one of this number is dropped.
    pub fn into_raw(self) -> u64 {
        let number = self.number.unwrap_or(0);
        std::mem::forget(self);
        number
    }

    /// The sums since the begin, over all threads; none when there is no recording, or none any more.
    pub fn stats(&self) -> Option<Stats> {
        recording::ask(self.number?, OwnQuery::Totals).map(Stats::from)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        if self.number.is_some() {
            finish(self.number);
        }
    }
}

/// Ends the profile under way, if there is one, and it is that of this number. In a forked child it is the parent's, and lives on there.
fn finish(number: Option<u64>) {
    let ended = recording::end_profile(number);
    unrecorded(|| {
        let written =
            ended.and_then(|rest| rest.map_or(Ok(()), |(profile, path)| write_dhat(&profile, path)));
        if let Err(error) = written {
            eprintln!("mallow: {error}");
        }
    });
}

fn write_dhat(profile: &mallow_profile::Profile, path: PathBuf) -> Result<(), InsideError> {
    let written = File::create(&path).and_then(|file| {
        let mut file = BufWriter::new(file);
        mallow_dhat::write(profile, &mut file)?;
        file.flush()
    });
    written.map_err(|cause| InsideError::CannotWrite { path, cause })
}
