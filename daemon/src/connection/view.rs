//! What of a session's lines a client sees, and how.

use agentd_session::Audience;

/// What a client said that it understands. Nothing: the plain wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct View {
    /// It said hello.
    pub(super) is_introduced: bool,
    /// Events carry `sessionId` and `seq`.
    pub(super) names_sessions: bool,
    /// The client answers the daemon's own questions.
    pub(super) answers_questions: bool,
    /// Updates carry the answer so far, and there are no system messages.
    pub(super) is_cumulative: bool,
}

impl View {
    /// Whether an event for that audience is for this client. One that counts its events gets all of them.
    pub(super) fn shows(self, audience: Audience) -> bool {
        self.names_sessions
            || match audience {
                Audience::Everyone => true,
                Audience::Asked => self.answers_questions,
                Audience::Introduced => self.is_introduced,
                Audience::Counting => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_we_have_goes_to_those_who_said_hello() {
        assert!(!View::default().shows(Audience::Introduced));
        assert!(View { is_introduced: true, ..View::default() }.shows(Audience::Introduced));
    }

    #[test]
    fn questions_go_to_those_who_answer_and_to_those_who_count() {
        let check = |view: View, asked: bool, counting: bool| {
            assert!(view.shows(Audience::Everyone));
            assert_eq!((view.shows(Audience::Asked), view.shows(Audience::Counting)), (asked, counting));
        };
        check(View::default(), false, false);
        check(View { answers_questions: true, ..View::default() }, true, false);
        check(View { names_sessions: true, ..View::default() }, true, true);
    }
}
