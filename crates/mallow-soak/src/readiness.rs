//! Checks before the load: is the port free, and is the server ready?

use crate::error::SoakError;
use crate::options::{Ready, Server, SoakOptions};
use crate::server::Running;
use crate::sockets::{listening, owner};
use mallow_load::status_of;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The timeout of one attempt.
const TRY: Duration = Duration::from_secs(1);
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Refuses to start a server on a port that is in use: the load would go to the wrong one.
pub(crate) fn check_port(options: &SoakOptions) -> Result<(), SoakError> {
    let (Server::Command(_), Some(address)) = (&options.server, address(&options.ready)) else {
        return Ok(());
    };
    match TcpStream::connect_timeout(&address, TRY) {
        Ok(_) => Err(SoakError::PortTaken { address, by: owner(address) }),
        Err(_) => Ok(()),
    }
}

fn address(ready: &Ready) -> Option<SocketAddr> {
    match ready {
        Ready::Listens(address) => Some(*address),
        Ready::Answers(endpoint, _) => Some(endpoint.address),
        Ready::Says(_) | Ready::AtOnce => None,
    }
}

/// Waits until the server is ready.
pub(crate) fn wait(
    options: &SoakOptions,
    server: &mut Running,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<(), SoakError> {
    let begun = Instant::now();
    loop {
        let last = match try_once(options, server) {
            Ok(()) => return Ok(()),
            Err(last) => last,
        };
        if server.has_ended() {
            let how = server.stop().how;
            return Err(SoakError::EndedEarly { how, said_last: server.last_words() });
        }
        if is_cancelled() {
            return Err(SoakError::Interrupted);
        }
        if begun.elapsed() >= options.ready_timeout {
            let seconds = begun.elapsed().as_secs_f64();
            let elsewhere = listening(&server.processes().0);
            return Err(SoakError::NotReady { seconds, last, elsewhere, said_last: server.last_words() });
        }
        std::thread::sleep(PAUSE);
    }
}

fn try_once(options: &SoakOptions, server: &Running) -> Result<(), String> {
    match &options.ready {
        Ready::AtOnce => Ok(()),
        Ready::Listens(address) => match TcpStream::connect_timeout(address, TRY) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("no server listens at {address} ({error})")),
        },
        Ready::Answers(endpoint, path) => match status_of(endpoint, options.protocol_at(endpoint), path, TRY)
        {
            Ok(status) if status < 500 => Ok(()),
            Ok(status) => Err(format!("{endpoint}{path} answers with status {status}")),
            Err(error) => Err(error.to_string()),
        },
        Ready::Says(_) if server.was_said() => Ok(()),
        Ready::Says(text) => Err(format!("it has not said '{text}'")),
    }
}
