//! The door at which processes hand over their shared memory.

use crate::error::CollectError;
use mallow_wire::hello::{COMMAND_BYTES_MAX, Hello};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, accept_with, bind, listen, recvmsg, socket_with,
};
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

/// A listening socket with a name that only this session's children know.
#[derive(Debug)]
pub(crate) struct Session {
    socket: OwnedFd,
    name: String,
    token: [u8; 16],
}

/// A process that introduced itself.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its shared memory.
    pub(crate) memory: OwnedFd,
    /// Its process id as we see it.
    pub(crate) pid: u32,
    /// Its command line, blanks between arguments.
    pub(crate) command: String,
}

impl Session {
    /// Opens the door.
    pub(crate) fn open() -> Result<Session, CollectError> {
        let refused = |what| CollectError::system::<rustix::io::Errno>(what);
        let mut secret = [0u8; 24];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
            .map_err(refused("draw a session token"))?;
        let (label, token) = secret.split_at(8);
        let name = format!("mallow-{}-{}", std::process::id(), hex(label));
        let token: [u8; 16] = token.try_into().map_err(|_| odd("draw a session token"))?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(refused("open a socket for the recorded processes"))?;
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())
            .map_err(refused("name the session's socket"))?;
        bind(&socket, &address).map_err(refused("bind the session's socket"))?;
        listen(&socket, 4096).map_err(refused("listen on the session's socket"))?;
        Ok(Session { socket, name, token })
    }

    /// What children find in their environment.
    pub(crate) fn variable(&self) -> String {
        format!("{}:{}", self.name, hex(&self.token))
    }

    /// The next process at the door, if there is one. Strangers are turned away.
    pub(crate) fn arrival(&self) -> Option<Arrival> {
        loop {
            let connection = accept_with(&self.socket, SocketFlags::CLOEXEC).ok()?;
            if let Some(arrival) = self.receive(&connection) {
                return Some(arrival);
            }
        }
    }

    fn receive(&self, connection: &OwnedFd) -> Option<Arrival> {
        let pid = rustix::net::sockopt::socket_peercred(connection).ok()?.pid.as_raw_nonzero().get() as u32;
        let mut bytes = [0u8; Hello::BYTES + COMMAND_BYTES_MAX];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        // The sender connects and sends in one breath, so this does not wait for long; a sender that died in
        // between gives an end of file.
        let received =
            recvmsg(connection, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
                .ok()?;
        let (hello, command) = bytes[..received.bytes].split_at_checked(Hello::BYTES)?;
        let hello = Hello::from_bytes(hello)?;
        let command = String::from_utf8_lossy(command).trim_end_matches('\0').replace('\0', " ");
        let memory = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        })?;
        (hello.token == self.token).then_some(Arrival { memory, pid, command })
    }
}

fn odd(what: &'static str) -> CollectError {
    CollectError::System { what, cause: std::io::ErrorKind::InvalidData.into() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
