//! A progress message during a long operation: a line on the terminal, which is erased afterwards.

use crate::output;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A shorter operation has no message.
const PATIENCE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_secs(1);

/// An operation in progress, until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Option<(Sender<()>, JoinHandle<()>)>);

/// Shows after a while what is being done, if stderr is a terminal.
pub(crate) fn busy(what: String) -> Busy {
    if output::is_quiet() || !std::io::stderr().is_terminal() {
        return Busy(None);
    }
    let (done, wait) = channel();
    let thread = std::thread::Builder::new().name("mallow-busy".into());
    let started = thread.spawn(move || tell(&what, &wait, PATIENCE, TICK, &mut std::io::stderr()));
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

fn tell(what: &str, done: &Receiver<()>, patience: Duration, tick: Duration, out: &mut dyn Write) {
    let begun = Instant::now();
    let mut pause = patience;
    while done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let what = mallow_text::printable(what);
        let _ = write!(out, "\r\x1b[K{what} … {} s", begun.elapsed().as_secs());
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
        let thread = std::thread::spawn(move || tell("reading a", &wait, none, none * 2, &mut Out(written)));
        // It was shown at least once.
        let first = read.recv().unwrap();
        drop(done);
        thread.join().unwrap();
        let all = first + &read.iter().collect::<String>();
        assert!(all.starts_with("\r\x1b[Kreading a … 0 s") && all.ends_with("\r\x1b[K"), "{all:?}");
    }

    #[test]
    fn what_is_done_at_once_is_not_told() {
        let (done, wait) = channel::<()>();
        drop(done);
        let mut out = Vec::new();
        tell("reading a", &wait, PATIENCE, TICK, &mut out);
        assert_eq!(out, b"");
    }
}
