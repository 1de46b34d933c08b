//! The words of client programs: events, amounts and times as short texts, and foreign texts made fit for a line of a terminal.
//!
//! Nothing here prints, and nothing knows what the text is shown on: colours and cutting to a screen are the caller's.

mod amounts;
mod checkpoints;
mod fuzzy;
mod line;
mod notices;
mod permission_question;
mod permissions;
mod plan;
mod time;
mod todo;
mod tool_line;

pub use self::{
    amounts::{money, short_count},
    checkpoints::unkept,
    fuzzy::{FuzzyQuery, FuzzyText},
    line::{
        columns, counted, cut, cut_begin, model_id, one_line, padded, session_title, shell_word, short_id,
        title,
    },
    notices::{
        compacted, ended_process, extension_failed, fell_back, left_to_do, retried, rules_matched,
        slow_provider, subagent_news,
    },
    permission_question::{
        QuestionLine, TypedKey, answer_key, question_ended, question_lines, question_options, time_left,
        typed_key,
    },
    permissions::{decided, permissions_changed},
    plan::{mode_changed, proposed_plan},
    time::{age, ago, clock, duration},
    todo::{TodoLine, todo_lines},
    tool_line::{execution_end, outcome, subject},
};
