//! Profiles from inside: a file that `mallow report` reads, or `dh_view`, of what happens while a guard lives.

use crate::recording::{InsideError, Recording, unrecorded};
use crate::stats::Stats;
use mallow_collect::{Output, OwnQuery};
use mallow_recorder::watchers;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

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
    builder(path).begin().unwrap_or_else(|error| {
        unrecorded(|| eprintln!("mallow: {error}"));
        Profile { is_recording: false }
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
        let recording = Recording::begin(output)?;
        static EXIT: Once = Once::new();
        extern "C" fn exiting() {
            finish();
        }
        // SAFETY: the function may be called when the program exits.
        EXIT.call_once(|| unsafe { _ = libc::atexit(exiting) });
        let before =
            CURRENT.lock().unwrap_or_else(PoisonError::into_inner).replace(Current { recording, dhat });
        // Only the process that this one was forked from can have left one. Its thread's number may be that of ours now.
        std::mem::forget(before);
        unrecorded(|| drop(path));
        Ok(Profile { is_recording: true })
    }
}

/// The profile under way. Here and not in the guard, because `exit` drops no guards.
struct Current {
    recording: Recording,
    /// The file, when it is written at the end.
    dhat: Option<PathBuf>,
}

static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

/// A profile under way. When it is dropped, or when the program calls `exit`, the file is complete.
#[derive(Debug)]
pub struct Profile {
    /// Not when it could not begin.
    is_recording: bool,
}

impl Profile {
    /// The sums since the begin, over all threads. All 0 when there is no recording.
    pub fn stats(&self) -> Stats {
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = current
            .as_ref()
            .filter(|_| self.is_recording)
            .and_then(|current| current.recording.ask(OwnQuery::Totals));
        asked.map(Stats::from).unwrap_or_default()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        if self.is_recording {
            finish();
        }
    }
}

/// Ends the profile under way, if there is one. In a forked child it is the parent's, and lives on there.
fn finish() {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Current { recording, dhat }) = current else { return };
    let ended = recording.end();
    unrecorded(|| {
        let written = ended.and_then(|profile| match (profile, dhat) {
            (Some(profile), Some(path)) => write_dhat(&profile, path),
            _ => Ok(()),
        });
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
