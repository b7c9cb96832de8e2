//! Debug files from a debuginfod server, by build id.
//!
//! It is asked when `DEBUGINFOD_URLS` names one, as gdb and perf do, and through elfutils' own client, which has the servers' timeouts and the cache that
//! all of these tools share. Nobody is asked otherwise.

use mallow_base::hex;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Names the servers.
const SERVERS_VARIABLE: &str = "DEBUGINFOD_URLS";
/// elfutils' client.
const CLIENT: &str = "debuginfod-find";
/// A server that has taken so long without a result is not queried again.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of the servers.
#[derive(Debug)]
struct Asked {
    /// By build id: where the file lies; none where there is none.
    files: BTreeMap<Vec<u8>, Option<PathBuf>>,
    /// Why no server is queried any more.
    given_up: Option<&'static str>,
}

static ASKED: Mutex<Asked> = Mutex::new(Asked { files: BTreeMap::new(), given_up: None });

/// Returns whether there is a server to ask.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(SERVERS_VARIABLE).is_some_and(|servers| !servers.as_bytes().trim_ascii().is_empty())
}

/// The debug file of a build, wherever the client has put it.
pub(crate) fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    // A second caller waits for the same result.
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = asked.files.get(build_id) {
        return known.clone();
    }
    let found = if asked.given_up.is_none() { ask(build_id, &mut asked.given_up) } else { None };
    asked.files.insert(build_id.to_vec(), found.clone());
    found
}

fn ask(build_id: &[u8], given_up: &mut Option<&'static str>) -> Option<PathBuf> {
    let began = Instant::now();
    let mut client = Command::new(CLIENT);
    client.args(["debuginfo", &hex(build_id)]).stdin(Stdio::null()).stderr(Stdio::null());
    match client.output() {
        Ok(output) if output.status.success() => {
            let path = output.stdout.trim_ascii_end();
            (!path.is_empty()).then(|| OsStr::from_bytes(path).into())
        }
        Ok(_) => {
            if began.elapsed() > PATIENCE {
                *given_up = Some("its servers do not answer, so that names and lines may be missing");
            }
            None
        }
        Err(error) => {
            *given_up = Some(match error.kind() {
                ErrorKind::NotFound => {
                    "debuginfod-find is not there to ask them; install elfutils' client (Debian's package debuginfod)"
                }
                _ => "debuginfod-find cannot be run to ask them",
            });
            None
        }
    }
}

/// Returns why configured servers were not queried, or not any more.
pub(crate) fn warning() -> Option<String> {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.given_up.map(|why| format!("{SERVERS_VARIABLE} is set, but {why}"))
}
