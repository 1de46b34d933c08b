//! Seeing a daemon out.

use std::thread;

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tokio::sync::oneshot;

use crate::connect::socket::Connection;

/// Watches the end of a process, on a thread that ends with it or with us; `None` where it cannot be seen.
pub(super) fn watch(pid: u32) -> Option<oneshot::Receiver<()>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    // It stands for this process, whatever becomes of the number.
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let (ended, receiver) = oneshot::channel();
    let wait = move || {
        // Readable from its end on. Every other error means that there is nothing to wait for.
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {}
        // Nobody waits any more when the patience is over.
        let _ = ended.send(());
    };
    thread::Builder::new().name("end-of-agentd".into()).spawn(wait).ok()?;
    Some(receiver)
}

/// Waits until the daemon has closed the connection and, where it can be seen, its process has ended.
pub(super) async fn gone(mut connection: Connection, process: Option<oneshot::Receiver<()>>) {
    connection.ended().await;
    if let Some(process) = process {
        // An error is as good: the thread is gone.
        let _ = process.await;
    }
}
