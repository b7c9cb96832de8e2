//! Parses the addresses that load is sent to, as people type them.

use crate::{Endpoint, LoadError, Tls, Trust};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The address that the host's name resolves to.
    pub address: SocketAddr,
    /// As the `host` header has it: with the port, unless that is the scheme's own.
    pub host: String,
    /// Whether it is `https`.
    pub is_tls: bool,
    /// Path and query, such as `/hello/you?a=1`.
    pub path: String,
}

/// The parts of a URL before the name lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Host and port as written; `None` if the URL is only a path.
    pub(crate) host: Option<String>,
    pub(crate) is_tls: bool,
    pub(crate) path: String,
}

const PORT: u16 = 80;
const TLS_PORT: u16 = 443;

impl Url {
    /// Returns the server as an endpoint. `name` is the name that its certificate must be valid for, if that is not the host.
    pub fn endpoint(&self, trust: Trust, name: Option<String>) -> Endpoint {
        let host = split_port(&self.host).map_or(self.host.as_str(), |(host, _)| host);
        let name = name.unwrap_or_else(|| host.to_owned());
        let tls = self.is_tls.then_some(Tls { trust, name });
        Endpoint { address: self.address, host: self.host.clone(), tls }
    }
}

/// Parses `http://host:port/path` or `https://…`; the scheme (http), the port (80, 443) and the path (`/`) may be
/// absent. Names are looked up, and IPv4 is preferred. An address of all interfaces, such as 0.0.0.0, is replaced by
/// the loopback address.
///
/// # Errors
/// For another scheme, a malformed URL, an unknown name, and, unless `allow_remote`, another machine's address.
pub fn parse_url(url: &str, allow_remote: bool) -> Result<Url, LoadError> {
    let bad = |what: String| LoadError::BadUrl { url: url.to_owned(), what };
    let parts = parts_of(url).map_err(bad)?;
    let host = parts.host.ok_or_else(|| bad("it has a path but no host".to_owned()))?;
    let default = if parts.is_tls { TLS_PORT } else { PORT };
    let address = resolve(&host, default, allow_remote).map_err(|cause| match cause {
        Unusable::Bad(what) => bad(what),
        Unusable::Remote => LoadError::NotLoopback { host: host.clone() },
    })?;
    Ok(Url { address, host, is_tls: parts.is_tls, path: parts.path })
}

enum Unusable {
    Bad(String),
    Remote,
}

/// Splits a URL into its parts. The error is a sentence.
pub(crate) fn parts_of(url: &str) -> Result<Parts, String> {
    let (rest, is_tls) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (rest, false),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (rest, true),
        // Only text before the first path separator can be a scheme: `/go?to=http://here` has none.
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => {
            return Err(format!("'{scheme}' is no scheme that is spoken here; http and https are"));
        }
        _ => (url, false),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("it has a user; put an authorization header in its place".to_owned());
    }
    let path = path_of(path)?;
    if authority.is_empty() {
        let is_path = rest.len() == url.len() && !rest.is_empty();
        return if is_path {
            Ok(Parts { host: None, is_tls, path })
        } else {
            Err("it has no host".to_owned())
        };
    }
    let default = if is_tls { TLS_PORT } else { PORT };
    Ok(Parts { host: Some(host_of(authority, default)?), is_tls, path })
}

/// Returns host and port, without the port if it is the scheme's default.
fn host_of(authority: &str, default: u16) -> Result<String, String> {
    let (name, port) = split_port(authority)?;
    let port = port.unwrap_or(default);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_address =
        name.starts_with('[') && name.ends_with(']') && name[1..name.len() - 1].parse::<Ipv6Addr>().is_ok();
    if !is_address && (name.is_empty() || !name.chars().all(is_name)) {
        return Err(format!("'{authority}' is no host"));
    }
    Ok(if port == default { name.to_owned() } else { format!("{name}:{port}") })
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let colon = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
    let Some(at) = colon else { return Ok((authority, None)) };
    match authority[at + 1..].parse() {
        Ok(port) if port > 0 => Ok((&authority[..at], Some(port))),
        _ => Err(format!("'{}' is no port; one is from 1 to 65535", &authority[at + 1..])),
    }
}

/// Returns path and query as a request line may contain them: characters outside ASCII are percent-encoded (RFC 3986,
/// section 2.1), and the fragment (`#…`), which is not sent to servers, is left out.
pub(crate) fn path_of(text: &str) -> Result<String, String> {
    let text = text.split('#').next().unwrap_or("");
    let mut path = String::with_capacity(text.len() + 1);
    if !text.starts_with('/') {
        path.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' => path.push(char::from(byte)),
            0x80.. => path.push_str(&format!("%{byte:02X}")),
            _ => return Err("a path has neither blanks nor control characters; write them as %20".to_owned()),
        }
    }
    match path.parse::<hyper::http::uri::PathAndQuery>() {
        Ok(_) => Ok(path),
        Err(error) => Err(format!("'{path}' is no path: {error}")),
    }
}

fn resolve(host: &str, default: u16, allow_remote: bool) -> Result<SocketAddr, Unusable> {
    let (name, port) = split_port(host).map_err(Unusable::Bad)?;
    let port = port.unwrap_or(default);
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let mut addresses: Vec<SocketAddr> = match literal {
        Some(address) => vec![(loopback_of_all(address), port).into()],
        None => (name, port)
            .to_socket_addrs()
            .map_err(|error| Unusable::Bad(format!("'{name}' is not the name of an address: {error}")))?
            .collect(),
    };
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let wanted = addresses.iter().find(|address| allow_remote || address.ip().to_canonical().is_loopback());
    wanted.copied().ok_or(if addresses.is_empty() {
        Unusable::Bad(format!("'{name}' is not the name of an address"))
    } else {
        Unusable::Remote
    })
}

fn loopback_of_all(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_target(url: &str) -> String {
        match parse_url(url, false) {
            Ok(url) => format!("{} {} {}", url.address, url.host, url.path),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn urls_are_read_as_people_type_them() {
        assert_eq!(
            parsed_target("http://127.0.0.1:3030/hello?a=1#top"),
            "127.0.0.1:3030 127.0.0.1:3030 /hello?a=1"
        );
        assert_eq!(parsed_target("127.0.0.1"), "127.0.0.1:80 127.0.0.1 /");
        assert_eq!(parsed_target("HTTP://localhost:80"), "127.0.0.1:80 localhost /");
        assert_eq!(parsed_target("localhost:8080?a"), "127.0.0.1:8080 localhost:8080 /?a");
        assert_eq!(parsed_target("http://[::1]:81/"), "[::1]:81 [::1]:81 /");
        assert_eq!(parsed_target("0.0.0.0:3000/grün"), "127.0.0.1:3000 0.0.0.0:3000 /gr%C3%BCn");
        assert_eq!(parsed_target("[::]:3000/go?to=http://here"), "[::1]:3000 [::]:3000 /go?to=http://here");
    }

    #[test]
    fn https_has_a_port_and_a_name_of_its_own() {
        assert_eq!(parsed_target("https://localhost/a"), "127.0.0.1:443 localhost /a");
        assert_eq!(parsed_target("HTTPS://localhost:80"), "127.0.0.1:80 localhost:80 /");
        let name = |url: &str, given: Option<&str>| {
            let endpoint = parse_url(url, false).unwrap().endpoint(Trust::System, given.map(str::to_owned));
            (endpoint.to_string(), endpoint.tls.map(|tls| tls.name))
        };
        let named = |endpoint: &str, name: &str| (endpoint.to_owned(), Some(name.to_owned()));
        assert_eq!(name("https://localhost:8443/a", None), named("https://localhost:8443", "localhost"));
        assert_eq!(name("https://[::1]/", Some("a.example")), named("https://[::1]", "a.example"));
        assert_eq!(name("http://localhost", None), ("http://localhost".to_owned(), None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let bad = |url: &str, what: &str| {
            assert_eq!(parsed_target(url), format!("'{url}' cannot be loaded: {what}"))
        };
        bad("ftp://localhost/", "'ftp' is no scheme that is spoken here; http and https are");
        bad("http:///x", "it has no host");
        bad("", "it has no host");
        bad("/x", "it has a path but no host");
        bad("localhost:70000", "'70000' is no port; one is from 1 to 65535");
        bad("localhost:0", "'0' is no port; one is from 1 to 65535");
        bad("me@localhost", "it has a user; put an authorization header in its place");
        bad("a b/", "'a b' is no host");
        bad("[::g]/", "'[::g]' is no host");
        bad("localhost/a b", "a path has neither blanks nor control characters; write them as %20");
    }

    #[test]
    fn other_machines_are_left_alone_unless_allowed() {
        assert_eq!(
            parsed_target("http://192.0.2.7/"),
            "'192.0.2.7' is not this machine; add --allow-remote to send load there"
        );
        assert_eq!(parse_url("192.0.2.7:81", true).unwrap().address, "192.0.2.7:81".parse().unwrap());
        assert_eq!(parsed_target("[::ffff:127.0.0.1]:82"), "[::ffff:127.0.0.1]:82 [::ffff:127.0.0.1]:82 /");
    }

    proptest::proptest! {
        #[test]
        fn no_url_makes_it_panic(url in "(http://|[a-z:/?#@\\[\\]]|\\PC){0,40}") {
            let _ = parts_of(&url);
        }
    }
}
