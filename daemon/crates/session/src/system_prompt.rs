//! The system prompt: named sections, in a fixed order, and the message that brings a transcript up to date with them.

use std::sync::Arc;

use agentd_ai::{SystemState, system_state};
use agentd_protocol::{
    Json,
    message::{Message, MessageContent, SystemMessage, ToolName},
    tool::ToolSpec,
};
use serde_json::{Map, Value};

use crate::plan::PROMPT_SECTION;

/// The inputs of the sections.
#[derive(Debug, Default)]
pub(crate) struct PromptParts<'a> {
    /// Replaces the built-in prompt.
    pub(crate) custom: Option<String>,
    /// What a subagent is told of itself.
    pub(crate) agent: Option<String>,
    /// The agents that can be started, if there are some.
    pub(crate) subagents: Option<String>,
    /// Texts appended to whichever prompt it is.
    pub(crate) appended: Vec<String>,
    /// Files with instructions of the project, nearest last: absolute path, content.
    pub(crate) context_files: Vec<(String, String)>,
    /// The rules of the project and the user, if there are some.
    pub(crate) project_rules: Option<String>,
    /// What plan mode means, while it is on.
    pub(crate) plan_mode: Option<String>,
    /// The skills that the model may choose.
    pub(crate) skills: Vec<SkillNote>,
    /// The MCP servers whose tools are found by a search, if there are some and it is active.
    pub(crate) mcp_servers: Option<String>,
    /// The URLs that clients serve, if there are some.
    pub(crate) urls: Option<String>,
    /// Name and one line of each active tool that has one.
    pub(crate) tools: Vec<(&'a str, &'a str)>,
    /// Advice of the active tools, in tool order.
    pub(crate) guidelines: Vec<&'a str>,
    /// Names of all active tools.
    pub(crate) active: Vec<&'a str>,
    /// The working directory.
    pub(crate) cwd: String,
    /// Further folders of the workspace.
    pub(crate) folders: Vec<String>,
}

/// A skill in the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillNote {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The absolute path of its file.
    pub(crate) location: String,
}

/// The sections by name, in the order in which they are rendered.
#[must_use]
pub(crate) fn sections(parts: &PromptParts<'_>) -> Map<String, Value> {
    let mut sections = Map::new();
    let mut add = |name: &str, text: String| {
        let text = if name == "preamble" { text } else { format!("<{name}>\n{text}\n</{name}>") };
        sections.insert(name.to_owned(), Value::String(text));
    };
    if let Some(custom) = &parts.custom {
        add("preamble", custom.clone());
    } else {
        add("preamble", PREAMBLE.to_owned());
        add("tools", tools(parts));
        add("rules", rules(parts));
        add("docs", DOCS.to_owned());
    }
    if let Some(subagents) = &parts.subagents {
        add("subagents", subagents.clone());
    }
    if let Some(agent) = &parts.agent {
        add("agent", agent.clone());
    }
    if !parts.appended.is_empty() {
        add("addendum", parts.appended.join("\n\n"));
    }
    if !parts.context_files.is_empty() {
        add("project_context", project_context(parts));
    }
    if let Some(rules) = &parts.project_rules {
        add("project_rules", rules.clone());
    }
    let reads = parts.active.iter().any(|name| matches!(*name, "read" | "bash"));
    if reads && !parts.skills.is_empty() {
        add("skills", skills(&parts.skills));
    }
    if let Some(servers) = &parts.mcp_servers {
        add("mcp_servers", servers.clone());
    }
    if let Some(urls) = &parts.urls {
        add("urls", urls.clone());
    }
    if let Some(text) = &parts.plan_mode {
        add(PROMPT_SECTION, text.clone());
    }
    add("cwd", parts.cwd.replace('\\', "/"));
    if !parts.folders.is_empty() {
        add(
            "additional_folders",
            format!("These folders belong to the workspace, too:\n{}", parts.folders.join("\n")),
        );
    }
    sections
}

const PREAMBLE: &str = "You are a coding agent working for the user inside of agentd, on the user's own machine. You \
    solve tasks by looking at the project, changing files and running commands with the tools below, and you say what \
    you found and did.";

const DOCS: &str = "agentd runs you. When the user asks about agentd itself, its manual is printed by `agentctl \
    --help` and `agentd --help`; settings and models are configured in settings.json and models.json of the agent \
    directory.";

fn tools(parts: &PromptParts<'_>) -> String {
    let mut text = if parts.tools.is_empty() {
        "(none)".to_owned()
    } else {
        parts.tools.iter().map(|(name, line)| format!("- {name}: {line}")).collect::<Vec<_>>().join("\n")
    };
    text.push_str("\n\nThe project may offer further tools; use those that you were given.");
    text
}

fn rules(parts: &PromptParts<'_>) -> String {
    let active = |name: &str| parts.active.contains(&name);
    let mut rules: Vec<&str> = Vec::new();
    if active("bash") && !["grep", "find", "ls"].into_iter().any(active) {
        rules.push("Use bash to list, find and search files (ls, find, rg or grep).");
    }
    for rule in parts.guidelines.iter().copied().chain([
        "Be concise: lead with the result, leave out what the user can see for themselves.",
        "Name files by their paths, so that the user can open them.",
    ]) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
}

fn project_context(parts: &PromptParts<'_>) -> String {
    let mut text = "Instructions of this project and its user, the most specific ones last:".to_owned();
    for (path, content) in &parts.context_files {
        text.push_str(&format!(
            "\n\n<project_instructions path=\"{path}\">\n{content}\n</project_instructions>"
        ));
    }
    text
}

const SKILLS: &str = "Skills are instructions for certain kinds of work. When a task is what the description of one says, \
    read its file before you begin, and follow it. Paths in it are relative to the folder that the file is in; use absolute \
    paths in tool calls.";

fn skills(skills: &[SkillNote]) -> String {
    let mut text = format!("{SKILLS}\n\n<available_skills>");
    for SkillNote { name, description, location } in skills {
        text.push_str("\n  <skill>");
        for (tag, value) in [("name", name), ("description", description), ("location", location)] {
            text.push_str(&format!("\n    <{tag}>{}</{tag}>", escaped(value)));
        }
        text.push_str("\n  </skill>");
    }
    text.push_str("\n</available_skills>");
    text
}

/// A text inside of XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The system message that turns the state `(sections, tools)` that a transcript has declared into the wanted one;
/// `None` when nothing differs.
#[must_use]
pub(crate) fn update(
    declared: (&Map<String, Value>, &[Arc<ToolSpec>]),
    wanted: (&Map<String, Value>, &[Arc<ToolSpec>]),
    timestamp: i64,
) -> Option<SystemMessage> {
    let mut sections = Map::new();
    for (name, text) in wanted.0 {
        if declared.0.get(name) != Some(text) {
            sections.insert(name.clone(), text.clone());
        }
    }
    for name in declared.0.keys().filter(|name| !wanted.0.contains_key(*name)) {
        sections.insert(name.clone(), Value::Null);
    }
    let changed = |tool: &Arc<ToolSpec>, others: &[Arc<ToolSpec>]| {
        // A tool that was declared in this process is the same piece of memory: schemas are long.
        !others.iter().any(|other| Arc::ptr_eq(other, tool) || (other.name == tool.name && other == tool))
    };
    let added: Vec<Arc<ToolSpec>> =
        wanted.1.iter().filter(|tool| changed(tool, declared.1)).cloned().collect();
    let removed: Vec<ToolName> = declared
        .1
        .iter()
        .filter(|tool| !wanted.1.iter().any(|other| other.name == tool.name))
        .map(|tool| ToolName { name: tool.name.clone() })
        .collect();
    if sections.is_empty() && added.is_empty() && removed.is_empty() {
        return None;
    }
    Some(SystemMessage {
        content: MessageContent::default(),
        sections: (!sections.is_empty()).then_some(sections),
        timestamp,
        tools_added: (!added.is_empty()).then_some(added),
        tools_removed: (!removed.is_empty()).then_some(removed),
    })
}

/// The system messages of a transcript as one.
pub(crate) fn whole(messages: &[Json<Message>], timestamp: i64) -> SystemMessage {
    let SystemState { content, sections, tools } = system_state(messages);
    SystemMessage {
        content: MessageContent::Text(content),
        sections: Some(sections),
        timestamp,
        tools_added: Some(tools),
        tools_removed: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> PromptParts<'static> {
        PromptParts {
            tools: vec![("read", "reads files")],
            active: vec!["read", "bash"],
            guidelines: vec!["Read first.", "Read first."],
            cwd: "C:\\project".into(),
            folders: Vec::new(),
            ..PromptParts::default()
        }
    }

    fn names(sections: &Map<String, Value>) -> Vec<&str> {
        sections.keys().map(String::as_str).collect()
    }

    #[test]
    fn sections_come_in_order() {
        assert_eq!(names(&sections(&parts())), ["preamble", "tools", "rules", "docs", "cwd"]);
        let full = PromptParts {
            appended: vec!["one".into(), "two".into()],
            context_files: vec![("/p/AGENTS.md".into(), "Test it.".into())],
            skills: vec![SkillNote {
                name: "a-b".into(),
                description: "<it's> & \"that\"".into(),
                location: "/s/a-b/SKILL.md".into(),
            }],
            mcp_servers: Some("Servers.".into()),
            ..parts()
        };
        let sections = sections(&full);
        assert_eq!(
            names(&sections),
            [
                "preamble",
                "tools",
                "rules",
                "docs",
                "addendum",
                "project_context",
                "skills",
                "mcp_servers",
                "cwd"
            ]
        );
        assert_eq!(sections["addendum"], "<addendum>\none\n\ntwo\n</addendum>");
        assert_eq!(sections["cwd"], "<cwd>\nC:/project\n</cwd>");
        let skills = sections["skills"].as_str().unwrap();
        let list = "\n\n<available_skills>\n  <skill>\n    <name>a-b</name>\n    <description>&lt;it&apos;s&gt; &amp; \
                    &quot;that&quot;</description>\n    <location>/s/a-b/SKILL.md</location>\n  </skill>\n\
                    </available_skills>\n</skills>";
        assert!(skills.starts_with("<skills>\nSkills are") && skills.ends_with(list), "{skills}");
        let rules = sections["rules"].as_str().unwrap();
        assert_eq!(rules.matches("Read first.").count(), 1);
        assert!(rules.contains("Use bash to list"));
        let context = sections["project_context"].as_str().unwrap();
        assert!(context.contains(
            "\n\n<project_instructions path=\"/p/AGENTS.md\">\nTest it.\n</project_instructions>\n</project_context>"
        ));
    }

    #[test]
    fn skills_are_for_those_who_can_read_them() {
        let note = SkillNote { name: "a".into(), description: "b".into(), location: "/c".into() };
        for (active, expected) in [("read", true), ("bash", true), ("edit", false)] {
            let parts = PromptParts { skills: vec![note.clone()], active: vec![active], ..parts() };
            assert_eq!(sections(&parts).contains_key("skills"), expected, "{active}");
        }
    }

    #[test]
    fn a_custom_prompt_replaces_the_built_in_sections() {
        let custom = PromptParts { custom: Some("Be a poet.".into()), ..parts() };
        let sections = sections(&custom);
        assert_eq!(names(&sections), ["preamble", "cwd"]);
        assert_eq!(sections["preamble"], "Be a poet.");
    }

    #[test]
    fn updates_hold_only_what_changed() {
        let tool = |name: &str, description: &str| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: description.into(),
                parameters: Value::Null,
                constrained_sampling: None,
            })
        };
        let before = sections(&parts());
        let tools = [tool("read", "a"), tool("bash", "b")];
        assert_eq!(update((&before, &tools), (&before, &tools), 0), None);
        let mut after = before.clone();
        after.remove("docs");
        after.insert("cwd".into(), "elsewhere".into());
        let message = update((&before, &tools), (&after, &[tool("read", "new")]), 7).unwrap();
        assert_eq!(
            serde_json::to_string(&message).unwrap(),
            r#"{"content":"","sections":{"cwd":"elsewhere","docs":null},"timestamp":7,"toolsAdded":[{"name":"read","description":"new","parameters":null}],"toolsRemoved":[{"name":"bash"}]}"#
        );
    }
}
