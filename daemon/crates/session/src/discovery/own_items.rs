//! The items that agentd reads as pi does, for the list of capabilities: context files, skills, prompt templates, MCP servers, extensions,
//! settings.

use std::path::Path;

use agentd_config::resources::{ContextQuery, ResourceQuery, context_paths, load_every};
use agentd_discovery::{AGENTS, AGENTS_MD, CLAUDE_MD, Item, ItemDetail, NATIVE, OwnItem, PACKAGES, Provider};
use agentd_mcp::{Endpoint, McpConfig, ServerConfig};
use agentd_packages::discover;
use agentd_protocol::{
    capabilities::{
        CapabilityKind,
        CapabilityLevel::{self, Project, User},
    },
    resources::{SourceInfo, SourceOrigin, SourceScope},
};
use serde_json::{Map, Value};

use crate::context::SessionContext;

impl SessionContext {
    /// The items, kind by kind in the order in which they count; those of a project that is not trusted wait. Reads files; blocks.
    pub(super) fn own_items(&self) -> Vec<OwnItem> {
        let mut items = self.own_context_files();
        items.extend(self.own_resources());
        items.extend(self.own_servers());
        items.extend(self.own_extensions());
        for (name, kind) in
            [("settings.json", CapabilityKind::Settings), ("SYSTEM.md", CapabilityKind::SystemPrompt)]
        {
            items.extend(self.own_files(name, kind));
        }
        items
    }

    fn own_context_files(&self) -> Vec<OwnItem> {
        if !self.prompt.context_files {
            return Vec::new();
        }
        let paths = context_paths(ContextQuery {
            agent_dir: &self.agent_dir,
            cwd: &self.cwd,
            environment: &self.environment,
            trusted: self.prompt.trusted_as.as_deref().filter(|_| self.prompt.is_of_cwd),
        });
        let items = paths.into_iter().rev().map(|found| {
            let (distance, level) = self.place_of_context(&found.path);
            let provider = provider_of_context(&found.path, level);
            let waits_for_trust = found.waits_for_trust;
            OwnItem {
                item: Item::context(found.path, distance, (provider, level)),
                waits_for_trust,
                reason: found.problem.filter(|_| !waits_for_trust),
            }
        });
        let switches = self.discovery.get();
        items.filter(|own| !switches.disables_provider(own.item.provider, own.item.level)).collect()
    }

    /// How many folders above the working directory a context file counts for, and whose it is.
    pub(super) fn place_of_context(&self, path: &Path) -> (Option<usize>, CapabilityLevel) {
        let folder = path.parent().unwrap_or(path);
        if folder == self.agent_dir.path() {
            return (None, User);
        }
        (self.cwd.ancestors().position(|above| above == folder), Project)
    }

    fn own_resources(&self) -> Vec<OwnItem> {
        let list = |trusted: bool| {
            self.with_resources(&mut Vec::new(), |query, _| load_every(&ResourceQuery { trusted, ..*query }))
        };
        let trusted = self.trusts_project();
        let (skills, prompts) = list(true);
        let source = |source: &SourceInfo| {
            let level = match source.scope {
                SourceScope::Project => Project,
                SourceScope::User | SourceScope::Temporary => User,
            };
            ((provider_of(source), level), level == Project && !trusted)
        };
        let skills = skills.into_iter().map(|skill| {
            let (place, waits_for_trust) = source(&skill.source);
            let item = Item::new(CapabilityKind::Skills, skill.name, skill.file, place);
            OwnItem { item: item.described(Some(skill.description)), waits_for_trust, reason: None }
        });
        let prompts = prompts.into_iter().map(|template| {
            let (place, waits_for_trust) = source(&template.source);
            let item = Item::new(CapabilityKind::Prompts, template.name, template.file, place);
            OwnItem { item: item.described(Some(template.description)), waits_for_trust, reason: None }
        });
        skills.chain(prompts).collect()
    }

    fn own_servers(&self) -> Vec<OwnItem> {
        let load = |trusted: bool| {
            let folders = trusted.then_some(&self.prompt.folders);
            McpConfig::load(&self.agent_dir, folders, &mut Vec::new()).servers
        };
        let trusted = self.trusts_project();
        let of_project =
            |server: &ServerConfig| self.prompt.folders.each().any(|folder| server.path.starts_with(folder));
        let mut servers: Vec<(ServerConfig, bool)> =
            load(trusted).into_iter().map(|server| (server, false)).collect();
        if !trusted {
            servers.extend(load(true).into_iter().filter(of_project).map(|server| (server, true)));
        }
        let items = servers.into_iter().map(|(server, waits_for_trust)| {
            let level = if of_project(&server) { Project } else { User };
            let mut item = Item::new(CapabilityKind::Mcps, server.name, server.path, (NATIVE, level))
                .described(server.description);
            item.is_switched_off = !server.enabled;
            item.detail = ItemDetail::Server(entry(&server.endpoint));
            OwnItem { item, waits_for_trust, reason: None }
        });
        items.collect()
    }

    fn own_extensions(&self) -> Vec<OwnItem> {
        let found = discover(&self.discovery_query());
        let items = found.extensions.into_iter().map(|extension| {
            let level = match extension.source_info.scope {
                SourceScope::Project => Project,
                SourceScope::User | SourceScope::Temporary => User,
            };
            let place = (provider_of(&extension.source_info), level);
            let name =
                Path::new(&extension.path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut item = Item::new(CapabilityKind::ExtensionModules, name, &extension.path, place);
            // Modules of one name do not shadow each other.
            item.key = extension.path;
            OwnItem { item, waits_for_trust: false, reason: None }
        });
        items.collect()
    }

    /// A file of the project and of the agent directory.
    fn own_files(&self, name: &str, kind: CapabilityKind) -> Vec<OwnItem> {
        let of_project = self.prompt.folders.find(name).map(|path| (path, Project));
        let of_user =
            Some(self.agent_dir.path().join(name)).filter(|path| path.is_file()).map(|path| (path, User));
        let items = of_project.into_iter().chain(of_user).map(|(path, level)| {
            let mut item = Item::new(kind, name, &path, (NATIVE, level));
            if kind == CapabilityKind::Settings {
                // Both count.
                item.key = path.display().to_string();
            }
            OwnItem { item, waits_for_trust: level == Project && !self.trusts_project(), reason: None }
        });
        items.collect()
    }
}

/// The provider of a context file that agentd reads as pi does.
pub(super) fn provider_of_context(path: &Path, level: CapabilityLevel) -> Provider {
    let is_claude = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("CLAUDE"));
    match (level, is_claude) {
        (User, _) => NATIVE,
        (Project, true) => CLAUDE_MD,
        (Project, false) => AGENTS_MD,
    }
}

fn provider_of(source: &SourceInfo) -> Provider {
    if source.origin == SourceOrigin::Package {
        PACKAGES
    } else if Path::new(&source.path).iter().any(|part| part == ".agents") {
        AGENTS
    } else {
        NATIVE
    }
}

/// What makes a server the same as another.
fn entry(endpoint: &Endpoint) -> Map<String, Value> {
    match endpoint {
        Endpoint::Stdio { command, args, env, cwd } => {
            let mut entry = Map::from_iter([("command".to_owned(), command.clone().into())]);
            entry.extend((!args.is_empty()).then(|| ("args".to_owned(), args.clone().into())));
            entry.extend((!env.is_empty()).then(|| ("env".to_owned(), texts(env))));
            entry.extend(cwd.clone().map(|cwd| ("cwd".to_owned(), cwd.into())));
            entry
        }
        Endpoint::Http { url, headers, .. } => {
            let mut entry = Map::from_iter([("url".to_owned(), url.clone().into())]);
            entry.extend((!headers.is_empty()).then(|| ("headers".to_owned(), texts(headers))));
            entry
        }
    }
}

fn texts(values: &std::collections::BTreeMap<String, String>) -> Value {
    Value::Object(values.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect())
}
