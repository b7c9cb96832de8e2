//! Who listens where: the kernel's tables of TCP sockets, and the descriptors of processes.

use rustc_hash::FxHashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket that listens.
#[derive(Debug, PartialEq, Eq)]
struct Listener {
    address: SocketAddr,
    inode: String,
}

/// Who listens at an address: `nginx (process 123)`. None when it is somebody else's process.
pub(crate) fn owner(address: SocketAddr) -> Option<String> {
    let inode = listeners().into_iter().find(|found| found.address.port() == address.port())?.inode;
    let mut pids =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pid = pids.find(|pid: &u32| sockets(*pid).any(|held| held == inode))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} (process {pid})", name.trim()))
}

/// Where these processes listen, as somebody on this machine would connect to it, in the order of ports.
pub(crate) fn listening(pids: &[u32]) -> Vec<SocketAddr> {
    let held: FxHashSet<String> = pids.iter().flat_map(|pid| sockets(*pid)).collect();
    let ours = listeners().into_iter().filter(|listener| held.contains(&listener.inode));
    let mut addresses: Vec<SocketAddr> = ours.map(|listener| connectable(listener.address)).collect();
    addresses.sort_unstable_by_key(|address| (address.port(), address.ip()));
    addresses.dedup();
    addresses
}

/// Nobody connects to "any address".
fn connectable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    }
}

/// The inodes of a process's sockets.
fn sockets(pid: u32) -> impl Iterator<Item = String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|entry| {
        let to = fs::read_link(entry.path()).ok()?;
        Some(to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    })
}

fn listeners() -> Vec<Listener> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|path| fs::read_to_string(path).ok());
    tables.flat_map(|table| table.lines().skip(1).filter_map(listener).collect::<Vec<_>>()).collect()
}

/// A line `sl local remote state queues timer retransmits uid timeout inode ...` of a socket that listens.
fn listener(line: &str) -> Option<Listener> {
    const LISTENING: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (ip, port) = fields.get(1)?.rsplit_once(':')?;
    let address = SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
    (*fields.get(3)? == LISTENING).then_some(Listener { address, inode: (*fields.get(9)?).to_owned() })
}

/// Words of 32 bits in hexadecimal, each as the processor would print its own bytes: `0100007F` is 127.0.0.1.
fn ip_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let bytes = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            Some(ip.to_ipv4_mapped().map_or(ip.into(), IpAddr::from))
        }
        _ => None,
    }
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
    fn our_own_ports_are_found_and_are_addresses_that_one_can_connect_to() {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let any = TcpListener::bind("0.0.0.0:0").unwrap();
        let found = listening(&[std::process::id()]);
        assert!(found.contains(&one.local_addr().unwrap()), "{found:?}");
        let port = any.local_addr().unwrap().port();
        assert!(found.contains(&SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)), "{found:?}");
        drop(one);
        assert_eq!(listening(&[]), []);
    }

    #[test]
    fn lines_of_the_kernels_tables_are_read() {
        let line = "   0: 0100007F:0BD6 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 40 1 0";
        let expected = Listener { address: "127.0.0.1:3030".parse().unwrap(), inode: "40".into() };
        assert_eq!(listener(line), Some(expected));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(ip_of("00000000000000000000000001000000"), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(ip_of("0000000000000000FFFF00000100007F"), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!((ip_of("0100"), ip_of("zzzzzzzz"), listener("")), (None, None, None));
    }
}
