//! The tools of a session, as its options and settings have them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_protocol::{resources::Diagnostic, settings::Settings};
use agentd_tools::{
    ChangeJournals, JobsSwitch, RemoteHostOptions, RemoteHosts, SessionUrls, SshUrls, UrlReader,
};

use super::{
    remote_hosts::{HostPlace, remote_hosts},
    settings_values::syntax_timeout,
    surroundings::{CarriedOver, Project, Surroundings},
};
use crate::{
    client_tools::CallLimits,
    jobs::{JobUrls, WaitTool},
    language_servers::LanguageServerSources,
    mcp_resources::McpResources,
    options::{SessionOptions, async_is_on},
    permissions::ChangeGate,
    resource_urls::resource_urls,
    services::{ToolContext, Toolbox},
    subagents::{SubagentHistories, SubagentResults, TaskTool, YieldTool, may_start},
    tool_files::{FileTool, FileToolHost, ToolFilePlace, load_tool_files},
    web::WebSources,
    web_search::SessionSearch,
};

/// What a session's tools are made from.
pub(super) struct ToolSources<'a> {
    pub(super) carried: &'a CarriedOver,
    pub(super) options: &'a SessionOptions,
    pub(super) settings: &'a Settings,
    pub(super) project: &'a Project,
    pub(super) made: &'a Surroundings,
}

/// All tools of a session but those of clients, MCP servers and extensions.
pub(super) struct SessionToolbox {
    pub(super) toolbox: Toolbox,
    pub(super) file_tools: Vec<Arc<FileTool>>,
}

impl ToolSources<'_> {
    /// Makes the tools; adds to `found` what is wrong with files that they come from.
    pub(super) fn tools(&self, found: &mut Vec<Diagnostic>) -> SessionToolbox {
        let Self { carried, options, settings, .. } = *self;
        let has_jobs = self.has_jobs();
        let mut toolbox = (carried.services.tools)(self.context(has_jobs, found));
        let tools = &mut toolbox.tools;
        if may_start(options.subagent.as_deref(), settings.task.as_ref()) {
            tools.push(Arc::new(TaskTool::new(carried.subagents.clone(), settings.task.as_ref())));
        }
        if has_jobs {
            tools.push(Arc::new(WaitTool { jobs: carried.jobs.clone(), news: carried.job_news.clone() }));
        }
        if let Some(own) = options.subagent.as_ref().filter(|own| own.of_extension.is_none()) {
            tools.push(Arc::new(YieldTool { state: Arc::clone(&own.state) }));
        }
        // Programs of this machine would work on other files than the tools of another host.
        let file_tools = match options.ssh {
            Some(_) => Vec::new(),
            None => {
                let place = ToolFilePlace {
                    agent_dir: &carried.agent_dir,
                    project: self.is_trusted().then_some(&self.project.folders),
                    is_built_in: &|name| tools.iter().any(|tool| tool.spec().name == name),
                    host: &self.file_tool_host(),
                };
                load_tool_files(&place, found)
            }
        };
        SessionToolbox { toolbox, file_tools }
    }

    fn is_trusted(&self) -> bool {
        self.project.trusted.is_some()
    }

    /// Whether commands and subagents can go on beside the run.
    fn has_jobs(&self) -> bool {
        let Self { options, settings, .. } = *self;
        let is_on = |switch: Option<bool>| switch.unwrap_or(false);
        options.ssh.is_none()
            && (async_is_on(settings, options.async_jobs)
                || is_on(settings.task.as_ref().and_then(|task| task.background))
                || is_on(settings.bash.as_ref().and_then(|bash| bash.background)))
    }

    /// What reads the URLs of the session's own, but for those of clients.
    fn urls(&self, has_jobs: bool, remote_hosts: Option<&RemoteHosts>) -> Vec<Arc<dyn UrlReader>> {
        let CarriedOver { mcp, subagents, jobs, .. } = self.carried;
        let mut urls: Vec<Arc<dyn UrlReader>> = vec![
            McpResources::of(mcp.as_ref()),
            Arc::new(SubagentResults(subagents.clone())),
            Arc::new(SubagentHistories(subagents.clone())),
        ];
        if has_jobs {
            urls.push(Arc::new(JobUrls(jobs.clone())));
        }
        urls.extend(remote_hosts.cloned().map(|hosts| Arc::new(SshUrls(hosts)) as Arc<dyn UrlReader>));
        urls.extend(resource_urls(&self.made.link));
        urls
    }

    /// The hosts that the tool `ssh` reaches, if there are some.
    fn remote_hosts(&self, found: &mut Vec<Diagnostic>) -> Option<RemoteHosts> {
        let Self { carried, options, settings, project, made } = *self;
        let place = HostPlace {
            agent_dir: &carried.agent_dir,
            project: self.is_trusted().then_some((&project.folders, &*carried.cwd)),
            environment: &options.environment,
            sandbox: carried.sandbox.as_ref().map(|sandbox| &**sandbox.policy()),
        };
        let hosts = remote_hosts(settings.ssh.as_ref(), &place, found)?;
        RemoteHosts::new(RemoteHostOptions {
            hosts,
            host_keys: settings.ssh.as_ref().and_then(|ssh| ssh.host_keys).unwrap_or_default(),
            connections: carried.services.launcher.group(),
            commands: carried.processes.clone(),
            env: Arc::clone(&made.child_environment),
            temp_dir: made.temp_dir.clone(),
        })
    }

    fn file_tool_host(&self) -> FileToolHost {
        let Self { carried, made, .. } = *self;
        FileToolHost {
            processes: carried.processes.clone(),
            shell: made.shell_path.clone(),
            env: Arc::clone(&made.environment),
            sandbox: carried.sandbox.as_ref().map(|sandbox| Arc::clone(sandbox.policy())),
            outputs: made.outputs.clone(),
            undo: carried.undo.clone(),
        }
    }

    /// What the built-in tools are made from.
    fn context(&self, has_jobs: bool, found: &mut Vec<Diagnostic>) -> ToolContext {
        let Self { carried, options, settings, project, made } = *self;
        let CarriedOver { services, session_id, session_file, agent_dir, processes, cwd, .. } = carried;
        let CarriedOver { permissions, sandbox, own_files, plans, user, .. } = carried;
        let lsp = LanguageServerSources {
            services,
            options,
            settings,
            cwd,
            agent_dir,
            folders: &project.folders,
            is_trusted: self.is_trusted(),
            link: &made.link,
        };
        let lsp = lsp.parts(found);
        let web = WebSources {
            session_id,
            settings: settings.web.as_ref(),
            network: &made.network,
            permissions,
            sandbox: sandbox.as_deref(),
        };
        let search = SessionSearch {
            auth: carried.auth.clone(),
            link: made.link.clone(),
            model: carried.current_model.clone(),
            budget: Arc::clone(&carried.budget),
            is_replayed: services.providers.player().is_some(),
        };
        let is_active: Arc<dyn Fn(&str) -> bool + Send + Sync> = {
            let (selection, defaults) = (made.selection.clone(), made.defaults.clone());
            Arc::new(move |name| selection.is_active(name, &defaults))
        };
        let waits = |limit: Option<u64>| limit.filter(|limit| *limit > 0).map(Duration::from_millis);
        let remote_hosts = self.remote_hosts(found);
        ToolContext {
            session_id: session_id.clone(),
            cwd: cwd.clone(),
            folders: options.additional_directories.clone(),
            processes: processes.clone(),
            ssh: options.ssh.clone().map(|target| (target, services.launcher.group())),
            urls: SessionUrls::new(
                self.urls(has_jobs, remote_hosts.as_ref()),
                Some(carried.host_urls.source(CallLimits::of(settings))),
            ),
            remote_hosts,
            shell_path: made.shell_path.clone(),
            jobs: JobsSwitch {
                is_on: async_is_on(settings, options.async_jobs),
                wakes: settings.task.as_ref().and_then(|task| task.wake_up).unwrap_or(false),
            },
            job_recorder: Arc::new(carried.jobs.clone()),
            shell_command_prefix: settings.shell_command_prefix.clone(),
            environment: Arc::clone(&made.environment),
            temp_dir: made.temp_dir.clone(),
            outputs: made.outputs.clone(),
            artifacts: made.artifacts.clone(),
            bash: settings.bash.clone(),
            eval: settings.eval.clone(),
            kernels: carried.kernels.clone(),
            shell_session: carried.shell_session.clone(),
            cell_calls: Arc::new(carried.cell_calls.clone()),
            cell_executors: carried.eval_executors.for_tool(CallLimits::of(settings)),
            is_trusted: self.is_trusted(),
            client_terminal: settings.acp.as_ref().and_then(|acp| acp.client_terminal).unwrap_or(false),
            background: carried.background.clone(),
            is_active,
            home: PathBuf::from(options.environment.non_empty("HOME").unwrap_or("/")),
            agent_dir: agent_dir.path().to_owned(),
            agent_dir_writable: settings.agent_dir_writable.clone().unwrap_or_default(),
            sandbox: sandbox.as_ref().map(|sandbox| Arc::clone(sandbox.policy())),
            undo: carried.undo.clone(),
            journals: (session_file.is_some() && options.ssh.is_none())
                .then(|| ChangeJournals::of_session(&agent_dir.run_dir(), session_id)),
            todos: carried.todos.clone(),
            own_files: own_files.clone(),
            plans: Arc::new(plans.clone()),
            plan_timeout: waits(settings.plan.as_ref().and_then(|plan| plan.timeout_ms)),
            user: Arc::new(user.clone()),
            ask_timeout: waits(settings.ask.as_ref().and_then(|ask| ask.timeout_ms)),
            syntax_timeout: syntax_timeout(settings),
            change_approval: Arc::new(ChangeGate(Arc::clone(permissions))),
            is_stored: session_file.is_some(),
            lsp,
            web: web.options(),
            search: search.options(settings.web_search.as_ref(), &web),
        }
    }
}
