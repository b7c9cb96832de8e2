//! mallow is asked what is to be patched in objects of this process ([`mallow_wire::plan_request`]).
//!
//! It is asked over the file beside that of the session, and answers within milliseconds: it has looked at most files before. Who has given up his rights, or
//! sees other files, cannot ask. One who waited in vain does not ask again;
//! of how many objects nothing is known stands in the header.

use crate::plan::{Mapped, Plan};
use crate::process;
use crate::session::Session;
use crate::sys::{self, SocketName, Timeout};
use core::sync::atomic::{AtomicU32, Ordering};
use mallow_wire::patches::{IMAGES_MAX, PATCHES_NONE, PLAN_BYTES_MAX, PLAN_VERSION};
use mallow_wire::plan_request::*;

/// The message's layout, with room for as many addresses as there can be.
#[repr(C)]
struct Message {
    request: PlanRequest,
    addresses: [u64; ADDRESSES_MAX],
}

const _: () = assert!(size_of::<Message>() == REQUEST_BYTES_MAX);

/// Longer than mallow needs to analyse the largest library. The loader is blocked meanwhile.
const PATIENCE_MS: usize = 3_000;

/// Asks mallow about objects, and calls `patch` with each image of its reply. Uses a page and more of memory
/// meanwhile, and little of the stack.
pub(crate) fn ask(objects: &[Mapped], patch: impl FnMut(&Plan, &mut [u32]) -> usize) {
    if objects.is_empty() {
        return;
    }
    if unanswered() > 0 {
        return note_unanswered(objects);
    }
    let Some(connection) = connect() else { return };
    if ask_over(connection, objects, patch).is_none() {
        note_unanswered(objects);
    }
    sys::close(connection);
}

static UNANSWERED: AtomicU32 = AtomicU32::new(0);

/// Returns how many objects mallow did not answer for. Read when the process registers.
pub(crate) fn unanswered() -> u32 {
    UNANSWERED.load(Ordering::Relaxed)
}

#[cold]
fn note_unanswered(objects: &[Mapped]) {
    let count = objects.len() as u32;
    let before = UNANSWERED.fetch_add(count, Ordering::Relaxed);
    if process::is_ready() {
        process::header().objects_unanswered.store(before + count, Ordering::Relaxed);
    }
}

/// The socket for questions.
#[inline(never)]
fn connect() -> Option<i32> {
    const PATH_BYTES_MAX: usize = 107;
    let session = Session::find()?;
    let mut path = [0u8; PATH_BYTES_MAX];
    let whole = session.path.len() + PATH_END.len();
    if session.path.is_empty() || whole > PATH_BYTES_MAX {
        return None;
    }
    let bytes = session.path.iter().chain(PATH_END.as_bytes());
    path.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    sys::connect(SocketName::File(path.get(..whole)?), Timeout::AtOnce)
}

/// Returns `None` when no reply came.
fn ask_over(
    connection: i32,
    objects: &[Mapped],
    mut patch: impl FnMut(&Plan, &mut [u32]) -> usize,
) -> Option<()> {
    let mut scratch = sys::Scratch::map()?;
    // SAFETY: a page of zeros is a message, and large enough for one.
    let message = unsafe { &mut *scratch.bytes().as_mut_ptr().cast::<Message>() };
    let count = objects.len().min(ADDRESSES_MAX);
    let token = Session::find()?.token;
    message.request =
        PlanRequest { magic: PLAN_REQUEST_MAGIC, version: PLAN_VERSION, count: count as u32, token };
    message.addresses.iter_mut().zip(objects).for_each(|(place, object)| *place = object.start as u64);
    let bytes = size_of::<PlanRequest>() + 8 * count;
    if !sys::send_plain(connection, scratch.bytes().get(..bytes)?) {
        return None;
    }
    let mut answer = [0u8; size_of::<PlanReply>()];
    let (received, file) = sys::receive_with_fd(connection, &mut answer, PATIENCE_MS)?;
    let (magic, plan_bytes) = answer.split_first_chunk::<8>()?;
    let is_answer = received == answer.len() && u64::from_le_bytes(*magic) == PLAN_REQUEST_MAGIC;
    let plan_bytes = u64::from_le_bytes(*plan_bytes.first_chunk()?) as usize;
    let is_nothing = is_answer && plan_bytes == 0;
    let plan = (is_answer && file >= 0 && plan_bytes <= PLAN_BYTES_MAX && plan_bytes > 0)
        .then(|| Plan::of_file(file, plan_bytes))
        .flatten();
    if file >= 0 {
        sys::close(file);
    }
    if !is_nothing {
        let plan = plan?;
        // SAFETY: the page is ours, and holds as many numbers.
        let outcomes = unsafe {
            core::slice::from_raw_parts_mut(scratch.bytes().as_mut_ptr().cast::<u32>(), IMAGES_MAX)
        };
        outcomes.fill(PATCHES_NONE);
        let patched = patch(&plan, outcomes).min(IMAGES_MAX);
        let _ = sys::send_plain(connection, scratch.bytes().get(..4 * patched)?);
    }
    Some(())
}
