//! How much memory of its own a process has when it registers, and when it announces its end: the last moment at which it
//! can be asked, and for many programs the one at which they have the most.

use crate::process;
use crate::sys;
use core::sync::atomic::Ordering;
use mallow_wire::shared::PAGE_BYTES;

/// Returns private memory that belongs to no file and is resident; 0 if it is unknown. Called at a process's first
/// hooked call, which may be on a small stack.
#[inline(never)]
pub fn anonymous_bytes() -> u64 {
    let mut text = [0u8; 96];
    let read = read_file(c"/proc/self/statm", &mut text);
    let mut fields = text.get(..read).unwrap_or(&[]).split(|byte| *byte == b' ').map(number).skip(1);
    let (resident, shared) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * PAGE_BYTES as u64
}

fn read_file(path: &core::ffi::CStr, into: &mut [u8]) -> usize {
    let file = sys::open_read(path);
    if file < 0 {
        return 0;
    }
    let read = sys::read(file as i32, into);
    sys::close(file as i32);
    read.max(0) as usize
}

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
    let read = read_file(c"/proc/self/status", page.bytes());
    let text = page.bytes().get(..read).unwrap_or(&[]);
    header.stack_bytes_at_exit.store(field(text, b"VmStk:"), Ordering::Relaxed);
    header.anonymous_bytes_at_exit.store(field(text, b"RssAnon:"), Ordering::Release);
}

/// The value in bytes of the line that begins with `name`; 0 when there is none.
fn field(text: &[u8], name: &[u8]) -> u64 {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name));
    number(line.unwrap_or(&[])).wrapping_mul(1024)
}

/// The digits of a text as a number.
fn number(text: &[u8]) -> u64 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_parsed_from_proc_status() {
        let text = b"Name:\tx\nVmStk:\t     132 kB\nRssAnon:\t    1024 kB\n";
        assert_eq!(
            [field(text, b"VmStk:"), field(text, b"RssAnon:"), field(text, b"No:")],
            [132 << 10, 1 << 20, 0]
        );
    }
}
