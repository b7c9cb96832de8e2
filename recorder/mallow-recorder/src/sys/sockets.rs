//! Messages over Unix sockets, with a file beside them.

use super::{call, close};

pub(super) const POLL: usize = 7;
pub(super) const SOCKET: usize = 41;
pub(super) const CONNECT: usize = 42;
pub(super) const SENDTO: usize = 44;
pub(super) const SENDMSG: usize = 46;
pub(super) const RECVMSG: usize = 47;
pub(super) const SETSOCKOPT: usize = 54;

/// The address of a listening socket.
#[derive(Clone, Copy, Debug)]
pub enum SocketName<'a> {
    /// At a file.
    File(&'a [u8]),
    /// At an abstract name.
    Name(&'a [u8]),
}

/// How long to wait for a place in the queue of connections, which is full where mallow stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Not at all, nor for room for a message.
    AtOnce,
    /// So many seconds.
    Seconds(u64),
}

/// Sends one message with one file descriptor over a Unix socket, and closes the socket.
///
/// Returns false if nobody listens there, or lets nobody in meanwhile. Not inlined, nor is what it calls: a process's first call is made on the caller's stack.
#[inline(never)]
pub fn send_with_fd(to: SocketName<'_>, timeout: Timeout, message: &[u8], fd: i32) -> bool {
    let Some(connection) = connect(to, timeout) else { return false };
    let sent = send(connection, message, fd);
    close(connection);
    sent
}

/// Connects to a Unix socket, for messages. `None` if nobody listens there, or lets nobody in meanwhile. It closes on exec, and the caller
/// closes it.
#[inline(never)]
pub fn connect(to: SocketName<'_>, timeout: Timeout) -> Option<i32> {
    const NONBLOCK: usize = 0x800;
    const UNIX: usize = 1;
    const SEQPACKET_CLOEXEC: usize = 5 | 0x80000;
    const INTERRUPTED: isize = -4;
    // struct sockaddr_un: the family, a zero byte that says "abstract", the name.
    let mut address = [0u8; 110];
    address[0] = UNIX as u8;
    let (begin, name) = match to {
        SocketName::File([]) => return None,
        SocketName::File(path) => (2, path),
        SocketName::Name(name) => (3, name),
    };
    let bytes = begin + name.len().min(address.len() - begin);
    address.iter_mut().skip(begin).zip(name).for_each(|(place, byte)| *place = *byte);
    let flags = if timeout == Timeout::AtOnce { NONBLOCK } else { 0 };
    // SAFETY: creates a descriptor of ours.
    let socket = unsafe { call(SOCKET, [UNIX, SEQPACKET_CLOEXEC | flags, 0, 0, 0, 0]) };
    if socket < 0 {
        return None;
    }
    if let Timeout::Seconds(seconds) = timeout {
        limit_wait(socket as usize, seconds);
    }
    // A signal does not end the wait.
    let connected = loop {
        // SAFETY: the kernel reads the address.
        let connected =
            unsafe { call(CONNECT, [socket as usize, address.as_ptr() as usize, bytes, 0, 0, 0]) };
        if connected != INTERRUPTED {
            break connected;
        }
    };
    if connected != 0 {
        close(socket as i32);
        return None;
    }
    Some(socket as i32)
}

/// Limits how long `connect` and `send` wait. Unlimited they would wait for as long as mallow is stopped.
fn limit_wait(socket: usize, seconds: u64) {
    const SOL_SOCKET: usize = 1;
    const SO_SNDTIMEO: usize = 21;
    // struct timeval: seconds and microseconds.
    let limit = [seconds, 0];
    // SAFETY: the kernel reads the structure.
    unsafe {
        call(SETSOCKOPT, [socket, SOL_SOCKET, SO_SNDTIMEO, limit.as_ptr() as usize, size_of_val(&limit), 0])
    };
}

/// Waits for a message, and returns its length and the file descriptor that came with it, -1 for none. `None` if none
/// comes within so many milliseconds, or the connection has ended.
pub fn receive_with_fd(connection: i32, into: &mut [u8], patience_ms: usize) -> Option<(usize, i32)> {
    const READABLE: u32 = 1;
    // struct pollfd: the descriptor, and what is waited for.
    let mut polled = [connection as u32, READABLE];
    // SAFETY: the kernel reads and writes the structure.
    let ready = unsafe { call(POLL, [polled.as_mut_ptr() as usize, 1, patience_ms, 0, 0, 0]) };
    if ready <= 0 {
        return None;
    }
    const CLOSE_ON_EXEC_DONT_WAIT: usize = 0x4000_0000 | 0x40;
    let mut rights = Rights { bytes: 0, level: 0, kind: 0, fd: -1, pad: 0 };
    let vector = [into.as_mut_ptr() as usize, into.len()];
    let mut header = [
        0,
        0,
        vector.as_ptr() as usize,
        1,
        core::ptr::from_mut(&mut rights) as usize,
        size_of::<Rights>(),
        0,
    ];
    // SAFETY: the kernel writes into the slice and the structures, all of which outlive the call.
    let received = unsafe {
        call(RECVMSG, [connection as usize, header.as_mut_ptr() as usize, CLOSE_ON_EXEC_DONT_WAIT, 0, 0, 0])
    };
    (received > 0).then_some((received as usize, rights.fd))
}

/// struct cmsghdr with one descriptor, padded to 8 bytes.
#[repr(C)]
struct Rights {
    bytes: usize,
    level: i32,
    kind: i32,
    fd: i32,
    pad: i32,
}

#[inline(never)]
fn send(socket: i32, message: &[u8], fd: i32) -> bool {
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    const NOSIGNAL: usize = 0x4000;
    let rights = Rights { bytes: 20, level: SOL_SOCKET, kind: SCM_RIGHTS, fd, pad: 0 };
    let vector = [message.as_ptr() as usize, message.len()];
    // struct msghdr: name, name bytes, vectors, vector count, control, control bytes, flags.
    let header =
        [0, 0, vector.as_ptr() as usize, 1, core::ptr::from_ref(&rights) as usize, size_of::<Rights>(), 0];
    // SAFETY: the kernel reads the structures, all of which outlive the call.
    let sent = unsafe { call(SENDMSG, [socket as usize, header.as_ptr() as usize, NOSIGNAL, 0, 0, 0]) };
    sent == message.len() as isize
}

/// Sends a message over a connection.
pub fn send_plain(connection: i32, message: &[u8]) -> bool {
    const NOSIGNAL: usize = 0x4000;
    let (at, bytes) = (message.as_ptr() as usize, message.len());
    // SAFETY: the kernel reads the slice.
    let sent = unsafe { call(SENDTO, [connection as usize, at, bytes, NOSIGNAL, 0, 0]) };
    sent == bytes as isize
}
