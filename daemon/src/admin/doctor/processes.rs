//! By which means commands are owned and limited.

use agentd_process::ProcessSupport;
use agentd_protocol::doctor::Check;

use super::finding::Name;

pub(super) const PROCESSES: Name = Name("processes", "processes");

/// Tells what this system has. Blocks, shortly.
pub(super) fn check() -> Check {
    told(ProcessSupport::of_this_system())
}

fn told(ProcessSupport { lists_children, lasting_marks }: ProcessSupport) -> Check {
    let measured = if lists_children {
        "each command's supervisor measures limits"
    } else {
        "each command's supervisor measures limits by way of all processes, since this kernel does not list children"
    };
    let marked = if lasting_marks {
        "marks in environment and resource limits tell what a killed daemon left"
    } else {
        "marks in the environment alone tell what a killed daemon left, since its resource limits are lowered here"
    };
    PROCESSES.ok(format!("a guard owns commands; {measured}; {marked}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_means_is_named() {
        let detail =
            |lists_children, lasting_marks| told(ProcessSupport { lists_children, lasting_marks }).detail;
        assert_eq!(
            detail(true, true),
            "a guard owns commands; each command's supervisor measures limits; marks in environment and resource limits \
             tell what a killed daemon left"
        );
        assert!(
            detail(false, false).contains("does not list children") && detail(false, false).contains("alone")
        );
    }
}
