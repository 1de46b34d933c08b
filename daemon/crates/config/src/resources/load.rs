//! All skills and prompt templates of a session.

use std::collections::HashSet;

use agentd_protocol::resources::{CommandSource, Diagnostic, SlashCommand};

use super::{PromptTemplate, ResourceQuery, Skill, skills, templates};

/// The skills and prompt templates of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// Each name once, in the order in which they were found.
    pub prompts: Vec<PromptTemplate>,
    /// Each name once, in the order in which they were found.
    pub skills: Vec<Skill>,
    /// The faults of files, and of settings and flags that name them.
    pub diagnostics: Vec<Diagnostic>,
}

/// The skills and prompt templates of other tools' files, which are found by the crate of discovery. They come after all others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiscoveredResources {
    /// Each name once.
    pub skills: Vec<Skill>,
    /// Each name once.
    pub prompts: Vec<PromptTemplate>,
}

/// Finds the skills and prompt templates of a session. Reads files; blocks.
#[must_use]
pub fn load_resources(query: &ResourceQuery<'_>, discovered: &DiscoveredResources) -> Resources {
    let mut diagnostics = Vec::new();
    let prompts = load_prompts(query, discovered, &mut diagnostics);
    let mut skills = skills::load(query, &mut diagnostics);
    add_new(&mut skills, &discovered.skills, |skill| &skill.name);
    Resources { prompts, skills, diagnostics }
}

/// Finds the skills alone, for whom nothing else matters. Reads files; blocks.
#[must_use]
pub fn load_skills(query: &ResourceQuery<'_>, discovered: &DiscoveredResources) -> Vec<Skill> {
    let mut skills = skills::load(query, &mut Vec::new());
    add_new(&mut skills, &discovered.skills, |skill| &skill.name);
    skills
}

/// Finds the prompt templates alone.
pub(super) fn load_prompts(
    query: &ResourceQuery<'_>,
    discovered: &DiscoveredResources,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<PromptTemplate> {
    let mut prompts = templates::load(query, diagnostics);
    add_new(&mut prompts, &discovered.prompts, |template| &template.name);
    prompts
}

/// All skills and prompt templates of a session's own places, in the order in which they count: those included that others shadow or that
/// are switched off. Reads files; blocks.
#[must_use]
pub fn load_every(query: &ResourceQuery<'_>) -> (Vec<Skill>, Vec<PromptTemplate>) {
    (skills::load_every(query), templates::load_every(query))
}

/// Adds those whose names are free.
fn add_new<T: Clone>(known: &mut Vec<T>, more: &[T], name: impl Fn(&T) -> &str) {
    let taken: HashSet<String> = known.iter().map(|it| name(it).to_owned()).collect();
    known.extend(more.iter().filter(|it| !taken.contains(name(it))).cloned());
}

impl Resources {
    /// The slash commands: prompt templates, then skills, unless those are hidden.
    #[must_use]
    pub fn commands(self, with_skills: bool) -> Vec<SlashCommand> {
        let prompts = self.prompts.into_iter().map(|template| SlashCommand {
            name: template.name,
            description: Some(template.description),
            argument_hint: template.argument_hint,
            source: CommandSource::Prompt,
            source_info: template.source,
        });
        let skills = self.skills.into_iter().filter(|_| with_skills).map(|skill| SlashCommand {
            name: format!("skill:{}", skill.name),
            description: Some(skill.description),
            argument_hint: None,
            source: CommandSource::Skill,
            source_info: skill.source,
        });
        prompts.chain(skills).collect()
    }
}
