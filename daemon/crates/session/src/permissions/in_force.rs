//! The permissions in force: settings and flags, what commands changed since, and what answers gave.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_config::AgentDir;
use agentd_policy::{Policy, PolicyError, PolicyOptions, RuleLayer, RuleSource};
use agentd_protocol::{
    session::PermissionState,
    settings::{PermissionPreset, PermissionRule, PermissionSettings, TimeoutDecision},
};

/// The time that a question waits, unless somebody says otherwise.
const ASK_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time that a question waits: what the timers of clients in JavaScript can count, some 24 days.
const MAX_ASK_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// What the settings, the flags and the project say.
#[derive(Debug, Clone)]
pub(crate) struct GateSources {
    pub(super) preset: PermissionPreset,
    pub(super) project_preset: Option<PermissionPreset>,
    pub(super) layers: Vec<RuleLayer>,
    pub(super) ask_timeout_ms: Option<u64>,
    pub(super) on_timeout: Option<TimeoutDecision>,
    pub(super) cwd: PathBuf,
    pub(super) folders: Vec<PathBuf>,
    /// Whether files are on another host.
    pub(super) is_elsewhere: bool,
    pub(super) home: PathBuf,
    pub(super) agent_dir: AgentDir,
}

/// The permissions in force, and the policy that they make.
#[derive(Debug, Clone)]
pub(super) struct InForce {
    pub(super) policy: Policy,
    pub(super) sources: GateSources,
    /// By commands; what is absent is as the sources have it.
    pub(super) changes: PermissionSettings,
    answers: Vec<PermissionRule>,
}

impl InForce {
    /// Compiles the policy. Looks at folders; blocks.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub(super) fn new(
        sources: GateSources,
        changes: PermissionSettings,
        answers: Vec<PermissionRule>,
    ) -> Result<Self, PolicyError> {
        let of_session = changes.rules.iter().flatten().chain(&answers).cloned().collect();
        let mut layers = sources.layers.clone();
        layers.push(RuleLayer { source: RuleSource::Session, rules: of_session });
        let policy = Policy::new(PolicyOptions {
            preset: changes.preset.unwrap_or(sources.preset),
            project_preset: sources.project_preset,
            layers,
            cwd: sources.cwd.clone(),
            folders: sources.folders.clone(),
            home: sources.home.clone(),
        })?;
        Ok(Self { policy, sources, changes, answers })
    }

    /// The same with changes of a command. Rules take the place of all that the session had.
    pub(super) fn changed(&self, changes: &PermissionSettings) -> Result<Self, PolicyError> {
        let PermissionSettings { preset, ask_timeout_ms, on_timeout, rules } = changes.clone();
        let answers = if rules.is_some() { Vec::new() } else { self.answers.clone() };
        let before = &self.changes;
        let changes = PermissionSettings {
            preset: preset.or(before.preset),
            ask_timeout_ms: ask_timeout_ms.or(before.ask_timeout_ms),
            on_timeout: on_timeout.or(before.on_timeout),
            rules: rules.or_else(|| before.rules.clone()),
        };
        Self::new(self.sources.clone(), changes, answers)
    }

    /// The same with other settings.
    pub(super) fn with_sources(&self, sources: GateSources) -> Result<Self, PolicyError> {
        Self::new(sources, self.changes.clone(), self.answers.clone())
    }

    /// The same for another folder.
    pub(super) fn moved_to(&self, cwd: &Path) -> Result<Self, PolicyError> {
        let sources = GateSources { cwd: cwd.to_owned(), ..self.sources.clone() };
        Self::new(sources, self.changes.clone(), self.answers.clone())
    }

    /// The same with a rule by an answer.
    pub(super) fn with_answer(&self, rule: PermissionRule) -> Result<Self, PolicyError> {
        let answers = self.answers.iter().filter(|known| **known != rule).cloned();
        let answers = answers.chain([rule.clone()]).collect();
        Self::new(self.sources.clone(), self.changes.clone(), answers)
    }

    /// Whether there is something to decide.
    pub(super) fn is_restricted(&self) -> bool {
        !self.policy.is_unrestricted()
    }

    /// The time that a question waits, and the decision after it.
    pub(super) fn terms(&self) -> (Duration, TimeoutDecision) {
        let limit = self.changes.ask_timeout_ms.or(self.sources.ask_timeout_ms);
        let decision = self.changes.on_timeout.or(self.sources.on_timeout);
        let limit = limit.map_or(ASK_TIMEOUT, Duration::from_millis);
        (limit.min(MAX_ASK_TIMEOUT), decision.unwrap_or_default())
    }

    /// The preset of the project's policy.
    pub(super) fn project_preset(&self) -> Option<PermissionPreset> {
        self.sources.project_preset
    }

    /// All of it, as clients see it.
    pub(super) fn state(&self) -> PermissionState {
        let options = self.policy.options();
        let (limit, on_timeout) = self.terms();
        let of_session = options.layers.iter().filter(|layer| layer.source == RuleSource::Session);
        PermissionState {
            preset: options.project_preset.map_or(options.preset, |preset| preset.stricter(options.preset)),
            ask_timeout_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            on_timeout,
            rules: options.layers.iter().map(|layer| layer.rules.len() as u64).sum(),
            session_rules: of_session.flat_map(|layer| &layer.rules).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::settings::PermissionAction;

    use super::*;

    fn rule(command: &str, action: PermissionAction) -> PermissionRule {
        let command = Some(command.to_owned());
        PermissionRule { tool: "bash".to_owned(), command, path: None, domain: None, action, reason: None }
    }

    fn in_force(dir: &tempfile::TempDir) -> InForce {
        let sources = GateSources {
            preset: PermissionPreset::Full,
            project_preset: None,
            layers: vec![RuleLayer {
                source: RuleSource::User,
                rules: vec![rule("git push *", PermissionAction::Allow)],
            }],
            ask_timeout_ms: Some(5),
            on_timeout: None,
            cwd: dir.path().to_owned(),
            folders: Vec::new(),
            is_elsewhere: false,
            home: dir.path().to_owned(),
            agent_dir: AgentDir::at(dir.path()),
        };
        InForce::new(sources, PermissionSettings::default(), Vec::new()).unwrap()
    }

    #[test]
    fn changes_add_up_and_rules_replace_those_of_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let plain = in_force(&dir);
        assert!(!plain.is_restricted());
        let preset = PermissionSettings { preset: Some(PermissionPreset::Ask), ..Default::default() };
        let asking = plain.changed(&preset).unwrap();
        let answered = asking.with_answer(rule("touch *", PermissionAction::Allow)).unwrap();
        assert_eq!(
            answered.with_answer(rule("touch *", PermissionAction::Allow)).unwrap().state(),
            answered.state()
        );
        let state = answered.state();
        assert_eq!((state.preset, state.rules, state.session_rules.len()), (PermissionPreset::Ask, 2, 1));
        let late = PermissionSettings { on_timeout: Some(TimeoutDecision::Allow), ..Default::default() };
        assert_eq!(
            answered.changed(&late).unwrap().terms(),
            (Duration::from_millis(5), TimeoutDecision::Allow)
        );
        let patient = PermissionSettings { ask_timeout_ms: Some(u64::MAX), ..Default::default() };
        assert_eq!(answered.changed(&patient).unwrap().terms().0, MAX_ASK_TIMEOUT);
        let rules = vec![rule("rm *", PermissionAction::Deny)];
        let ruled = PermissionSettings { rules: Some(rules.clone()), ..Default::default() };
        let state = answered.changed(&ruled).unwrap().state();
        assert_eq!((state.preset, state.session_rules), (PermissionPreset::Ask, rules));
    }

    #[test]
    fn a_rule_that_cannot_be_used_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let rules = Some(vec![rule("ls", PermissionAction::Deny), rule("a; b", PermissionAction::Deny)]);
        let changes = PermissionSettings { rules, ..Default::default() };
        let error = in_force(&dir).changed(&changes).unwrap_err();
        assert_eq!((error.origin, error.number, error.field), (RuleSource::Session, 2, "command"));
    }
}
