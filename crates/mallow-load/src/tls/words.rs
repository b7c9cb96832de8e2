//! Error messages of TLS, as sentences with a cure.

use super::{Tls, Trust};
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible};
use std::io;
use std::time::Duration;

/// Explains why a handshake failed.
pub(crate) fn why(error: &io::Error, tls: &Tls) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(error) => of_error(error, tls),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server ended the connection in the middle of the handshake; perhaps it speaks plain http"
                .to_owned()
        }
        None => error.to_string(),
    }
}

fn of_error(error: &Error, tls: &Tls) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error, tls),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "what listens there does not speak TLS; perhaps http:// is meant".to_owned()
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            format!("the server knows no '{}'; --sni NAME asks for another one", tls.name)
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) | Error::NoApplicationProtocol => {
            "the server speaks none of the protocols that were offered (ALPN); leave out --http1 and --http2"
                .to_owned()
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants a certificate of its clients, and none can be given here".to_owned()
        }
        Error::AlertReceived(alert) => {
            format!("the server refuses the handshake ({alert:?}); TLS 1.2 and 1.3 are spoken here")
        }
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "the server speaks only versions of TLS before 1.2, which are not spoken here".to_owned()
        }
        error => error.to_string(),
    }
}

fn of_certificate(error: &CertificateError, tls: &Tls) -> String {
    match error {
        // An authority that was created again has its old name and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match &tls.trust {
            Trust::File(path) => format!(
                "nobody in '{}' has signed its certificate; --insecure does without",
                path.display()
            ),
            _ => "no authority that this system knows has signed its certificate; name its authority, or the certificate itself, with \
                  --cacert FILE, or do without with --insecure"
                .to_owned(),
        },
        // The same holds for a self-signed certificate, as people create it for a server of their own.
        CertificateError::Other(error) if is_an_authoritys(error) => {
            "its certificate is that of an authority, which may not stand for a server unless that very certificate is named with \
             --cacert FILE; --insecure does without"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => of_name(presented, tls),
        CertificateError::ExpiredContext { time, not_after } => {
            let since = time.as_secs().saturating_sub(not_after.as_secs());
            format!("its certificate expired {} ago; --insecure does without", in_days(since))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let until = not_before.as_secs().saturating_sub(time.as_secs());
            format!("its certificate is not valid for another {}; perhaps a clock is wrong", in_days(until))
        }
        error => format!("its certificate cannot be used ({error}); --insecure does without"),
    }
}

fn is_an_authoritys(error: &OtherError) -> bool {
    error.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// `presented` is in webpki's format: `DnsName("example.org")`, `IpAddress(127.0.0.1)`.
fn of_name(presented: &[String], tls: &Tls) -> String {
    let name = |text: &String| {
        let inner = text.split_once('(').map_or(text.as_str(), |(_, inner)| inner.trim_end_matches(')'));
        format!("'{}'", inner.trim_matches('"'))
    };
    match presented {
        [] => format!(
            "its certificate names no server (subjectAltName), so it is not for '{}'; --insecure does without",
            tls.name
        ),
        names => format!(
            "its certificate is for {} and not for '{}'; ask for it by that name, with --sni NAME if need be, or do without with --insecure",
            names.iter().map(name).collect::<Vec<_>>().join(", "),
            tls.name
        ),
    }
}

fn in_days(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    match seconds / DAY {
        0 => format!("{:?}", Duration::from_secs(seconds)),
        1 => "a day".to_owned(),
        days => format!("{days} days"),
    }
}
