//! A process that stands before its first instruction, and what it is made to do there.

use crate::InjectError;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a start fails with where the system does not allow a process to be traced. No call that starts a program fails with this.
pub const NOT_ALLOWED: i32 = libc::ENOTNAM;

/// Has the calling process traced by its parent from its next program's first instruction on. Between `fork` and `exec`.
///
/// Signals are kept from it until it stands there: one that stopped it before would leave its parent waiting for a program that never begins.
///
/// # Errors
/// [`NOT_ALLOWED`], when the system does not let it be traced.
pub fn be_traced() -> io::Result<()> {
    let mut kept = SigSet::all();
    kept.remove(Signal::SIGTRAP);
    kept.thread_set_mask()?;
    ptrace::traceme().map_err(|_| io::Error::from_raw_os_error(NOT_ALLOWED))
}

/// A process of ours that stands still. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Tracee {
    pid: Pid,
    memory: File,
    /// What was sent to it meanwhile.
    pending: Vec<Signal>,
    held: Held,
}

/// A process that stands still for us, and would do so for ever. Dropped, it is killed.
#[derive(Debug)]
struct Held(Option<Pid>);

/// A system call's number and its arguments.
pub(crate) type Call = (i64, [u64; 6]);

impl Tracee {
    /// Waits for a child that asked to be traced to stand before its program's first instruction.
    pub(crate) fn wait_for_start(pid: u32) -> Result<Tracee, InjectError> {
        let pid = Pid::from_raw(pid as i32);
        let mut pending = Vec::new();
        while stopped(pid, &mut pending)? != Signal::SIGTRAP {
            ptrace::cont(pid, None).map_err(InjectError::of_trace("look at it"))?;
        }
        let held = Held(Some(pid));
        let what = InjectError::of_trace("look at it");
        ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL).map_err(what)?;
        let open = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let memory = open.map_err(InjectError::refused("write its memory"))?;
        Ok(Tracee { pid, memory, pending, held })
    }

    pub(crate) fn registers(&self) -> Result<libc::user_regs_struct, InjectError> {
        ptrace::getregs(self.pid).map_err(InjectError::of_trace("read its registers"))
    }

    pub(crate) fn set_registers(&self, registers: libc::user_regs_struct) -> Result<(), InjectError> {
        ptrace::setregs(self.pid, registers).map_err(InjectError::of_trace("set its registers"))
    }

    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), InjectError> {
        self.memory.read_exact_at(into, address).map_err(InjectError::refused("read its memory"))
    }

    /// Writes, whatever the memory's protection allows to the process itself.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), InjectError> {
        self.memory.write_all_at(bytes, address).map_err(InjectError::refused("write its memory"))
    }

    /// Has it make system calls, one after the other, from where it stands; `calls` is handed a function that makes one and gives its answer.
    /// What stands there, and its registers, are then as they were.
    pub(crate) fn calling<T>(
        &mut self,
        calls: impl FnOnce(
            &mut Tracee,
            &mut dyn FnMut(&mut Tracee, Call) -> Result<u64, InjectError>,
        ) -> Result<T, InjectError>,
    ) -> Result<T, InjectError> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let before = self.registers()?;
        let mut code = SYSCALL;
        self.read(before.rip, &mut code)?;
        self.write(before.rip, &SYSCALL)?;
        let outcome = calls(self, &mut |tracee, call| tracee.call(before, call));
        self.write(before.rip, &code)?;
        self.set_registers(before)?;
        outcome
    }

    fn call(&mut self, from: libc::user_regs_struct, (number, a): Call) -> Result<u64, InjectError> {
        let mut registers = from;
        registers.rax = number as u64;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = a;
        self.set_registers(registers)?;
        let behind = from.rip + 2;
        // A signal that comes first is kept for later.
        let after = loop {
            ptrace::step(self.pid, None).map_err(InjectError::of_trace("have it make a system call"))?;
            let signal = stopped(self.pid, &mut self.pending)?;
            let registers = self.registers()?;
            if registers.rip == behind {
                break registers;
            }
            if signal == Signal::SIGTRAP {
                let cause = io::ErrorKind::InvalidData.into();
                return Err(InjectError::Refused { what: "have it make a system call", cause });
            }
        };
        const ERRORS: i64 = 4096;
        match after.rax as i64 {
            error if (-ERRORS..0).contains(&error) => Err(InjectError::Refused {
                what: "map its library",
                cause: io::Error::from_raw_os_error(-error as i32),
            }),
            answer => Ok(answer as u64),
        }
    }

    /// Lets it go on from where it stands.
    pub(crate) fn release(mut self) -> Result<(), InjectError> {
        ptrace::detach(self.pid, None).map_err(InjectError::of_trace("let it go"))?;
        self.held.0 = None;
        // What was meant for it meanwhile.
        self.pending.iter().for_each(|signal| _ = kill(self.pid, *signal));
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.into_iter().for_each(|pid| _ = kill(pid, Signal::SIGKILL));
    }
}

/// Waits until it stands still again, and says by which signal. One that ended is left for whoever waits for it. Others than that of a trap are kept.
fn stopped(pid: Pid, pending: &mut Vec<Signal>) -> Result<Signal, InjectError> {
    loop {
        let looked = waitid(
            Id::Pid(pid),
            WaitPidFlag::WEXITED | WaitPidFlag::WSTOPPED | WaitPidFlag::WNOWAIT | WaitPidFlag::__WALL,
        );
        match looked {
            Err(Errno::EINTR) => continue,
            Err(_) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return Err(InjectError::Ended),
            Ok(_) => {}
        }
        match waitpid(pid, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Stopped(_, signal)) => {
                if signal != Signal::SIGTRAP {
                    pending.push(signal);
                }
                return Ok(signal);
            }
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::ECHILD) => {
                return Err(InjectError::Ended);
            }
            _ => {}
        }
    }
}
