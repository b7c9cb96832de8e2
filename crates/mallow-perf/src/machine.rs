//! Which machine a recording was made on.

/// Returns this machine's name and its kernel's release, by which a recording says where it was made.
pub fn machine() -> Option<(String, String)> {
    let uname = rustix::system::uname();
    Some((uname.nodename().to_str().ok()?.to_owned(), uname.release().to_str().ok()?.to_owned()))
}
