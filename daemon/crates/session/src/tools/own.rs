//! The tools that agentd itself gives a session.

use std::sync::Arc;

use agentd_agent::Tool;

use crate::ToolSelection;

/// The built-in tools of a session, as flags and settings have them. Pure.
pub(crate) struct OwnTools {
    tools: Vec<OwnTool>,
    /// The names of all there are, those that the session does not have included.
    names: Vec<String>,
    selection: ToolSelection,
}

/// A built-in tool that the session has.
pub(crate) struct OwnTool {
    pub(crate) tool: Arc<dyn Tool>,
    /// Whether it is active where nobody chose.
    pub(crate) by_default: bool,
}

impl OwnTool {
    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }
}

impl OwnTools {
    /// `defaults` are the names that are active when nothing was chosen.
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>, selection: ToolSelection, defaults: &[String]) -> Self {
        let names = tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let tools = tools
            .into_iter()
            .filter(|tool| with_its_tool(tool, &selection, |name| selection.permits(name)))
            .map(|tool| OwnTool {
                by_default: with_its_tool(&tool, &selection, |name| selection.is_active(name, defaults)),
                tool,
            })
            .collect();
        Self { tools, names, selection }
    }

    /// Those that the session has, in the order in which models see them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OwnTool> {
        self.tools.iter()
    }

    /// The names of all built-in tools, in this session or not.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The names of the session's tools that other flags would make active.
    pub(crate) fn selected(&self, selection: &ToolSelection, defaults: &[String]) -> Vec<&str> {
        let is_active =
            |own: &&OwnTool| with_its_tool(&own.tool, selection, |name| selection.is_active(name, defaults));
        self.tools.iter().filter(is_active).map(OwnTool::name).collect()
    }

    /// Whether there is a built-in tool of that name, in this session or not.
    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Whether a client may provide a tool of that name.
    pub(crate) fn permits_of_client(&self, name: &str) -> bool {
        self.selection.permits_of_client(name)
    }
}

/// Whether something is true of a tool, or of the tool that it comes with, unless its own name leaves it out.
fn with_its_tool(tool: &Arc<dyn Tool>, selection: &ToolSelection, is_so: impl Fn(&str) -> bool) -> bool {
    let name = &tool.spec().name;
    is_so(name) || (!selection.leaves_out(name) && tool.comes_with().is_some_and(is_so))
}
