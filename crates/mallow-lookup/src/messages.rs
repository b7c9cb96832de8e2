//! Messages between who asks and a worker, over a socket that keeps them apart.
//!
//! ```text
//! to a worker      the request, as JSON, with open files beside it; then its addresses, u64 each, in as many messages as it takes
//! from a worker    'P', a part of the answer; …; 'E', the end, with what it would ask a server, as JSON
//! from the child   'D', how the worker ended, where it did so before its time: whether by a signal u8 · its number u32
//! ```

use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The longest message. A socket takes several of them.
pub(crate) const BYTES_MAX: usize = 48 << 10;
/// How many files may come with one.
pub(crate) const FILES_MAX: usize = 64;

pub(crate) const PART: u8 = b'P';
pub(crate) const END: u8 = b'E';
pub(crate) const DIED: u8 = b'D';

const SPACE: usize = rustix::cmsg_space!(ScmRights(FILES_MAX));

/// Sends a message with open files.
pub(crate) fn send(
    to: impl AsFd,
    parts: &[&[u8]],
    files: &[BorrowedFd<'_>],
    is_waiting: bool,
) -> Result<(), Errno> {
    let mut space = [const { MaybeUninit::uninit() }; SPACE];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::TOOBIG);
    }
    let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let waits = if is_waiting { SendFlags::empty() } else { SendFlags::DONTWAIT };
    rustix::io::retry_on_intr(|| sendmsg(&to, &parts, &mut beside, waits | SendFlags::NOSIGNAL)).map(drop)
}

/// Receives a message, and the files that came with it. `None` when nobody is there to send one any more.
pub(crate) fn receive(
    from: impl AsFd,
    into: &mut [u8],
    is_waiting: bool,
) -> Result<Option<(usize, Vec<OwnedFd>)>, Errno> {
    let mut space = [const { MaybeUninit::uninit() }; SPACE];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let waits = if is_waiting { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&from, &mut [IoSliceMut::new(into)], &mut beside, RecvFlags::CMSG_CLOEXEC | waits)
    })?;
    let files = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files = files.flatten().collect();
    Ok((received.bytes != 0).then_some((received.bytes, files)))
}
