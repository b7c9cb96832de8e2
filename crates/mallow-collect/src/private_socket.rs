//! A socket that only our own user may connect to: a file in his folder.

use rustix::fs::Mode;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The first part of the file names of listening sockets.
const FILE_NAME_START: &str = "session-";

/// The socket for our own user. Its file goes with it.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    pub(crate) socket: OwnedFd,
    pub(crate) path: PathBuf,
    folder: PathBuf,
    label: String,
}

/// A socket that listens where `bind` puts it.
pub(crate) fn listening(
    bind: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
) -> rustix::io::Result<OwnedFd> {
    const KNOCKING_MAX: i32 = 4096;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket)?;
    listen(&socket, KNOCKING_MAX)?;
    Ok(socket)
}

impl PrivateSocket {
    /// Opens one whose name has this label, and this at its end.
    pub(crate) fn open(folder: &Path, label: &str, end: &str) -> Option<PrivateSocket> {
        remove_left(folder);
        PrivateSocket::make(folder, label, end)
    }

    fn make(folder: &Path, label: &str, end: &str) -> Option<PrivateSocket> {
        let (path, fresh) =
            (folder.join(format!("{FILE_NAME_START}{label}{end}")), folder.join(format!(".{label}{end}")));
        path.to_str()?;
        let bound = |socket: &OwnedFd| {
            // Before there is a name: the file is then never anybody else's.
            rustix::fs::fchmod(socket, Mode::RUSR | Mode::WUSR)?;
            bind(socket, &SocketAddrUnix::new(&fresh)?)
        };
        let socket = listening(bound).ok()?;
        // It listens under its temporary name: another session may remove a file whose socket does not listen.
        let named = std::fs::rename(&fresh, &path);
        if named.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        let (folder, label) = (folder.to_owned(), label.to_owned());
        named.ok().map(|()| PrivateSocket { socket, path, folder, label })
    }

    /// Opens another one beside it, with this at the end of its name.
    pub(crate) fn beside(&self, end: &str) -> Option<PrivateSocket> {
        PrivateSocket::make(&self.folder, &self.label, end)
    }
}

/// Removes the sockets of sessions that were killed: no process listens there.
fn remove_left(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(FILE_NAME_START) {
            continue;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let knocked = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .and_then(|socket| connect(&socket, &SocketAddrUnix::new(entry.path())?));
        if knocked == Err(rustix::io::Errno::CONNREFUSED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Compares in constant time, so that the token cannot be guessed byte by byte.
pub(crate) fn is_equal(one: &[u8; 16], other: &[u8; 16]) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
