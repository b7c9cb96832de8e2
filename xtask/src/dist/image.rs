//! `Dockerfile`: an image of the program, over one of Debian, from the package beside it. Nothing is fetched while it is built but the image
//! below, and no layer holds the package.

use super::Release;
use std::path::PathBuf;

/// Writes it.
pub(super) fn build(release: &Release) -> Result<PathBuf, String> {
    let path = release.out.join("Dockerfile");
    std::fs::write(&path, text(&release.version))
        .map_err(|error| format!("{} cannot be written: {error}.", path.display()))?;
    Ok(path)
}

fn text(version: &str) -> String {
    let package = format!("mallow_{version}_amd64.deb");
    format!(
        "# docker build --tag mallow target/packages\n\
         ARG BASE=docker.io/library/debian:12-slim\n\
         FROM $BASE\n\
         RUN --mount=type=bind,source={package},target=/packages/{package} dpkg --install /packages/{package}\n\
         LABEL org.opencontainers.image.title=\"mallow\" \\\n      \
         org.opencontainers.image.description=\"Heap profiler, leak finder and allocation tests for Linux\" \\\n      \
         org.opencontainers.image.version=\"{version}\" \\\n      \
         org.opencontainers.image.licenses=\"MIT OR Apache-2.0\"\n\
         ENTRYPOINT [\"mallow\"]\n"
    )
}
