//! The one place that names concrete providers and tools.

use std::sync::Arc;

use agentd_agent::Tool;
use agentd_auth::CommandCache;
use agentd_config::models::SharedModels;
use agentd_images::Images;
use agentd_process::{GuardCommand, Launcher, LocalShell, Shell};
use agentd_session::{Pool, Services, ToolContext, Toolbox};
use agentd_tools::{
    BashOptions, BashTool, EditTool, FileQueue, FindTool, GrepTool, LsTool, ReadTool, WriteTool,
};
use tokio_util::task::TaskTracker;

use crate::hub::Foundation;

/// Puts together what all sessions share. Child processes are started by this program itself, run again as their guard.
#[must_use]
pub fn services(Foundation { epoch, limits, watch }: Foundation) -> Arc<Services> {
    Arc::new(Services {
        epoch,
        limits,
        watch,
        providers: agentd_ai::Registry::builtin(),
        launcher: Launcher::new(GuardCommand::this_program()),
        tasks: TaskTracker::new(),
        models: SharedModels::default(),
        child_environments: Pool::default(),
        key_commands: CommandCache::default(),
        images: Images::default(),
        tools: Box::new(tools),
    })
}

/// The tools of one session, in the order in which models see them.
fn tools(context: ToolContext) -> Toolbox {
    let files = FileQueue::default();
    let shell: Arc<dyn Shell> =
        Arc::new(LocalShell { group: context.processes, path: context.shell_path, env: context.environment });
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(ReadTool::new().with_home(&context.home)),
        Arc::new(BashTool::new(BashOptions {
            shell: Arc::clone(&shell),
            command_prefix: context.shell_command_prefix,
            temp_dir: context.temp_dir,
        })),
        Arc::new(EditTool::new(files.clone()).with_home(&context.home)),
        Arc::new(WriteTool::new(files).with_home(&context.home)),
        Arc::new(GrepTool::new().with_home(&context.home)),
        Arc::new(FindTool::new().with_home(&context.home)),
        Arc::new(LsTool::new().with_home(&context.home)),
    ];
    Toolbox { tools, shell }
}
