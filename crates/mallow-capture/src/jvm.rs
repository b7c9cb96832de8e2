//! Asking a JVM, through its attach interface.

use crate::target::Target;
use crate::{CaptureError, attach, process};
use std::fs;

/// Takes a snapshot, and returns its bytes. Of all objects, or of those that are reached.
pub(crate) fn capture(
    pid: u32,
    target: &Target,
    all: bool,
    begins: impl FnOnce(),
) -> Result<u64, CaptureError> {
    let path = target.absolute()?;
    // The JVM makes the file itself, and never over another. It takes words apart at blanks, but for those within quotes.
    let every = if all { "-all " } else { "" };
    begins();
    let said = attach::ask(pid, &format!("GC.heap_dump {every}\"{}\"", path.display()), None);
    let refused = |said: &str| CaptureError::JvmRefused { pid, said: its_words(said) };
    let said = said.map_err(|fault| refused(&fault.to_string()))?;
    if !said.contains("created") {
        return Err(refused(&said));
    }
    // In a container the path is one of the container.
    let inside = process::file(pid, "root").join(path.strip_prefix("/").unwrap_or(&path));
    if !path.exists() && inside.exists() {
        return target.take(&inside);
    }
    let only_ours = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&path, only_ours).map_err(|cause| target.writing(cause))?;
    Ok(fs::metadata(&path).map_err(|cause| target.writing(cause))?.len())
}

/// What tells something: without progress, and the stack of a fault.
fn its_words(said: &str) -> String {
    let tells = |line: &&str| {
        !line.is_empty() && !line.starts_with("Dumping heap") && !line.trim_start().starts_with("at ")
    };
    said.lines().find(tells).unwrap_or("it does not say why").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_among_the_words() {
        let refused = "Dumping heap to /x ...\nUnable to create /x: Permission denied\n";
        assert_eq!(its_words(refused), "Unable to create /x: Permission denied");
        let fault = "java.io.IOException: no\n\tat jdk.attach/sun.tools\n";
        assert_eq!(its_words(fault), "java.io.IOException: no");
        assert_eq!(its_words(""), "it does not say why");
    }
}
