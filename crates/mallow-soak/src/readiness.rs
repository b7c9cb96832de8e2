//! Before the load: is the port free, and is the server ready?

use crate::error::SoakError;
use crate::options::{Ready, Server, SoakOptions};
use crate::server::Running;
use crate::sockets::{listening, owner};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long one try may take.
const TRY: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Refuses to start a server where somebody listens already: the load would go to the wrong one.
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
        Ready::Listens(address) | Ready::Answers(address, _) => Some(*address),
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
        let last = match try_once(&options.ready, server) {
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

fn try_once(ready: &Ready, server: &Running) -> Result<(), String> {
    match ready {
        Ready::AtOnce => Ok(()),
        Ready::Listens(address) => match TcpStream::connect_timeout(address, TRY) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("nobody listens at {address} ({error})")),
        },
        Ready::Answers(address, path) => match status_of(*address, path) {
            Ok(status) if status < 500 => Ok(()),
            Ok(status) => Err(format!("http://{address}{path} answers with status {status}")),
            Err(error) => Err(format!("http://{address}{path} does not answer ({error})")),
        },
        Ready::Says(_) if server.was_said() => Ok(()),
        Ready::Says(text) => Err(format!("it has not said '{text}'")),
    }
}

/// The status of a GET, over a connection of its own.
pub(crate) fn status_of(address: SocketAddr, path: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, TRY)?;
    stream.set_read_timeout(Some(TRY))?;
    stream.set_write_timeout(Some(TRY))?;
    // In one piece: a server may answer and close before it has read a second one.
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    // The rest is read to its end, or the server would see a broken connection.
    let read = stream.take(1 << 20).read_to_end(&mut answer);
    let status = answer
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok());
    match (status, read) {
        (Some(status), _) => Ok(status),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(io::Error::other("that is no HTTP/1 answer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_status_is_read_and_anything_else_is_no_answer() {
        let answers = ["HTTP/1.1 503 Busy\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nhello", "220 mail ready\r\n"];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 512]);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert_eq!(status_of(address, "/").unwrap(), 503);
        assert_eq!(status_of(address, "/").unwrap(), 200);
        assert!(status_of(address, "/").unwrap_err().to_string().contains("no HTTP/1 answer"));
        server.join().unwrap();
        assert!(status_of(address, "/").is_err());
    }
}
