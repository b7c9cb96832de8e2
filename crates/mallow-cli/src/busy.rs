//! A progress message during a long operation: a line on the terminal, which is erased afterwards.
//!
//! How far a file has been read is asked of the kernel, which knows the position of every open file: no reader has to
//! tell, and none is slower for it.

use crate::args::LowCommand;
use crate::output;
use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A shorter operation has no message.
const PATIENCE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_secs(1);

/// Whether the result is for programs, which have no use for what is erased again.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Shows nothing from now on if a command's result is a JSON document.
pub(crate) fn heed(command: &LowCommand) {
    IS_SILENT.store(command.is_json(), Ordering::Relaxed);
}

/// An operation in progress, until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Option<(Sender<()>, JoinHandle<()>)>);

/// Shows after a while what is being done, if stderr is a terminal.
pub(crate) fn busy(what: String) -> Busy {
    shown(what, || None)
}

/// Shows after a while that a file is being read, and how much of it has been.
pub(crate) fn reading(path: &Path) -> Busy {
    let of_file = fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let file = of_file.map(|file| (file.dev(), file.ino(), file.len()));
    shown(format!("reading {}", path.display()), move || percent_read(file?))
}

fn shown(what: String, percent: impl Fn() -> Option<u64> + Send + 'static) -> Busy {
    if output::is_quiet() || IS_SILENT.load(Ordering::Relaxed) || !std::io::stderr().is_terminal() {
        return Busy(None);
    }
    let (done, wait) = channel();
    let thread = std::thread::Builder::new().name("mallow-busy".into());
    let started = thread.spawn(move || tell(&what, &percent, &wait, PATIENCE, TICK, &mut std::io::stderr()));
    Busy(started.ok().map(|thread| (done, thread)))
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.0.take() {
            drop(done);
            let _ = thread.join();
        }
    }
}

/// How much of a file (device, inode, length) has been read, in per cent, where it is open and not yet read to its end. What is
/// read at once and interpreted afterwards has no measure.
fn percent_read((device, inode, length): (u64, u64, u64)) -> Option<u64> {
    let is_it = |open: &fs::DirEntry| {
        fs::metadata(open.path()).is_ok_and(|file| (file.dev(), file.ino()) == (device, inode))
    };
    let position = |open: fs::DirEntry| {
        let about = fs::read_to_string(Path::new("/proc/self/fdinfo").join(open.file_name())).ok()?;
        about.lines().find_map(|line| line.strip_prefix("pos:")?.trim().parse::<u64>().ok())
    };
    let open = fs::read_dir("/proc/self/fd").ok()?.filter_map(Result::ok).filter(is_it);
    let position = open.filter_map(position).max()?;
    (0 < position && position < length).then(|| position.saturating_mul(100) / length)
}

fn tell(
    what: &str,
    percent: &dyn Fn() -> Option<u64>,
    done: &Receiver<()>,
    patience: Duration,
    tick: Duration,
    out: &mut dyn Write,
) {
    let begun = Instant::now();
    let mut pause = patience;
    while done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let what = mallow_text::printable(what);
        let share = percent().map_or_else(String::new, |percent| format!("{percent}%, "));
        let _ = write!(out, "\r\x1b[K{what} … {share}{} s", begun.elapsed().as_secs());
        let _ = out.flush();
        pause = tick;
    }
    if pause == tick {
        let _ = write!(out, "\r\x1b[K");
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_told_and_goes_again() {
        let (done, wait) = channel();
        let (written, read) = channel();
        struct Out(Sender<String>);
        impl Write for Out {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let none = Duration::from_millis(1);
        let thread = std::thread::spawn(move || {
            tell("reading a", &|| Some(7), &wait, none, none * 2, &mut Out(written))
        });
        // It was shown at least once.
        let first = read.recv().unwrap();
        drop(done);
        thread.join().unwrap();
        let all = first + &read.iter().collect::<String>();
        assert!(all.starts_with("\r\x1b[Kreading a … 7%, 0 s") && all.ends_with("\r\x1b[K"), "{all:?}");
    }

    #[test]
    fn what_is_done_at_once_is_not_told() {
        let (done, wait) = channel::<()>();
        drop(done);
        let mut out = Vec::new();
        tell("reading a", &|| None, &wait, PATIENCE, TICK, &mut out);
        assert_eq!(out, b"");
    }

    #[test]
    fn how_much_of_a_file_is_read_is_where_its_reader_is() {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 1000]).unwrap();
        let about = file.as_file().metadata().unwrap();
        let percent = || percent_read((about.dev(), about.ino(), 1000));
        assert_eq!(percent(), None, "it is read to its end");
        file.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(percent(), None, "nothing is read");
        file.read_exact(&mut [0; 256]).unwrap();
        assert_eq!(percent(), Some(25));
        drop(file);
        assert_eq!(percent(), None, "it is open no more");
    }
}
