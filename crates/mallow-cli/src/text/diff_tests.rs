//! The page as people see it.
