//! Requests: to the guard for a supervisor, and to a supervisor for its next command. Each is one byte and a few descriptors.

use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
};

use crate::command::CommandStreams;

/// The most descriptors of a request: those of [`CommandEnds`], before them the control socket of a new supervisor.
const REQUEST_FDS: usize = 2 + CommandStreams::MAX_FDS;

/// Sends a request, with these descriptors: to a supervisor, the supervisor's end of a command's socket, then the streams of the command;
/// to the guard, the control socket of the supervisor that it is to fork before these. Does not block.
///
/// # Errors
/// [`Errno::AGAIN`] when the other end is behind; [`Errno::PIPE`] and its like when it is gone.
pub(crate) fn send_request(control: impl AsFd, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REQUEST_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(fds));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(control, &[IoSlice::new(b"s")], &mut ancillary, flags).map(drop)
}

/// What comes with a request.
pub(super) enum Request {
    /// These descriptors.
    Fds(Vec<OwnedFd>),
    /// The daemon is gone, or needs the receiver no longer.
    End,
}

/// Receives a request.
///
/// # Errors
/// The system's; [`Errno::AGAIN`] when `flags` say not to wait and there is none.
pub(super) fn receive_request(control: impl AsFd, flags: RecvFlags) -> Result<Request, Errno> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REQUEST_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let received = match recvmsg(control, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC | flags) {
        Ok(message) => message.bytes,
        Err(Errno::CONNRESET) => 0,
        Err(error) => return Err(error),
    };
    if received == 0 {
        return Ok(Request::End);
    }
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(Request::Fds(fds.flatten().collect()))
}

/// A supervisor's end of the socket of one command, and the command's ends of its streams.
pub(super) struct CommandEnds {
    pub(super) socket: UnixStream,
    pub(super) streams: Vec<OwnedFd>,
}

impl CommandEnds {
    /// `None` for a request without descriptors.
    pub(super) fn of(fds: impl IntoIterator<Item = OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter();
        Some(Self { socket: fds.next()?.into(), streams: fds.collect() })
    }
}
