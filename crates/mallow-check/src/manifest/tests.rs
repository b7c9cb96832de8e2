//! Manifests, read.
