//! Profiles as other tools' files, one file per format.
