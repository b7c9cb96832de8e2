//! What a worker is asked. It comes from this program itself, so it is believed.

use mallow_symbols::{ModuleKey, Urgency};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Which addresses of which module, and where to look for its files. The addresses follow, and files below other roots come beside it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    path: String,
    build_id: Vec<u8>,
    debug_roots: Vec<Vec<u8>>,
    sysroot: Option<Vec<u8>>,
    /// Whether there is a server that can be asked for debug files, through whoever asks.
    pub(crate) has_server: bool,
    served: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) addresses: u64,
    is_urgent: bool,
    /// How much more memory and time it may have than usual.
    pub(crate) patience: u32,
}

/// The debug files of builds, which a server had.
pub(crate) type Served = Vec<(Vec<u8>, PathBuf)>;

impl Request {
    pub(crate) fn new(
        module: &ModuleKey,
        places: (&[PathBuf], Option<&Path>),
        served: &Served,
        urgency: Urgency,
    ) -> Request {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let (debug_roots, sysroot) = places;
        Request {
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            debug_roots: debug_roots.iter().map(|root| bytes(root)).collect(),
            sysroot: sysroot.map(bytes),
            served: served.iter().map(|(build_id, path)| (build_id.clone(), bytes(path))).collect(),
            is_urgent: urgency == Urgency::Now,
            ..Request::default()
        }
    }

    pub(crate) fn module(&self) -> ModuleKey {
        ModuleKey { path: self.path.clone(), build_id: self.build_id.clone() }
    }

    pub(crate) fn debug_roots(&self) -> Vec<PathBuf> {
        self.debug_roots.iter().map(|root| path(root)).collect()
    }

    pub(crate) fn sysroot(&self) -> Option<PathBuf> {
        self.sysroot.as_deref().map(path)
    }

    pub(crate) fn served(&self) -> Served {
        self.served.iter().map(|(build_id, place)| (build_id.clone(), path(place))).collect()
    }

    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
