//! The hooks of a session.

use std::sync::Arc;

use crate::{event::HookEvent, hook::Hook};

/// The hooks of a session, by event. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct HookSet(Option<Arc<[Vec<Arc<Hook>>; HookEvent::ALL.len()]>>);

impl HookSet {
    /// These hooks, in their order. Without any, nothing is allocated.
    #[must_use]
    pub fn new(hooks: Vec<Hook>) -> Self {
        if hooks.is_empty() {
            return Self::default();
        }
        let mut by_event: [Vec<Arc<Hook>>; HookEvent::ALL.len()] = Default::default();
        for hook in hooks {
            by_event[hook.event.index()].push(Arc::new(hook));
        }
        Self(Some(Arc::new(by_event)))
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether there is one for that event.
    #[must_use]
    pub fn has(&self, event: HookEvent) -> bool {
        !self.of(event).is_empty()
    }

    /// All of them, by event and then in their order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Hook>> {
        self.0.iter().flat_map(|by_event| by_event.iter().flatten())
    }

    /// Those for an event about something with these names: in their order, and each program once.
    #[must_use]
    pub fn matching(&self, event: HookEvent, about: &[&str]) -> Vec<Arc<Hook>> {
        let mut matching: Vec<Arc<Hook>> = Vec::new();
        for hook in self.of(event) {
            if hook.matcher.is_about(about) && !matching.iter().any(|other| other.is_same(hook)) {
                matching.push(Arc::clone(hook));
            }
        }
        matching
    }

    /// Those of the project alone.
    #[must_use]
    pub fn of_project(&self) -> Self {
        Self::new(self.all().filter(|hook| hook.origin.is_of_project).map(|hook| (**hook).clone()).collect())
    }

    fn of(&self, event: HookEvent) -> &[Arc<Hook>] {
        self.0.as_ref().map_or(&[], |by_event| &by_event[event.index()])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        dialect::Dialect,
        hook::{HookOrigin, HookProgram},
        matcher::Matcher,
    };

    fn hook(event: HookEvent, matcher: &str, command: &str, dialect: Dialect) -> Hook {
        Hook {
            event,
            matcher: Matcher::of(matcher).unwrap(),
            program: HookProgram::Command(command.to_owned()),
            timeout: Duration::from_secs(1),
            dialect,
            origin: HookOrigin { path: "/f".into(), is_of_project: false },
        }
    }

    #[test]
    fn the_same_command_runs_once_for_an_event() {
        use HookEvent::{PreToolUse, Stop};
        let set = HookSet::new(vec![
            hook(PreToolUse, "Bash", "a", Dialect::Claude),
            hook(PreToolUse, "*", "b", Dialect::Claude),
            hook(PreToolUse, "Bash|Edit", "a", Dialect::Claude),
            hook(PreToolUse, "bash", "a", Dialect::Own),
            hook(Stop, "", "a", Dialect::Claude),
        ]);
        let shown = |event, about: &[&str]| -> Vec<String> {
            set.matching(event, about).iter().map(ToString::to_string).collect()
        };
        // A hook that is told of the call in another spelling is another hook.
        assert_eq!(shown(PreToolUse, &["bash", "Bash"]), ["\"a\"", "\"b\"", "\"a\""]);
        assert_eq!(shown(PreToolUse, &["edit", "Edit"]), ["\"b\"", "\"a\""]);
        assert_eq!(shown(Stop, &[]), ["\"a\""]);
        assert!(set.has(Stop) && !set.has(HookEvent::SessionEnd) && !set.is_empty());
        assert!(HookSet::new(Vec::new()).is_empty());
        assert_eq!(set.all().count(), 5);
    }
}
