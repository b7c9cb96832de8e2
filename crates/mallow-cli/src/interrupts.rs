//! What an interrupt means once a program has ended: that nobody wants to wait for names.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::sync::Once;

/// Has signals that are meant to end us give up names that are being looked up. Those that we were told to ignore stay ignored.
pub(crate) fn end_waits_for_names() {
    static ARE_WATCHED: Once = Once::new();
    ARE_WATCHED.call_once(|| {
        let ignored = mallow_launch::IgnoredSignals::read();
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            if !ignored.has(signal) {
                let _ = flag::register(signal, mallow_lookup::abandoned());
            }
        }
    });
}
