//! Which files were made here: an extended attribute beside their content, which no download, no mail and no archive brings with it unless its user asks for that.
//!
//! What is in a file anybody can write. An attribute is set by somebody who may write to the file on this machine.

use rustix::fs::{XattrFlags, fsetxattr, getxattr};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const NAME: &str = "user.mallow.recorded-here";

/// Marks a file that is being made. Some file systems have no attributes: there a file is as if it came from elsewhere.
pub fn mark_as_made_here(file: &File) {
    let _ = fsetxattr(file, NAME, b"1", XattrFlags::empty());
}

/// Whether root or we made a file here, and marked it.
pub fn is_made_here(path: &Path) -> bool {
    let is_ours = |found: std::fs::Metadata| [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    std::fs::metadata(path).is_ok_and(is_ours) && getxattr(path, NAME, &mut [0u8; 1][..]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_content_is_no_copy_of_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let [made, moved, copied] = ["made", "moved", "copied"].map(|name| folder.path().join(name));
        mark_as_made_here(&crate::create_new(&made).unwrap());
        assert!(is_made_here(&made));
        std::fs::write(&copied, std::fs::read(&made).unwrap()).unwrap();
        std::fs::rename(&made, &moved).unwrap();
        assert_eq!([&made, &moved, &copied].map(|path| is_made_here(path)), [false, true, false]);
    }
}
