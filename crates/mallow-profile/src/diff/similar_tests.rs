//! The last round against a twin that looks at all pairs.
