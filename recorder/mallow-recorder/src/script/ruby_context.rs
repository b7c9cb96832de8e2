//! The context of the calling thread in CRuby: found by a thread-local word, and trusted while it lives.
//!
//! The word has no name that all builds offer, so it is looked for: among the module's thread-local words it is the one that names
//! something whose thread names it as its context, and is the calling thread. 2.7 has none: there it is the word of a `pthread_key_t`, which the C library
//! keeps behind the thread pointer, and names the thread, which names its context.
//!
//! A context is a block of `malloc`'s that may be freed when its thread's script has ended and its native thread has
//! not, so it is looked at by checked reads first, and again when any context or thread was freed since ([`Trusted`]).

use super::code_log;
use super::ruby_layout::*;
use super::structures::{is_address, word, words_at};
use super::trusted::Trusted;
use crate::process;
use crate::tls;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_wire::shared::PAGE_BYTES;

/// Where the word is looked for, and where it is. Written before [`super::meet`] returns.
struct Words {
    /// From the thread pointer down to the words that are searched, and how many there are.
    words_below: AtomicUsize,
    word_count: AtomicUsize,
    /// From the thread pointer down to the word that leads to the context; 0 while it is not known.
    context_below: AtomicUsize,
    /// The offset of a context in its fiber.
    context_in_fiber: AtomicUsize,
    /// How often the word was looked for in vain.
    tries: AtomicUsize,
}

static WORDS: Words = Words {
    words_below: AtomicUsize::new(0),
    word_count: AtomicUsize::new(0),
    context_below: AtomicUsize::new(0),
    context_in_fiber: AtomicUsize::new(0),
    tries: AtomicUsize::new(0),
};

/// The word is among so many, the first of which lies so many bytes below the thread pointer in every thread.
pub(super) fn search_in(words_below: usize, word_count: usize) {
    WORDS.words_below.store(words_below, Ordering::Relaxed);
    WORDS.word_count.store(word_count, Ordering::Relaxed);
}

/// Makes ready to find contexts of a version; returns whether there is anything to search.
pub(super) fn offer(layout: &Layout) -> bool {
    // The C library's own words of a thread, which hold those of its first 32 keys.
    const LIBRARY_WORDS: usize = 288;
    if layout.named == Named::Thread {
        search_in(0, LIBRARY_WORDS);
    }
    WORDS.word_count.load(Ordering::Relaxed) != 0
}

/// Returns whether the word is known, and looks for it if it is not.
pub(super) fn is_found<const V: usize>() -> bool {
    WORDS.context_below.load(Ordering::Relaxed) != 0
        || find_context::<V>(|context| is_live::<V>(context, &mut 0))
}

/// Returns whether looking on is not worth what it costs: the C library keeps the words of keys elsewhere, as musl does.
pub(super) fn is_hopeless(layout: &Layout) -> bool {
    const TRIES: usize = 10_000;
    layout.named == Named::Thread && WORDS.tries.fetch_add(1, Ordering::Relaxed) > TRIES
}

/// Returns the calling thread's context; 0 without one.
///
/// # Safety
/// [`is_found`] has returned true, and `trusted` is the calling thread's.
#[inline(always)]
pub(super) unsafe fn context<const V: usize>(trusted: &mut Trusted) -> usize {
    // SAFETY: by contract.
    let mut context = unsafe { thread_word(WORDS.context_below.load(Ordering::Relaxed)) };
    if LAYOUTS[V].named == Named::Thread {
        let is_ours = context != 0 && trusted.holds(context, |thread, _| is_own_thread::<V>(thread));
        // SAFETY: a live thread.
        context = if is_ours { unsafe { word(context, LAYOUTS[V].thread_context) } } else { 0 };
    }
    if context != 0 && trusted.holds(context, is_live::<V>) { context } else { 0 }
}

/// A thread-local word, so many bytes below the thread pointer; one above it has the negative of its distance.
#[inline(always)]
unsafe fn thread_word(below: usize) -> usize {
    // SAFETY: by contract of the callers there is a word in every thread.
    unsafe { *(tls::control_block().wrapping_sub(below) as *const usize) }
}

/// The fiber and the thread of the calling thread's context; none for what is not that. By checked reads.
fn owners<const V: usize>(context: usize) -> Option<(usize, usize)> {
    /// A context lies in its fiber, which is a block of this size at most.
    const FIBER_BYTES: usize = 4 << 10;
    let words: [usize; CONTEXT_WORDS] = words_at(context)?;
    let [fiber, thread] = [LAYOUTS[V].context_fiber, LAYOUTS[V].context_thread]
        .map(|offset| *crate::bounds::at(&words, offset / 8));
    let at = |offset: usize| [thread.wrapping_add(offset), 8];
    let mut of_thread = [0usize; 2];
    let pieces = [at(LAYOUTS[V].thread_context), at(LAYOUTS[V].thread_native)];
    // SAFETY: there is room for two words.
    let is_read =
        is_address(thread) && unsafe { process::copy_checked(&pieces, of_thread.as_mut_ptr().cast()) };
    let [its_context, mut name] = of_thread;
    if let Some(through) = LAYOUTS[V].through {
        [name] = words_at(name.wrapping_add(through))?;
    }
    let is_within = (1..FIBER_BYTES).contains(&context.wrapping_sub(fiber));
    (is_read && its_context == context && name == tls::control_block() && is_within)
        .then_some((fiber, thread))
}

/// Returns whether something is the context of the calling thread; if so its block and that of the thread, the owner, are watched from here on.
#[cold]
fn is_live<const V: usize>(context: usize, owner: &mut usize) -> bool {
    let is_state = |block: usize| code_log::number(block) == Some(code_log::STATE);
    let in_fiber = WORDS.context_in_fiber.load(Ordering::Relaxed);
    // SAFETY: asked only of a context in a fiber that was watched, and not freed since.
    let thread_of = |context: usize| unsafe { word(context, LAYOUTS[V].context_thread) };
    if *owner != 0 && is_state(context.wrapping_sub(in_fiber)) && thread_of(context) == *owner {
        return true;
    }
    let is_ours = || owners::<V>(context);
    let Some((fiber, thread)) = is_ours() else { return false };
    let is_new = !is_state(fiber) || !is_state(thread);
    if is_new {
        code_log::keep_state(fiber);
        code_log::keep_state(thread);
    }
    // They may have been freed before they were watched.
    if is_new && is_ours() != Some((fiber, thread)) {
        return false;
    }
    WORDS.context_in_fiber.store(context - fiber, Ordering::Relaxed);
    *owner = thread;
    true
}

/// Returns whether something is the calling thread, by a checked read.
fn is_this_thread<const V: usize>(thread: usize) -> bool {
    let name = thread.wrapping_add(LAYOUTS[V].thread_native);
    is_address(thread) && process::word_checked(name) == Some(tls::control_block())
}

/// Returns whether something is the calling thread; if so it is watched from here on.
#[cold]
fn is_own_thread<const V: usize>(thread: usize) -> bool {
    is_this_thread::<V>(thread) && {
        code_log::keep_state(thread);
        // It may have been freed before it was watched.
        is_this_thread::<V>(thread)
    }
}

/// The context that a word of the calling thread leads to; 0 if it leads to none.
fn context_by<const V: usize>(below: usize) -> usize {
    // SAFETY: called for a word that the module has in every thread, or that lies in the control block's page.
    let own_word = || unsafe { thread_word(below) };
    match LAYOUTS[V].named {
        Named::Context => own_word(),
        Named::Thread => {
            let block = tls::control_block();
            let at = block.wrapping_sub(below);
            // What is searched may reach behind the C library's words.
            let is_own_page = at / PAGE_BYTES == block / PAGE_BYTES;
            let thread = if is_own_page { Some(own_word()) } else { process::word_checked(at) };
            let thread = thread.filter(|thread| is_this_thread::<V>(*thread));
            let context = |thread| process::word_checked(thread + LAYOUTS[V].thread_context);
            thread.and_then(context).unwrap_or(0)
        }
    }
}

/// The calling thread's context, seen to be that by checked reads; 0 without one.
pub(super) fn context_at_signal<const V: usize>() -> usize {
    let is_known = WORDS.context_below.load(Ordering::Relaxed) != 0
        || find_context::<V>(|context| owners::<V>(context).is_some());
    if !is_known {
        return 0;
    }
    let context = context_by::<V>(WORDS.context_below.load(Ordering::Relaxed));
    if context != 0 && owners::<V>(context).is_some() { context } else { 0 }
}

/// Finds the word that leads to the calling thread's context.
fn find_context<const V: usize>(is_it: impl Fn(usize) -> bool) -> bool {
    const WORDS_MAX: usize = 512;
    let below = WORDS.words_below.load(Ordering::Relaxed);
    let count = WORDS.word_count.load(Ordering::Relaxed).min(WORDS_MAX);
    let place = (0..count).map(|at| below.wrapping_sub(at * 8)).find(|below| {
        let context = context_by::<V>(*below);
        context != 0 && is_it(context)
    });
    // A thread that has no context leaves what another one has found.
    if let Some(place) = place {
        WORDS.context_below.store(place, Ordering::Relaxed);
    }
    place.is_some()
}
