//! Starting the extensions of a session that is open: `reload` of an extension, the command `restart_extensions`, hosts that come from the
//! session before. What is sent meanwhile and would need the extensions waits.

use std::sync::Arc;

use agentd_extensions::{
    CallResponder, ExtensionFailure, HostFailure, KeptHosts, LoadError, SessionExtensions,
};
use agentd_protocol::{
    command::SessionCommand,
    error::{ErrorCode, Failure},
    extensions::ExtensionList,
};
use serde_json::Value;
use tokio::{sync::oneshot, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::{
    pending_start::{AfterStart, PendingStart, Renewal},
    replacement::SetUpCall,
    session_actor::{Actor, shutting_down},
};
use crate::{
    context::SessionContext,
    extension_start::{LoadedAgain, NewSurroundings, StartAsker, StartReason},
    extensions::{ExtensionsPlan, load_extensions_again},
    open::{NewSettings, find_extensions_again, reread, with_extensions, without_extensions},
    replacement::SessionEnd,
    reply::Reply,
    run::{RunBeginning, RunMessage},
};

impl Actor {
    /// `list_extensions`.
    pub(super) fn list_extensions(&self, reply: Reply) {
        reply.data(&self.feed, self.extension_list());
    }

    fn extension_list(&self) -> ExtensionList {
        let extensions = self.context.extensions.as_ref();
        ExtensionList { extensions: extensions.map(|extensions| extensions.overview()).unwrap_or_default() }
    }

    /// `restart_extensions`. Answered by [`Self::on_extensions_renewed`].
    pub(super) fn restart_extensions(&mut self, reply: Reply) {
        let (asker, renewed) = oneshot::channel();
        self.renew_extensions(Renewal::Restart, asker);
        let (feed, to_actor) = (self.feed.clone(), self.to_actor.clone());
        self.tasks.spawn(async move {
            match renewed.await {
                // Without the actor nobody can be answered.
                Ok(Ok(())) => drop(to_actor.send(RunMessage::ExtensionsRenewed(Box::new(reply))).await),
                Ok(Err(failure)) => reply.fail(&feed, failure),
                Err(_) => reply.fail(&feed, shutting_down()),
            }
        });
    }

    pub(super) fn on_extensions_renewed(&self, reply: Reply) {
        reply.data(&self.feed, self.extension_list());
    }

    /// The call `session.reload` of an extension.
    pub(super) fn reload_for_extension(&mut self, responder: CallResponder) {
        let (asker, renewed) = oneshot::channel();
        self.renew_extensions(Renewal::Reload, asker);
        self.context.services.tasks.spawn(async move {
            match renewed.await {
                Ok(Ok(())) => responder.send(&Ok(Value::Null)),
                Ok(Err(failure)) => responder.send(&Err(HostFailure::new("busy", failure.error))),
                // The session is gone, which the responder says.
                Err(_) => {}
            }
        });
    }

    /// Starts the extensions again, as they are found now, with settings that are read again. The texts of failures are pi's.
    pub(super) fn renew_extensions(&mut self, renewal: Renewal, asker: StartAsker) {
        let busy = if self.closing {
            Some(shutting_down())
        } else if self.is_of_extension() {
            let text = "The extensions of this session are those of the extension that has opened it, and are not loaded again.";
            Some(Failure::new(ErrorCode::Unsupported, text))
        } else if self.run.is_active() {
            let text = "Wait for the current response to finish before reloading.";
            Some(Failure::new(ErrorCode::Busy, text).hint("Wait for agent_settled, or abort first."))
        } else if self.compacting.is_active() {
            let text = "Wait for compaction to finish before reloading.";
            Some(Failure::new(ErrorCode::Busy, text).hint("Wait for compaction_end, or abort first."))
        } else if matches!(renewal, Renewal::Give(_)) && self.pending_start.is_some() {
            // A client that leaves does not wait for them.
            Some(Failure::new(ErrorCode::Busy, "The extensions are being started already."))
        } else {
            None
        };
        if busy.is_none()
            && let Some(pending) = &mut self.pending_start
        {
            // As in pi: it is done after the one that is under way.
            if let Some(asker) = pending.wait_to_renew(renewal, asker) {
                let text =
                    "The extensions are being started already, and too many others wait to start them again.";
                // The asker may be gone.
                let _ = asker.send(Err(Failure::new(ErrorCode::Busy, text)));
            }
            return;
        }
        if let Some(failure) = busy {
            // The asker may be gone.
            let _ = asker.send(Err(failure));
            return;
        }
        let before = self.extensions_started.clone();
        let has_extensions = self.context.extensions.is_some();
        let cancel = self.extensions_begin();
        let (context, options) = (Arc::clone(&self.context), Arc::clone(self.trust.options()));
        let approval = self.trust.approval();
        let to_actor = self.to_actor.clone();
        self.tasks.spawn(async move {
            let renewing = async {
                // Those of before have begun before they end.
                if has_extensions {
                    before.cancelled().await;
                }
                let kept = give_hosts(&context, renewal).await;
                let before = Arc::clone(&context);
                let read = spawn_blocking(move || match reread(&before, &options, &approval) {
                    Ok(settings) => NewSurroundings::Reread(Box::new(settings)),
                    Err(error) => {
                        tracing::warn!(%error, "the settings could not be read again, and stay as they were");
                        NewSurroundings::Same(Box::new(without_extensions(&before, &options)))
                    }
                });
                let why = StartReason { reason: "reload", previous_file: None };
                match read.await {
                    Ok(surroundings) => {
                        load_into(surroundings, kept, why).await.map(|loaded| loaded.of(asker))
                    }
                    Err(error) => {
                        tracing::error!(%error, "the extensions could not be loaded again");
                        None
                    }
                }
            };
            let loaded = cancel.run_until_cancelled(renewing).await.flatten();
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::ExtensionsLoaded(loaded.map(Box::new))).await;
        });
    }

    /// Extensions are about to be started: what needs them waits from here on. Returns what gives it up.
    fn extensions_begin(&mut self) -> CancellationToken {
        let pending = PendingStart::default();
        let cancel = pending.cancel.clone();
        self.pending_start = Some(Box::new(pending));
        self.extensions_started = CancellationToken::new();
        self.show_summary();
        cancel
    }

    /// Lets a command wait that must not come before the extensions; gives it back where it need not.
    pub(super) fn await_extensions(
        &mut self,
        command: SessionCommand,
        reply: Reply,
    ) -> Option<(SessionCommand, Reply)> {
        let is_work = command.spec().begins_work || matches!(command, SessionCommand::NavigateTree(_));
        let Some(pending) = self.pending_start.as_mut().filter(|_| is_work && !self.closing) else {
            return Some((command, reply));
        };
        if let Some((_, reply)) = pending.wait(command, reply) {
            let text = "Too many commands wait until the extensions are started.";
            reply.fail(&self.feed, Failure::new(ErrorCode::Busy, text));
        }
        None
    }

    /// Extensions are loaded, or could not be: the session goes on with them.
    pub(super) async fn on_extensions_loaded(&mut self, loaded: Option<Box<LoadedAgain>>) {
        match loaded {
            Some(loaded) => self.take_extensions(*loaded).await,
            // Given up, with whatever asked for it: nothing of the extensions is left but their gates.
            None => self.extensions_started.cancel(),
        }
        let Some(pending) = self.pending_start.take() else { return };
        let AfterStart { commands, runs, renewals } = pending.into_parts();
        for (renewal, asker) in renewals {
            self.renew_extensions(renewal, asker);
        }
        for (beginning, request) in runs {
            self.start_or_refuse(beginning, request);
        }
        for (command, reply) in commands {
            Box::pin(self.on_command(command, reply)).await;
        }
        self.show_summary();
        self.tell_idle();
    }

    fn start_or_refuse(&mut self, beginning: RunBeginning, request: Option<crate::requests::PendingRequest>) {
        if !self.run.is_active() && !self.closing {
            return self.start(beginning, request);
        }
        if let Some(request) = request {
            let text = "Agent is already processing. Wait for agent_settled before continuing.";
            self.refuse(request, Failure::new(ErrorCode::Busy, text));
        }
    }

    async fn take_extensions(&mut self, loaded: LoadedAgain) {
        let LoadedAgain { surroundings, failures, why, set_up, asker } = loaded;
        // Those of before ran agents that nobody drives any more.
        self.context.subagents.end_agents();
        match surroundings {
            NewSurroundings::Reread(settings) => {
                self.trust.next = None;
                self.take_settings(*settings).await;
            }
            NewSurroundings::Same(context) => self.take_context(*context),
        }
        for failure in failures {
            self.tell_extension_failure(ExtensionFailure {
                extension_path: failure.path,
                event: "load".to_owned(),
                error: failure.reason,
            });
        }
        self.entries_told = None;
        self.register_extension_tools();
        self.tell_tools();
        Box::pin(self.tell_commands()).await;
        self.use_extension_models().await;
        self.modify_extension_models();
        let filled = match set_up {
            Some(Ok(set_up)) => self.set_up(set_up).await,
            Some(Err(failure)) => Err(failure),
            None => Ok(()),
        };
        match filled {
            Ok(()) => self.start_extensions(why, Some(asker)),
            Err(failure) => {
                self.start_extensions(why, None);
                // The asker may be gone.
                let _ = asker.send(Err(failure));
            }
        }
    }

    /// Starts the extensions of this session in the hosts of the one before.
    pub(super) fn start_in(
        &mut self,
        hosts: KeptHosts,
        why: StartReason,
        set_up: Option<SetUpCall>,
        asker: StartAsker,
    ) {
        let is_at_work = self.run.is_active() || self.compacting.is_active() || self.closing;
        let found = match self.pending_start.as_mut() {
            Some(pending) => pending.found.take(),
            None if self.context.extensions.is_some() && !is_at_work => None,
            None => {
                // Nothing is to be started here; what the hosts ran before cannot go on here.
                let began = match set_up {
                    Some(_) => Err(Failure::new(ErrorCode::Busy, "The session is at work.")),
                    None => Ok(()),
                };
                let _ = asker.send(began);
                return;
            }
        };
        let cancel = match &self.pending_start {
            Some(pending) => pending.cancel.clone(),
            None => self.extensions_begin(),
        };
        let (context, options) = (Arc::clone(&self.context), Arc::clone(self.trust.options()));
        let to_actor = self.to_actor.clone();
        self.tasks.spawn(async move {
            let starting = async {
                if let Some(extensions) = &context.extensions {
                    extensions.hand_over(why.reason, None).await.ended().await;
                }
                let before = Arc::clone(&context);
                let renewed = spawn_blocking(move || without_extensions(&before, &options)).await;
                let renewed = renewed
                    .inspect_err(|error| tracing::error!(%error, "the extensions could not be loaded"))
                    .ok()?;
                let loaded = match found {
                    Some((sources, node)) => {
                        let plan = ExtensionsPlan {
                            sources,
                            node,
                            reason: why.reason,
                            flags: hosts.flags().to_vec(),
                            kept: hosts,
                        };
                        let (extensions, failures) =
                            load_extensions_again(renewed.extension_surroundings(), plan).await;
                        let surroundings = NewSurroundings::Same(Box::new(with_loaded(renewed, extensions)));
                        Loaded { surroundings, failures, why }
                    }
                    None => load_into(NewSurroundings::Same(Box::new(renewed)), hosts, why).await?,
                };
                let filled = match set_up {
                    Some(set_up) => Some(set_up.run().await),
                    None => None,
                };
                Some(LoadedAgain { set_up: filled, ..loaded.of(asker) })
            };
            let loaded = cancel.run_until_cancelled(starting).await.flatten();
            // The actor takes what its tasks send until they have ended.
            let _ = to_actor.send(RunMessage::ExtensionsLoaded(loaded.map(Box::new))).await;
        });
    }
}

/// The extensions of before end; returns their hosts for those to come.
async fn give_hosts(context: &SessionContext, renewal: Renewal) -> KeptHosts {
    let Some(extensions) = &context.extensions else { return KeptHosts::default() };
    match renewal {
        Renewal::Reload => extensions.hand_over("reload", None).await,
        Renewal::Restart => extensions.hand_over("reload", None).await.without_processes(),
        Renewal::Give(end) => {
            let SessionEnd { reason, target, hosts } = *end;
            let kept = extensions.hand_over(reason, target.as_deref()).await;
            let remains = kept.remains();
            // A receiver that has left lets them end.
            drop(hosts.map(|hosts| hosts.send(kept)));
            remains
        }
    }
}

/// Finds the extensions that belong into new surroundings, and loads them. `None` where the runtime ends.
async fn load_into(surroundings: NewSurroundings, kept: KeptHosts, why: StartReason) -> Option<Loaded> {
    let (surroundings, failures) = match surroundings {
        NewSurroundings::Reread(settings) => {
            let settings = *settings;
            let (context, failures) = load_found(settings.context, kept, why.reason).await?;
            (NewSurroundings::Reread(Box::new(NewSettings { context, ..settings })), failures)
        }
        NewSurroundings::Same(context) => {
            let (context, failures) = load_found(*context, kept, why.reason).await?;
            (NewSurroundings::Same(Box::new(context)), failures)
        }
    };
    Some(Loaded { surroundings, failures, why })
}

/// Surroundings with extensions that are loaded.
struct Loaded {
    surroundings: NewSurroundings,
    failures: Vec<LoadError>,
    why: StartReason,
}

impl Loaded {
    fn of(self, asker: StartAsker) -> LoadedAgain {
        let Self { surroundings, failures, why } = self;
        LoadedAgain { surroundings, failures, why, set_up: None, asker }
    }
}

async fn load_found(
    context: SessionContext,
    kept: KeptHosts,
    reason: &'static str,
) -> Option<(SessionContext, Vec<LoadError>)> {
    let found = find_extensions_again(context).await;
    let (context, (sources, node), mut failures) =
        found.inspect_err(|error| tracing::error!(%error, "the extensions could not be found")).ok()?;
    let flags = kept.flags().to_vec();
    let plan = ExtensionsPlan { sources, node, reason, flags, kept };
    let (extensions, of_loading) = load_extensions_again(context.extension_surroundings(), plan).await;
    failures.extend(of_loading);
    Some((with_loaded(context, extensions), failures))
}

fn with_loaded(mut context: SessionContext, extensions: Option<SessionExtensions>) -> SessionContext {
    context.gate = with_extensions(context.gate, extensions.as_ref());
    context.extensions = extensions;
    context
}
