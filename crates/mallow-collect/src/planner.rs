//! Answers what processes ask about objects that are loaded into them: whether functions of an allocator are to be patched in them.
//!
//! It has a thread of its own, because whoever asks waits for the answer, and because a large library takes some tens of milliseconds. Only our own user can connect, and only who knows the session's token is answered; what he says of himself is not believed: which files lie
//! where in his memory the kernel says.
//!
//! (`mallow_wire::plan_request`)

mod connection;
mod unseen;

use crate::private_socket::PrivateSocket;
use connection::Connection;
use mallow_wire::plan_request::PATH_END;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{SocketFlags, accept_with};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use unseen::UnseenLibrary;

/// The thread that answers. It ends with this.
#[derive(Debug)]
pub(crate) struct Planner {
    server: Arc<Mutex<PlanServer>>,
    /// Wakes the thread: it is to end, or another thread has accepted connections that it does not poll yet.
    wake: Arc<OwnedFd>,
    is_over: Arc<AtomicBool>,
}

/// The listening socket for requests.
#[derive(Debug)]
struct PlanServer {
    socket: Arc<PrivateSocket>,
    token: [u8; 16],
    connections: Vec<Connection>,
    unseen: Vec<UnseenLibrary>,
}

/// Connections at a time; with more of them the oldest is closed.
const CONNECTIONS_MAX: usize = 256;
/// The maximal number of libraries that are reported.
const UNSEEN_MAX: usize = 256;

impl Planner {
    /// Starts to answer beside the session's own socket. `None` if the system has no thread or no socket left: then
    /// only functions that were planned before the start are patched.
    pub(crate) fn start(beside: &PrivateSocket, token: [u8; 16]) -> Option<Planner> {
        let socket = Arc::new(beside.beside(PATH_END)?);
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?);
        let server =
            PlanServer { socket: Arc::clone(&socket), token, connections: Vec::new(), unseen: Vec::new() };
        let server = Arc::new(Mutex::new(server));
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared_server, its_wake, its_end) =
            (Arc::clone(&server), Arc::clone(&wake), Arc::clone(&is_over));
        let serve = move || serve(&shared_server, &socket, &its_wake, &its_end);
        std::thread::Builder::new().name("plans".into()).spawn(serve).ok()?;
        Some(Planner { server, wake, is_over })
    }

    /// Returns sentences about the libraries of a process, each of them once. Messages that have arrived are
    /// processed first.
    pub(crate) fn unseen_of(&self, pid: u32) -> Vec<String> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if server.answer_requests() {
            self.wake();
        }
        server.unseen.extract_if(.., |library| library.pid == pid).map(|library| library.sentence()).collect()
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        // Without the lock: the thread may be analysing a library.
        self.is_over.store(true, Ordering::Release);
        self.wake();
    }
}

/// Waits for questions until it is over.
fn serve(server: &Mutex<PlanServer>, socket: &PrivateSocket, wake: &OwnedFd, is_over: &AtomicBool) {
    loop {
        // Before connections are looked at: those that are accepted later wake it again.
        let _ = rustix::io::read(wake, &mut [0; 8]);
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let sockets: Vec<Arc<OwnedFd>> = {
            let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
            server.answer_requests();
            server.connections.iter().map(|connection| Arc::clone(&connection.socket)).collect()
        };
        let mut polled = vec![PollFd::new(wake, PollFlags::IN), PollFd::new(&socket.socket, PollFlags::IN)];
        polled.extend(sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
        if poll(&mut polled, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
    }
}

impl PlanServer {
    /// Processes messages that have arrived. Returns whether there are new connections.
    fn answer_requests(&mut self) -> bool {
        let mut has_new = false;
        while let Ok(socket) = accept_with(&self.socket.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
        {
            if self.connections.len() == CONNECTIONS_MAX {
                self.connections.remove(0);
            }
            self.connections.push(Connection::new(socket));
            has_new = true;
        }
        let (token, unseen) = (self.token, &mut self.unseen);
        self.connections.retain_mut(|connection| {
            let received = connection.receive(token);
            for library in received.unseen {
                if unseen.len() < UNSEEN_MAX && !unseen.contains(&library) {
                    unseen.push(library);
                }
            }
            !received.is_over
        });
        has_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_wire::patches::PLAN_VERSION;
    use mallow_wire::plan_request::PLAN_REQUEST_MAGIC;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
    };

    /// A connection that the collector's own thread accepts, when it reads what has arrived, is polled too. Whether it accepts one in
    /// the moment between a process's connection and its question is chance, so it is tried many times.
    #[test]
    fn a_question_is_answered_whichever_thread_accepted_the_connection() {
        let folder = tempfile::tempdir().unwrap();
        let session = PrivateSocket::open(folder.path(), "s", "").unwrap();
        let token = [7; 16];
        let planner = Planner::start(&session, token).unwrap();
        let path = session.path.to_str().unwrap().to_owned() + PATH_END;
        let question =
            [&PLAN_REQUEST_MAGIC.to_le_bytes()[..], &PLAN_VERSION.to_le_bytes(), &0u32.to_le_bytes(), &token]
                .concat();
        for round in 0..2_000 {
            let asking = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            connect(&asking, &SocketAddrUnix::new(&path).unwrap()).unwrap();
            let _ = planner.unseen_of(1);
            send(&asking, &question, SendFlags::empty()).unwrap();
            let mut answered = [PollFd::new(&asking, PollFlags::IN)];
            let patience = rustix::time::Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(poll(&mut answered, Some(&patience)), Ok(1), "no answer in round {round}");
            let mut reply = [0; 16];
            assert_eq!(recv(&asking, &mut reply, RecvFlags::empty()).unwrap().0, 16);
        }
    }
}
