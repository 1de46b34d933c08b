//! A provider's key in the environment, and nothing else: that is enough for a prompt.

use agentd_e2e::{Home, MockServer, Reply, mock_server::Request, wires::Wire};
use serde_json::{Value, json};

use super::{agentctl, catalogue, rows};

const KEY: &str = "key-of-the-test-4711";

/// Each provider whose default model agentd speaks to, and the variables that are all it needs.
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

/// Those whose variables another provider of the table reads too: that one comes first, so they are asked for by name.
const SECOND: &[(&str, &[&str])] = &[
    ("moonshotai-cn", &["MOONSHOT_API_KEY"]),
    ("opencode-go", &["OPENCODE_API_KEY"]),
    ("qwen-token-plan-individual", &["QWEN_TOKEN_PLAN_API_KEY"]),
    ("qwen-token-plan-individual-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    ("cloudflare-ai-gateway", &["CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"]),
];

fn wire_of(model: &Value) -> Option<Wire> {
    Wire::ALL.into_iter().find(|wire| model["api"] == wire.api())
}

/// The default model of a provider, as the catalogue has it.
fn default_of(provider: &str) -> Value {
    let row = rows().into_iter().find(|row| row["id"] == provider).expect("a provider of the catalogue");
    let mut models = catalogue(provider).into_iter();
    models.find(|model| model["id"] == row["default"]).expect("the provider's default model")
}

/// The variables with their values: the first is the key, the others are names of accounts.
fn values(names: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    names.iter().enumerate().map(|(at, name)| (*name, if at == 0 { KEY } else { "acc-1" })).collect()
}

/// What follows the host in the provider's address.
fn path_of(base_url: &str) -> String {
    let rest = base_url.split_once("://").expect("an address").1;
    rest.split_once('/').map_or(String::new(), |(_, path)| format!("/{path}"))
}

/// Prompts with nothing but these variables, and a `models.json` that moves the provider to a server of ours; what arrives.
fn prompted(provider: &str, names: &[&'static str], flags: &[&str]) -> Request {
    let model = default_of(provider);
    let wire = wire_of(&model).expect("an API that agentd speaks");
    let server = MockServer::always(Reply::stream(wire.answer("Here.")));
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
    let target = match wire {
        Wire::Chat => format!("POST {path}/chat/completions"),
        Wire::Messages => format!("POST {path}/v1/messages?beta=true"),
        Wire::Responses => format!("POST {path}/responses"),
    };
    assert_eq!(request.target, target, "{provider}");
    assert_eq!(request.body["model"], model["id"], "{provider}");
    wire.assert_legal(&request.body);
    request
}

/// The key stands in the header that the API wants it in, and nowhere else.
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
        assert!(wire_of(&default_of(provider)).is_none(), "{provider}");
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
