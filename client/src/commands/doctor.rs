//! `agentctl doctor`: checks everything that a session needs.

use agentd_protocol::{
    command::NoParams,
    doctor::{Check, CheckStatus, Diagnosis},
};

use super::daemon_call;
use crate::{
    cli::DoctorOptions,
    exit::{Exit, Fault, conclude},
    output,
    render::{Screen, coloured, one_line},
    rpc::Diagnose,
};

/// The indentation of the lines below the first one of a check.
const INDENT: &str = "     ";

pub(crate) fn run(options: &DoctorOptions) -> Exit {
    conclude(diagnose(options))
}

fn diagnose(options: &DoctorOptions) -> Result<Exit, Fault> {
    let diagnosis = daemon_call::private_quietly::<Diagnose>(&NoParams {})?;
    let printed = if options.json {
        output::print_json(&diagnosis)?
    } else {
        output::print(&report(&diagnosis, Screen::of_stdout().colour))?
    };
    let fails = diagnosis.checks.iter().any(|check| check.status == CheckStatus::Problem);
    Ok(if printed == Exit::Answered && fails { Exit::Failed } else { printed })
}

fn report(diagnosis: &Diagnosis, colour: bool) -> String {
    let mut text: String = diagnosis.checks.iter().map(|check| lines(check, colour)).collect();
    text.push_str(&format!("{}\n", one_line(&diagnosis.summary)));
    text
}

fn lines(check: &Check, colour: bool) -> String {
    let (word, code) = match check.status {
        CheckStatus::Ok => ("ok  ", "32"),
        CheckStatus::Warning => ("warn", "33"),
        CheckStatus::Problem => ("FAIL", "31"),
    };
    let word = if colour { coloured(code, word) } else { word.to_owned() };
    let mut detail = check.detail.lines().map(one_line).filter(|line| !line.trim().is_empty());
    let mut text = format!("{word} {}: {}\n", one_line(&check.title), detail.next().unwrap_or_default());
    let advice = check.advice.iter().flat_map(|advice| advice.lines()).map(one_line);
    for line in detail.chain(advice) {
        text.push_str(&format!("{INDENT}{line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: CheckStatus, detail: &str, advice: Option<&str>) -> Check {
        let advice = advice.map(str::to_owned);
        Check { id: "x".into(), title: "thing".into(), status, detail: detail.into(), advice }
    }

    #[test]
    fn a_line_for_each_check_and_the_advice_below() {
        let checks = vec![
            check(CheckStatus::Ok, "fine", None),
            check(CheckStatus::Warning, "odd", Some("Do this.")),
            check(CheckStatus::Problem, "broken\n\nFile: /x", Some("Do that.\nOr that.")),
        ];
        let diagnosis = Diagnosis { checks, summary: "1 problem, 1 warning.".into() };
        assert_eq!(
            report(&diagnosis, false),
            "ok   thing: fine\nwarn thing: odd\n     Do this.\nFAIL thing: broken\n     File: /x\n     Do that.\n     \
             Or that.\n1 problem, 1 warning.\n"
        );
        assert!(report(&diagnosis, true).contains("\x1b[31mFAIL\x1b[0m thing"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let text = lines(&check(CheckStatus::Ok, "a\x1b[2Jb", Some("c\u{9b}d")), false);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
