//! What is to be started: read into memory of fixed size, of which only the pages count that a request fills.

use crate::sys;
use core::ptr::null;
use mallow_wire::spawning::{REQUEST_BYTES_MAX, REQUEST_HEAD_BYTES, REQUEST_TEXTS_MAX, RequestHead};

/// The texts of the request that is being served.
static mut TEXTS: [u8; REQUEST_BYTES_MAX] = [0; REQUEST_BYTES_MAX];
/// Where each word and each text of the environment begins, and a null pointer behind either list.
static mut POINTERS: [*const u8; REQUEST_TEXTS_MAX + 2] = [null(); REQUEST_TEXTS_MAX + 2];

/// A command, as `execve` wants it.
pub(crate) struct Request {
    pub(crate) path: *const u8,
    pub(crate) words: *const *const u8,
    pub(crate) environment: *const *const u8,
}

/// What came from the stream.
pub(crate) enum Read {
    One(Request),
    /// Nobody will ask any more.
    End,
    /// It is no request.
    Unknown,
}

impl Request {
    /// Waits for a request. It is overwritten by the next one.
    pub(crate) fn read(stream: i32) -> Read {
        let mut head = [0; REQUEST_HEAD_BYTES];
        if !sys::read_all(stream, head.as_mut_ptr(), head.len()) {
            return Read::End;
        }
        let head = RequestHead::from_bytes(head);
        if !head.is_fitting() {
            return Read::Unknown;
        }
        let (texts, bytes) = (&raw mut TEXTS as *mut u8, head.bytes as usize);
        if !sys::read_all(stream, texts, bytes) {
            return Read::End;
        }
        let mut cursor = Cursor { at: texts, end: texts.wrapping_add(bytes) };
        let pointers = &raw mut POINTERS as *mut *const u8;
        let (words, environment) = (pointers, pointers.wrapping_add((head.words as usize).wrapping_add(1)));
        let Some(path) = cursor.text() else { return Read::Unknown };
        for (list, count) in [(words, head.words), (environment, head.environment)] {
            if !cursor.list(list, count as usize) {
                return Read::Unknown;
            }
        }
        Read::One(Request { path, words, environment })
    }
}

/// What of the texts is still to be taken.
struct Cursor {
    at: *const u8,
    end: *const u8,
}

impl Cursor {
    /// The next text; none if it has no end.
    fn text(&mut self) -> Option<*const u8> {
        let text = self.at;
        while self.at < self.end {
            let at = self.at;
            self.at = at.wrapping_add(1);
            // SAFETY: it lies within what was read.
            if unsafe { *at } == 0 {
                return Some(text);
            }
        }
        None
    }

    /// Writes the places of as many texts, and a null pointer behind them.
    fn list(&mut self, list: *mut *const u8, count: usize) -> bool {
        let end = list.wrapping_add(count);
        let mut at = list;
        while at < end {
            let Some(text) = self.text() else { return false };
            // SAFETY: both lists with their null pointers fit, by `RequestHead::is_fitting`.
            unsafe { *at = text };
            at = at.wrapping_add(1);
        }
        // SAFETY: as above.
        unsafe { *end = null() };
        true
    }
}
