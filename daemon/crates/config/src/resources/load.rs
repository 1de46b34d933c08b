//! All skills and prompt templates of a session.

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

/// Finds the skills and prompt templates of a session. Reads files; blocks.
#[must_use]
pub fn load_resources(query: &ResourceQuery<'_>) -> Resources {
    let mut diagnostics = Vec::new();
    let prompts = templates::load(query, &mut diagnostics);
    let skills = skills::load(query, &mut diagnostics);
    Resources { prompts, skills, diagnostics }
}

/// Finds the skills alone, for whom nothing else matters. Reads files; blocks.
#[must_use]
pub fn load_skills(query: &ResourceQuery<'_>) -> Vec<Skill> {
    skills::load(query, &mut Vec::new())
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
