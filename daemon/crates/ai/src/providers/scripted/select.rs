//! Chooses the step that answers a request.

use super::{
    checks,
    facts::Facts,
    script::{Script, Step},
};
use crate::Request;

/// The step for a request that is the `position`-th (from 0) without a step of its own, and whether it used up that
/// position. A step whose `when` fits goes first, and as often as it fits.
pub(super) fn step<'s>(
    script: &'s Script,
    position: usize,
    request: &Request,
    facts: &Facts<'_>,
) -> Result<(&'s Step, bool), String> {
    let fits = |step: &&Step| {
        step.when.as_ref().is_some_and(|when| checks::conditions(when, request, facts).is_ok())
    };
    if let Some(step) = script.steps.iter().find(fits) {
        return Ok((step, false));
    }
    let mut in_order = script.steps.iter().filter(|step| step.when.is_none());
    match in_order.nth(position) {
        Some(step) => Ok((step, true)),
        None => {
            let steps = script.steps.iter().filter(|step| step.when.is_none()).count();
            Err(format!(
                "it has {steps} steps in order, and this is request {} of this process; no step's `when` fits",
                position + 1
            ))
        }
    }
}
