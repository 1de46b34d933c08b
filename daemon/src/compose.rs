//! The one place that names concrete providers and tools.

use std::{path::Path, sync::Arc};

use agentd_agent::{Tool, hooks::HookGate};
use agentd_ai::ExchangeMode;
use agentd_auth::AuthServices;
use agentd_config::{
    AgentDir, Environment,
    models::{ModelRegistry, SharedModels},
};
use agentd_images::Images;
use agentd_memory::MemoryAccount;
use agentd_process::{GuardCommand, Launcher, LocalShell, OutputMeter, Shell};
use agentd_session::{Interner, Services, ToolContext, Toolbox};
use agentd_tools::{
    BashFeatures, BashOptions, BashTool, EditTool, FileQueue, FindTool, GrepTool, LsTool, ReadTool,
    WriteTool,
    operations::{FileHost, GuardedHost, SshHost, SshOptions},
    process_tools,
};
use tokio_util::task::TaskTracker;

use crate::{hub::ServiceInputs, traffic};

/// Puts together what all sessions share. Child processes are started by this program itself, run again as their guard.
///
/// Those that a killed daemon of the same agent directory left are ended beside the start; the first command waits for that.
///
/// # Errors
/// A sentence for stderr, where the traffic with providers cannot be recorded or played back as it should.
///
/// Must be called within the runtime. The arguments are those of [`AgentDir::find`]; without an agent directory nothing is
/// looked for. At most `most_commands` of all sessions run at the same time. What they take in is charged to `memory`.
pub fn services(
    environment: &Environment,
    compat: bool,
    cwd: &Path,
    most_commands: usize,
    memory: &MemoryAccount,
) -> Result<impl FnOnce(ServiceInputs) -> Arc<Services> + use<>, String> {
    let traffic = traffic::open(environment, cwd)?;
    let guard = GuardCommand::this_program();
    let owners = AgentDir::find(environment, compat, cwd).ok().map(|agent_dir| agent_dir.owners_dir());
    let launcher = Launcher::limited(guard, owners, most_commands);
    let sweeping = launcher.clone();
    // Holds the launcher until it is done, and nobody's end waits for it.
    tokio::spawn(async move { sweeping.sweep().await });
    let memory = memory.clone();
    Ok(move |inputs| Arc::new(shared(inputs, launcher, traffic, memory)))
}

fn shared(
    ServiceInputs { epoch, limits, watch }: ServiceInputs,
    launcher: Launcher,
    traffic: ExchangeMode,
    memory: MemoryAccount,
) -> Services {
    let changes = FileQueue::new();
    // A recording has to be answered by the models that it was made with, whatever has become of their configuration.
    let models = match &traffic {
        ExchangeMode::Replayed(player) => SharedModels::fixed(ModelRegistry::only(player.models().to_vec())),
        ExchangeMode::Live | ExchangeMode::Recorded(_) => SharedModels::default(),
    };
    Services {
        epoch,
        limits,
        watch,
        providers: agentd_ai::ProviderRegistry::with_exchange_mode(traffic, memory.clone()),
        launcher,
        tasks: TaskTracker::new(),
        models,
        child_environments: Interner::default(),
        auth_services: AuthServices::default(),
        images: Images::default(),
        memory,
        outputs: OutputMeter::default(),
        tools: Box::new(move |context| tools(context, &changes)),
    }
}

/// Where the tools of one session work.
fn place(context: &ToolContext) -> (Arc<dyn FileHost>, Arc<dyn Shell>) {
    let (group, env) = (context.processes.clone(), Arc::clone(&context.environment));
    let Some((target, connections)) = context.ssh.clone() else {
        let shell = LocalShell { group, path: context.shell_path.clone(), env };
        let host = GuardedHost::new(&context.agent_dir, context.agent_dir_writable.clone());
        return (Arc::new(host), Arc::new(shell));
    };
    let temp_dir = context.temp_dir.clone();
    let host = SshHost::new(SshOptions { target, connections, commands: group, env, temp_dir });
    (Arc::new(host.clone()), Arc::new(host))
}

/// What `bash` offers beyond its plain form. Terminals and background processes are on this machine alone.
fn features(context: &ToolContext) -> BashFeatures {
    let (group, env) = (context.processes.clone(), Arc::clone(&context.environment));
    let local = LocalShell { group, path: context.shell_path.clone(), env };
    let is_active = Arc::clone(&context.is_active);
    let mut features = BashFeatures::of(context.bash.as_ref(), &context.background, &local, is_active);
    if context.ssh.is_some() {
        features.pty = None;
        features.background = None;
    }
    features
}

/// The tools of one session, in the order in which models see them.
fn tools(context: ToolContext, changes: &FileQueue) -> Toolbox {
    // Two sessions that change one file of this machine would otherwise lose one of the changes. What another host calls by the
    // same name is another file.
    let files = if context.ssh.is_some() { FileQueue::new() } else { changes.beside() };
    let (host, shell) = place(&context);
    let features = features(&context);
    let of_processes =
        features.background.as_ref().map(|feature| process_tools(&feature.list)).unwrap_or_default();
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(
            ReadTool::new()
                .with_home(&context.home)
                .with_host(Arc::clone(&host))
                .with_artifacts(context.artifacts),
        ),
        Arc::new(BashTool::new(BashOptions {
            shell: Arc::clone(&shell),
            command_prefix: context.shell_command_prefix,
            outputs: context.outputs,
            home: Some(context.home.clone()),
            features,
        })),
        Arc::new(EditTool::new(files.clone()).with_home(&context.home).with_host(Arc::clone(&host))),
        Arc::new(WriteTool::new(files).with_home(&context.home).with_host(Arc::clone(&host))),
        Arc::new(GrepTool::new().with_home(&context.home).with_host(Arc::clone(&host))),
        Arc::new(FindTool::new().with_home(&context.home).with_host(Arc::clone(&host))),
        Arc::new(LsTool::new().with_home(&context.home).with_host(Arc::clone(&host))),
    ];
    tools.extend(of_processes);
    Toolbox { tools, shell, gate: HookGate::default() }
}
