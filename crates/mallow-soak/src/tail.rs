//! The server's output: its end is kept, it is searched for a text, and optionally copied to a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of bytes that are kept from the end of the output.
const KEPT_BYTES: usize = 8192;
/// Lines of it that an error shows.
const SHOWN_LINES: usize = 12;

/// The read end of the server's output.
#[derive(Debug)]
pub(crate) struct Tail {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    last: Vec<u8>,
    wanted: Option<Vec<u8>>,
    was_said: bool,
}

impl Tail {
    /// Returns a tail, and the write end for the server. `copy` receives the whole output.
    pub(crate) fn open(wanted: Option<&str>, copy: Option<File>) -> io::Result<(Tail, File)> {
        let (reader, writer) = io::pipe()?;
        let state = Arc::new(Mutex::new(State {
            wanted: wanted.map(|text| text.as_bytes().to_vec()),
            ..State::default()
        }));
        let tail = Tail { state: Arc::clone(&state) };
        // Ends with the last process that has the write end open.
        std::thread::Builder::new().name("output".into()).spawn(move || follow(reader, &state, copy))?;
        Ok((tail, File::from(std::os::fd::OwnedFd::from(writer))))
    }

    /// Returns whether the wanted text was printed.
    pub(crate) fn was_said(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).was_said
    }

    /// Returns the last lines.
    pub(crate) fn last_words(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&state.last);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

fn follow(mut reader: impl Read, state: &Mutex<State>, mut copy: Option<File>) {
    let mut piece = [0u8; 4096];
    while let Ok(bytes) = reader.read(&mut piece) {
        if bytes == 0 {
            return;
        }
        if let Some(file) = &mut copy {
            // A full disk must not block the server: its output is still read.
            let _ = file.write_all(&piece[..bytes]);
        }
        state.lock().unwrap_or_else(PoisonError::into_inner).hear(&piece[..bytes]);
    }
}

impl State {
    fn hear(&mut self, piece: &[u8]) {
        self.last.extend_from_slice(piece);
        if let Some(wanted) = &self.wanted
            && !self.was_said
        {
            self.was_said = wanted.is_empty()
                || self.last.windows(wanted.len()).any(|window| window == wanted.as_slice());
        }
        let surplus = self.last.len().saturating_sub(KEPT_BYTES);
        self.last.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_pieces_and_the_end_is_kept() {
        let mut state = State { wanted: Some(b"listening on".to_vec()), ..State::default() };
        state.hear(b"starting\nlisten");
        assert!(!state.was_said);
        state.hear(b"ing on 3030\n");
        assert!(state.was_said);
        (0..2000).for_each(|line| state.hear(format!("line {line}\n").as_bytes()));
        assert_eq!(state.last.len(), KEPT_BYTES);
        let tail = Tail { state: Arc::new(Mutex::new(state)) };
        assert_eq!(tail.last_words().lines().count(), SHOWN_LINES);
        assert!(tail.last_words().ends_with("line 1999"));
    }
}
