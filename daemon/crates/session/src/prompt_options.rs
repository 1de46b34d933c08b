//! The inputs of the system prompt as extensions see and edit them (`systemPromptOptions`). Pure.

use std::{path::Path, sync::Arc};

use agentd_agent::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::PROMPT_SECTION;
use crate::system_prompt::{PromptParts, SkillNote, sections};

/// The inputs of the system prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptOptions {
    /// In the place of the built-in prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_prompt: Option<String>,
    /// In the place of everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) force_system_prompt: Option<String>,
    pub(crate) selected_tools: Vec<String>,
    hidden_tools: Vec<String>,
    /// One line for each tool that has one.
    tool_snippets: Map<String, Value>,
    /// Advice by tool.
    tool_guidelines: Map<String, Value>,
    /// Further advice.
    prompt_guidelines: Vec<String>,
    append_system_prompt: String,
    /// Further sections by their tags.
    sections: Map<String, Value>,
    cwd: String,
    context_files: Vec<PromptFile>,
    skills: Vec<PromptSkill>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct PromptFile {
    path: String,
    content: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PromptSkill {
    name: String,
    description: String,
    file_path: String,
    base_dir: String,
    disable_model_invocation: bool,
}

/// The section of the MCP servers.
const MCP_SERVERS: &str = "mcp_servers";

/// The section of the URLs that clients serve.
const URLS: &str = "urls";

/// The section with the rules of the project and the user.
const PROJECT_RULES: &str = "project_rules";

/// The section about the agents that can be started.
const SUBAGENTS: &str = "subagents";

/// The section of a subagent about itself.
const AGENT: &str = "agent";

/// The section of further folders.
const FOLDERS: &str = "additional_folders";

impl PromptOptions {
    /// The inputs that make these parts. `tools`: all that the session may have, since extensions may select others.
    pub(crate) fn of(parts: &PromptParts<'_>, tools: &[Arc<dyn Tool>]) -> Self {
        let texts = |texts: Vec<&str>| Value::from(texts);
        let mut more = Map::new();
        more.extend(parts.mcp_servers.clone().map(|servers| (MCP_SERVERS.to_owned(), servers.into())));
        more.extend(parts.urls.clone().map(|urls| (URLS.to_owned(), urls.into())));
        more.extend(parts.plan_mode.clone().map(|text| (PROMPT_SECTION.to_owned(), text.into())));
        more.extend(parts.project_rules.clone().map(|rules| (PROJECT_RULES.to_owned(), rules.into())));
        more.extend(parts.subagents.clone().map(|agents| (SUBAGENTS.to_owned(), agents.into())));
        more.extend(parts.agent.clone().map(|agent| (AGENT.to_owned(), agent.into())));
        if !parts.folders.is_empty() {
            more.insert(FOLDERS.to_owned(), parts.folders.join("\n").into());
        }
        Self {
            custom_prompt: parts.custom.clone(),
            force_system_prompt: None,
            selected_tools: parts.active.iter().map(|name| (*name).to_owned()).collect(),
            hidden_tools: Vec::new(),
            tool_snippets: tools
                .iter()
                .filter_map(|tool| Some((tool.spec().name.clone(), tool.snippet()?.into())))
                .chain(parts.tools.iter().map(|(name, line)| ((*name).to_owned(), (*line).into())))
                .collect(),
            tool_guidelines: tools
                .iter()
                .filter(|tool| !tool.guidelines().is_empty())
                .map(|tool| (tool.spec().name.clone(), texts(tool.guidelines())))
                .collect(),
            prompt_guidelines: Vec::new(),
            append_system_prompt: parts.appended.join("\n\n"),
            sections: more,
            cwd: parts.cwd.clone(),
            context_files: parts
                .context_files
                .iter()
                .map(|(path, content)| PromptFile { path: path.clone(), content: content.clone() })
                .collect(),
            skills: parts
                .skills
                .iter()
                .map(|skill| PromptSkill {
                    name: skill.name.clone(),
                    description: skill.description.clone(),
                    file_path: skill.location.clone(),
                    base_dir: Path::new(&skill.location)
                        .parent()
                        .map_or_else(String::new, |folder| folder.display().to_string()),
                    disable_model_invocation: false,
                })
                .collect(),
        }
    }

    /// The sections that they make, as [`sections`] does of the parts.
    pub(crate) fn sections(&self) -> Map<String, Value> {
        if let Some(text) = &self.force_system_prompt {
            return Map::from_iter([("preamble".to_owned(), text.as_str().into())]);
        }
        let shown: Vec<&str> = self
            .selected_tools
            .iter()
            .filter(|name| !self.hidden_tools.contains(name))
            .map(String::as_str)
            .collect();
        let advice = |name: &&str| self.tool_guidelines.get(*name).and_then(Value::as_array);
        let of_tools = shown.iter().filter_map(advice).flatten().filter_map(Value::as_str);
        let text_of = |name: &str| self.sections.get(name).and_then(Value::as_str);
        let parts = PromptParts {
            custom: self.custom_prompt.clone(),
            appended: match self.append_system_prompt.as_str() {
                "" => Vec::new(),
                text => vec![text.to_owned()],
            },
            context_files: self
                .context_files
                .iter()
                .map(|file| (file.path.clone(), file.content.clone()))
                .collect(),
            skills: self
                .skills
                .iter()
                .filter(|skill| !skill.disable_model_invocation)
                .map(|skill| SkillNote {
                    name: skill.name.clone(),
                    description: skill.description.clone(),
                    location: skill.file_path.clone(),
                })
                .collect(),
            project_rules: text_of(PROJECT_RULES).map(str::to_owned),
            plan_mode: text_of(PROMPT_SECTION).map(str::to_owned),
            mcp_servers: text_of(MCP_SERVERS).map(str::to_owned),
            urls: text_of(URLS).map(str::to_owned),
            subagents: text_of(SUBAGENTS).map(str::to_owned),
            agent: text_of(AGENT).map(str::to_owned),
            tools: shown
                .iter()
                .filter_map(|name| Some((*name, self.tool_snippets.get(*name)?.as_str()?)))
                .collect(),
            guidelines: of_tools.chain(self.prompt_guidelines.iter().map(String::as_str)).collect(),
            active: shown,
            cwd: self.cwd.clone(),
            folders: text_of(FOLDERS)
                .map(|text| text.lines().map(str::to_owned).collect())
                .unwrap_or_default(),
        };
        let mut made = sections(&parts);
        for (tag, text) in &self.sections {
            let is_own = [MCP_SERVERS, URLS, PROJECT_RULES, PROMPT_SECTION, SUBAGENTS, AGENT, FOLDERS];
            let is_own = is_own.contains(&tag.as_str());
            if let Some(text) = text.as_str().filter(|_| !is_own) {
                made.insert(tag.clone(), format!("<{tag}>\n{text}\n</{tag}>").into());
            }
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_make_the_sections_of_their_parts() {
        let parts = PromptParts {
            appended: vec!["Be kind.".into(), "Be brief.".into()],
            context_files: vec![("/p/AGENTS.md".into(), "Rules.".into())],
            skills: vec![SkillNote {
                name: "s".into(),
                description: "d".into(),
                location: "/s/SKILL.md".into(),
            }],
            mcp_servers: Some("Servers.".into()),
            urls: Some("db://".into()),
            plan_mode: Some("Look.".into()),
            tools: vec![("read", "reads files")],
            active: vec!["read", "bash"],
            cwd: "/p".into(),
            folders: vec!["/q".into(), "/r".into()],
            ..PromptParts::default()
        };
        let mut options = PromptOptions::of(&parts, &[]);
        assert_eq!(options.sections(), sections(&parts));
        let read: PromptOptions = serde_json::from_value(serde_json::to_value(&options).unwrap()).unwrap();
        assert_eq!(read, options);

        options.sections.insert("mood".into(), "Good.".into());
        options.selected_tools.remove(0);
        let made = options.sections();
        assert_eq!(made["mood"], "<mood>\nGood.\n</mood>");
        assert!(made["tools"].as_str().unwrap().contains("(none)"), "{}", made["tools"]);
        options.force_system_prompt = Some("Only this.".into());
        assert_eq!(Value::Object(options.sections()), serde_json::json!({"preamble": "Only this."}));
    }
}
