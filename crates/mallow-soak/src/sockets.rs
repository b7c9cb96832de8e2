//! Which process listens where: the kernel's tables of TCP sockets, and the descriptors of processes.

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process, all_processes};
use rustc_hash::FxHashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Returns who listens at an address: `nginx (process 123)`. `None` if it is another user's process.
pub(crate) fn owner(address: SocketAddr) -> Option<String> {
    let inode = listeners().find(|found| found.local_address.port() == address.port())?.inode;
    let holds = |process: &Process| sockets(process).any(|held| held == inode);
    let stat = all_processes().ok()?.flatten().find(holds)?.stat().ok()?;
    Some(format!("{} (process {})", stat.comm, stat.pid))
}

/// Returns the addresses where these processes listen, as a local client would connect to them, sorted by port.
pub(crate) fn listening(pids: &[u32]) -> Vec<SocketAddr> {
    let processes = pids.iter().filter_map(|pid| Process::new(pid.cast_signed()).ok());
    let held: FxHashSet<u64> = processes.flat_map(|process| sockets(&process).collect::<Vec<_>>()).collect();
    let ours = listeners().filter(|listener| held.contains(&listener.inode));
    let mut addresses: Vec<SocketAddr> = ours.map(|listener| connectable(listener.local_address)).collect();
    addresses.sort_unstable_by_key(|address| (address.port(), address.ip()));
    addresses.dedup();
    addresses
}

/// Replaces "any address" by the loopback address, and an IPv4-mapped IPv6 address by its IPv4 address.
fn connectable(address: SocketAddr) -> SocketAddr {
    let ip = address.ip().to_canonical();
    let ip = if ip.is_unspecified() { IpAddr::from(Ipv4Addr::LOCALHOST) } else { ip };
    SocketAddr::new(ip, address.port())
}

/// Returns the inodes of a process's sockets.
fn sockets(process: &Process) -> impl Iterator<Item = u64> + use<> {
    process.fd().into_iter().flatten().filter_map(|descriptor| match descriptor.ok()?.target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    })
}

fn listeners() -> impl Iterator<Item = TcpNetEntry> {
    let tables = [procfs::net::tcp(), procfs::net::tcp6()];
    tables.into_iter().flatten().flatten().filter(|socket| socket.state == TcpState::Listen)
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
    fn an_address_to_connect_to_is_no_wildcard() {
        for (listens, connects) in [
            ("[::]:80", "127.0.0.1:80"),
            ("[::ffff:0.0.0.0]:80", "127.0.0.1:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(connectable(listens.parse().unwrap()), connects.parse().unwrap(), "{listens}");
        }
    }
}
