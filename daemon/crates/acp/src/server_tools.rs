//! Pure. What MCP servers say of their tools, as far as clients see it: a name for people, and whether a tool only reads.

use std::collections::HashMap;

use agentd_protocol::{
    tool::ToolAnnotations,
    tool_list::{ToolInfo, ToolSource, ToolState},
};

use crate::{
    tool_calls::{self, Arguments, Folders, shortened},
    updates::ToolKind,
};

/// What is known of the tools of MCP servers, by the names by which models call them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerTools(HashMap<String, ServerTool>);

#[derive(Debug, Clone)]
struct ServerTool {
    server: String,
    label: Option<String>,
    only_reads: bool,
}

impl ServerTools {
    /// Of the answer to `get_tools`.
    pub(crate) fn of_list(tools: Vec<ToolInfo>) -> Self {
        let of_servers = tools.into_iter().filter(|tool| tool.source == ToolSource::Mcp);
        Self::of(of_servers.map(|tool| {
            let label = Some(tool.label).filter(|label| *label != tool.name);
            (tool.name, tool.server, label, tool.annotations)
        }))
    }

    /// Of the event `tools_changed`.
    pub(crate) fn of_states(tools: Vec<ToolState>) -> Self {
        let of_servers = tools.into_iter().filter(|tool| tool.source == ToolSource::Mcp);
        Self::of(of_servers.map(|tool| (tool.name, tool.server, tool.label, tool.annotations)))
    }

    fn of(
        tools: impl Iterator<Item = (String, Option<String>, Option<String>, Option<ToolAnnotations>)>,
    ) -> Self {
        let known = tools.filter_map(|(name, server, label, annotations)| {
            let only_reads = annotations.is_some_and(|said| said.read_only_hint == Some(true));
            let server = server.filter(|_| label.is_some() || only_reads)?;
            Some((name, ServerTool { server, label, only_reads }))
        });
        Self(known.collect())
    }

    /// The kind of a tool. What a server says of a tool of its own decides where nothing else does.
    pub(crate) fn kind(&self, tool: &str) -> ToolKind {
        match tool_calls::kind(tool) {
            ToolKind::Other if self.0.get(tool).is_some_and(|known| known.only_reads) => ToolKind::Read,
            kind => kind,
        }
    }

    /// The title of a call whose arguments are not known yet.
    pub(crate) fn name(&self, tool: &str) -> String {
        let known = self.0.get(tool);
        // With the server's name: a title is the server's choice, and could be that of another tool.
        let label = known.and_then(|known| Some(format!("{} ({})", known.label.as_ref()?, known.server)));
        label.map_or_else(|| tool.to_owned(), |label| shortened(&label))
    }

    /// The title of a call.
    pub(crate) fn title(&self, tool: &str, arguments: &Arguments, folders: &Folders) -> String {
        if self.0.contains_key(tool) {
            return self.name(tool);
        }
        tool_calls::title(tool, arguments, folders)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_names_its_tools_and_says_which_only_read() {
        let state = |name: &str, source: &str, more: serde_json::Value| -> ToolState {
            let mut state = json!({"name": name, "active": true, "source": source, "server": "tracker"});
            state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(state).unwrap()
        };
        let reads = json!({"label": "Find", "annotations": {"readOnlyHint": true}});
        let tools = ServerTools::of_states(vec![
            state("mcp__tracker__find", "mcp", reads.clone()),
            state("mcp__tracker__list", "mcp", json!({"annotations": {"readOnlyHint": true}})),
            state(
                "mcp__tracker__set",
                "mcp",
                json!({"label": "Set", "annotations": {"readOnlyHint": false}}),
            ),
            state("mine", "client", reads.clone()),
            state("bash", "mcp", reads),
        ]);
        let shown = |tool: &str| {
            let arguments = json!({"command": "ls"}).as_object().unwrap().clone();
            (tools.kind(tool), tools.title(tool, &arguments, &Folders::default()))
        };
        assert_eq!(shown("mcp__tracker__find"), (ToolKind::Read, "Find (tracker)".into()));
        assert_eq!(shown("mcp__tracker__list"), (ToolKind::Read, "mcp__tracker__list".into()));
        assert_eq!(shown("mcp__tracker__set"), (ToolKind::Other, "Set (tracker)".into()));
        assert_eq!(shown("mine"), (ToolKind::Other, "mine".into()));
        assert_eq!(shown("bash").0, ToolKind::Execute);
        assert_eq!(
            ServerTools::default().title(
                "bash",
                &json!({"command": "ls"}).as_object().unwrap().clone(),
                &Folders::default()
            ),
            "ls"
        );
    }
}
