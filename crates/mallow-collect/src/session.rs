//! The sockets at which processes register and hand over their shared memory.
//!
//! One is a file that only our own user may connect to. Who has given up his rights, or sees other files, comes to the other one, whose name is
//! abstract and stands in `/proc/net/unix`, so that anybody may come. Nobody is waited for: who has connected and says nothing is asked again in every
//! pass, one of a bounded crowd, and strangers take a twentieth of the time at most, however many they are. Who knows the session's token was
//! started by it.

use crate::command_lines::CommandLines;
use crate::error::CollectError;
use crate::out_of_memory::KilledBefore;
use crate::peer::Peer;
use crate::planner::Planner;
use crate::private_socket::{PrivateSocket, is_equal, listening};
use mallow_base::hex;
use mallow_launch::open_files;
use mallow_wire::handshake::{COMMAND_BYTES_MAX, Handshake};
use mallow_wire::shared::SHARED_VERSION;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags, accept_with, bind,
    recvmsg,
};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A listening socket with a name that only this session's children know.
#[derive(Debug)]
pub(crate) struct Session {
    /// None where there is no folder for it.
    own: Option<PrivateSocket>,
    /// Answers requests, beside the own socket.
    planner: Option<Planner>,
    /// The socket with the abstract name.
    socket: OwnedFd,
    name: String,
    token: [u8; 16],
    command_lines: CommandLines,
    /// Connections without a message yet, the oldest first.
    silent: Vec<Silent>,
    /// When the abstract socket is polled again.
    rests_until: Instant,
    /// Whether more connections were pending than a pass could accept.
    is_crowded: bool,
    /// A connection that is not read before mallow can hold its process.
    waiting: Option<OwnedFd>,
    /// Whether there ever was one.
    was_full: bool,
    /// Before any program was started.
    pub(crate) killed_before: KilledBefore,
}

/// A connection without a message yet.
#[derive(Debug)]
struct Silent {
    connection: OwnedFd,
    since: Instant,
    /// Whether it was started by us; `None` while that was not checked.
    is_descendant: Option<bool>,
}

/// A process that has registered.
#[derive(Debug)]
pub(crate) struct Registration {
    /// Its shared memory.
    pub(crate) memory: OwnedFd,
    /// The process.
    pub(crate) peer: Peer,
    /// The part of its command line that is kept, blanks between arguments.
    pub(crate) command: String,
}

/// So many files mallow must be able to open beside a connection. In a message that nobody can open the files of they are missing, and a process of
/// which nothing can be opened looks like one that has ended.
const FILES_FREE_MIN: usize = 5;
/// How many registrations are accepted at once: while one process after another is started, running ones have to be
/// read, and ended ones hold memory of ours.
const AT_ONCE: usize = 4;
/// Connections that may be silent at a time.
const SILENT_MAX: usize = 64;
/// How long a pass may take for connections to the abstract socket.
const PASS_MAX: Duration = Duration::from_micros(200);
/// How much longer than that the abstract socket is not polled.
const REST_FACTOR: u32 = 20;
/// How long pending connections there are read at the end.
const LAST_MAX: Duration = Duration::from_millis(100);
/// A process sends right after it connects, unless it is stopped in between: so long it is not checked.
const BREATH: Duration = Duration::from_millis(50);
/// And so long one of ours may be stopped.
const PATIENCE: Duration = Duration::from_secs(10);

impl Session {
    /// Opens the socket.
    pub(crate) fn open(command_lines: CommandLines) -> Result<Session, CollectError> {
        open_files::raise();
        let refused = |what| CollectError::system::<rustix::io::Errno>(what);
        let mut secret = [0u8; 24];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
            .map_err(refused("draw a session token"))?;
        let (label, token) = secret.split_at(8);
        let name = format!("mallow-{}-{}", std::process::id(), hex(label));
        let token: [u8; 16] = token.try_into().map_err(|_| odd("draw a session token"))?;
        let socket = listening(|socket| bind(socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?))
            .map_err(refused("open a socket for the recorded processes"))?;
        let own =
            mallow_launch::own_folder().and_then(|folder| PrivateSocket::open(&folder, &hex(label), ""));
        let planner = own.as_ref().and_then(|own| Planner::start(own, token));
        Ok(Session {
            own,
            planner,
            socket,
            name,
            token,
            command_lines,
            silent: Vec::new(),
            rests_until: Instant::now(),
            is_crowded: false,
            waiting: None,
            was_full: false,
            killed_before: KilledBefore::now(),
        })
    }

    /// Returns the value of the environment variable for children.
    pub(crate) fn variable(&self) -> String {
        let variable = format!("{}:{}", self.name, hex(&self.token));
        match self.own.as_ref().and_then(|own| own.path.to_str()) {
            Some(path) => format!("{variable}:{path}"),
            None => variable,
        }
    }

    /// Returns what is ready when a process of our own user comes. Strangers wake nobody.
    pub(crate) fn own_socket(&self) -> Option<BorrowedFd<'_>> {
        self.own.as_ref().map(|own| own.socket.as_fd())
    }

    /// Returns what has to be reported of the libraries of a process, whether it has ended or not.
    pub(crate) fn unseen_libraries(&self, pid: u32) -> Vec<String> {
        self.planner.as_ref().map(|planner| planner.unseen_of(pid)).unwrap_or_default()
    }

    /// Returns whether processes came while mallow had as many files open as it may.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full
    }

    /// Those who have registered, some of them at most.
    pub(crate) fn accept_pending(&mut self) -> Vec<Registration> {
        let mut registrations = self.hear_the_silent();
        if let Some(connection) = self.waiting.take_if(|connection| has_room_beside(connection)) {
            self.take(connection, &mut registrations);
        }
        while registrations.len() < AT_ONCE
            && let Some(own) = &self.own
            && let Some(connection) = next_of(&own.socket, self.waiting.as_ref(), &mut self.was_full)
        {
            self.take(connection, &mut registrations);
        }
        let begun = Instant::now();
        if begun >= self.rests_until {
            self.accept_anybody(&mut registrations, begun);
            self.rests_until = begun + begun.elapsed() * REST_FACTOR;
        }
        registrations
    }

    /// Reads a connection, as soon as mallow can hold what it brings.
    fn take(&mut self, connection: OwnedFd, registrations: &mut Vec<Registration>) {
        if !has_room_beside(&connection) {
            (self.waiting, self.was_full) = (Some(connection), true);
            return;
        }
        match self.receive(&connection) {
            Received::Nothing => keep(&mut self.silent, connection),
            Received::Stranger => {}
            Received::Truncated => self.was_full = true,
            Received::Registration(registration) => registrations.push(registration),
        }
    }

    /// The same when no new connection can come: all pending connections to the abstract socket are accepted now.
    pub(crate) fn accept_last(&mut self) -> Vec<Registration> {
        let begun = Instant::now();
        loop {
            self.rests_until = begun;
            let registrations = self.accept_pending();
            if !registrations.is_empty() || !self.is_crowded || begun.elapsed() > LAST_MAX {
                return registrations;
            }
        }
    }

    /// Accepts connections to the abstract socket.
    fn accept_anybody(&mut self, registrations: &mut Vec<Registration>, begun: Instant) {
        self.is_crowded = true;
        while registrations.len() < AT_ONCE && begun.elapsed() < PASS_MAX {
            let next = next_of(&self.socket, self.waiting.as_ref(), &mut self.was_full);
            let Some(connection) = next else {
                self.is_crowded = self.waiting.is_some();
                break;
            };
            self.take(connection, registrations);
        }
    }

    /// Polls connections without a message again, and closes those that are not ours, or have ended.
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
                Received::Truncated => self.was_full = true,
                Received::Registration(registration) => registrations.push(registration),
            }
        }
        registrations
    }

    /// Reads a connection.
    fn receive(&self, connection: &OwnedFd) -> Received {
        let mut bytes = [0u8; Handshake::BYTES + COMMAND_BYTES_MAX];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        match recvmsg(connection, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(rustix::io::Errno::AGAIN) => Received::Nothing,
            Err(_) => Received::Stranger,
            Ok(received) => {
                let known = self.read(connection, &bytes[..received.bytes], &mut control);
                known.unwrap_or(Received::Stranger)
            }
        }
    }

    fn read(
        &self,
        connection: &OwnedFd,
        bytes: &[u8],
        control: &mut RecvAncillaryBuffer<'_>,
    ) -> Option<Received> {
        let memory = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let (handshake, command) = bytes.split_at_checked(Handshake::BYTES)?;
        let handshake = Handshake::from_bytes(handshake)?;
        if handshake.version != SHARED_VERSION || !is_equal(&handshake.token, &self.token) {
            return None;
        }
        let Some(memory) = memory else { return Some(Received::Truncated) };
        let command = self.command_lines.of_process(command);
        let peer = Peer::of_connection(connection)?;
        Some(Received::Registration(Registration { memory, peer, command }))
    }
}

/// Returns a connection that is pending at a socket, unless one waits already.
fn next_of(socket: &OwnedFd, waiting: Option<&OwnedFd>, was_full: &mut bool) -> Option<OwnedFd> {
    if waiting.is_some() {
        return None;
    }
    let next = accept_with(socket, SocketFlags::CLOEXEC);
    *was_full |= next.as_ref().is_err_and(|error| *error == Errno::MFILE);
    next.ok()
}

/// Returns whether enough files can be opened beside a connection.
fn has_room_beside(connection: &OwnedFd) -> bool {
    let opened: [_; FILES_FREE_MIN] = std::array::from_fn(|_| fcntl_dupfd_cloexec(connection, 0));
    opened.iter().all(Result::is_ok)
}

/// Keeps a connection for later. If there are too many, those of strangers are closed first.
fn keep(silent: &mut Vec<Silent>, connection: OwnedFd) {
    if silent.len() == SILENT_MAX {
        let stranger = silent.iter_mut().position(|silent| !silent.is_descendant());
        silent.remove(stranger.unwrap_or(0));
    }
    silent.push(Silent { connection, since: Instant::now(), is_descendant: None });
}

impl Silent {
    /// Returns whether a descendant of ours has started it, and it still runs.
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

/// The result of reading a connection.
enum Received {
    /// Nothing yet.
    Nothing,
    /// Something that is not ours, or its end.
    Stranger,
    /// A message of ours without what it carried, as another thread took the last number that a file could have.
    Truncated,
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
    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, connect, sendmsg,
        socket_with,
    };
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    fn connected_to(address: SocketAddrUnix) -> OwnedFd {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        connect(&socket, &address).unwrap();
        socket
    }

    fn connected(session: &Session) -> OwnedFd {
        connected_to(SocketAddrUnix::new_abstract_name(session.name.as_bytes()).unwrap())
    }

    fn connected_at_the_file(session: &Session) -> OwnedFd {
        connected_to(SocketAddrUnix::new(&session.own.as_ref().unwrap().path).unwrap())
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
        session.accept_last().into_iter().map(|registration| registration.command).collect()
    }

    #[test]
    fn a_wrong_token_or_version_is_rejected() {
        let mut session = Session::open(CommandLines::Whole).unwrap();
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
            assert!(session.accept_last().is_empty() && session.silent.is_empty());
        }
        let socket = connected(&session);
        send(&socket, &right, b"x\0");
        assert_eq!(commands(&mut session), ["x"]);
    }

    /// The kernel drops a file that the receiver has no number for.
    #[test]
    fn a_registration_whose_memory_did_not_arrive_is_spoken_of_and_a_strangers_is_not() {
        let mut session = Session::open(CommandLines::Whole).unwrap();
        let pid = std::process::id();
        for (token, is_ours) in [([0; 16], false), (session.token, true)] {
            let socket = connected(&session);
            let bytes = Handshake { magic: HANDSHAKE_MAGIC, version: SHARED_VERSION, pid, token }.to_bytes();
            rustix::net::send(&socket, &bytes, SendFlags::empty()).unwrap();
            assert!(session.accept_last().is_empty());
            assert_eq!(session.was_full(), is_ours);
        }
    }

    #[test]
    fn a_silent_connection_delays_no_registration() {
        let mut session = Session::open(CommandLines::Whole).unwrap();
        let silent = connected(&session);
        assert!(session.accept_last().is_empty());
        let other = connected(&session);
        register(&session, &other, b"second\0word\0");
        assert_eq!(commands(&mut session), ["second word"]);
        // A process that was stopped goes on.
        register(&session, &silent, b"first\0");
        assert_eq!(commands(&mut session), ["first"]);
    }

    #[test]
    fn silent_connections_are_closed_and_registrations_are_accepted_in_batches() {
        let mut session = Session::open(CommandLines::Whole).unwrap();
        let silent: Vec<OwnedFd> = (0..3 * SILENT_MAX).map(|_| connected(&session)).collect();
        let speaking: Vec<OwnedFd> = (0..6).map(|_| connected(&session)).collect();
        speaking.iter().for_each(|socket| register(&session, socket, b"x\0"));
        let mut passes = Vec::new();
        while passes.iter().sum::<usize>() < speaking.len() {
            passes.push(session.accept_last().len());
            assert!(session.silent.len() <= SILENT_MAX);
        }
        assert!(passes.iter().all(|came| *came <= 4), "{passes:?}");
        drop(silent);
        assert!(session.accept_last().is_empty());
        assert!(session.silent.is_empty(), "who has gone is forgotten");
    }

    #[test]
    fn a_flood_of_the_abstract_socket_does_not_delay_the_file_socket() {
        let mut session = Session::open(CommandLines::Whole).unwrap();
        let crowd: Vec<OwnedFd> = (0..1000).map(|_| connected(&session)).collect();
        for _ in 0..3 {
            let own = connected_at_the_file(&session);
            register(&session, &own, b"own\0");
            let came = session.accept_pending();
            assert_eq!(came.len(), 1);
            assert_eq!(came[0].peer.pid, std::process::id());
        }
        assert!(session.is_crowded && session.rests_until > Instant::now(), "they are looked at rarely");
        drop(crowd);
    }

    #[test]
    fn the_socket_file_is_private_and_removed_with_the_session() {
        use std::os::unix::fs::PermissionsExt;
        let session = Session::open(CommandLines::Whole).unwrap();
        let path = session.own.as_ref().unwrap().path.clone();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(session.variable().ends_with(path.to_str().unwrap()));
        drop(session);
        assert!(!path.exists());
        // One that was killed leaves its file, until the next one comes.
        let session = Session::open(CommandLines::Whole).unwrap();
        let left = path.with_file_name("session-left");
        drop(listening(|socket| bind(socket, &SocketAddrUnix::new(&left)?)).unwrap());
        assert!(left.exists());
        let next = Session::open(CommandLines::Whole).unwrap();
        assert!(!left.exists());
        assert!([&session, &next].iter().all(|session| session.own.as_ref().unwrap().path.exists()));
    }

    #[test]
    fn a_silent_stranger_is_closed_after_a_timeout() {
        let mut session = Session::open(CommandLines::Whole).unwrap();
        let _stranger = connected(&session);
        assert!(session.accept_last().is_empty() && session.silent.len() == 1);
        session.silent[0].since = Instant::now().checked_sub(BREATH).unwrap();
        assert!(session.accept_last().is_empty() && session.silent.is_empty());
        // One of ours may be stopped for a while.
        let _child = connected(&session);
        assert!(session.accept_last().is_empty());
        session.silent[0].is_descendant = Some(true);
        session.silent[0].since = Instant::now().checked_sub(BREATH).unwrap();
        assert!(session.accept_last().is_empty() && session.silent.len() == 1);
        session.silent[0].since = Instant::now().checked_sub(PATIENCE).unwrap();
        assert!(session.accept_last().is_empty() && session.silent.is_empty());
    }
}
