//! Clients that run cells of the tool `eval` instead of a kernel.

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use agentd_kernels::{CellExecutor, CellExecutors, ExecutorCell, ExecutorEnd};
use agentd_protocol::{
    client_tools::ToolCancelReason,
    error::{ErrorCode, Failure},
    eval_executor::{EvalCancel, EvalRequest},
    tool::ToolResult,
};
use futures::future::BoxFuture;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    calls::Answer,
    request_ends::{CallOf, Leaving, Over},
    tool::{CallLimits, ClientToolRequest, ProvidingClient},
};
use crate::reply::encode;

/// The languages of a session's clients. It outlives the session's stay in memory. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct EvalExecutors(Arc<Mutex<Vec<ExecutedLanguage>>>);

/// A language, and the client that runs its cells.
#[derive(Clone)]
struct ExecutedLanguage {
    language: String,
    provider: Arc<ProvidingClient>,
}

impl EvalExecutors {
    fn lock(&self) -> MutexGuard<'_, Vec<ExecutedLanguage>> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client runs cells of exactly these languages from here on.
    pub(super) fn replace(
        &self,
        provider: &Arc<ProvidingClient>,
        languages: Vec<String>,
    ) -> Result<(), Failure> {
        let mut all = self.lock();
        let of_others = |executed: &&ExecutedLanguage| executed.provider.id() != provider.id();
        let taken = all.iter().filter(of_others).find(|executed| languages.contains(&executed.language));
        if let Some(ExecutedLanguage { language, provider }) = taken {
            let text = format!("Cells of {language} are run by another client ({}).", provider.client);
            return Err(Failure::new(ErrorCode::InvalidField, text)
                .hint("One client of a session runs the cells of a language: leave it out, or wait until that client has left."));
        }
        all.retain(|executed| executed.provider.id() != provider.id());
        let executed = |language| ExecutedLanguage { language, provider: Arc::clone(provider) };
        all.extend(languages.into_iter().map(executed));
        Ok(())
    }

    /// A client runs none any more.
    pub(super) fn remove(&self, provider: u64) {
        self.lock().retain(|executed| executed.provider.id() != provider);
    }

    fn find(&self, language: &str) -> Option<Arc<ProvidingClient>> {
        let all = self.lock();
        let found = all.iter().find(|executed| executed.language == language)?;
        Some(Arc::clone(&found.provider))
    }
}

/// The way to the executors of a session, for what is made before the session has clients. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct EvalExecutorsLink(Arc<OnceLock<EvalExecutors>>);

impl EvalExecutorsLink {
    /// Only the first counts: a session in memory has one.
    pub(crate) fn set(&self, executors: EvalExecutors) {
        let _ = self.0.set(executors);
    }

    /// The executors for the tool, with these limits of their answers.
    pub(crate) fn for_tool(&self, limits: CallLimits) -> Arc<dyn CellExecutors> {
        Arc::new(SessionExecutors { link: self.clone(), limits })
    }
}

struct SessionExecutors {
    link: EvalExecutorsLink,
    limits: CallLimits,
}

impl CellExecutors for SessionExecutors {
    fn executor(&self, language: &str) -> Option<Arc<dyn CellExecutor>> {
        let provider = self.link.0.get()?.find(language)?;
        Some(Arc::new(ClientExecutor { provider, max_bytes: self.limits.max_result_bytes }))
    }
}

/// Sends cells to a client.
struct ClientExecutor {
    provider: Arc<ProvidingClient>,
    max_bytes: usize,
}

impl ClientExecutor {
    async fn ask(
        &self,
        cell: ExecutorCell,
        printed: mpsc::UnboundedSender<String>,
        stop: &CancellationToken,
    ) -> ExecutorEnd {
        let ExecutorCell { call_id, language, code, title, timeout, reset, cwd } = cell;
        let provider = &self.provider;
        let of = CallOf::Cell { language: language.clone() };
        let (id, answer) = provider.calls.open_cell(provider.id(), of.clone(), self.max_bytes, printed);
        let request = EvalRequest {
            id: id.clone(),
            tool_call_id: call_id,
            language,
            code,
            title,
            timeout: timeout.map(|limit| limit.as_secs_f64()),
            reset,
            cwd: cwd.display().to_string(),
            session_id: provider.session_id.clone(),
        };
        let line = match encode(&request.into()) {
            Ok(line) => line,
            Err(error) => return ExecutorEnd::Lost(format!("The cell cannot be sent: {error}.")),
        };
        let request = ClientToolRequest::new(provider, &id, line);
        let asked = async {
            provider.requests.send(request).await;
            answer.await
        };
        let too_late = async {
            match timeout {
                Some(limit) => sleep(limit).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = asked => match answer {
                Ok(Answer::Cell(result)) => {
                    let result = *result;
                    let content = agentd_protocol::client_tools::ClientToolResult {
                        content: result.content,
                        ..Default::default()
                    };
                    ExecutorEnd::done(ToolResult::from(content).content, result.error)
                }
                Ok(Answer::Failed(why)) => ExecutorEnd::Lost(why),
                // Only answers to other requests bring these, which this one refuses.
                Ok(Answer::Result(_) | Answer::Url(_)) | Err(_) => {
                    ExecutorEnd::Lost(Leaving::Disconnected.text(&of))
                }
            },
            () = stop.cancelled() => {
                self.take_back(id, Over::Aborted, ToolCancelReason::Aborted);
                ExecutorEnd::Aborted
            }
            () = too_late => {
                self.take_back(id, Over::TimedOut, ToolCancelReason::Timeout);
                ExecutorEnd::TimedOut
            }
        }
    }

    /// Nobody waits for the answer any more; a client that knows of the cell is told so.
    fn take_back(&self, target_id: String, over: Over, reason: ToolCancelReason) {
        let provider = &self.provider;
        if provider.calls.give_up(&target_id, over) {
            let (id, session_id) = (Uuid::new_v4().to_string(), provider.session_id.clone());
            provider.tell(&EvalCancel { id, target_id, reason, session_id }.into());
        }
    }
}

impl CellExecutor for ClientExecutor {
    fn run<'a>(
        &'a self,
        cell: ExecutorCell,
        printed: mpsc::UnboundedSender<String>,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, ExecutorEnd> {
        Box::pin(self.ask(cell, printed, stop))
    }
}
