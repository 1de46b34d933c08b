//! The permissions of one session for the folder of another: a subagent in a copy of the repository has those of its parent.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::in_force::InForce;

/// Permissions for another folder, made once for each change of those that they come from.
#[derive(Default)]
pub(super) struct MovedPermissions(Mutex<Option<Made>>);

struct Made {
    from: Arc<InForce>,
    made: Arc<InForce>,
}

impl MovedPermissions {
    /// The same permissions for `cwd`. Looks at folders when they have changed; blocks for a moment then.
    pub(super) fn of(&self, from: Arc<InForce>, cwd: &Path) -> Arc<InForce> {
        if from.sources.cwd == cwd {
            return from;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.from, &from)) {
            return Arc::clone(&known.made);
        }
        match from.moved_to(cwd) {
            Ok(made) => {
                let made = Arc::new(made);
                *known = Some(Made { from, made: Arc::clone(&made) });
                made
            }
            Err(error) => {
                // Those of the other folder permit less here.
                tracing::warn!(%error, "the permissions of a subagent are those for its parent's folder");
                from
            }
        }
    }
}
