//! `mallow open`: shows a profile on a web page, which fetches it from this process.
//!
//! mallow itself contacts only this machine: the browser loads the page, and the profile is sent once, to whoever
//! knows its address.

mod once;

use crate::args::Viewer;
use crate::destination::Destination;
use crate::request::{Export, Open};
use crate::sources::in_url;
use crate::{exit_code, export, opening, output};
use mallow_base::hex;
use mallow_formats::export::ExportFormat;
use mallow_query::{AnyFile, Failure};
use once::{Offer, offer};
use rustix::rand::{GetRandomFlags, getrandom};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

/// The only local port that Perfetto's page may access.
const PERFETTO_PORT: u16 = 9001;

impl Viewer {
    /// The origin of the page: requests from any other get nothing.
    fn origin(self) -> &'static str {
        match self {
            Viewer::Firefox => "https://profiler.firefox.com",
            Viewer::Speedscope => "https://www.speedscope.app",
            Viewer::Perfetto => "https://ui.perfetto.dev",
        }
    }

    /// Returns the page's address, which contains that of the profile.
    fn page(self, profile: &str) -> String {
        let origin = self.origin();
        match self {
            Viewer::Firefox => format!("{origin}/from-url/{}", in_url(profile.as_bytes(), b"")),
            Viewer::Speedscope => format!("{origin}/#profileURL={}", in_url(profile.as_bytes(), b"")),
            // It uses the address unchanged.
            Viewer::Perfetto => format!("{origin}/#!/?url={profile}"),
        }
    }

    fn port(self) -> u16 {
        if self == Viewer::Perfetto { PERFETTO_PORT } else { 0 }
    }

    fn format(self) -> ExportFormat {
        if self == Viewer::Speedscope { ExportFormat::Speedscope } else { ExportFormat::Firefox }
    }
}

/// Serves the profile, starts the browser, and waits until it was fetched.
pub(crate) fn run(open: Open) -> Result<u8, Failure> {
    let (viewer, is_shown) = (open.viewer, !open.no_browser && has_screen());
    let profile = exported(viewer, open.export)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, viewer.port())).map_err(|error| {
        let why = mallow_query::reason(&error);
        let port = if viewer.port() == 0 { String::new() } else { format!(" at port {}", viewer.port()) };
        Failure::new(format!("cannot offer the profile to a page of this machine's browser{port}: {why}."))
    })?;
    let mut secret = [0_u8; 16];
    getrandom(&mut secret, GetRandomFlags::empty()).map_err(std::io::Error::from)?;
    let address = listener.local_addr()?;
    let path = format!("/{}/profile.json", hex(&secret));
    let page = viewer.page(&format!("http://{address}{path}"));
    output::to_stdout(|out| writeln!(out, "{page}"))?;
    if is_shown && !shown(&page) {
        output::warn(&["no browser could be started; open the address above in one.".to_owned()]);
    }
    output::note(&["it waits until the page has fetched the profile; Ctrl-C ends it before.".to_owned()]);
    offer(listener, Offer { path, origin: viewer.origin(), host: address.to_string(), profile })?;
    Ok(exit_code::FINE)
}

/// Opens a page with the desktop's own command; returns false if there is none. The command continues in the background.
fn shown(page: &str) -> bool {
    let mut browser = Command::new("xdg-open");
    browser.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    browser.spawn().is_ok()
}

/// Returns whether a browser would be visible to the user.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// Returns the profile in the page's format. It is in a temporary file for a moment, which is deleted before the profile is served.
fn exported(viewer: Viewer, mut export: Export) -> Result<Vec<u8>, Failure> {
    if viewer == Viewer::Perfetto && is_of_memory(&export.file)? {
        return Err(Failure::new(format!(
            "{} tells what allocated, and Perfetto shows where time went; open it with --in firefox.",
            export.file.display()
        )));
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("profile.json");
    export.format = viewer.format();
    export.output = Destination::of(Some(path.clone()), false);
    export::run(&export)?;
    Ok(std::fs::read(path)?)
}

fn is_of_memory(file: &std::path::Path) -> Result<bool, Failure> {
    let opened = opening::profile(file, mallow_profile::ReallocAttribution::OwnSite)?;
    Ok(matches!(opened, AnyFile::Heap(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_where_the_profile_is() {
        let profile = "http://127.0.0.1:4242/0a/profile.json";
        let pages =
            [Viewer::Firefox, Viewer::Speedscope, Viewer::Perfetto].map(|viewer| viewer.page(profile));
        assert_eq!(
            pages,
            [
                "https://profiler.firefox.com/from-url/http%3A%2F%2F127.0.0.1%3A4242%2F0a%2Fprofile.json",
                "https://www.speedscope.app/#profileURL=http%3A%2F%2F127.0.0.1%3A4242%2F0a%2Fprofile.json",
                "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:4242/0a/profile.json",
            ]
        );
    }
}
