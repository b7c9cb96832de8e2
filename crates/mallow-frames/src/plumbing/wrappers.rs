//! Allocation wrappers of well-known libraries and programs: each calls the allocator on behalf of whoever called it.

use super::rule::Pattern::{Is, Starts};
use super::rule::Rule;

/// The rules, library by library.
#[rustfmt::skip]
pub(super) const WRAPPERS: &[Rule] = &[
    Rule { language: "GLib", patterns: &[
        Starts("g_malloc"), Starts("g_try_malloc"), Starts("g_realloc"), Starts("g_try_realloc"),
        Starts("g_slice_alloc"), Is("g_slice_copy"), Starts("g_aligned_alloc"), Starts("g_memdup"),
        Starts("g_rc_box_"), Starts("g_atomic_rc_box_"),
    ] },
    Rule { language: "OpenSSL", patterns: &[
        Starts("CRYPTO_malloc"), Starts("CRYPTO_zalloc"), Starts("CRYPTO_calloc"), Starts("CRYPTO_realloc"),
        Starts("CRYPTO_clear_realloc"), Starts("CRYPTO_aligned_alloc"), Starts("CRYPTO_secure_malloc"),
        Starts("CRYPTO_secure_zalloc"), Starts("CRYPTO_memdup"), Starts("CRYPTO_strdup"),
        Starts("CRYPTO_strndup"), Starts("OPENSSL_malloc"), Starts("OPENSSL_zalloc"),
        Starts("OPENSSL_realloc"),
    ] },
    Rule { language: "SQLite", patterns: &[
        Starts("sqlite3Mem"), Starts("sqlite3Malloc"), Starts("sqlite3Realloc"), Starts("sqlite3DbMalloc"),
        Starts("sqlite3DbRealloc"), Starts("sqlite3_malloc"), Starts("sqlite3_realloc"),
        Starts("dbMallocRaw"), Starts("dbRealloc"), Is("mallocWithAlarm"),
    ] },
    Rule { language: "jq", patterns: &[
        Starts("jv_mem_"),
    ] },
    Rule { language: "Swift", patterns: &[
        Starts("swift_slowAlloc"), Starts("_swift_slowAlloc"), Starts("swift::swift_slowAlloc"),
        Starts("swift_allocObject"), Starts("_swift_allocObject"), Starts("swift::swift_allocObject"),
        Starts("swift_allocBox"), Starts("swift_allocEmptyBox"), Starts("swift_bufferAllocate"),
    ] },
    Rule { language: "Apple", patterns: &[
        Starts("malloc_zone_"), Starts("_malloc_zone_"), Starts("malloc_type_"), Starts("_malloc_type_"),
    ] },
    Rule { language: "ImageMagick", patterns: &[
        Is("AcquireMagickMemory"), Is("AcquireCriticalMemory"), Is("AcquireQuantumMemory"),
        Starts("AcquireAlignedMemory"), Is("AcquireVirtualMemory"), Is("ResizeMagickMemory"),
        Is("ResizeQuantumMemory"), Starts("MagickMalloc"), Starts("MagickRealloc"),
    ] },
    Rule { language: "APR", patterns: &[
        // Memory of one of APR's pools.
        Starts("apr_palloc"), Starts("apr_pcalloc"), Is("apr_pmemdup"), Is("apr_allocator_alloc"),
        Is("allocator_alloc"), Starts("apr_pool_create"),
    ] },
    Rule { language: "talloc", patterns: &[
        // Talloc's memory.
        Starts("talloc_named"), Is("talloc_pool"), Starts("_talloc"), Starts("__talloc"),
    ] },
    Rule { language: "nginx", patterns: &[
        // Memory of one of nginx's pools.
        Is("ngx_alloc"), Is("ngx_calloc"), Is("ngx_memalign"), Starts("ngx_palloc"), Starts("ngx_pnalloc"),
        Starts("ngx_pcalloc"), Starts("ngx_pmemalign"), Starts("ngx_create_pool"),
    ] },
    Rule { language: "PostgreSQL", patterns: &[
        // Memory of one of PostgreSQL's contexts.
        Is("palloc"), Is("palloc0"), Is("palloc_extended"), Starts("repalloc"), Starts("MemoryContextAlloc"),
        Starts("AllocSetAlloc"), Starts("AllocSetRealloc"), Starts("AllocSetContextCreate"),
    ] },
    Rule { language: "Redis", patterns: &[
        Starts("zmalloc"), Starts("zcalloc"), Starts("zrealloc"), Starts("ztrymalloc"), Starts("ztrycalloc"),
        Starts("ztryrealloc"),
    ] },
    Rule { language: "PHP", patterns: &[
        Starts("_emalloc"), Starts("_ecalloc"), Starts("_erealloc"), Starts("_safe_emalloc"),
        Starts("_safe_malloc"), Starts("__zend_malloc"), Starts("__zend_calloc"), Starts("__zend_realloc"),
        Starts("zend_mm_alloc"),
    ] },
    Rule { language: "Perl", patterns: &[
        Is("Perl_safesysmalloc"), Is("Perl_safesyscalloc"), Is("Perl_safesysrealloc"),
    ] },
    Rule { language: "Lua", patterns: &[
        Is("l_alloc"), Starts("luaM_"),
    ] },
    Rule { language: "FFmpeg", patterns: &[
        Starts("av_malloc"), Starts("av_calloc"), Starts("av_realloc"), Starts("av_fast_malloc"),
        Starts("av_fast_padded_malloc"), Starts("av_fast_realloc"), Is("av_memdup"),
        // Memory of a packet or a picture, which a codec asks for.
        Starts("av_buffer_alloc"), Is("av_buffer_realloc"),
    ] },
    Rule { language: "x264", patterns: &[
        Is("x264_malloc"),
    ] },
    Rule { language: "Mozilla", patterns: &[
        Starts("moz_xmalloc"), Starts("moz_xcalloc"), Starts("moz_xrealloc"), Is("moz_xmemalign"),
        Is("moz_xmemdup"), Starts("moz_arena_malloc"), Starts("moz_arena_calloc"), Starts("moz_arena_realloc"),
        Starts("PORT_Alloc"), Starts("PORT_ZAlloc"), Starts("PORT_ArenaAlloc"), Starts("PORT_ArenaZAlloc"), Is("PR_Malloc"), Is("PR_Calloc"), Is("PR_Realloc"),
    ] },
    Rule { language: "LibreOffice", patterns: &[
        Starts("rtl_allocate"), Starts("rtl_reallocate"),
    ] },
    Rule { language: "ICU", patterns: &[
        Starts("uprv_malloc"), Starts("uprv_calloc"), Starts("uprv_realloc"),
    ] },
    Rule { language: "MariaDB", patterns: &[
        Is("my_malloc"), Is("my_realloc"), Starts("my_multi_malloc"), Is("my_memdup"),
        // Memory of one of its roots.
        Is("alloc_root"), Is("root_alloc"),
    ] },
    Rule { language: "GCC", patterns: &[
        // Memory of GCC's own collector.
        Starts("ggc_internal_"), Is("ggc_realloc"),
    ] },
    Rule { language: "Mono", patterns: &[
        Starts("monoeg_malloc"), Starts("monoeg_g_calloc"), Starts("monoeg_realloc"), Starts("monoeg_try_malloc"),
        Starts("monoeg_try_realloc"), Is("monoeg_calloc"), Is("monoeg_g_memdup"),
    ] },
    Rule { language: "OCaml", patterns: &[
        // Memory of the runtime, and room for the heap.
        Starts("caml_stat_alloc"), Starts("caml_stat_calloc"), Starts("caml_stat_resize"), Is("caml_alloc_for_heap"),
    ] },
    Rule { language: "SWI-Prolog", patterns: &[
        Starts("PL_malloc"), Starts("PL_realloc"),
    ] },
    Rule { language: "Guile", patterns: &[
        Is("scm_malloc"), Is("scm_calloc"), Is("scm_realloc"), Is("scm_gc_malloc"), Is("scm_gc_realloc"),
    ] },
    Rule { language: "Tcl", patterns: &[
        Starts("TclpAlloc"), Starts("TclpRealloc"), Is("Tcl_Alloc"), Is("Tcl_AttemptAlloc"), Is("Tcl_Realloc"),
        Is("Tcl_AttemptRealloc"), Is("Tcl_DbCkalloc"),
    ] },
    Rule { language: "Erlang", patterns: &[
        Starts("erts_sys_alloc"), Starts("erts_sys_realloc"), Starts("erts_sys_aligned_alloc"),
    ] },
    Rule { language: "R", patterns: &[
        // Memory of R's collector, which functions of R ask for.
        Starts("Rf_allocVector"), Is("Rf_allocMatrix"), Is("Rf_allocArray"), Is("R_alloc"), Is("R_chk_calloc"), Is("R_chk_realloc"),
    ] },
    Rule { language: "Haskell", patterns: &[
        Is("stgMallocBytes"), Is("stgCallocBytes"), Is("stgReallocBytes"),
    ] },
    Rule { language: "libxml2", patterns: &[
        Starts("xmlMemMalloc"), Is("xmlMallocLoc"), Is("xmlReallocLoc"), Starts("xmlMemRealloc"),
    ] },
];
