//! The files that a session reads for its prompts: skills, prompt templates, instructions.
//!
//! They are read at every run and at every command about them: changes count at once, and a session keeps none of them
//! in memory.

use std::path::Path;

use agentd_agent::ToolSet;
use agentd_config::resources::{
    ContextQuery, DiscoveredResources, ExtensionPlace, ExtensionResources, ResourceQuery,
    appended_prompt_file, context_files, load_resources, load_skills, system_prompt_file, text_or_file,
};
use agentd_discovery::Capabilities;
use agentd_extensions::{DiscoveredKind, DiscoveredResource};
use agentd_mcp::SEARCH_TOOL;
use agentd_packages::{DiscoveryQuery, package_resources};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
    subagent::TASK_TOOL,
};

use crate::{
    context::SessionContext,
    discovery::FoundCapabilities,
    plan::prompt_section,
    system_prompt::{PromptParts, SkillNote},
};

impl SessionContext {
    /// Where this session's extensions and packages are.
    pub(crate) fn discovery_query(&self) -> DiscoveryQuery<'_> {
        DiscoveryQuery {
            agent_dir: &self.agent_dir,
            cwd: &self.cwd,
            folders: &self.prompt.folders,
            trusted: self.prompt.is_trusted() && self.prompt.is_of_cwd,
            environment: &self.environment,
            lists: &self.prompt.lists,
            flags: &self.prompt.flags,
            no_mcp: self.prompt.no_mcp,
        }
    }

    /// Looks at this session's skills and prompt templates. Faults of packages go to `diagnostics`. Reads files; blocks.
    pub(crate) fn with_resources<T>(
        &self,
        diagnostics: &mut Vec<Diagnostic>,
        look: impl FnOnce(&ResourceQuery<'_>, &DiscoveredResources) -> T,
    ) -> T {
        self.with_resources_of(&self.capabilities(), diagnostics, look)
    }

    fn with_resources_of<T>(
        &self,
        capabilities: &Capabilities,
        diagnostics: &mut Vec<Diagnostic>,
        look: impl FnOnce(&ResourceQuery<'_>, &DiscoveredResources) -> T,
    ) -> T {
        let query = self.discovery_query();
        let packages = package_resources(&query, diagnostics);
        let of_extensions = self.resources_of_extensions();
        let switches = self.discovery.get();
        let disabled: Vec<String> = switches.disabled_items().map(str::to_owned).collect();
        let included: Vec<String> = switches.included_skills().map(str::to_owned).collect();
        let discovered = self.discovered_resources(capabilities);
        let query = ResourceQuery {
            agent_dir: query.agent_dir,
            cwd: query.cwd,
            folders: query.folders,
            trusted: query.trusted,
            environment: query.environment,
            lists: query.lists,
            flags: query.flags,
            packages: &packages,
            of_extensions: &of_extensions,
            disabled: &disabled,
            included_skills: &included,
        };
        look(&query, &discovered)
    }

    /// The files that the extensions named for skills and prompt templates.
    fn resources_of_extensions(&self) -> ExtensionResources {
        let mut found = ExtensionResources::default();
        for resource in self.extensions.iter().flat_map(|extensions| extensions.resources().to_vec()) {
            let DiscoveredResource { kind, path, extension } = resource;
            let place = ExtensionPlace { path, extension: extension.into() };
            match kind {
                DiscoveredKind::Skill => found.skills.push(place),
                DiscoveredKind::Prompt => found.prompts.push(place),
            }
        }
        found
    }

    /// Problems with skills, prompt templates, context files and files of the system prompt. Reads files; blocks.
    pub(crate) fn resource_diagnostics(&self) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let capabilities = self.capabilities();
        if let Err(failure) = self.prompt_files(&capabilities, &mut diagnostics) {
            let diagnostic = Diagnostic::warning(DiagnosticKind::Flag, failure.error);
            diagnostics.push(
                diagnostic.level(DiagnosticLevel::Error).hint("every prompt fails until it can be read"),
            );
        }
        let resources = self.with_resources_of(&capabilities, &mut diagnostics, load_resources);
        diagnostics.extend(resources.diagnostics);
        diagnostics.extend(self.discovery_diagnostics());
        diagnostics
    }

    /// The parts of the system prompt for a model that can call these tools. Reads files; blocks.
    ///
    /// # Errors
    /// A file that `--system-prompt` or `--append-system-prompt` names cannot be read. What is wrong with others, the session
    /// says when it is opened.
    pub(crate) fn prompt_parts<'a>(
        &self,
        tools: &'a ToolSet,
        directory: &Path,
    ) -> Result<PromptParts<'a>, Failure> {
        let mut diagnostics = Vec::new();
        let capabilities = self.capabilities();
        let PromptFiles { custom, appended, context } = self.prompt_files(&capabilities, &mut diagnostics)?;
        for diagnostic in diagnostics {
            tracing::debug!(%diagnostic, "a file of the system prompt");
        }
        let tools: Vec<_> = tools.iter().collect();
        let active: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let reads = active.iter().any(|name| matches!(*name, "read" | "bash"));
        // Skills are files of this machine, which tools that work on another cannot read.
        let reads = reads && !self.is_elsewhere;
        let skills = if reads {
            self.with_resources_of(&capabilities, &mut Vec::new(), load_skills)
        } else {
            Vec::new()
        };
        let told = skills.into_iter().filter(|skill| !skill.only_by_user).map(|skill| SkillNote {
            location: skill.file.display().to_string(),
            name: skill.name,
            description: skill.description,
        });
        let rules =
            if self.prompt.context_files { self.project_rules(&capabilities, &context, reads) } else { None };
        let subagents = if active.contains(&TASK_TOOL) { self.agents_section(&capabilities) } else { None };
        let planning = self.permissions.planning();
        let searches = active.contains(&SEARCH_TOOL);
        let mcp_servers = self.mcp.as_ref().filter(|_| searches).and_then(|mcp| mcp.prompt_section());
        let reads_urls = active.contains(&"read");
        Ok(PromptParts {
            mcp_servers,
            urls: self.host_urls.get().filter(|_| reads_urls).and_then(|urls| urls.section()),
            agent: self.subagents.own().and_then(|own| own.prompt.clone()),
            subagents,
            plan_mode: planning.is_on().then(|| prompt_section(planning.proposes())),
            custom,
            appended,
            context_files: context,
            project_rules: rules,
            skills: told.collect(),
            tools: tools
                .iter()
                .filter_map(|tool| Some((tool.spec().name.as_str(), tool.snippet()?)))
                .collect(),
            guidelines: tools.iter().flat_map(|tool| tool.guidelines()).collect(),
            active,
            cwd: directory.display().to_string(),
            folders: match self.is_elsewhere {
                true => Vec::new(),
                false => self.folders.iter().map(|folder| folder.display().to_string()).collect(),
            },
        })
    }

    fn prompt_files(
        &self,
        capabilities: &FoundCapabilities,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<PromptFiles, Failure> {
        let text = |value: &str| {
            text_or_file(value, &self.cwd, &self.environment)
                .map_err(|error| Failure::new(ErrorCode::Io, error.to_string()))
        };
        let (sources, agent_dir) = (&self.prompt, &self.agent_dir);
        let mut context = Vec::new();
        if sources.context_files {
            let mut found = context_files(ContextQuery {
                agent_dir,
                cwd: &self.cwd,
                environment: &self.environment,
                trusted: sources.trusted_as.as_deref().filter(|_| sources.is_of_cwd),
            });
            diagnostics.append(&mut found.diagnostics);
            let own = found.files.into_iter().map(|it| (it.path, it.content)).collect();
            context = self.context_texts(own, capabilities);
        }
        let custom = match &sources.system {
            Some(value) => Some(text(value)?),
            None => system_prompt_file(agent_dir, &sources.folders, sources.is_trusted(), diagnostics)
                .map(|file| file.content),
        };
        let appended = if sources.appended.is_empty() {
            let file = appended_prompt_file(agent_dir, &sources.folders, sources.is_trusted(), diagnostics);
            file.map(|file| file.content).into_iter().collect()
        } else {
            sources.appended.iter().map(|value| text(value)).collect::<Result<_, _>>()?
        };
        Ok(PromptFiles { custom, appended, context })
    }
}

/// The contents of the files of the system prompt.
struct PromptFiles {
    custom: Option<String>,
    appended: Vec<String>,
    /// Absolute path and content.
    context: Vec<(String, String)>,
}
