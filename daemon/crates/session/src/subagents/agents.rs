//! The definitions of agents: those that agentd has, and those in files of the user and the project.

use agentd_discovery::{Capabilities, DiscoveryPlace, read_body};
use agentd_lsp::LSP_TOOL;
use agentd_protocol::{
    capabilities::CapabilityLevel,
    subagent::{AgentSource, TASK_TOOL, YIELD_TOOL},
    web::{WEB_FETCH_TOOL, WEB_SEARCH_TOOL},
};
use serde_json::Value;

use crate::subagent_place::SpawnPolicy;

/// A definition of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Agent {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) source: AgentSource,
    /// Its tools by their names here; `None` for those of its parent.
    pub(super) tools: Option<Vec<String>>,
    /// Names of tools in its definition that there are not.
    pub(super) unknown_tools: Vec<String>,
    pub(super) spawns: SpawnPolicy,
    /// The models that it works with, the first that can be used.
    pub(super) models: Vec<String>,
    pub(super) thinking: Option<String>,
    /// The schema of its result.
    pub(super) output: Option<Value>,
    /// The skills whose instructions it begins with.
    pub(super) skills: Vec<String>,
    /// Whether calls wait for it even if they do not wait for others.
    pub(super) is_blocking: bool,
    /// Its prompt.
    pub(super) prompt: String,
}

/// An agent that agentd has.
struct Bundled {
    name: &'static str,
    description: &'static str,
    tools: Option<&'static [&'static str]>,
    spawns: &'static [&'static str],
    models: &'static [&'static str],
    prompt: &'static str,
}

const BUNDLED: [Bundled; 5] = [
    Bundled {
        name: "task",
        description: "Any piece of work that can be described on its own; has the same tools",
        tools: None,
        spawns: &["*"],
        models: &[],
        prompt: "You carry out one piece of a larger work. Do exactly what your task says, completely, and nothing beside it. Others work \
                 in the same folder at the same time: change only what your task needs.",
    },
    Bundled {
        name: "scout",
        description: "Finds out where and how something is done in the project; changes nothing",
        tools: Some(&["read", "grep", "find", "ls"]),
        spawns: &[],
        models: &[],
        prompt: "You look into the project and report. Find the files, types and functions that matter for your task, read the parts that \
                 matter, and report what you found with paths and line numbers, so that the agent that asked need not look again. Change nothing. \
                 Say what you did not find.",
    },
    Bundled {
        name: "reviewer",
        description: "Reviews changes or code for faults, and reports them with their places; changes nothing",
        tools: Some(&["read", "grep", "find", "ls", "bash"]),
        spawns: &["scout"],
        models: &[],
        prompt: "You review code. Read what your task names, and what it touches. Report faults that matter: wrong results, lost data, \
                 crashes, races, missing cases, misleading names. For each: the file and line, what goes wrong and when, and how to mend \
                 it. Check each finding against the code before you report it. Use bash only to look, such as git diff. End with a verdict. \
                 Change nothing.",
    },
    Bundled {
        name: "security-reviewer",
        description: "Reviews code for weaknesses that an attacker could use; changes nothing",
        tools: Some(&["read", "grep", "find", "ls", "bash"]),
        spawns: &["scout"],
        models: &[],
        prompt: "You review code for weaknesses. Follow what comes from outside, such as input, files, environment and network, to where it \
                 takes effect: commands, queries, paths, memory, secrets, permissions. Report what an attacker could use: the file and \
                 line, the way in, what it leads to, how to close it, and how sure you are. Do not report what cannot be reached. Use bash \
                 only to look. Change nothing.",
    },
    Bundled {
        name: "sonic",
        description: "Mechanical work that needs no judgement, such as the same edit in many places; a small, fast model",
        tools: None,
        spawns: &[],
        models: &["@smol"],
        prompt: "You carry out mechanical work quickly. Do exactly what your task says, in every place that it names, and nothing beside it. \
                 Where it leaves something open that needs judgement, do not decide: leave that place as it is, and report it.",
    },
];

/// The agents that a session can start. Of two with one name the first counts: the project's, the user's, agentd's.
pub(crate) struct Agents(Vec<Agent>);

impl Agents {
    /// Those of files and of agentd, without those that the settings disable. Reads files; blocks.
    pub(crate) fn find(capabilities: &Capabilities, place: &DiscoveryPlace, disabled: &[String]) -> Self {
        let of_files = capabilities.agents().filter_map(|definition| {
            let body = read_body(definition.item, place);
            let body = body.inspect_err(|error| tracing::debug!(%error, "a definition of an agent")).ok()?;
            let fields = &definition.item.fields;
            let (tools, unknown_tools) = own_names(definition.tools.as_deref());
            let starts_others =
                tools.as_deref().is_none_or(|tools| tools.iter().any(|tool| tool == TASK_TOOL));
            let spawns = match fields.get("spawns").and_then(SpawnPolicy::of) {
                Some(policy) => policy,
                None if starts_others => SpawnPolicy::Any,
                None => SpawnPolicy::Nobody,
            };
            Some(Agent {
                name: definition.name.to_owned(),
                description: definition.description.to_owned(),
                source: match definition.item.level {
                    CapabilityLevel::Project => AgentSource::Project,
                    _ => AgentSource::User,
                },
                tools,
                unknown_tools,
                spawns,
                models: definition.model.clone(),
                thinking: definition.item.text("thinkingLevel").map(str::to_owned),
                output: fields.get("output").filter(|output| output.is_object()).cloned(),
                skills: definition.item.list("autoloadSkills"),
                is_blocking: definition.item.flag("blocking").unwrap_or(false),
                prompt: body,
            })
        });
        let mut agents: Vec<Agent> = Vec::new();
        for agent in of_files.chain(BUNDLED.iter().map(Agent::of)) {
            let is_usable = !matches!(agent.name.as_str(), "main" | "sub") && !disabled.contains(&agent.name);
            if is_usable && !agents.iter().any(|known| known.name == agent.name) {
                agents.push(agent);
            }
        }
        Self(agents)
    }

    /// The agent of that name, if the policy permits it.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(super) fn get(&self, name: &str, policy: &SpawnPolicy) -> Result<&Agent, String> {
        let Some(agent) = self.0.iter().find(|agent| agent.name == name) else {
            let names: Vec<&str> = self.permitted(policy).map(|agent| agent.name.as_str()).collect();
            return Err(format!("Unknown agent \"{name}\". Available: {}", names.join(", ")));
        };
        if policy.permits(name) {
            Ok(agent)
        } else {
            Err(format!("Cannot spawn '{name}'. Allowed: {}", policy.listed()))
        }
    }

    fn permitted<'a>(&'a self, policy: &'a SpawnPolicy) -> impl Iterator<Item = &'a Agent> {
        self.0.iter().filter(|agent| policy.permits(&agent.name))
    }

    /// The section of the system prompt about them.
    pub(crate) fn section(&self, policy: &SpawnPolicy) -> Option<String> {
        let lines: Vec<String> = self
            .permitted(policy)
            .map(|agent| format!("- {}: {}", agent.name, one_line(&agent.description)))
            .collect();
        (!lines.is_empty())
            .then(|| format!("Agents that the tool {TASK_TOOL} can start:\n{}", lines.join("\n")))
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Agent {
    fn of(bundled: &Bundled) -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Self {
            name: bundled.name.to_owned(),
            description: bundled.description.to_owned(),
            source: AgentSource::Bundled,
            tools: bundled.tools.map(list),
            unknown_tools: Vec::new(),
            spawns: match bundled.spawns {
                ["*"] => SpawnPolicy::Any,
                names => SpawnPolicy::named(names.iter().copied()),
            },
            models: list(bundled.models),
            thinking: None,
            output: None,
            skills: Vec::new(),
            is_blocking: false,
            prompt: bundled.prompt.to_owned(),
        }
    }
}

/// The names of tools as they are here, and those that name nothing. Claude Code and omp have other names for some; a pattern of arguments
/// behind a name, as in `Bash(git:*)`, is left out.
fn own_names(tools: Option<&[String]>) -> (Option<Vec<String>>, Vec<String>) {
    let Some(tools) = tools else { return (None, Vec::new()) };
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for tool in tools {
        let plain = tool.split('(').next().unwrap_or_default().trim();
        let own = match plain {
            "*" => return (None, Vec::new()),
            "Read" | "NotebookRead" => "read",
            "Bash" | "BashOutput" | "KillShell" | "KillBash" => "bash",
            "Edit" | "MultiEdit" | "NotebookEdit" => "edit",
            "Write" => "write",
            "Grep" => "grep",
            "Glob" | "glob" => "find",
            "LS" => "ls",
            "Task" | "Agent" => TASK_TOOL,
            "TodoWrite" | "AskUserQuestion" | "ExitPlanMode" | YIELD_TOOL => continue,
            "WebFetch" | "fetch" => WEB_FETCH_TOOL,
            "WebSearch" => WEB_SEARCH_TOOL,
            "LSP" => LSP_TOOL,
            "browser" => {
                unknown.push(plain.to_owned());
                continue;
            }
            other => other,
        };
        if !own.is_empty() && !known.iter().any(|known| known == own) {
            known.push(own.to_owned());
        }
    }
    (Some(known), unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_are_mapped() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let given = list(&["Read", "Bash(git:*)", "Glob", "read", "WebFetch", "mcp__x__y", "LSP", "browser"]);
        assert_eq!(
            own_names(Some(&given)),
            (Some(list(&["read", "bash", "find", "web_fetch", "mcp__x__y", "lsp"])), list(&["browser"]))
        );
        assert_eq!(own_names(Some(&list(&["*"]))), (None, Vec::new()));
        assert_eq!(own_names(None), (None, Vec::new()));
    }

    #[test]
    fn unknown_and_forbidden_agents_are_told_apart() {
        let agents = Agents(BUNDLED.iter().map(Agent::of).collect());
        let unknown = agents.get("x", &SpawnPolicy::Any).unwrap_err();
        assert_eq!(
            unknown,
            "Unknown agent \"x\". Available: task, scout, reviewer, security-reviewer, sonic"
        );
        let only = SpawnPolicy::Only(vec!["scout".into()]);
        assert_eq!(agents.get("task", &only).unwrap_err(), "Cannot spawn 'task'. Allowed: scout");
        assert!(agents.get("scout", &only).is_ok());
        assert!(
            agents.section(&only).unwrap().ends_with(
                "- scout: Finds out where and how something is done in the project; changes nothing"
            )
        );
        assert_eq!(agents.section(&SpawnPolicy::Nobody), None);
    }
}
