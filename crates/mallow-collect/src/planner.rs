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
use std::sync::{Arc, Mutex, PoisonError};
use unseen::UnseenLibrary;

/// The thread that answers. It ends with this.
#[derive(Debug)]
pub(crate) struct Planner {
    desk: Arc<Mutex<Desk>>,
    /// Written to when the thread is to end.
    over: Arc<OwnedFd>,
}

/// The listening socket for requests.
#[derive(Debug)]
struct Desk {
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
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let desk = Desk { socket: Arc::clone(&socket), token, connections: Vec::new(), unseen: Vec::new() };
        let desk = Arc::new(Mutex::new(desk));
        let (its_desk, its_over) = (Arc::clone(&desk), Arc::clone(&over));
        let serve = move || serve(&its_desk, &socket, &its_over);
        std::thread::Builder::new().name("plans".into()).spawn(serve).ok()?;
        Some(Planner { desk, over })
    }

    /// Returns sentences about the libraries of a process, each of them once. Messages that have arrived are
    /// processed first.
    pub(crate) fn unseen_of(&self, pid: u32) -> Vec<String> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        desk.attend();
        desk.unseen.extract_if(.., |library| library.pid == pid).map(|library| library.sentence()).collect()
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.over, &1u64.to_ne_bytes());
    }
}

/// Waits for questions until it is over.
fn serve(desk: &Mutex<Desk>, socket: &PrivateSocket, over: &OwnedFd) {
    loop {
        let sockets: Vec<Arc<OwnedFd>> = {
            let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
            desk.attend();
            desk.connections.iter().map(|connection| Arc::clone(&connection.socket)).collect()
        };
        let mut polled = vec![PollFd::new(over, PollFlags::IN), PollFd::new(&socket.socket, PollFlags::IN)];
        polled.extend(sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut polled, None) {
            Ok(_) if polled[0].revents().is_empty() => {}
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

impl Desk {
    /// Processes messages that have arrived.
    fn attend(&mut self) {
        while let Ok(socket) = accept_with(&self.socket.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
        {
            if self.connections.len() == CONNECTIONS_MAX {
                self.connections.remove(0);
            }
            self.connections.push(Connection::new(socket));
        }
        let (token, unseen) = (self.token, &mut self.unseen);
        self.connections.retain_mut(|connection| {
            let heard = connection.hear(token);
            for library in heard.unseen {
                if unseen.len() < UNSEEN_MAX && !unseen.contains(&library) {
                    unseen.push(library);
                }
            }
            !heard.is_over
        });
    }
}
