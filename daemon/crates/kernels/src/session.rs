//! The kernels of one session.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agentd_process::ProcessGroup;
use tokio::sync::Mutex as FairMutex;

use crate::{
    kernel::KernelHandle,
    language::Language,
    pool::KernelPool,
    start::{KernelTerms, start},
};

/// The kernels of a session: one for each language, folder and interpreter. Cheap to clone; all clones are the same. They end with the last
/// clone, with their process group, or when they have been idle for long.
#[derive(Debug, Clone)]
pub struct SessionKernels(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: KernelPool,
    processes: ProcessGroup,
    slots: Mutex<HashMap<SlotKey, Arc<Slot>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SlotKey {
    language: Language,
    cwd: PathBuf,
    interpreter: PathBuf,
}

/// The place of one kernel, whether it runs or not.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Held by the call whose cell runs.
    pub(crate) kernel: Arc<FairMutex<SlotKernel>>,
    /// The id of that call.
    running: Mutex<Option<String>>,
}

/// The kernel of a slot, as of the last call.
#[derive(Debug, Default)]
pub(crate) struct SlotKernel {
    handle: Option<KernelHandle>,
}

/// A kernel to run a cell in.
pub(crate) struct ReadyKernel {
    pub(crate) handle: KernelHandle,
    /// What the model has to know: that the state of earlier cells is gone.
    pub(crate) notice: Option<String>,
}

impl SessionKernels {
    /// No kernels yet, of a session with these processes.
    #[must_use]
    pub fn new(pool: KernelPool, processes: ProcessGroup) -> Self {
        Self(Arc::new(Inner { pool, processes, slots: Mutex::default() }))
    }

    /// The pool that they are of.
    pub(crate) fn pool(&self) -> &KernelPool {
        &self.0.pool
    }

    pub(crate) fn slot(&self, language: &Language, cwd: &Path, interpreter: &Path) -> Arc<Slot> {
        let key =
            SlotKey { language: language.clone(), cwd: cwd.to_owned(), interpreter: interpreter.to_owned() };
        let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(key).or_default())
    }

    /// The kernel of a slot, started where none runs.
    ///
    /// Cancel safety: if dropped, a kernel that was being started is killed.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(crate) async fn ready(
        &self,
        slot: &mut SlotKernel,
        terms: &KernelTerms,
    ) -> Result<ReadyKernel, String> {
        let notice = match &slot.handle {
            Some(handle) if !handle.is_gone() => {
                return Ok(ReadyKernel { handle: handle.clone(), notice: None });
            }
            Some(handle) => {
                let why = handle.end.why().unwrap_or_else(|| "it ended".to_owned());
                Some(format!(
                    "The {} kernel of earlier cells is gone: {why}. A new one was started; variables, imports and functions of before are \
                     not there.",
                    terms.language.title()
                ))
            }
            None => None,
        };
        let handle = start(&self.0.processes, &self.0.pool, terms).await?;
        slot.handle = Some(handle.clone());
        Ok(ReadyKernel { handle, notice })
    }
}

impl SlotKernel {
    /// Ends the kernel, and waits until nothing of it is left. The next one starts without a notice.
    pub(crate) async fn end(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.end.wanted.cancel();
            handle.end.gone.cancelled().await;
        }
    }
}

impl KernelHandle {
    fn is_gone(&self) -> bool {
        self.end.why().is_some() || self.cells.is_closed()
    }
}

impl Slot {
    /// Notes the call that runs; refuses one that the running call's own cell makes, which would wait for itself.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(crate) fn check_nesting(&self, call_id: &str) -> Result<(), String> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &*running {
            Some(outer) if call_id.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('/')) => {
                Err("A cell cannot run another cell in its own kernel: call the code itself.".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn runs(&self, call_id: Option<&str>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = call_id.map(str::to_owned);
    }
}
