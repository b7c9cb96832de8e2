//! Before the load: is the port free, and is the server ready?

use crate::error::SoakError;
use crate::options::{Ready, Server, SoakOptions};
use crate::server::Running;
use std::fs;
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
            let how = server.stop(&mut |_| {});
            return Err(SoakError::EndedEarly { how, said_last: server.last_words() });
        }
        if is_cancelled() {
            return Err(SoakError::Interrupted);
        }
        if begun.elapsed() >= options.ready_timeout {
            let seconds = begun.elapsed().as_secs_f64();
            return Err(SoakError::NotReady { seconds, last, said_last: server.last_words() });
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

/// Who listens at an address: `nginx (process 123)`. None when it is somebody else's process.
fn owner(address: SocketAddr) -> Option<String> {
    let inode = listening_inode(address.port())?;
    let link = format!("socket:[{inode}]");
    let pids =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|to| to.as_os_str() == link.as_str())
    };
    let pid = pids.into_iter().find(holds)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} (process {pid})", name.trim()))
}

/// The inode of a socket that listens at a port, from the kernel's tables: `sl local remote state ... inode`.
fn listening_inode(port: u16) -> Option<String> {
    const LISTENING: &str = "0A";
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|path| fs::read_to_string(path).ok()).find_map(
        |table| {
            table.lines().skip(1).find_map(|line| {
                let fields: Vec<&str> = line.split_ascii_whitespace().collect();
                let (_, found) = fields.get(1)?.rsplit_once(':')?;
                let matches = u16::from_str_radix(found, 16).ok()? == port && *fields.get(3)? == LISTENING;
                matches.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_owner_of_a_port_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = owner(listener.local_addr().unwrap()).unwrap();
        assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
    }

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
