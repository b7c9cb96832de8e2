//! Leaks that system libraries are known for: what they allocate once, keep to the end of the process, and hand to nobody.
//!
//! A rule is narrower than a line of a file. The library itself must have allocated: every frame from the allocation up to the one that fits
//! belongs to one of the rule's libraries. So a function of the program that the library called, and what it handed out, stay leaks. This module
//! must never hold a rule for a function that returns memory which its caller is to free.

use super::Suppression;
use crate::{Location, Profile, StackId};

/// A rule.
#[derive(Debug, PartialEq, Eq)]
pub struct LibraryLeak {
    /// Patterns as behind `leak:`, one of which must fit a frame.
    pub patterns: &'static [&'static str],
    /// The beginnings of the file names of libraries that allocated: all frames from the allocation up to the frame that fits are of these, or of
    /// `innermost`.
    pub libraries: &'static [&'static str],
    /// If not empty, the innermost frame must be of one of these.
    pub innermost: &'static [&'static str],
    /// With more blocks a stack is no one-time leak, but one that goes on.
    pub blocks_max: u64,
    /// What it is.
    pub what: &'static str,
}

const ANY: LibraryLeak =
    LibraryLeak { patterns: &[], libraries: &[], innermost: &[], blocks_max: BLOCKS_MAX, what: "" };
/// What is made once is a few blocks of a stack: types that are registered in a loop, say.
const BLOCKS_MAX: u64 = 64;

const C: &[&str] = &["libc.so.", "libc-2."];
const C_WITH_MODULES: &[&str] =
    &["libc.so.", "libc-2.", "ld-linux", "libnss_", "libresolv", "libdl", "libpthread"];
const LOADER: &[&str] = &["ld-linux", "libc.so.", "libc-2.", "libdl"];
const GLIB: &[&str] = &[
    "libglib-2.0.",
    "libgobject-2.0.",
    "libgio-2.0.",
    "libgmodule-2.0.",
    "libgthread-2.0.",
    "libffi.",
    "libpcre",
    "libc.so.",
    "libc-2.",
    "ld-linux",
];
const FONTS: &[&str] = &[
    "libfontconfig.",
    "libexpat.",
    "libfreetype.",
    "libuuid.",
    "libz.",
    "libpng",
    "libbrotli",
    "libc.so.",
    "libc-2.",
];
const OPENSSL: &[&str] = &["libcrypto.", "libssl.", "libc.so.", "libc-2.", "ld-linux", "libdl"];
const PYTHON: &[&str] = &["libpython3", "python3", "libc.so.", "libc-2."];
const CONSTRUCTED: &[&str] = &[
    "libstdc++.",
    "libgcc_s.",
    "libglib-2.0.",
    "libgobject-2.0.",
    "libgio-2.0.",
    "libcrypto.",
    "libssl.",
    "libp11-kit.",
    "libselinux.",
    "libnss",
    "libtasn1.",
    "libgnutls.",
    "libgpg-error.",
    "libnuma.",
];
const CONSTRUCTING: &[&str] = &["ld-linux", "libc.so.", "libc-2."];

/// The rules.
pub const KNOWN_LEAKS: &[LibraryLeak] = &[
    LibraryLeak {
        patterns: &["^_IO_file_doallocate$"],
        libraries: C,
        blocks_max: 3,
        what: "buffers of stdio",
        ..ANY
    },
    LibraryLeak {
        patterns: &["^setlocale$", "^_nl_load_locale*", "^_nl_make_l10nflist$", "^__wcsmbs_load_conv$"],
        libraries: C,
        what: "the locale",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^tzset$",
            "^__tzset$",
            "^tzset_internal$",
            "^__tz_convert$",
            "^localtime$",
            "^localtime_r$",
            "^__localtime64*",
            "^mktime$",
            "^__mktime64$",
            "^timelocal$",
            "^strftime*",
            "^__strftime*",
        ],
        libraries: C,
        what: "the time zone",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^dcgettext$",
            "^__dcgettext$",
            "^dgettext$",
            "^gettext$",
            "^ngettext$",
            "^dcngettext$",
            "^__dcigettext$",
            "^textdomain$",
            "^bindtextdomain$",
            "^__gconv_load_cache$",
            "^__gconv_read_conf$",
        ],
        libraries: C_WITH_MODULES,
        what: "message catalogues, and tables of character sets",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^getpwnam*",
            "^getpwuid*",
            "^getgrnam*",
            "^getgrgid*",
            "^getspnam*",
            "^getgrouplist$",
            "^initgroups$",
            "^getservby*",
            "^getprotoby*",
            "^gethostby*",
            "^__nss_*",
        ],
        libraries: C_WITH_MODULES,
        what: "databases of users, groups, hosts and services",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^__cxa_atexit$",
            "^__cxa_at_quick_exit$",
            "^on_exit$",
            "^__new_exitfn$",
            "^__register_atfork$",
        ],
        libraries: C,
        blocks_max: 16,
        what: "lists of functions that are called at the end",
        ..ANY
    },
    LibraryLeak {
        patterns: &["^dlopen$", "^dlopen@*", "^__libc_dlopen_mode$", "^_dl_catch_exception$"],
        libraries: LOADER,
        what: "the loader's own account of libraries",
        ..ANY
    },
    LibraryLeak {
        patterns: &["ld-linux"],
        libraries: CONSTRUCTING,
        innermost: CONSTRUCTED,
        what: "constructors of system libraries",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^g_quark_from_*",
            "^g_intern_*",
            "^g_type_register_*",
            "^g_type_class_ref$",
            "^g_type_add_interface_*",
            "^g_type_init*",
            "^g_type_default_interface_ref$",
            "^g_signal_new*",
            "^g_object_class_install_propert*",
            "^g_main_context_default$",
            "^g_thread_self$",
            "^g_private_get$",
            "^g_get_charset$",
            "^g_get_filename_charsets$",
            "^g_get_home_dir$",
            "^g_get_language_names*",
            "^g_get_user_*_dir",
            "^g_get_system_*_dirs",
            "^g_set_prgname$",
            "^g_set_application_name$",
            "^g_io_extension_point_*",
            "^g_vfs_get_*",
        ],
        libraries: GLIB,
        what: "GLib's types, quarks and interned strings",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^FcInit$",
            "^FcInitBringUptoDate$",
            "^FcConfigGetCurrent$",
            "^FcConfigReference$",
            "^FcConfigEnsure$",
            "^FcGetDefaultLang*",
            "^FcObjectInit*",
        ],
        libraries: FONTS,
        what: "fontconfig's configuration",
        ..ANY
    },
    LibraryLeak {
        patterns: &["^OPENSSL_init_crypto$", "^OPENSSL_init_ssl$", "^SSL_library_init$", "^ERR_load_*"],
        libraries: OPENSSL,
        what: "OpenSSL's tables",
        ..ANY
    },
    LibraryLeak {
        patterns: &[
            "^PyUnicode_InternInPlace$",
            "^PyUnicode_InternFromString$",
            "^_PyUnicode_FromId$",
            "^PyType_Ready$",
            "^Py_Initialize*",
            "^_Py_Initialize*",
        ],
        libraries: PYTHON,
        what: "Python's interned strings, types, and its start",
        ..ANY
    },
];

/// The patterns of all rules, in their order.
pub fn known_leaks() -> Vec<Suppression> {
    let numbered =
        KNOWN_LEAKS.iter().flat_map(|known| known.patterns.iter().map(move |pattern| (known, pattern)));
    numbered
        .enumerate()
        .map(|(index, (known, pattern))| Suppression::of_rule(known, pattern, index + 1))
        .collect()
}

/// Returns the index of the suppression by a rule for each stack, if one fits.
pub(super) fn of_stacks(profile: &Profile, suppressions: &[Suppression]) -> Option<Vec<u32>> {
    let rules: Vec<(u32, &Suppression, &LibraryLeak)> =
        (0..).zip(suppressions).filter_map(|(index, one)| Some((index, one, one.known?))).collect();
    // The patterns of a rule stand together: whether a place is of its libraries is asked once.
    let fitting = |location: &Location| {
        let of_libraries = rules
            .chunk_by(|one, other| std::ptr::eq(one.2, other.2))
            .filter(|patterns| patterns.first().is_some_and(|(.., known)| known.is_by(location)));
        let fits = |one: &Suppression| location.frames.iter().any(|frame| one.fits_frame(frame));
        of_libraries.flatten().find(|(_, one, _)| fits(one))
    };
    let locations: Vec<u32> = profile
        .stacks
        .locations
        .iter()
        .map(|location| fitting(location).map_or(NONE, |rule| rule.0))
        .collect();
    if locations.iter().all(|rule| *rule == NONE) {
        return None;
    }
    let known = |rule: u32| suppressions.get(rule as usize).and_then(|one| one.known);
    let mut stacks: Vec<u32> = Vec::with_capacity(profile.stacks.nodes.len());
    for node in &profile.stacks.nodes {
        let own = locations[node.location.0 as usize];
        let outer = node.parent.map_or(NONE, |parent| stacks[parent.0 as usize]);
        let location = &profile.stacks.locations[node.location.0 as usize];
        let goes_on = || known(outer).is_some_and(|known| known.is_by(location));
        stacks.push(if own != NONE {
            own
        } else if goes_on() {
            outer
        } else {
            NONE
        });
    }
    Some(stacks)
}

/// No rule.
pub(super) const NONE: u32 = u32::MAX;

impl LibraryLeak {
    /// Returns whether a place is of one of the rule's libraries.
    fn is_by(&self, location: &Location) -> bool {
        is_of(location, self.libraries) || is_of(location, self.innermost)
    }

    /// Returns whether so many blocks of a stack on which the rule fits are what it says.
    pub(super) fn explains(&self, profile: &Profile, stack: StackId, blocks: u64) -> bool {
        let location = &profile.stacks.locations[profile.stacks.node(stack).location.0 as usize];
        blocks <= self.blocks_max && (self.innermost.is_empty() || is_of(location, self.innermost))
    }
}

/// Returns whether all frames of a location are of one of these libraries.
fn is_of(location: &Location, libraries: &[&str]) -> bool {
    location.frames.iter().all(|frame| {
        let file = frame.module.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
        file.is_some_and(|file| libraries.iter().any(|library| file.starts_with(library)))
    })
}
