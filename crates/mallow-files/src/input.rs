//! Files that are read, of which `-` is what comes in by stdin.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::OnceLock;

/// What stands for stdin, or for stdout, where a file's name could stand.
pub const STREAM: &str = "-";

/// What came in by stdin, once it has been read.
static STDIN: OnceLock<File> = OnceLock::new();

/// Opens a file to be read from its beginning. `-` is stdin, as often as it is opened.
///
/// # Errors
/// The file cannot be opened; stdin cannot be read, or there is no room for what comes.
pub fn open_input(path: &Path) -> io::Result<File> {
    if path.as_os_str() != STREAM {
        return File::open(path);
    }
    let stdin = match STDIN.get() {
        Some(known) => known,
        None => {
            let read = of_stdin(io::stdin().as_fd().try_clone_to_owned()?.into())?;
            STDIN.get_or_init(|| read)
        }
    };
    again(stdin)
}

/// A file that can be read at any place: formats are told by how a file begins, and events are read after sums.
fn of_stdin(mut stdin: File) -> io::Result<File> {
    if stdin.metadata()?.is_file() && again(&stdin).is_ok() {
        return Ok(stdin);
    }
    // It has no name, so nobody else can open it, and nothing of it stays.
    let mut kept = tempfile::tempfile()?;
    io::copy(&mut stdin, &mut kept)?;
    kept.seek(SeekFrom::Start(0))?;
    Ok(kept)
}

/// The same file, at its beginning whatever others have read of it.
fn again(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn text(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_pipe_can_be_read_twice() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"main;work 12\n").unwrap();
        drop(writer);
        let kept = of_stdin(File::from(std::os::fd::OwnedFd::from(reader))).unwrap();
        assert_eq!([text(again(&kept).unwrap()), text(again(&kept).unwrap())], ["main;work 12\n"; 2]);
    }

    #[test]
    fn a_file_is_read_where_it_lies_and_from_its_beginning() {
        let mut named = tempfile::NamedTempFile::new().unwrap();
        named.write_all(b"main;work 12\n").unwrap();
        let mut open = named.reopen().unwrap();
        open.seek(SeekFrom::Start(5)).unwrap();
        let kept = of_stdin(open).unwrap();
        assert_eq!(text(again(&kept).unwrap()), "main;work 12\n");
    }
}
