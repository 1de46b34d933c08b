//! The commands of a session: one line each here, one function each in the module of their family.

use agentd_agent::queue::QueueKind;
use agentd_protocol::command::SessionCommand;

use super::session_actor::Actor;
use crate::{reply::Reply, summary_asker::SummaryAsker};

impl Actor {
    /// Does a command, or starts what will answer it.
    pub(super) async fn on_command(&mut self, command: SessionCommand, reply: Reply) {
        // To go elsewhere, too: what is due belongs here.
        if command.spec().begins_work || matches!(command, SessionCommand::NavigateTree(_)) {
            self.retry_failed_writes().await;
        }
        let Some((command, reply)) = self.await_extensions(command, reply) else { return };
        match command {
            SessionCommand::Prompt(params) => self.prompt(params, reply).await,
            SessionCommand::AbortAndPrompt(params) => self.abort_and_prompt(params, reply).await,
            SessionCommand::Continue(_) => self.continue_run(reply),
            SessionCommand::Steer(params) => self.queue(QueueKind::Steering, params, reply).await,
            SessionCommand::FollowUp(params) => self.queue(QueueKind::FollowUp, params, reply).await,
            SessionCommand::Abort(params) => self.abort(params, reply),
            SessionCommand::ClearQueue(_) => self.clear_queue(reply).await,
            SessionCommand::GetCommands(_) => self.get_commands(reply).await,
            SessionCommand::GetAvailableCommands(_) => self.get_available_commands(reply).await,
            SessionCommand::GetState(params) if params.introduced => {
                reply.data(&self.feed, self.detailed_state())
            }
            SessionCommand::GetState(_) => reply.data(&self.feed, self.state()),
            SessionCommand::GetMessages(params) => self.get_messages(params, reply),
            SessionCommand::GetMessagesPage(params) => self.get_messages_page(&params, reply),
            SessionCommand::GetEntries(params) => self.get_entries(&params, reply),
            SessionCommand::GetTree(_) => self.get_tree(reply),
            SessionCommand::GetForkMessages(_) | SessionCommand::GetBranchMessages(_) => {
                self.get_fork_messages(reply).await
            }
            SessionCommand::NavigateTree(params) => self.navigate_tree(params, reply).await,
            SessionCommand::SetLabel(params) => self.set_label(params, reply).await,
            SessionCommand::GetLastAssistantText(_) => reply.data(&self.feed, self.journal.last_text()),
            SessionCommand::GetSessionStats(_) => self.get_stats(reply),
            SessionCommand::SetModel(params) => self.set_model(params, reply).await,
            SessionCommand::CycleModel(_) => self.cycle_model(reply).await,
            SessionCommand::GetAvailableModels(_) => self.get_available_models(reply).await,
            SessionCommand::SetFallbackModels(params) => self.set_fallback_models(params, reply).await,
            SessionCommand::GetFallbackModels(_) => self.get_fallback_models(reply).await,
            SessionCommand::SetThinkingLevel(params) => self.set_thinking_level(&params, reply).await,
            SessionCommand::CycleThinkingLevel(_) => self.cycle_thinking_level(reply).await,
            SessionCommand::GetAvailableThinkingLevels(_) => self.get_thinking_levels(reply),
            SessionCommand::SetSteeringMode(params) => {
                self.set_mode(QueueKind::Steering, params, reply).await
            }
            SessionCommand::SetFollowUpMode(params) => {
                self.set_mode(QueueKind::FollowUp, params, reply).await
            }
            SessionCommand::SetInterruptMode(params) => self.set_interrupt_mode(&params, reply).await,
            SessionCommand::SetAutoRetry(params) => self.set_auto_retry(params.enabled, reply).await,
            SessionCommand::AbortRetry(_) => {
                self.run.abort_retry();
                reply.done(&self.feed);
            }
            SessionCommand::Compact(params) => self.compact(params, SummaryAsker::Client(reply)),
            SessionCommand::SetAutoCompaction(params) => {
                self.set_auto_compaction(params.enabled, reply).await
            }
            SessionCommand::Bash(params) => self.bash(params, reply),
            SessionCommand::AbortBash(_) => self.abort_bash(reply),
            SessionCommand::SetPermissions(params) => self.set_permissions(params, reply).await,
            SessionCommand::PermissionResponse(params) => self.permission_response(params, reply),
            SessionCommand::SetMode(params) => self.set_agent_mode(params, reply).await,
            SessionCommand::GetTools(_) => self.get_tools(reply),
            SessionCommand::SetActiveTools(params) => self.set_active_tools(params, reply).await,
            SessionCommand::SetTodos(params) => self.set_todos(params, reply).await,
            SessionCommand::ApplyPatch(params) => self.apply_patch(params, reply),
            SessionCommand::DiscardPatch(params) => self.discard_patch(params, reply),
            SessionCommand::ListJobs(_) => self.list_jobs(reply),
            SessionCommand::KillJob(params) => self.kill_job(params, reply),
            SessionCommand::JobOutput(params) => self.job_output(params, reply).await,
            SessionCommand::GetSubagents(_) => self.get_subagents(reply),
            SessionCommand::GetSubagentMessages(params) => self.get_subagent_messages(params, reply).await,
            SessionCommand::GetMcpServers(_) => self.get_mcp_servers(reply),
            SessionCommand::SetMcpServer(params) => self.set_mcp_server(params, reply),
            SessionCommand::ReconnectMcpServer(params) => self.reconnect_mcp_server(params, reply),
            SessionCommand::McpLoginStart(params) => self.mcp_login_start(params, reply),
            SessionCommand::McpLoginFinish(params) => self.mcp_login_finish(params, reply),
            SessionCommand::McpLoginCancel(params) => self.mcp_login_cancel(&params, reply),
            SessionCommand::McpLogout(params) => self.mcp_logout(params, reply),
            SessionCommand::ListExtensions(_) => self.list_extensions(reply),
            SessionCommand::RestartExtensions(_) => self.restart_extensions(reply),
            SessionCommand::GetArtifact(params) => self.get_artifact(params, reply).await,
            SessionCommand::ListArtifacts(_) => self.list_artifacts(reply).await,
            SessionCommand::ListCheckpoints(_) => self.list_checkpoints(reply),
            SessionCommand::DiffCheckpoint(params) => self.diff_checkpoint(params, reply),
            SessionCommand::RestoreCheckpoint(params) => self.restore_checkpoint(params, reply),
            SessionCommand::GetDiagnostics(_) => self.get_diagnostics(reply),
            SessionCommand::ExplainSetting(params) => self.explain_setting(params, reply),
            SessionCommand::GetCapabilities(params) => self.get_capabilities(params, reply),
            SessionCommand::SetCapability(params) => self.set_capability(params, reply),
            SessionCommand::SetSessionName(params) => self.set_name(&params, reply).await,
            SessionCommand::ExportHtml(params) => self.export_html(params, reply).await,
        }
    }
}
