//! TLS: which servers are trusted and which not, over either protocol, with certificates that are created here.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mallow_load::{
    Amount, Endpoint, Generator, Load, LoadError, Order, Protocol, Target, Tls, Trust, status_of,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server's certificate in rustls's type, and as a file that a client would name.
struct Identity {
    config: ServerConfig,
    file: NamedTempFile,
}

/// How a server's certificate is created.
#[derive(Clone, Copy, PartialEq)]
enum Made {
    /// Signed by an authority, which is in the file.
    Signed,
    /// Self-signed, and an authority, as `openssl req -x509` creates it.
    BySelf,
    /// Signed by an authority, and expired.
    Expired,
}

fn identity(made: Made, names: &[&str], offer: &[&[u8]]) -> Identity {
    let mut params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    if made == Made::Expired {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let (certificate, pem) = if made == Made::BySelf {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let pem = certificate.pem();
        (certificate, pem)
    } else {
        let mut of_authority = CertificateParams::new(Vec::new()).unwrap();
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(of_authority, KeyPair::generate().unwrap()).unwrap();
        (params.signed_by(&key, &authority).unwrap(), authority.pem())
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    config.alpn_protocols = offer.iter().map(|name| name.to_vec()).collect();
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    Identity { config, file }
}

#[derive(Default)]
struct Observed {
    connections: usize,
    /// The number of connections that sent close_notify before they ended.
    goodbyes: usize,
    names: Vec<Option<String>>,
    versions: Vec<hyper::Version>,
}

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Observed>>,
}

fn serve(config: ServerConfig) -> Server {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Observed::default()));
    let (shared, acceptor) = (Arc::clone(&seen), TlsAcceptor::from(Arc::new(config)));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(one(stream, acceptor.clone(), Arc::clone(&shared)));
            }
        });
    });
    Server { address, seen }
}

async fn one(stream: tokio::net::TcpStream, acceptor: TlsAcceptor, seen: Arc<Mutex<Observed>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let session = stream.get_ref().1;
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    {
        let mut seen = seen.lock().unwrap();
        seen.connections += 1;
        seen.names.push(session.server_name().map(str::to_owned));
    }
    let shared = Arc::clone(&seen);
    let service = service_fn(move |request: Request<Incoming>| {
        shared.lock().unwrap().versions.push(request.version());
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello")))) }
    });
    // Without close_notify, rustls reports the end of the stream as an error.
    let ended = if is_http2 {
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder.serve_connection(TokioIo::new(stream), service).await
    } else {
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    };
    seen.lock().unwrap().goodbyes += usize::from(ended.is_ok());
}

fn endpoint(address: SocketAddr, trust: Trust, name: &str) -> Endpoint {
    let tls = Some(Tls { trust, name: name.to_owned() });
    Endpoint { address, host: format!("{name}:{}", address.port()), tls }
}

fn load(endpoint: Endpoint) -> Load {
    Load {
        flow: None,
        endpoint,
        targets: vec![Target::get("/hello")],
        order: Order::Sequential,
        protocol: None,
        connections: 3,
        keep_alive: true,
        rate: None,
        timeout: Duration::from_secs(10),
        threads: Some(2),
    }
}

fn file(identity: &Identity) -> Trust {
    Trust::File(identity.file.path().to_owned())
}

fn refused(load: Load) -> String {
    Generator::start(load).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_signed_certificate_is_good_and_the_server_chooses_the_protocol() {
    for (offer, protocol, version, connections) in [
        (&[b"h2".as_slice(), b"http/1.1"][..], Protocol::Http2, hyper::Version::HTTP_2, 2),
        (&[b"http/1.1".as_slice()], Protocol::Http1, hyper::Version::HTTP_11, 3),
        (&[], Protocol::Http1, hyper::Version::HTTP_11, 3),
    ] {
        let identity = identity(Made::Signed, &["localhost"], offer);
        let server = serve(identity.config.clone());
        let mut generator =
            Generator::start(load(endpoint(server.address, file(&identity), "localhost"))).unwrap();
        assert_eq!(generator.protocol(), protocol);
        let metrics = generator.run(Amount::Requests(100), None);
        assert_eq!((metrics.succeeded, metrics.body_bytes), (100, 500), "{:?}", metrics.failures);
        generator.close();
        let end = std::time::Instant::now() + Duration::from_secs(5);
        // In addition to those for requests there is the handshake that negotiated the protocol. HTTP/2 is not
        // started there, and no server counts that as a proper end.
        let goodbyes = connections + usize::from(protocol == Protocol::Http1);
        while server.seen.lock().unwrap().goodbyes < goodbyes && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        let seen = server.seen.lock().unwrap();
        assert_eq!((seen.connections, seen.goodbyes), (connections + 1, goodbyes));
        assert!(seen.versions.iter().all(|seen| *seen == version), "{:?}", seen.versions);
        assert!(seen.names.iter().all(|name| name.as_deref() == Some("localhost")), "{:?}", seen.names);
    }
}

#[test]
fn each_request_may_have_a_connection_of_its_own() {
    let identity = identity(Made::Signed, &["localhost"], &[b"http/1.1"]);
    let server = serve(identity.config.clone());
    let load = Load { keep_alive: false, ..load(endpoint(server.address, file(&identity), "localhost")) };
    let metrics = Generator::start(load).unwrap().run(Amount::Requests(30), None);
    assert_eq!((metrics.succeeded, server.seen.lock().unwrap().connections), (30, 31));
}

#[test]
fn a_certificate_that_was_given_itself_is_good_for_its_names() {
    let identity = identity(Made::BySelf, &["127.0.0.1"], &[]);
    let server = serve(identity.config.clone());
    let good = endpoint(server.address, file(&identity), "127.0.0.1");
    assert_eq!(status_of(&good, None, "/", Duration::from_secs(5)).unwrap(), 200);
    let other = endpoint(server.address, file(&identity), "localhost");
    let said = refused(load(other));
    assert!(said.contains("its certificate is for '127.0.0.1' and not for 'localhost'"), "{said}");
    let said = refused(load(endpoint(server.address, Trust::System, "127.0.0.1")));
    assert!(said.contains(": its certificate is that of an authority, which may not"), "{said}");
}

#[test]
fn who_is_not_trusted_is_told_of_with_a_cure() {
    let signed = identity(Made::Signed, &["a.example", "b.example"], &[]);
    let server = serve(signed.config.clone());
    let said = |trust: Trust, name: &str| refused(load(endpoint(server.address, trust, name)));
    let port = server.address.port();
    assert_eq!(
        said(Trust::System, "a.example"),
        format!(
            "there is no TLS with https://a.example:{port}: no authority that this system knows has signed its certificate; name its \
             authority, or the certificate itself, with --cacert FILE, or do without with --insecure"
        )
    );
    let other = identity(Made::Signed, &["a.example"], &[]);
    assert!(
        said(file(&other), "a.example").contains("' has signed its certificate; --insecure does without")
    );
    assert!(
        said(file(&signed), "c.example").ends_with(
            "its certificate is for 'a.example', 'b.example' and not for 'c.example'; ask for it by that name, with --sni NAME if need \
             be, or do without with --insecure"
        ),
        "{}",
        said(file(&signed), "c.example")
    );
    assert_eq!(said(file(&signed), "b.example"), "");
    assert_eq!(said(Trust::AnyCertificate, "c.example"), "");
}

#[test]
fn a_certificate_whose_time_is_over_is_told_of() {
    let expired = identity(Made::Expired, &["localhost"], &[]);
    let server = serve(expired.config.clone());
    let said = refused(load(endpoint(server.address, file(&expired), "localhost")));
    assert!(said.contains("its certificate expired ") && said.contains(" days ago"), "{said}");
}

#[test]
fn what_speaks_something_else_is_told_of() {
    let plain = crate::server::Server::start(|_| crate::server::Reply::Answer(200, ""));
    let said = refused(load(endpoint(plain.address, Trust::AnyCertificate, "localhost")));
    assert!(said.contains("perhaps ") && said.contains("http"), "{said}");
    let identity = identity(Made::Signed, &["localhost"], &[b"http/1.1"]);
    let server = serve(identity.config.clone());
    let http2 = Load {
        protocol: Some(Protocol::Http2),
        ..load(endpoint(server.address, file(&identity), "localhost"))
    };
    let said = refused(http2);
    assert!(said.contains("(ALPN)"), "{said}");
}

#[test]
fn a_file_without_certificates_is_refused_before_there_is_a_server() {
    let empty = NamedTempFile::new().unwrap();
    let nowhere = || "127.0.0.1:1".parse().unwrap();
    let fault = |path: PathBuf| Generator::check(&load(endpoint(nowhere(), Trust::File(path), "localhost")));
    let said = fault(empty.path().to_owned()).unwrap_err().to_string();
    assert!(said.ends_with("it holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)"), "{said}");
    assert!(matches!(fault("/nonexistent".into()), Err(LoadError::CannotRead { .. })));
}
