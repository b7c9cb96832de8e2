//! How much memory of its own a process has when it announces its end: the last moment at which it can be asked, and for many
//! programs the one at which they have the most.

use crate::process;
use crate::sys;
use core::sync::atomic::Ordering;

/// Notes it in the header, unless it is little or calls of ours may be forbidden.
pub fn note() {
    const LITTLE_BYTES: usize = 8 << 20;
    if !process::is_ready() {
        return;
    }
    let header = process::header();
    let is_forbidden = process::is_filtered() || header.threads_locked_in.load(Ordering::Relaxed) > 0;
    if is_forbidden || process::is_borrowed() || sys::resident_bytes_max() < LITTLE_BYTES {
        return;
    }
    let Some(mut page) = sys::Scratch::map() else { return };
    let file = sys::open_read(c"/proc/self/status");
    if file < 0 {
        return;
    }
    let read = sys::read(file as i32, page.bytes());
    sys::close(file as i32);
    let text = page.bytes().get(..read.max(0) as usize).unwrap_or(&[]);
    header.stack_bytes_at_exit.store(field(text, b"VmStk:"), Ordering::Relaxed);
    header.anonymous_bytes_at_exit.store(field(text, b"RssAnon:"), Ordering::Release);
}

/// The value in bytes of the line that begins with `name`; 0 when there is none.
fn field(text: &[u8], name: &[u8]) -> u64 {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name));
    let digits = line.unwrap_or(&[]).iter().filter(|byte| byte.is_ascii_digit());
    digits
        .fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
        .wrapping_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_status_are_read() {
        let text = b"Name:\tx\nVmStk:\t     132 kB\nRssAnon:\t    1024 kB\n";
        assert_eq!(
            [field(text, b"VmStk:"), field(text, b"RssAnon:"), field(text, b"No:")],
            [132 << 10, 1 << 20, 0]
        );
    }
}
