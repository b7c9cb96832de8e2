//! One connection of a process that asks.

use super::unseen::UnseenLibrary;
use crate::looked_at::{Object, Role, image_of};
use crate::peer::Peer;
use crate::private_socket::is_equal;
use mallow_patches::{Image, plan_of};
use mallow_wire::patches::{IMAGES_MAX, PATCHES_NONE, PLAN_VERSION};
use mallow_wire::plan_request::{
    ADDRESSES_MAX, PLAN_REQUEST_MAGIC, PlanReply, PlanRequest, REQUEST_BYTES_MAX,
};
use rustc_hash::FxHashMap;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use std::io::{IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A process that has connected.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Arc<OwnedFd>,
    /// What the process was told to patch.
    planned: Option<Planned>,
}

/// Images that a process was told to patch; it reports the results.
#[derive(Debug)]
struct Planned {
    pid: u32,
    images: Vec<(Object, Arc<Image>)>,
}

/// The result of reading a connection.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// It has nothing more to say.
    pub(crate) is_over: bool,
    /// The libraries of a process that are not recorded.
    pub(crate) unseen: Vec<UnseenLibrary>,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd) -> Connection {
        Connection { socket: Arc::new(socket), planned: None }
    }

    /// Reads what has arrived, and answers.
    pub(crate) fn receive(&mut self, token: [u8; 16]) -> Received {
        let mut bytes = [0u8; REQUEST_BYTES_MAX];
        let received = match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((received, _)) => &bytes[..received],
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Received::default(),
            // It has gone on without the reply, and reports that itself.
            Err(_) => &[],
        };
        match self.planned.take() {
            Some(planned) => Received { is_over: true, unseen: planned.outcomes(received) },
            None => {
                let unseen = self.answer(received, token).unwrap_or_default();
                Received { is_over: self.planned.is_none(), unseen }
            }
        }
    }

    /// Answers a request; returns the libraries in which nothing can be patched. `None` for a process that is not
    /// ours, or has ended.
    fn answer(&mut self, question: &[u8], token: [u8; 16]) -> Option<Vec<UnseenLibrary>> {
        let addresses = addresses(question, token)?;
        let pid = Peer::of_connection(&self.socket)?.pid;
        let looked_at = objects(pid, &addresses).into_iter().filter_map(|(index, object)| {
            let image = image_of(&object)?;
            Some((index, object, image))
        });
        let (planned, hopeless): (Vec<_>, Vec<_>) =
            looked_at.partition(|(.., image)| image.patch_count() > 0);
        let plan = plan_of(planned.iter().map(|(index, _, image)| (*index, &**image)));
        self.send(plan.as_deref()).ok()?;
        let images = planned.into_iter().map(|(_, object, image)| (object, image)).collect();
        self.planned = plan.map(|_| Planned { pid, images });
        let unseen = |(_, object, image): &(u32, Object, Arc<Image>)| {
            UnseenLibrary::of(pid, object, image, PATCHES_NONE)
        };
        Some(hopeless.iter().filter_map(unseen).collect())
    }

    fn send(&self, plan: Option<&[u8]>) -> std::io::Result<()> {
        let plan_bytes = plan.map_or(0, <[u8]>::len) as u64;
        let answer = PlanReply { magic: PLAN_REQUEST_MAGIC, plan_bytes };
        let answer = [answer.magic.to_le_bytes(), answer.plan_bytes.to_le_bytes()].concat();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let file = plan.map(in_memory).transpose()?;
        let files = file.as_ref().map(|file| [file.as_fd()]);
        if let Some(files) = &files {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.socket, &[IoSlice::new(&answer)], &mut control, flags)?;
        Ok(())
    }
}

impl Planned {
    /// Returns the results of the images: a number each, in their order. `None` if the process has ended.
    fn outcomes(&self, received: &[u8]) -> Vec<UnseenLibrary> {
        let numbers = received.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let each = self.images.iter().zip(numbers).take(IMAGES_MAX);
        each.filter_map(|((object, image), outcome)| UnseenLibrary::of(self.pid, object, image, outcome))
            .collect()
    }
}

fn in_memory(plan: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = std::fs::File::from(memfd_create("plan", MemfdFlags::CLOEXEC)?);
    file.write_all(plan)?;
    Ok(file.into())
}

/// The addresses of a question; none when it is none, or not of this session.
fn addresses(question: &[u8], token: [u8; 16]) -> Option<Vec<u64>> {
    let (header, addresses) = question.split_first_chunk::<{ size_of::<PlanRequest>() }>()?;
    let (magic, rest) = header.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (count, its_token) = rest.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let is_ours = u64::from_le_bytes(*magic) == PLAN_REQUEST_MAGIC
        && u32::from_le_bytes(*version) == PLAN_VERSION
        && is_equal(its_token.first_chunk()?, &token)
        && count <= ADDRESSES_MAX
        && addresses.len() == 8 * count;
    let words = addresses.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    is_ours.then(|| words.collect())
}

/// Returns which files are mapped at addresses in a process, each with its place in the list, as far as they can be
/// seen from here.
fn objects(pid: u32, addresses: &[u64]) -> Vec<(u32, Object)> {
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { return Vec::new() };
    let executable = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let mapped: FxHashMap<u64, (u64, &str)> = maps.lines().filter_map(beginning).collect();
    let object = |(index, address): (usize, &u64)| {
        let (inode, path) = mapped.get(address)?;
        let role = match executable.as_deref() == Some(Path::new(path)) {
            true => Role::Executable,
            false => Role::Library,
        };
        Some((index as u32, Object { path: seen_from_here(pid, *inode, path)?, role }))
    };
    addresses.iter().enumerate().filter_map(object).collect()
}

/// Parses where a file's beginning is mapped, the file's inode and its path.
fn beginning(line: &str) -> Option<(u64, (u64, &str))> {
    // `start-end access offset device inode   path`
    let mut fields = line.splitn(6, ' ');
    let start = u64::from_str_radix(fields.next()?.split('-').next()?, 16).ok()?;
    let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    let (inode, path) = (fields.nth(1)?.parse().ok()?, fields.next()?.trim_start());
    (offset == 0 && path.starts_with('/')).then_some((start, (inode, path)))
}

/// The file of a process, where we find it: it may see other folders than we do.
fn seen_from_here(pid: u32, inode: u64, path: &str) -> Option<PathBuf> {
    let inside = format!("/proc/{pid}/root{path}");
    let is_it = |path: &Path| std::fs::metadata(path).is_ok_and(|about| about.ino() == inode);
    [PathBuf::from(path), inside.into()].into_iter().find(|path| is_it(path))
}
