//! The document against its schema.
