//! A disk with one failing call.

use std::{
    io::{self, Read},
    path::Path,
    sync::{Arc, Mutex},
};

use crate::io::{Disk, FileIo, FileState, Io};

/// Errors that a full, broken, read-only or forbidden disk gives, and a process with too many files: the numbers of Linux.
pub(crate) const ERRORS: [(&str, i32); 5] =
    [("ENOSPC", 28), ("EIO", 5), ("EROFS", 30), ("EACCES", 13), ("EMFILE", 24)];

/// The failing call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The call, from 0.
    pub(crate) at: usize,
    pub(crate) errno: i32,
    /// True if all later calls fail, too.
    pub(crate) stays: bool,
    /// True if a write puts half of its bytes on the disk first, and the rest fails.
    pub(crate) half: bool,
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    calls: usize,
    /// Half of a write is on the disk: its other half fails.
    is_torn: bool,
    injected: usize,
}

/// The real disk with one fault. Nothing is brought to the medium: a test that kills no power needs no such thing.
#[derive(Clone, Default)]
pub(crate) struct NthCall(Arc<Mutex<State>>);

impl NthCall {
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        Self(Arc::new(Mutex::new(State { fault, ..State::default() })))
    }

    /// From here on everything works.
    pub(crate) fn heal(&self) {
        self.0.lock().unwrap().fault = None;
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().calls
    }

    /// The number of failed calls.
    pub(crate) fn injected(&self) -> usize {
        self.0.lock().unwrap().injected
    }

    /// Passes a call. `Ok(true)`: a write that does half of its work.
    fn pass(&self, is_write: bool) -> io::Result<bool> {
        let mut state = self.0.lock().unwrap();
        let at = state.calls;
        state.calls += 1;
        let Some(fault) = state.fault else { return Ok(false) };
        let is_meant = at == fault.at || (fault.stays && at > fault.at) || state.is_torn;
        if !is_meant {
            return Ok(false);
        }
        if is_write && fault.half && !state.is_torn {
            state.is_torn = true;
            return Ok(true);
        }
        state.is_torn = false;
        state.injected += 1;
        Err(io::Error::from_raw_os_error(fault.errno))
    }

    fn file(&self, file: Box<dyn FileIo>) -> Box<dyn FileIo> {
        Box::new(NthFile { disk: self.clone(), file })
    }
}

impl Io for NthCall {
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.pass(false)?;
        Disk.open(path).map(|file| self.file(file))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.pass(false)?;
        Disk.create_new(path).map(|file| self.file(file))
    }

    fn create_dirs(&self, path: &Path) -> io::Result<()> {
        self.pass(false)?;
        Disk.create_dirs(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass(false)?;
        Disk.remove(path)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        self.pass(false)?;
        Disk.link(file, name)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(false)?;
        Disk.rename(from, to)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.pass(false).map(drop)
    }

    fn stat(&self, path: &Path) -> io::Result<FileState> {
        self.pass(false)?;
        Disk.stat(path)
    }
}

struct NthFile {
    disk: NthCall,
    file: Box<dyn FileIo>,
}

impl Read for NthFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.pass(false)?;
        self.file.read(buffer)
    }
}

impl FileIo for NthFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_half = self.disk.pass(true)?;
        let count = if is_half { bytes.len().div_ceil(2) } else { bytes.len() };
        self.file.append(&bytes[..count])
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.disk.pass(false)?;
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.pass(false).map(drop)
    }

    fn state(&self) -> io::Result<FileState> {
        self.disk.pass(false)?;
        self.file.state()
    }

    fn copy_mode(&self, of: &Path) -> io::Result<()> {
        self.disk.pass(false)?;
        self.file.copy_mode(of)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.disk.pass(false)?;
        self.file.try_lock()
    }
}
