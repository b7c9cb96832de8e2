//! The socket at which processes register and hand over their shared memory.
//!
//! Its name stands in `/proc/net/unix`, so anybody may connect. Nobody is waited for: who has connected and says nothing is asked again in every
//! pass, one of a bounded crowd, and a pass takes no longer for however many there are. Who knows the session's token was started by it.

use crate::error::CollectError;
use crate::peer::Peer;
use mallow_base::hex;
use mallow_wire::handshake::{COMMAND_BYTES_MAX, Handshake};
use mallow_wire::shared::SHARED_VERSION;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, accept_with, bind, listen, recvmsg, socket_with,
};
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A listening socket with a name that only this session's children know.
#[derive(Debug)]
pub(crate) struct Session {
    socket: OwnedFd,
    name: String,
    token: [u8; 16],
    /// Those who have said nothing yet, the one that came first in front.
    silent: Vec<Silent>,
    /// More have knocked than one pass takes in.
    is_crowded: bool,
}

/// A connection over which nothing has come yet.
#[derive(Debug)]
struct Silent {
    connection: OwnedFd,
    since: Instant,
    /// Whether it was started by us; none while nobody has looked.
    is_descendant: Option<bool>,
}

/// A process that has registered.
#[derive(Debug)]
pub(crate) struct Registration {
    /// Its shared memory.
    pub(crate) memory: OwnedFd,
    /// Who it is.
    pub(crate) peer: Peer,
    /// Its command line, blanks between arguments.
    pub(crate) command: String,
}

/// Those who have registered and are taken in at once: while one process after another comes, those that are here want to be looked
/// after, and those that have ended hold memory of ours.
const AT_ONCE: usize = 4;
/// Connections that may be silent at a time.
const SILENT_MAX: usize = 64;
/// How long a pass may take for those who are no processes of ours.
const PASS_MAX: Duration = Duration::from_micros(300);
/// Whoever connects sends in the same breath, unless he is stopped in between: so long he is not looked at.
const BREATH: Duration = Duration::from_millis(50);
/// And so long one of ours may be stopped.
const PATIENCE: Duration = Duration::from_secs(10);

impl Session {
    /// Opens the socket.
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
        Ok(Session { socket, name, token, silent: Vec::new(), is_crowded: false })
    }

    /// What children find in their environment.
    pub(crate) fn variable(&self) -> String {
        format!("{}:{}", self.name, hex(&self.token))
    }

    /// Whether others still stand before the door: a child of ours may be among them.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Those who have registered, some of them at most.
    pub(crate) fn accept_pending(&mut self) -> Vec<Registration> {
        let mut registrations = self.hear_the_silent();
        let until = Instant::now() + PASS_MAX;
        self.is_crowded = false;
        while registrations.len() < AT_ONCE {
            let Ok(connection) = accept_with(&self.socket, SocketFlags::CLOEXEC) else { break };
            match self.receive(&connection) {
                Received::Nothing => self.let_wait(connection),
                Received::Stranger => {}
                Received::Registration(registration) => registrations.push(registration),
            }
            if Instant::now() >= until {
                self.is_crowded = true;
                break;
            }
        }
        registrations
    }

    /// Asks those again who had nothing to say, and gives up those who are none of ours, or have gone.
    fn hear_the_silent(&mut self) -> Vec<Registration> {
        let mut registrations = Vec::new();
        for mut silent in std::mem::take(&mut self.silent) {
            let received = match registrations.len() {
                AT_ONCE => Received::Nothing,
                _ => self.receive(&silent.connection),
            };
            match received {
                Received::Nothing if silent.may_wait() => self.silent.push(silent),
                Received::Nothing | Received::Stranger => {}
                Received::Registration(registration) => registrations.push(registration),
            }
        }
        registrations
    }

    /// Keeps a connection for later. In a crowd those give way first whom nobody of ours has started.
    fn let_wait(&mut self, connection: OwnedFd) {
        if self.silent.len() == SILENT_MAX {
            let stranger = self.silent.iter_mut().position(|silent| !silent.is_descendant());
            self.silent.remove(stranger.unwrap_or(0));
        }
        self.silent.push(Silent { connection, since: Instant::now(), is_descendant: None });
    }

    /// What a connection has to say.
    fn receive(&self, connection: &OwnedFd) -> Received {
        let mut bytes = [0u8; Handshake::BYTES + COMMAND_BYTES_MAX];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        match recvmsg(connection, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(rustix::io::Errno::AGAIN) => Received::Nothing,
            Err(_) => Received::Stranger,
            Ok(received) => {
                let registration = self.read(connection, &bytes[..received.bytes], &mut control);
                registration.map_or(Received::Stranger, Received::Registration)
            }
        }
    }

    fn read(
        &self,
        connection: &OwnedFd,
        bytes: &[u8],
        control: &mut RecvAncillaryBuffer<'_>,
    ) -> Option<Registration> {
        let memory = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        })?;
        let (handshake, command) = bytes.split_at_checked(Handshake::BYTES)?;
        let handshake = Handshake::from_bytes(handshake)?;
        if handshake.version != SHARED_VERSION || !is_equal(&handshake.token, &self.token) {
            return None;
        }
        let command = String::from_utf8_lossy(command).trim_end_matches('\0').replace('\0', " ");
        Some(Registration { memory, peer: Peer::of_connection(connection)?, command })
    }
}

impl Silent {
    /// Whether somebody of ours has started it, and it still runs.
    fn is_descendant(&mut self) -> bool {
        let connection = &self.connection;
        *self.is_descendant.get_or_insert_with(|| {
            Peer::of_connection(connection).is_some_and(|peer| peer.is_descendant_of(std::process::id()))
        })
    }

    fn may_wait(&mut self) -> bool {
        let waited = self.since.elapsed();
        waited < BREATH || (waited < PATIENCE && self.is_descendant())
    }
}

/// Takes as long whichever byte differs, so that nobody learns the token byte by byte.
fn is_equal(one: &[u8; 16], other: &[u8; 16]) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// What came over a connection.
enum Received {
    /// Nothing yet.
    Nothing,
    /// Something that is not ours, or its end.
    Stranger,
    /// A process.
    Registration(Registration),
}

fn odd(what: &'static str) -> CollectError {
    CollectError::System { what, cause: std::io::ErrorKind::InvalidData.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_wire::handshake::HANDSHAKE_MAGIC;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, connect, sendmsg};
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    fn connected(session: &Session) -> OwnedFd {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        connect(&socket, &SocketAddrUnix::new_abstract_name(session.name.as_bytes()).unwrap()).unwrap();
        socket
    }

    fn register(session: &Session, socket: &OwnedFd, command: &[u8]) {
        let handshake = Handshake {
            magic: HANDSHAKE_MAGIC,
            version: SHARED_VERSION,
            pid: std::process::id(),
            token: session.token,
        };
        send(socket, &handshake, command);
    }

    fn send(socket: &OwnedFd, handshake: &Handshake, command: &[u8]) {
        let memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let files = [memory.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        let message =
            [IoSlice::new(&handshake.to_bytes()), IoSlice::new(command)].map(|part| part.to_vec()).concat();
        sendmsg(socket, &[IoSlice::new(&message)], &mut control, SendFlags::empty()).unwrap();
    }

    fn commands(session: &mut Session) -> Vec<String> {
        session.accept_pending().into_iter().map(|registration| registration.command).collect()
    }

    #[test]
    fn who_has_another_token_or_version_is_a_stranger() {
        let mut session = Session::open().unwrap();
        let right = Handshake {
            magic: HANDSHAKE_MAGIC,
            version: SHARED_VERSION,
            pid: std::process::id(),
            token: session.token,
        };
        let mut wrong = vec![Handshake { version: SHARED_VERSION + 1, ..right }];
        wrong.extend((0..16).map(|at| {
            let mut token = session.token;
            token[at] ^= 1;
            Handshake { token, ..right }
        }));
        for handshake in &wrong {
            let socket = connected(&session);
            send(&socket, handshake, b"x\0");
            assert!(session.accept_pending().is_empty() && session.silent.is_empty());
        }
        let socket = connected(&session);
        send(&socket, &right, b"x\0");
        assert_eq!(commands(&mut session), ["x"]);
    }

    #[test]
    fn who_connects_and_says_nothing_keeps_nobody_waiting() {
        let mut session = Session::open().unwrap();
        let silent = connected(&session);
        assert!(session.accept_pending().is_empty());
        let other = connected(&session);
        register(&session, &other, b"second\0word\0");
        assert_eq!(commands(&mut session), ["second word"]);
        // A process that was stopped goes on.
        register(&session, &silent, b"first\0");
        assert_eq!(commands(&mut session), ["first"]);
    }

    #[test]
    fn a_crowd_of_silent_ones_is_given_up_and_the_others_come_a_few_at_a_time() {
        let mut session = Session::open().unwrap();
        let silent: Vec<OwnedFd> = (0..3 * SILENT_MAX).map(|_| connected(&session)).collect();
        let speaking: Vec<OwnedFd> = (0..6).map(|_| connected(&session)).collect();
        speaking.iter().for_each(|socket| register(&session, socket, b"x\0"));
        let mut passes = Vec::new();
        while passes.iter().sum::<usize>() < speaking.len() {
            passes.push(session.accept_pending().len());
            assert!(session.silent.len() <= SILENT_MAX);
        }
        assert!(passes.iter().all(|came| *came <= 4), "{passes:?}");
        drop(silent);
        assert!(session.accept_pending().is_empty());
        assert!(session.silent.is_empty(), "who has gone is forgotten");
    }
}
