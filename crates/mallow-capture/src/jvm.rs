//! Asking a JVM, by the JDK's own `jcmd`.

use crate::CaptureError;
use crate::process;
use crate::target::Target;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Takes a snapshot, and returns its bytes. Of all objects, or of those that are reached.
pub(crate) fn capture(
    pid: u32,
    target: &Target,
    all: bool,
    begins: impl FnOnce(),
) -> Result<u64, CaptureError> {
    let path = target.absolute()?;
    // The JVM makes the file itself, and never over another. It takes words apart at blanks, but for those within quotes.
    let mut jcmd = Command::new(process::jcmd(pid));
    jcmd.arg(pid.to_string())
        .arg("GC.heap_dump")
        .args(all.then_some("-all"))
        .arg(format!("\"{}\"", path.display()));
    jcmd.env_remove("JAVA_TOOL_OPTIONS").env_remove("_JAVA_OPTIONS").stdin(Stdio::null());
    // A JVM listens to its own user.
    let owner = fs::metadata(process::file(pid, "")).map_err(|_| CaptureError::NoProcess(pid))?;
    if rustix::process::geteuid().is_root() && owner.uid() != 0 {
        jcmd.gid(owner.gid()).uid(owner.uid());
    }
    begins();
    let output = jcmd.output().map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => CaptureError::NoJcmd(pid),
        _ => CaptureError::JvmRefused { pid, said: format!("jcmd cannot be run: {cause}") },
    })?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !said.contains("created") {
        return Err(CaptureError::JvmRefused { pid, said: its_words(&said) });
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

/// What tells something: without the pid, progress, and the stack of `jcmd` itself.
fn its_words(said: &str) -> String {
    let tells = |line: &&str| {
        let is_pid = line.trim_end_matches(':').chars().all(|c| c.is_ascii_digit());
        !is_pid && !line.starts_with("Dumping heap") && !line.trim_start().starts_with("at ")
    };
    said.lines().find(tells).unwrap_or("it does not say why").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_among_the_words() {
        let refused = "4242:\nDumping heap to /x ...\nUnable to create /x: Permission denied\n";
        assert_eq!(its_words(refused), "Unable to create /x: Permission denied");
        let fault = "4242:\njava.io.IOException: no\n\tat jdk.attach/sun.tools\n";
        assert_eq!(its_words(fault), "java.io.IOException: no");
        assert_eq!(its_words(""), "it does not say why");
    }
}
