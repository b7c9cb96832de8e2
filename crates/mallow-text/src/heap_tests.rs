//! The pages, as people see them.
