use std::{collections::VecDeque, sync::Mutex};

use super::*;

/// A user who answers from a list, and says nothing after it.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<UserAnswer>>,
    asked: Mutex<Vec<(String, Vec<String>)>>,
}

impl Script {
    fn of(answers: impl IntoIterator<Item = UserAnswer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() })
    }

    fn texts<'a>(answers: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        Self::of(answers.into_iter().map(|text| UserAnswer::Text(text.to_owned())))
    }

    fn next<'a>(
        &'a self,
        title: String,
        options: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, UserAnswer> {
        self.asked.lock().unwrap().push((title, options));
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => {
                    cancel.cancelled().await;
                    UserAnswer::Nobody
                }
            }
        })
    }
}

impl AskUser for Script {
    fn choose<'a>(
        &'a self,
        title: String,
        options: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, UserAnswer> {
        self.next(title, options, cancel)
    }

    fn type_in<'a>(&'a self, title: String, cancel: &'a CancellationToken) -> BoxFuture<'a, UserAnswer> {
        self.next(title, Vec::new(), cancel)
    }
}

fn question(more: Value) -> Value {
    let mut question = json!({
        "id": "db", "question": "Which database?", "options": [{"label": "SQLite"}, {"label": "Postgres", "description": "a server"}],
    });
    question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"questions": [question]})
}

async fn asked(user: &Arc<Script>, arguments: &Value) -> Result<(String, Value), String> {
    let user: Arc<dyn AskUser> = Arc::clone(user) as _;
    let tool = AskTool::new(user, Some(Duration::from_secs(60)));
    let result = tool.run(arguments, &CancellationToken::new()).await.map_err(|error| error.0)?;
    let text = result.content[0].as_text().unwrap().to_owned();
    Ok((text, result.details.unwrap()))
}

#[tokio::test]
async fn one_answer_is_chosen() {
    let user = Script::texts(["Postgres (recommended) — a server"]);
    let arguments = question(json!({"header": "Storage", "recommended": 1}));
    let (text, details) = asked(&user, &arguments).await.unwrap();
    assert_eq!(text, "User answers:\ndb: Postgres");
    assert_eq!(
        details,
        json!({
            "id": "db", "question": "Which database?", "options": ["SQLite", "Postgres"], "multi": false, "selectedOptions": ["Postgres"],
        })
    );
    let (title, options) = user.asked.lock().unwrap()[0].clone();
    assert_eq!(title, "Storage: Which database?");
    assert_eq!(options, ["SQLite", "Postgres (recommended) — a server", "Another answer…"]);
}

#[tokio::test]
async fn several_answers_are_chosen_one_after_the_other() {
    let user = Script::texts(["[ ] SQLite", "[ ] Postgres — a server", "[x] SQLite", "Done"]);
    let (text, details) = asked(&user, &question(json!({"multi": true}))).await.unwrap();
    assert_eq!(
        (text.as_str(), &details["selectedOptions"]),
        ("User answers:\ndb: Postgres", &json!(["Postgres"]))
    );
    let nothing = asked(&Script::texts(["Done"]), &question(json!({"multi": true}))).await.unwrap();
    assert_eq!(nothing.0, "User answers:\ndb: (nothing chosen)");
}

#[tokio::test]
async fn another_answer_is_typed() {
    for user in [Script::texts(["Another answer…", "MySQL"]), Script::texts(["MySQL"])] {
        let (text, details) = asked(&user, &question(json!({}))).await.unwrap();
        assert_eq!((text.as_str(), &details["customInput"]), ("User answers:\ndb: MySQL", &json!("MySQL")));
    }
}

#[tokio::test]
async fn questions_are_asked_in_order() {
    let mut arguments = question(json!({}));
    let mut second = arguments["questions"][0].clone();
    second["id"] = json!("cache");
    arguments["questions"].as_array_mut().unwrap().push(second);
    let (text, details) = asked(&Script::texts(["SQLite", "Postgres"]), &arguments).await.unwrap();
    assert_eq!(text, "User answers:\ndb: SQLite\ncache: Postgres");
    assert_eq!(details["results"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_recommended_one_counts() {
    let (text, details) = asked(&Script::texts([]), &question(json!({"recommended": 1}))).await.unwrap();
    assert_eq!(text, "User answers:\ndb: Postgres (auto-selected after timeout)");
    assert_eq!(details["timedOut"], true);
    let (text, _) = asked(&Script::texts([]), &question(json!({}))).await.unwrap();
    assert_eq!(text, "User answers:\ndb: SQLite (auto-selected after timeout)");
}

#[tokio::test]
async fn no_answer_is_an_error_that_says_so() {
    for (answer, says) in
        [(UserAnswer::Declined, "without an answer"), (UserAnswer::Nobody, "Nobody answered")]
    {
        let error = asked(&Script::of([answer]), &question(json!({}))).await.unwrap_err();
        assert!(error.contains("\"Which database?\"") && error.contains(says), "{error}");
    }
    let tool = AskTool::new(Script::texts([]), None);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = tool.run(&question(json!({})), &cancel).await.unwrap_err();
    assert_eq!(error.0, "Operation aborted");
}

#[tokio::test]
async fn bad_questions_are_named() {
    let none: Vec<Value> = Vec::new();
    for (arguments, says) in [
        (json!({}), "cannot be read"),
        (json!({"questions": []}), "1 to 8 questions, not 0"),
        (question(json!({"options": none})), "has 0 answers"),
        (question(json!({"options": [{"label": " "}]})), "Answer 0 of the question \"db\" is empty"),
        (question(json!({"options": [{"label": "a"}, {"label": "a"}]})), "the answer \"a\" twice"),
        (question(json!({"recommended": 2})), "recommends answer 2"),
        (question(json!({"question": ""})), "has no text"),
        (question(json!({"question": "x".repeat(2001)})), "longer than 2000 bytes"),
    ] {
        let error = asked(&Script::texts([]), &arguments).await.unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
