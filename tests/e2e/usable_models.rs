//! The model that answers: a provider's key in the environment is enough, and without a usable model nothing answers
//! unless the demo model is asked for.

use std::process::Stdio;

use agentd_e2e::{
    Ctl, Home, MockServer, Reply, Terminal,
    apis::ProviderApi,
    binaries,
    ctl::{self, Finished},
    home::models,
    mock_server::Request,
    sse,
};
use serde_json::{Value, json};

use crate::{
    catalogue::{agentctl, catalogue, rows},
    support::assert_says,
};

fn agentd(home: &Home, args: &[&str], variable: Option<(&str, &str)>) -> Finished {
    let mut command = ctl::agentd(home, args);
    command.envs(variable);
    Ctl::start_with(command, Stdio::null()).finish()
}

fn prompt(home: &Home, variable: Option<(&str, &str)>) -> Finished {
    let mut command = ctl::command(home, &["prompt", "Hi"]);
    command.envs(variable);
    Ctl::start_with(command, Stdio::null()).finish()
}

/// Checks that every one-shot command ends with 1 and gives the reason.
fn check(home: &Home, variable: Option<(&str, &str)>, says: &[&str]) {
    let ended = [
        prompt(home, variable),
        agentd(home, &["-p", "Hi"], variable),
        agentd(home, &["--mode", "json", "Hi"], variable),
    ];
    for done in &ended {
        assert_eq!(done.code, 1, "{done:?}");
        assert_says(&done.stderr, &["No API key found for the selected model."]);
        assert_says(&done.stderr, says);
        assert!(!done.stdout.contains("demo") && !done.stdout.contains("message_end"), "{done:?}");
    }
}

#[test]
fn scripts_get_exit_code_1_and_what_to_do() {
    let home = Home::new();
    let says = [
        "No usable model is configured. ",
        "agentctl login",
        "agentctl setup local",
        "agentctl doctor",
        "--demo",
    ];
    check(&home, None, &says);
}

#[test]
fn empty_key_variables_are_named() {
    let home = Home::new();
    check(&home, Some(("ANTHROPIC_API_KEY", "")), &["configured: ANTHROPIC_API_KEY is set and empty."]);
    let mut doctor = ctl::command(&home, &["doctor"]);
    doctor.env("ANTHROPIC_API_KEY", "");
    let looked = Ctl::start_with(doctor, Stdio::null()).finish();
    assert_says(&looked.stdout, &["warn keys: ANTHROPIC_API_KEY is set and empty"]);
    // A variable that a provider of the user reads.
    let mut file = models("http://127.0.0.1:9/v1");
    file["providers"]["fake"]["apiKey"] = json!("$MY_OWN_KEY");
    home.configure(&file);
    check(&home, Some(("MY_OWN_KEY", "")), &["MY_OWN_KEY is set and empty"]);
}

#[test]
fn unreadable_files_are_named_with_the_reason() {
    for (name, text, says) in [
        ("models.json", "{\n  \"providers\": {,}\n}", &["models.json", "not JSON"][..]),
        ("settings.json", "{\n  \"defaultModel\": \n", &["settings.json:", "not JSON"]),
        ("auth.json", "[", &["auth.json", "line 1"]),
    ] {
        let home = Home::new();
        home.write_agent(name, text);
        check(&home, None, says);
        // The error is the same at a terminal.
        let seen = Terminal::start(&home, &binaries::agentctl(), &["prompt", "Hi"]).finish();
        assert_eq!(seen.code, 1, "{name}: {seen:?}");
        assert_says(&seen.stdout, &[name]);
        assert!(!seen.stdout.contains("demo model answers:"), "{name}: {seen:?}");
    }
}

#[test]
fn the_demo_model_answers_when_asked_for() {
    let home = Home::new();
    home.write_agent("models.json", "{");
    home.write("README.md", "# Weather station\n");
    for done in [
        ctl::run(&home, &["prompt", "--demo", "What is in this folder?"]),
        ctl::run(&home, &["prompt", "--model", "demo/demo", "What is in this folder?"]),
        agentd(&home, &["-p", "--demo", "What is in this folder?"], None),
        agentd(&home, &["--mode", "json", "--demo", "What is in this folder?"], None),
    ] {
        assert_eq!(done.code, 0, "{done:?}");
        assert_says(&done.stdout, &["Weather station"]);
    }
    let both = ctl::run(&home, &["prompt", "--demo", "--model", "a/b", "Hi"]);
    assert_eq!(both.code, 2, "{both:?}");
}

/// A user who tries agentctl for the first time gets an answer, and how to get a real model.
#[test]
fn at_a_bare_terminal_with_nothing_configured_the_demo_answers() {
    let home = Home::new();
    home.write("README.md", "# Weather station\n");
    let seen = Terminal::start(&home, &binaries::agentctl(), &["prompt", "What is here?"]).finish();
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_says(
        &seen.stdout,
        &[
            "No model is configured",
            "ANTHROPIC_API_KEY",
            "agentctl login ",
            "agentctl setup local ",
            "agentctl doctor",
            "Weather station",
        ],
    );
    home.settings(&json!({"defaultProvider": "anthropic", "defaultModel": "claude-opus-5-5"}));
    let seen = Terminal::start(&home, &binaries::agentctl(), &["prompt", "What is here?"]).finish();
    assert_eq!(seen.code, 1, "{seen:?}");
    assert_says(&seen.stdout, &["No usable model is configured"]);
}

/// A session keeps its model, but the demo model has to be requested again.
#[test]
fn a_session_of_the_demo_model_goes_on_with_it_only_when_asked() {
    let home = Home::new();
    assert_eq!(ctl::run(&home, &["prompt", "--demo", "Hi"]).code, 0);
    let unasked = ctl::run(&home, &["prompt", "-c", "Hi"]);
    assert_eq!((unasked.code, unasked.stdout.as_str()), (1, ""), "{unasked:?}");
    assert_says(&unasked.stderr, &["is the built-in demo model", "--demo goes on", "agentctl doctor"]);
    assert_eq!(ctl::run(&home, &["prompt", "-c", "--demo", "Hi"]).code, 0);
    for args in [&["-p", "-c", "Hi"][..], &["--mode", "json", "-c", "Hi"]] {
        let unasked = agentd(&home, args, None);
        assert_eq!((unasked.code, unasked.stdout.as_str()), (1, ""), "{unasked:?}");
        assert_says(&unasked.stderr, &["is the built-in demo model", "--demo goes on"]);
    }
    assert_eq!(agentd(&home, &["-p", "-c", "--demo", "Hi"], None).code, 0);
    let server = MockServer::start([Reply::stream(sse::answer("Real."))]);
    home.configure(&models(&server.base_url()));
    let unasked = ctl::run(&home, &["prompt", "-c", "Hi"]);
    assert_eq!(unasked.code, 1, "{unasked:?}");
    assert_says(&unasked.stderr, &["--model chooses another: fake/fake"]);
    let named = ctl::run(&home, &["prompt", "-c", "--model", "fake/fake", "Hi"]);
    assert_eq!((named.code, named.stdout.as_str()), (0, "Real.\n"), "{named:?}");
}

const KEY: &str = "key-of-the-test-4711";

/// Each provider whose default model agentd supports, and the variables that it needs.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("ant-ling", &["ANT_LING_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("openai", &["OPENAI_API_KEY"]),
    ("nvidia", &["NVIDIA_API_KEY"]),
    ("deepseek", &["DEEPSEEK_API_KEY"]),
    ("github-copilot", &["COPILOT_GITHUB_TOKEN"]),
    ("openrouter", &["OPENROUTER_API_KEY"]),
    ("vercel-ai-gateway", &["AI_GATEWAY_API_KEY"]),
    ("xai", &["XAI_API_KEY"]),
    ("groq", &["GROQ_API_KEY"]),
    ("cerebras", &["CEREBRAS_API_KEY"]),
    ("zai", &["ZAI_API_KEY"]),
    ("zai-coding-cn", &["ZAI_CODING_CN_API_KEY"]),
    ("minimax", &["MINIMAX_API_KEY"]),
    ("minimax-cn", &["MINIMAX_CN_API_KEY"]),
    ("moonshotai", &["MOONSHOT_API_KEY"]),
    ("huggingface", &["HF_TOKEN"]),
    ("fireworks", &["FIREWORKS_API_KEY"]),
    ("together", &["TOGETHER_API_KEY"]),
    ("baseten", &["BASETEN_API_KEY"]),
    ("opencode", &["OPENCODE_API_KEY"]),
    ("kimi-coding", &["KIMI_API_KEY"]),
    ("meta", &["META_API_KEY"]),
    ("cloudflare-workers-ai", &["CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID"]),
    ("qwen-token-plan", &["QWEN_TOKEN_PLAN_API_KEY"]),
    ("qwen-token-plan-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    ("xiaomi", &["XIAOMI_API_KEY"]),
    ("xiaomi-token-plan-cn", &["XIAOMI_TOKEN_PLAN_CN_API_KEY"]),
    ("xiaomi-token-plan-ams", &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"]),
    ("xiaomi-token-plan-sgp", &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"]),
];

/// Providers that share their variables with an earlier one, so they are named explicitly.
const SECOND: &[(&str, &[&str])] = &[
    ("moonshotai-cn", &["MOONSHOT_API_KEY"]),
    ("opencode-go", &["OPENCODE_API_KEY"]),
    ("qwen-token-plan-individual", &["QWEN_TOKEN_PLAN_API_KEY"]),
    ("qwen-token-plan-individual-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    ("cloudflare-ai-gateway", &["CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"]),
];

fn api_of(model: &Value) -> Option<ProviderApi> {
    ProviderApi::ALL.into_iter().find(|api| model["api"] == api.api())
}

/// The default model of a provider in the catalogue.
fn default_of(provider: &str) -> Value {
    let row = rows().into_iter().find(|row| row["id"] == provider).expect("a provider of the catalogue");
    let mut models = catalogue(provider).into_iter();
    models.find(|model| model["id"] == row["default"]).expect("the provider's default model")
}

/// The variables with values: the first is the key, the others are account names.
fn values(names: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    names.iter().enumerate().map(|(at, name)| (*name, if at == 0 { KEY } else { "acc-1" })).collect()
}

/// The path of the provider's address.
fn path_of(base_url: &str) -> String {
    let rest = base_url.split_once("://").expect("an address").1;
    rest.split_once('/').map_or(String::new(), |(_, path)| format!("/{path}"))
}

/// Prompts with only these variables, and a `models.json` that moves the provider to a mock server; returns the request.
fn prompted(provider: &str, names: &[&'static str], flags: &[&str]) -> Request {
    let model = default_of(provider);
    let api = api_of(&model).expect("an API that agentd speaks");
    let server = MockServer::always(Reply::stream(api.answer("Here.")));
    let origin = server.base_url().trim_end_matches("/v1").to_owned();
    let home = Home::new();
    let path = path_of(model["baseUrl"].as_str().unwrap());
    let base_url = format!("{origin}{path}");
    home.configure(&json!({"providers": {provider: {"baseUrl": base_url}}}));
    let args: Vec<&str> = ["prompt", "--no-session"].iter().chain(flags).copied().chain(["Hi"]).collect();
    let done = agentctl(&home, &values(names), &args);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Here.\n"), "{provider}: {done:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{provider}");
    let request = requests.into_iter().next().expect("one");
    let path = path.replace("{CLOUDFLARE_ACCOUNT_ID}", "acc-1").replace("{CLOUDFLARE_GATEWAY_ID}", "acc-1");
    let target = match api {
        ProviderApi::Chat => format!("POST {path}/chat/completions"),
        ProviderApi::Messages => format!("POST {path}/v1/messages?beta=true"),
        ProviderApi::Responses => format!("POST {path}/responses"),
    };
    assert_eq!(request.target, target, "{provider}");
    assert_eq!(request.body["model"], model["id"], "{provider}");
    api.assert_legal(&request.body);
    request
}

/// Asserts that the key is in the API's header, and nowhere else.
fn assert_keyed(provider: &str, request: &Request) {
    let expected = match default_of(provider)["api"].as_str() {
        _ if provider == "cloudflare-ai-gateway" => {
            ("cf-aig-authorization".to_owned(), format!("Bearer {KEY}"))
        }
        Some("anthropic-messages") => ("x-api-key".to_owned(), KEY.to_owned()),
        _ => ("authorization".to_owned(), format!("Bearer {KEY}")),
    };
    let with_key: Vec<_> = request.headers.iter().filter(|(_, value)| value.contains(KEY)).collect();
    assert_eq!(with_key, [&expected], "{provider}");
    assert!(!request.body.to_string().contains(KEY), "{provider}");
}

#[test]
fn every_provider_that_can_be_spoken_to_is_tried() {
    let tried = |provider: &Value| PROVIDERS.iter().chain(SECOND).any(|(id, _)| provider == id);
    let missing: Vec<Value> =
        rows().into_iter().map(|row| row["id"].clone()).filter(|id| !tried(id)).collect();
    let silent = ["amazon-bedrock", "azure", "openai-codex", "radius", "google", "google-vertex", "mistral"];
    assert_eq!(missing, silent);
    for provider in silent {
        assert!(api_of(&default_of(provider)).is_none(), "{provider}");
    }
}

#[test]
fn the_key_chooses_provider_and_model_and_goes_into_its_header() {
    for (provider, names) in PROVIDERS {
        assert_keyed(provider, &prompted(provider, names, &[]));
    }
}

#[test]
fn providers_that_share_a_variable_are_asked_for_by_name() {
    for (provider, names) in SECOND {
        let model = default_of(provider)["id"].as_str().unwrap().to_owned();
        let request = prompted(provider, names, &["--provider", provider, "--model", &model]);
        assert_keyed(provider, &request);
    }
}
