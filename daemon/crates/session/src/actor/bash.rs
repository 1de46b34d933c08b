//! The commands `bash` and `abort_bash`: the user's own shell commands.

use agentd_agent::hooks::GateDecision;
use agentd_process::Shell;
use agentd_protocol::{
    Json,
    command::{BashParams, Work, WorkKind},
    error::{ErrorCode, Failure},
    message::{BashExecutionMessage, Message},
};
use agentd_store::intent_log::{BashRecord, IntentRecord};

use super::session_actor::{Actor, shutting_down};
use crate::{
    clock::now_ms,
    reply::Reply,
    requests::{CachedAnswer, CommandKind, PendingRequest, RequestKey},
    run::RunMessage,
    transcript::store_failure,
    user_bash::{
        BashEnd, BashResult, CommandPlace, RunningBash, UnstoredResult, done, may_run, placed, run_bash,
        shell_failure,
    },
};

impl Actor {
    pub(super) fn bash(&mut self, mut params: BashParams, reply: Reply) {
        let Some(request) = self.first(params.request_key.take(), CommandKind::Bash, reply) else { return };
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        self.start_bash(params, request);
    }

    pub(super) fn abort_bash(&mut self, reply: Reply) {
        self.user_bash.abort_all();
        reply.done(&self.feed);
    }

    /// Starts a command; its end is answered by [`Actor::on_bash_end`].
    fn start_bash(&mut self, params: BashParams, request: PendingRequest) {
        self.user_bash.last += 1;
        let number = self.user_bash.last;
        let (id, name) = (request.id().cloned(), Some(params.command.clone()));
        let work = Work { kind: WorkKind::Bash, id, name };
        let since_ms = now_ms();
        self.user_bash.running.push(RunningBash {
            number,
            work: work.clone(),
            since_ms,
            waiting: Vec::new(),
        });
        let cancel = self.user_bash.cancel.child_token();
        let (context, to_actor) = (std::sync::Arc::clone(&self.context), self.to_actor.clone());
        let (intent_log, feed) = (self.journal.intent_log().clone(), self.feed.clone());
        let environment = self.environment_of(Some(&request));
        self.tell_extensions();
        let begun = IntentRecord::Bash(BashRecord {
            number,
            at: since_ms,
            command: params.command.clone(),
            exclude_from_context: params.exclude_from_context,
            request_key: request.key().map(ToString::to_string),
        });
        self.tasks.spawn(async move {
            let result = match may_run(&context, &params.command, &cancel).await {
                GateDecision::Free { .. } => {
                    let run = async {
                        let place = placed(&context, &params, &cancel).await?;
                        let shell: Option<&dyn Shell> = match &place {
                            CommandPlace::Usual => None,
                            CommandPlace::Elsewhere(shell) => Some(shell),
                            CommandPlace::Done(_) => None,
                        };
                        intent_log.intend(vec![begun]).await.map_err(|error| store_failure(&error))?;
                        if let CommandPlace::Done(result) = place {
                            return Ok(result);
                        }
                        let job = (work, params.command.as_str(), environment);
                        let output =
                            (&to_actor, (|event| RunMessage::BashOutput { event }) as fn(_) -> _, &feed);
                        let ran =
                            run_bash((&context, shell), job, request.id(), output, cancel.clone()).await;
                        ran.map(BashResult::from).map_err(|error| shell_failure(&error))
                    };
                    run.await
                }
                GateDecision::Blocked { reason, .. } => Err(Failure::new(ErrorCode::Forbidden, reason)),
                GateDecision::Stopped => Ok(BashResult { cancelled: true, ..BashResult::default() }),
            };
            let end = BashEnd { number, request, params, result };
            // Without the actor there is nobody to tell.
            let _ = to_actor.send(RunMessage::BashEnded(Box::new(end))).await;
        });
    }

    pub(super) async fn on_bash_end(&mut self, end: BashEnd) {
        let BashEnd { number, request, params, result } = end;
        let at = self.user_bash.running.iter().position(|running| running.number == number);
        let running = at.map(|at| self.user_bash.running.remove(at));
        let result = match result {
            Ok(output) => self.record_bash(number, params, output, request.key().cloned()).await,
            Err(failure) => {
                // Nothing came of it.
                self.journal.intent_log().note(done(number, None)).await;
                Err(failure)
            }
        };
        match result {
            Ok(message) => self.answer(request, CachedAnswer::Bash(message)),
            Err(failure) => self.refuse(request, failure),
        }
        for waiting in running.into_iter().flat_map(|running| running.waiting) {
            // The waiter may have left.
            let _ = waiting.send(());
        }
        self.tell_idle();
    }

    async fn record_bash(
        &mut self,
        number: u64,
        params: BashParams,
        ran: BashResult,
        key: Option<RequestKey>,
    ) -> Result<Json<Message>, Failure> {
        let message = Message::BashExecution(BashExecutionMessage {
            command: params.command,
            output: ran.output,
            exit_code: ran.exit_code,
            cancelled: ran.cancelled,
            truncated: ran.truncated,
            full_output_path: ran.full_output.map(|path| path.display().to_string()),
            timestamp: now_ms(),
            exclude_from_context: params.exclude_from_context.then_some(true),
        });
        let message =
            Json::new(message).map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
        self.user_bash.unstored.push(UnstoredResult { number, message: message.clone(), key });
        if !self.run.is_active() {
            self.store_bash_messages().await;
        }
        if self.user_bash.has_results() {
            self.journal.intent_log().note(done(number, Some(message.clone()))).await;
        }
        Ok(message)
    }

    /// Adds the results that wait to the transcript, after all that is due before them. Where the disk does not take one, it waits
    /// on.
    pub(super) async fn store_bash_messages(&mut self) {
        if self.unflushed.is_due() {
            return;
        }
        let mut results = std::mem::take(&mut self.user_bash.unstored).into_iter();
        while let Some(UnstoredResult { number, message, key }) = results.next() {
            let then = done(number, None);
            if let Err(error) = self.journal.append_message(message.clone(), key.as_ref(), then).await {
                tracing::error!(%error, "the result of a command of the user could not be stored");
                self.user_bash.unstored.push(UnstoredResult { number, message, key });
                self.user_bash.unstored.extend(results);
                return self.unflushed.results_wait(&error);
            }
        }
    }
}
