//! Suites, found.
