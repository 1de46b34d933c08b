//! The tools of a session: those that agentd gives it, those of its clients, and which of them the model can call.
//!
//! All tools are in one registry, which outlives the loaded session; built-in tools are replaced there with the session's context, which
//! also has the flags and settings that select tools. The actor makes one set of the active tools, and keeps the same value until something
//! changes. A run asks for it at the beginning of every turn; when the set
//! has changed, a system message that says so comes first, and the turn works with exactly the declared tools.

use std::sync::Arc;

use agentd_agent::{ExecutionMode, Exposure, Tool, ToolSet};
use agentd_protocol::{
    entry::EntryBody,
    error::{ErrorCode, Failure},
    settings::matches_pattern as matches,
    tool_list::{ToolExecution, ToolInfo, ToolSource, ToolState},
};
use agentd_store::SessionTree;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    options::ToolSelection,
    tool_registry::{RegisteredTool, ToolOwner, ToolRegistry},
};

/// The tools of a session.
pub(crate) struct SessionTools {
    registry: ToolRegistry,
    /// Which of them somebody chose, those of clients excepted; names of no tool in it mean nothing.
    chosen: ToolChoice,
    /// The active tools, and the registry version and the exposures of the session's own tools that they are for.
    current: Option<(u64, Vec<bool>, Arc<ToolSet>)>,
}

impl SessionTools {
    /// Registers the session's built-in tools.
    pub(crate) fn new(registry: ToolRegistry, own: &OwnTools, chosen: ToolChoice) -> Self {
        let mut tools = Self { registry, chosen, current: None };
        tools.replace_own(own);
        tools
    }

    /// All tools, selected or not.
    pub(crate) fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// The chosen tools.
    pub(crate) fn chosen(&self) -> &ToolChoice {
        &self.chosen
    }

    /// The built-in tools are others now, or are selected differently.
    pub(crate) fn replace_own(&mut self, own: &OwnTools) {
        self.registry.replace(ToolSource::Builtin, own.iter().map(OwnTool::registered));
        self.current = None;
    }

    /// The session is in another mode, with which tools come and go.
    pub(crate) fn mode_changed(&mut self) {
        self.current = None;
    }

    /// The tools that the model can call. The same value until something changes.
    pub(crate) fn current(&mut self, own: &OwnTools) -> Arc<ToolSet> {
        let exposed: Vec<bool> = own.iter().map(|own| own.tool.exposure().is_for_models()).collect();
        if let Some((version, known, tools)) = &self.current
            && *version == self.registry.version()
            && *known == exposed
        {
            return Arc::clone(tools);
        }
        let (version, listed) = self.listed(own);
        let active = listed.into_iter().filter(|listed| listed.active).map(|listed| listed.tool);
        let tools = Arc::new(ToolSet::new(active));
        self.current = Some((version, exposed, Arc::clone(&tools)));
        tools
    }

    /// All tools, as clients see them.
    pub(crate) fn list(&self, own: &OwnTools) -> Vec<ToolInfo> {
        self.listed(own).1.into_iter().map(info).collect()
    }

    /// All tools in short.
    pub(crate) fn states(&self, own: &OwnTools) -> Vec<ToolState> {
        let state = |registered: RegisteredTool| ToolState {
            name: registered.name().to_owned(),
            active: registered.active,
            source: registered.owner.source(),
            client: registered.owner.client().map(str::to_owned),
            server: registered.owner.server().map(str::to_owned),
            label: registered.tool.label().filter(|label| *label != registered.name()).map(str::to_owned),
            annotations: registered.tool.annotations().cloned(),
        };
        self.listed(own).1.into_iter().map(state).collect()
    }

    /// The names of the active tools.
    pub(crate) fn active(&self, own: &OwnTools) -> Vec<String> {
        let states = self.states(own);
        states.into_iter().filter(|tool| tool.active).map(|tool| tool.name).collect()
    }

    /// The names of a choice, in the order of the tools, each once.
    ///
    /// # Errors
    /// Names those that no tool of the session has, and the tools that there are.
    pub(crate) fn check(&self, own: &OwnTools, wanted: &[String]) -> Result<Vec<String>, Failure> {
        let all: Vec<String> = self.states(own).into_iter().map(|tool| tool.name).collect();
        let unknown: Vec<&String> = wanted.iter().filter(|name| !all.contains(name)).collect();
        if !unknown.is_empty() {
            let quoted = unknown.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            let which = if unknown.len() == 1 { "tool" } else { "tools" };
            let text = format!("Unknown {which} {quoted}; this session has {}.", named(&all));
            let failure = Failure::new(ErrorCode::InvalidField, text);
            return Err(if unknown.iter().any(|name| own.is_built_in(name)) {
                failure.hint(
                    "Flags or settings of the session leave out built-in tools that are not listed here.",
                )
            } else {
                failure
            });
        }
        Ok(all.into_iter().filter(|name| wanted.contains(name)).collect())
    }

    /// The names that flags make active, in the order of the tools. `defaults` are those that are active where nothing is chosen.
    ///
    /// # Errors
    /// As of [`Self::check`]; names that leave tools out may be those of built-in tools that the session does not have.
    pub(crate) fn selected(
        &self,
        own: &OwnTools,
        selection: &ToolSelection,
        defaults: &[String],
    ) -> Result<Vec<String>, Failure> {
        let states = self.states(own);
        let is_there = |pattern: &str| states.iter().any(|tool| matches(pattern, &tool.name));
        let left_out = |pattern: &str| is_there(pattern) || own.names().any(|name| matches(pattern, name));
        let allowed = selection.allow.iter().flatten().map(|item| match item.strip_prefix('-') {
            Some(pattern) => (pattern, left_out(pattern)),
            None => {
                let pattern = item.strip_prefix('+').unwrap_or(item);
                (pattern, is_there(pattern))
            }
        });
        let excluded = selection.exclude.iter().map(|pattern| (pattern.as_str(), left_out(pattern)));
        let unknown = allowed.chain(excluded).filter(|(_, is_known)| !is_known);
        let unknown: Vec<String> = unknown.map(|(pattern, _)| pattern.to_owned()).collect();
        if !unknown.is_empty() {
            self.check(own, &unknown)?;
        }
        let of_own = own.selected(selection, defaults);
        let is_active = |tool: &ToolState| match tool.source {
            ToolSource::Client | ToolSource::Mcp | ToolSource::Extension | ToolSource::File => {
                selection.permits_of_client(&tool.name) && (tool.active || selection.names(&tool.name))
            }
            ToolSource::Builtin => of_own.contains(&tool.name.as_str()),
        };
        Ok(states.iter().filter(|tool| is_active(tool)).map(|tool| tool.name.clone()).collect())
    }

    /// All tools that the session may have.
    pub(crate) fn all(&self, own: &OwnTools) -> Vec<RegisteredTool> {
        self.listed(own).1
    }

    /// All tools that the model may ever see.
    pub(crate) fn declarable(&self, own: &OwnTools) -> Vec<Arc<dyn Tool>> {
        let listed = self.listed(own).1.into_iter().map(|listed| listed.tool);
        listed.filter(|tool| tool.exposure().is_for_models()).collect()
    }

    /// The tools that tools can call: active ones that are not for the model alone, and those that are never declared to it.
    pub(crate) fn callable(&self, own: &OwnTools) -> ToolSet {
        let listed = self.listed(own).1.into_iter();
        let callable = listed.filter(|listed| match listed.tool.exposure() {
            Exposure::Direct => listed.active,
            Exposure::Codemode | Exposure::Deferred => true,
            Exposure::ModelOnly | Exposure::Hidden => false,
        });
        ToolSet::new(callable.map(|listed| listed.tool))
    }

    /// Makes exactly these tools active.
    pub(crate) fn choose(&mut self, names: Vec<String>) {
        self.registry.activate_of_clients(&names);
        self.chosen = Some(names.into());
        self.current = None;
    }

    /// All tools that the session may have, with whether they are active, and the version of the registry.
    fn listed(&self, own: &OwnTools) -> (u64, Vec<RegisteredTool>) {
        let (version, mut registered) = self.registry.registered();
        // A tool of an extension takes the place of others of its name.
        let of_extensions: Vec<Arc<dyn Tool>> = registered
            .iter()
            .filter(|registered| registered.owner == ToolOwner::Extension)
            .map(|registered| Arc::clone(&registered.tool))
            .collect();
        if !of_extensions.is_empty() {
            registered.retain(|registered| {
                registered.owner == ToolOwner::Extension
                    || !of_extensions.iter().any(|tool| tool.spec().name == registered.name())
            });
        }
        let permitted = registered.into_iter().filter(|registered| match registered.owner {
            // A tool of a mode is there while the mode is.
            ToolOwner::Builtin if registered.tool.comes_with_mode() => {
                registered.tool.exposure().is_for_models()
            }
            // They were checked when they came.
            ToolOwner::Builtin | ToolOwner::Client { .. } => true,
            ToolOwner::Mcp { .. } | ToolOwner::Extension | ToolOwner::File { .. } => {
                own.permits_of_others(registered.name())
            }
        });
        let listed = permitted.map(|registered| {
            let is_declarable = registered.tool.exposure().is_for_models();
            let active = is_declarable
                && match (&registered.owner, &self.chosen) {
                    (ToolOwner::Mcp { is_loaded: true, .. }, _) => true,
                    (ToolOwner::Builtin, _) if registered.tool.comes_with_mode() => true,
                    (ToolOwner::Client { .. }, _) | (_, None) => registered.active,
                    (_, Some(chosen)) => chosen.iter().any(|chosen| chosen == registered.name()),
                };
            RegisteredTool { active, ..registered }
        });
        (version, listed.collect())
    }
}

/// Names in a sentence.
pub(crate) fn named(names: &[String]) -> String {
    if names.is_empty() { "no tools".to_owned() } else { names.join(", ") }
}

fn info(RegisteredTool { tool, owner, active }: RegisteredTool) -> ToolInfo {
    let spec = tool.spec();
    ToolInfo {
        name: spec.name.clone(),
        label: tool.label().unwrap_or(&spec.name).to_owned(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
        active,
        source: owner.source(),
        client: owner.client().map(str::to_owned),
        server: owner.server().map(str::to_owned),
        snippet: tool.snippet().map(str::to_owned),
        guidelines: tool.guidelines().into_iter().map(str::to_owned).collect(),
        execution: match tool.execution() {
            ExecutionMode::Parallel => ToolExecution::Parallel,
            ExecutionMode::Sequential => ToolExecution::Sequential,
        },
        timeout_ms: owner.timeout().map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        constrained_sampling: spec.constrained_sampling.clone(),
        annotations: tool.annotations().cloned(),
    }
}

/// The built-in tools of a session, as flags and settings have them. Pure.
pub(crate) struct OwnTools {
    tools: Vec<OwnTool>,
    /// All there are, those that the session does not have included: extensions may run their implementations.
    all: Vec<Arc<dyn Tool>>,
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

    /// The tool as the registry holds it.
    fn registered(&self) -> RegisteredTool {
        RegisteredTool { tool: Arc::clone(&self.tool), owner: ToolOwner::Builtin, active: self.by_default }
    }
}

impl OwnTools {
    /// `defaults` are the names that are active when nothing was chosen.
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>, selection: ToolSelection, defaults: &[String]) -> Self {
        let all = tools;
        let tools = all
            .iter()
            .filter(|tool| with_its_tool(tool, &selection, |name| selection.permits(name)))
            .map(|tool| OwnTool {
                by_default: with_its_tool(tool, &selection, |name| selection.is_active(name, defaults)),
                tool: Arc::clone(tool),
            })
            .collect();
        Self { tools, all, selection }
    }

    /// The tools of the session, in the order in which models see them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OwnTool> {
        self.tools.iter()
    }

    /// The names of all built-in tools, in this session or not.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|tool| tool.spec().name.as_str())
    }

    /// The names of the session's tools that other flags would make active.
    pub(crate) fn selected(&self, selection: &ToolSelection, defaults: &[String]) -> Vec<&str> {
        let is_active =
            |own: &&OwnTool| with_its_tool(&own.tool, selection, |name| selection.is_active(name, defaults));
        self.tools.iter().filter(is_active).map(OwnTool::name).collect()
    }

    /// The built-in tool of that name, in this session or not.
    pub(crate) fn implementation(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.all.iter().find(|tool| tool.spec().name == name)
    }

    /// Whether there is a built-in tool of that name, in this session or not.
    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether a client or a server may provide a tool of that name.
    pub(crate) fn permits_of_others(&self, name: &str) -> bool {
        self.selection.permits_of_client(name)
    }
}

/// Whether something is true of a tool, or of the tool that it comes with, unless its own name leaves it out. One that comes with a mode is
/// there whatever was chosen.
fn with_its_tool(tool: &Arc<dyn Tool>, selection: &ToolSelection, is_so: impl Fn(&str) -> bool) -> bool {
    let name = &tool.spec().name;
    if tool.comes_with_mode() {
        return !selection.leaves_out(name);
    }
    is_so(name) || (!selection.leaves_out(name) && tool.comes_with().is_some_and(is_so))
}

/// The `customType` of the entry.
const CHOICE_TYPE: &str = "agentd.active-tools";

/// The names of the active tools, as somebody chose them; `None`: as flags and settings have it.
pub(crate) type ToolChoice = Option<Box<[String]>>;

/// The entry that keeps a choice: `{"tools":[…]}`, or `{}` for what flags and settings say.
pub(crate) fn choice_entry(choice: Option<&[String]>) -> EntryBody {
    let data = choice.map_or_else(|| json!({}), |tools| json!({ "tools": tools }));
    EntryBody::Custom { custom_type: CHOICE_TYPE.to_owned(), data: Some(data) }
}

/// The last choice on the way from the root to the leaf.
pub(crate) fn chosen_on(tree: &SessionTree) -> ToolChoice {
    let branch = tree.branch();
    let mut of_extensions = branch.iter().rev().filter(|entry| entry.may_be_custom(CHOICE_TYPE));
    let data = of_extensions.find_map(|entry| match entry.body()? {
        EntryBody::Custom { custom_type, data } if custom_type == CHOICE_TYPE => Some(data),
        _ => None,
    })?;
    read_choice(data?)
}

/// Data of another shape is as good as none.
fn read_choice(data: Value) -> ToolChoice {
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        tools: Option<Vec<String>>,
    }
    serde_json::from_value::<Data>(data).ok()?.tools.map(Into::into)
}

#[cfg(test)]
mod tests {
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};

    use super::*;

    fn tree_of(bodies: &[EntryBody]) -> SessionTree {
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        for body in bodies {
            let entry = tree.prepare(NewEntry::from_body(body).unwrap(), 0);
            tree.push(entry);
        }
        tree
    }

    #[test]
    fn the_last_choice_of_the_branch_counts() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (one, two) = (names(&["read"]), names(&[]));
        let other = EntryBody::Custom { custom_type: "other".into(), data: Some(json!({"tools": ["x"]})) };
        assert_eq!(chosen_on(&tree_of(&[])), None);
        assert_eq!(chosen_on(&tree_of(&[choice_entry(Some(&one)), other])), Some(one.clone().into()));
        assert_eq!(
            chosen_on(&tree_of(&[choice_entry(Some(&one)), choice_entry(Some(&two))])),
            Some(two.into())
        );
        assert_eq!(chosen_on(&tree_of(&[choice_entry(Some(&one)), choice_entry(None)])), None);
        let odd = EntryBody::Custom { custom_type: CHOICE_TYPE.into(), data: Some(json!({"tools": 3})) };
        assert_eq!(chosen_on(&tree_of(&[choice_entry(Some(&one)), odd])), None);
    }
}
