//! Any bytes given to the readers of lists of requests end in targets or in one named error: never a panic, never a loop
//! without end, never more memory than the input justifies.

use super::said::said;
use mallow_load::{Url, parse_access_log, parse_flow, parse_urls};
use std::path::Path;

pub(super) fn access_log(data: &[u8]) {
    match parse_access_log(data, Path::new("access.log"), true) {
        Ok(file) => {
            let lines = data.split(|byte| *byte == b'\n').count() as u64;
            let requests: u64 = file.targets.iter().map(|target| u64::from(target.weight)).sum();
            assert!(requests >= 1 && requests <= lines);
        }
        Err(error) => said(Some(error)),
    }
}

/// Other generators' summaries: metrics or nothing, and no more failures than requests.
pub(super) fn outside(data: &[u8]) {
    if let Some(read) = mallow_load::external::read(&String::from_utf8_lossy(data)) {
        assert!(read.succeeded() <= read.requests);
    }
}

pub(super) fn urls(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // With a base, no name is looked up.
    let base = Url {
        address: ([127, 0, 0, 1], 80).into(),
        host: "localhost".to_owned(),
        is_tls: false,
        path: "/".to_owned(),
    };
    let mut attach = |_: &Path| Ok(b"attached".to_vec());
    match parse_urls(&text, Path::new("urls.txt"), Some(&base), false, &mut attach) {
        Ok(file) => {
            assert!(!file.targets.is_empty() && file.targets.iter().all(|it| it.path.starts_with('/')))
        }
        Err(error) => said(Some(error)),
    }
}

/// A flow has a step, or its file is told why not.
pub(super) fn flow(data: &[u8]) {
    match parse_flow(&String::from_utf8_lossy(data), Path::new("flow.toml")) {
        Ok(flow) => assert!(flow.names().next().is_some()),
        Err(error) => said(Some(error)),
    }
}
