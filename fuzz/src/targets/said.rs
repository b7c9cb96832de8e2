//! What every target asks of an error.

/// What did not come out as a result came out as a message that can be printed.
pub(super) fn said(error: Option<impl std::fmt::Display>) {
    if let Some(error) = error {
        assert!(!error.to_string().is_empty());
    }
}
