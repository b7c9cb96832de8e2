//! The message with which a process hands its shared memory to the collector.
//!
//! It is followed by the sender's command line, arguments ended by zero bytes, as much of it as fits
//! [`COMMAND_BYTES_MAX`]. It travels once over a `SOCK_SEQPACKET` Unix socket, with the memory's
//! file descriptor beside it; the kernel adds the sender's credentials. Both descriptors are closed
//! afterwards: the profiled program owns none of ours.
//!
//! There are two doors. One is a file that only the user who records may connect to, so nobody else stands before it. Who has given up
//! his rights, or sees other files, comes by the other one, whose name is abstract.

/// The environment variable that carries the session: `NAME:TOKEN` or `NAME:TOKEN:PATH`, the abstract socket's name (without the
/// leading zero byte), 32 hexadecimal digits that prove the sender was started by this session, and the file.
pub const SESSION_VARIABLE: &str = "MALLOW_SESSION";

/// "mallowhi", little endian.
pub const HANDSHAKE_MAGIC: u64 = u64::from_le_bytes(*b"mallowhi");

/// The maximal length of a command line that is sent.
pub const COMMAND_BYTES_MAX: usize = 2048;

/// The message's fixed part. 32 bytes, no padding.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// [`HANDSHAKE_MAGIC`].
    pub magic: u64,
    /// [`crate::shared::SHARED_VERSION`] of the sender.
    pub version: u32,
    /// The sender's process id in its own pid namespace. The credentials carry the collector's view of it.
    pub pid: u32,
    /// The session's token.
    pub token: [u8; 16],
}

const _: () = assert!(size_of::<Handshake>() == Handshake::BYTES);

impl Handshake {
    /// Bytes of the fixed part.
    pub const BYTES: usize = 32;

    /// The bytes on the socket.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[0..8].copy_from_slice(&self.magic.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.pid.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.token);
        bytes
    }

    /// Reads the message; none when it has another length or magic.
    pub fn from_bytes(bytes: &[u8]) -> Option<Handshake> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (pid, token) = rest.split_first_chunk::<4>()?;
        let handshake = Handshake {
            magic: u64::from_le_bytes(*magic),
            version: u32::from_le_bytes(*version),
            pid: u32::from_le_bytes(*pid),
            token: token.try_into().ok()?,
        };
        (handshake.magic == HANDSHAKE_MAGIC).then_some(handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshake_round_trips_and_strangers_are_refused() {
        let handshake = Handshake { magic: HANDSHAKE_MAGIC, version: 3, pid: 77, token: [9; 16] };
        assert_eq!(Handshake::from_bytes(&handshake.to_bytes()), Some(handshake));
        assert_eq!(Handshake::from_bytes(&handshake.to_bytes()[..31]), None);
        assert_eq!(Handshake::from_bytes(&[0; 32]), None);
    }
}
