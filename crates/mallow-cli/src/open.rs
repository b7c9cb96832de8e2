//! `mallow open`: a profile in a page of the browser, which fetches it from here.
//!
//! Nothing but this machine is asked by mallow: the page is the browser's to load, and the profile goes to whoever has been told its address, once.

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

/// The only port of this machine that Perfetto's page may ask.
const PERFETTO_PORT: u16 = 9001;

impl Viewer {
    /// The page's origin: who else asks gets nothing.
    fn origin(self) -> &'static str {
        match self {
            Viewer::Firefox => "https://profiler.firefox.com",
            Viewer::Speedscope => "https://www.speedscope.app",
            Viewer::Perfetto => "https://ui.perfetto.dev",
        }
    }

    /// The page's address, with that of the profile in it.
    fn page(self, profile: &str) -> String {
        let origin = self.origin();
        match self {
            Viewer::Firefox => format!("{origin}/from-url/{}", in_url(profile.as_bytes(), b"")),
            Viewer::Speedscope => format!("{origin}/#profileURL={}", in_url(profile.as_bytes(), b"")),
            // It takes the address as it is.
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

/// Offers the profile, tells the browser, and waits until it was fetched.
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

/// Has the desktop's own command open a page; false where there is none. It goes on beside us.
fn shown(page: &str) -> bool {
    let mut browser = Command::new("xdg-open");
    browser.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    browser.spawn().is_ok()
}

/// Whether a browser could be seen by whoever waits here.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// The profile as the page reads it. It lies in a file of ours for a moment, and is gone before it is offered.
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
