//! What is put into a command so that it can be asked later.

use crate::CaptureError;
use mallow_launch::{Content, unpack};
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::{fs, io};

const RUBY: &[u8] = include_bytes!("ruby.rb");

/// How a snapshot of CPython is written: functions for a hook to call, `_mallow_in_a_child` and `_mallow_heap`, and `_mallow_chain`, which a
/// `sitecustomize` calls last.
pub const PYTHON_HEAP: &str = include_str!("python_heap.py");

const PYTHON: &str = concat!(include_str!("python_heap.py"), include_str!("python.py"));

/// How the hook's file name begins.
const SCRIPT_NAME_START: &str = "mallow-capture";

/// What has to be set for a command, where `existing` tells what is set already. With `trace`, Ruby and Python keep for each object the line
/// that made it.
///
/// # Errors
/// When the hook cannot be unpacked.
pub fn hooked(
    trace: bool,
    existing: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<(OsString, OsString)>, CaptureError> {
    let mut ruby = OsString::from("-r");
    ruby.push(unpack(SCRIPT_NAME_START, ".rb", Content::Plain(RUBY))?);
    let mut variables = vec![
        ("RUBYOPT".into(), joined(existing("RUBYOPT"), ruby)),
        ("MALLOW_CAPTURE_TRACE".into(), if trace { "1" } else { "0" }.into()),
    ];
    let mut path = python_folder()?.into_os_string();
    if let Some(others) = existing("PYTHONPATH").filter(|value| !value.is_empty()) {
        path.push(":");
        path.push(others);
    }
    variables.push(("PYTHONPATH".into(), path));
    let node = existing("NODE_OPTIONS");
    let has_signal = node.as_ref().is_some_and(|node| node.to_string_lossy().contains(crate::node::FLAG));
    if !has_signal {
        variables
            .push(("NODE_OPTIONS".into(), joined(node, format!("{}=SIGUSR2", crate::node::FLAG).into())));
    }
    Ok(variables)
}

/// A folder whose `sitecustomize` is the hook.
fn python_folder() -> Result<PathBuf, CaptureError> {
    let script = unpack(SCRIPT_NAME_START, ".py", Content::Plain(PYTHON.as_bytes()))?;
    let folder = script.with_extension("python");
    let making = |cause| CaptureError::Writing { path: folder.clone(), cause };
    // Another mallow may be making it.
    let is_there = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    };
    is_there(fs::create_dir(&folder)).map_err(making)?;
    is_there(symlink(&script, folder.join("sitecustomize.py"))).map_err(making)?;
    Ok(folder)
}

/// Options behind those that are there.
fn joined(existing: Option<OsString>, more: OsString) -> OsString {
    let mut value = existing.unwrap_or_default();
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(more);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_set_stay() {
        let set = |name: &str| (name == "RUBYOPT").then(|| OsString::from("-W0"));
        let variables = hooked(false, &set).unwrap();
        let value = |name: &str| {
            let found = variables.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            found.map(|value| value.to_string_lossy().into_owned())
        };
        assert!(value("RUBYOPT").unwrap().starts_with("-W0 -r/"));
        assert_eq!(value("NODE_OPTIONS").unwrap(), "--heapsnapshot-signal=SIGUSR2");
        let python = PathBuf::from(value("PYTHONPATH").unwrap()).join("sitecustomize.py");
        assert_eq!(fs::read_to_string(python).unwrap(), PYTHON);
        assert_eq!(value("MALLOW_CAPTURE_TRACE").unwrap(), "0");
        let theirs = |name: &str| (name == "NODE_OPTIONS").then(|| "--heapsnapshot-signal=SIGUSR1".into());
        assert!(!hooked(true, &theirs).unwrap().iter().any(|(name, _)| name == "NODE_OPTIONS"));
    }
}
