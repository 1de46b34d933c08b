//! Against stand-ins of the services, and files as users have them.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use agentd_config::{AgentDir, models::ModelRegistry};

use super::*;
use crate::{
    Auth, AuthServices, AuthSources, KeySource, Secret,
    aws::keys::text_of,
    oauth::testing::{Asked, TokenServer},
};

const BASE: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";

/// A home folder and an environment.
struct Home {
    folder: tempfile::TempDir,
    environment: Environment,
    services: AuthServices,
}

impl Home {
    fn new(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment: Environment = variables.iter().copied().collect();
        environment.set("HOME", folder.path());
        environment.set("PATH", "/usr/bin:/bin");
        fs::create_dir_all(folder.path().join(".aws/sso/cache")).unwrap();
        Self { folder, environment, services: AuthServices::default() }
    }

    fn write(&self, path: &str, text: &str) -> String {
        let path = self.folder.path().join(path);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn set(&mut self, name: &str, value: impl AsRef<str>) {
        self.environment.set(name, value.as_ref());
    }

    async fn place(&self) -> Result<AwsTarget, String> {
        self.place_for(None).await
    }

    async fn place_for(&self, refused: Option<&Credentials>) -> Result<AwsTarget, String> {
        let agent_dir = AgentDir::at(self.folder.path());
        let auth = Auth::load(AuthSources {
            environment: self.environment.clone(),
            registry: Arc::new(ModelRegistry::load(&agent_dir.models_file())),
            services: self.services.clone(),
            agent_dir,
        });
        let place = place(&model(), &self.environment, &auth, false, refused).await;
        place.map_err(|problem| problem.to_string().replace(&self.folder.path().display().to_string(), "~"))
    }

    /// Key, secret and token, or what is wrong.
    async fn keys(&self) -> Result<String, String> {
        self.place().await.map(|place| shown(&place.keys.unwrap()))
    }

    async fn check(&self, expected: &str) {
        assert_eq!(self.keys().await.as_deref(), Ok(expected));
    }

    async fn fails(&self, expected: &str) {
        let problem = self.keys().await.unwrap_err();
        assert!(problem.contains(expected), "{problem}");
        assert!(!problem.contains("hush"), "{problem}");
    }
}

fn model() -> Model {
    Model {
        provider: PROVIDER.into(),
        api: API.into(),
        base_url: BASE.into(),
        id: "m".into(),
        ..Model::placeholder()
    }
}

fn shown(keys: &AwsKeys) -> String {
    let token = keys.session_token.as_ref().map_or("-", Secret::expose);
    format!("{} {} {token}", keys.access_key_id, keys.secret_access_key.expose())
}

fn after(seconds: u64) -> String {
    text_of(SystemTime::now() + Duration::from_secs(seconds))
}

/// An answer of STS with keys that are called after the role.
fn assumed(name: &str, seconds: u64) -> (u16, String) {
    let xml = format!(
        "<R xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Result><Credentials><AccessKeyId>ID-{name}</AccessKeyId>\
         <SecretAccessKey>hush-{name}</SecretAccessKey><SessionToken>hush-t&amp;{name}</SessionToken>\
         <Expiration>{}</Expiration></Credentials></Result></R>",
        after(seconds)
    );
    (200, xml)
}

/// The value of a form's field.
fn field<'a>(asked: &'a Asked, name: &str) -> &'a str {
    asked.body.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

fn header<'a>(asked: &'a Asked, name: &str) -> &'a str {
    let line = asked.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim()
}

/// A stand-in of STS, which calls keys after the last part of the role's name.
fn sts() -> TokenServer {
    TokenServer::start(|asked| {
        assert_eq!(field(asked, "Version"), "2011-06-15");
        assumed(field(asked, "RoleArn").rsplit("%2F").next().unwrap(), 3600)
    })
}

#[tokio::test]
async fn variables_come_first() {
    let mut home = Home::new(&[("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "hush")]);
    home.write(
        ".aws/credentials",
        "[default]\naws_access_key_id = OTHER\naws_secret_access_key = hush-other\n",
    );
    home.check("ID hush -").await;
    home.set("AWS_SESSION_TOKEN", "hush-token");
    home.check("ID hush hush-token").await;
    home.set("AWS_SECRET_ACCESS_KEY", "");
    home.check("OTHER hush-other -").await;
}

#[tokio::test]
async fn profiles_with_keys() {
    let mut home = Home::new(&[]);
    home.fails("Set AWS_PROFILE to a profile").await;
    home.write(
        ".aws/config",
        "[default]\nregion = eu-west-3\n[profile work]\nregion = us-west-2\naws_access_key_id = CONFIG\n",
    );
    // A default profile that says nothing of keys is no source.
    home.fails("Set AWS_PROFILE to a profile").await;
    home.write(
        ".aws/credentials",
        "[work]\naws_access_key_id = WORK\naws_secret_access_key = hush-work\naws_session_token = t\n",
    );
    home.set("AWS_PROFILE", "work");
    home.check("WORK hush-work t").await;
    assert_eq!(home.place().await.unwrap().account.region.as_deref(), Some("us-west-2"));
    home.set("AWS_PROFILE", "nobody");
    home.fails("The profile \"nobody\" is neither in ~/.aws/config nor in ~/.aws/credentials").await;
    // Changed keys count at once.
    home.set("AWS_PROFILE", "work");
    home.write(".aws/credentials", "[work]\naws_access_key_id = NEW\naws_secret_access_key = hush-new\n");
    home.check("NEW hush-new -").await;
    home.write(".aws/credentials", "[work]\naws_access_key_id = NEW\n");
    home.fails("has no aws_secret_access_key").await;
    let elsewhere = home.write("mine", "[work]\naws_access_key_id=MINE\naws_secret_access_key=hush\n");
    home.set("AWS_SHARED_CREDENTIALS_FILE", &elsewhere);
    home.check("MINE hush -").await;
    home.set("AWS_CONFIG_FILE", "/dev/null");
    home.set("AWS_SHARED_CREDENTIALS_FILE", "~/.aws");
    home.fails("cannot be read").await;
}

#[tokio::test]
async fn regions_and_addresses() {
    let keys = [("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "hush")];
    let mut home = Home::new(&keys);
    let place = home.place().await.unwrap();
    assert_eq!((place.account, place.base_url), (Account::default(), None));
    home.write(".aws/config", "[default]\nregion = ap-south-1\n");
    home.set("AWS_BEDROCK_FORCE_CACHE", "1");
    let account = home.place().await.unwrap().account;
    assert_eq!((account.region.as_deref(), account.force_cache), (Some("ap-south-1"), true));
    home.set("AWS_DEFAULT_REGION", "eu-west-1");
    assert_eq!(home.place().await.unwrap().account.region.as_deref(), Some("eu-west-1"));
    home.set("AWS_REGION", "eu-west-2");
    assert_eq!(home.place().await.unwrap().account.region.as_deref(), Some("eu-west-2"));
    let mut home = Home::new(&keys);
    home.set("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://127.0.0.1:9/");
    let place = home.place().await.unwrap();
    assert_eq!(place.base_url.as_deref(), Some("http://127.0.0.1:9/"));
    assert_eq!(place.account.region.as_deref(), Some("us-east-1"));
    for (url, region) in [
        (BASE, Some("us-east-1")),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/x", Some("us-gov-west-1")),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
        ("https://bedrock.example.com", None),
    ] {
        assert_eq!(standard_region(url), region, "{url}");
    }
}

#[tokio::test]
async fn roles_are_taken_on_one_after_the_other() {
    let server = sts();
    let mut home = Home::new(&[("AWS_PROFILE", "c"), ("AWS_REGION", "eu-west-1")]);
    home.set("AWS_ENDPOINT_URL_STS", server.url("/"));
    home.write(
        ".aws/config",
        "[profile a]\naws_access_key_id = A\naws_secret_access_key = hush-a\n\
         [profile b]\nrole_arn = arn:aws:iam::1:role/rb\nsource_profile = a\nexternal_id = x y\nrole_session_name = me\n\
         [profile c]\nrole_arn = arn:aws:iam::1:role/rc\nsource_profile = b\nduration_seconds = 900\n\
         [profile self]\nrole_arn = arn:aws:iam::1:role/rs\nsource_profile = self\naws_access_key_id = S\naws_secret_access_key = hush-s\n\
         [profile circle]\nrole_arn = r\nsource_profile = other\n[profile other]\nrole_arn = r\nsource_profile = circle\n\
         [profile lost]\nrole_arn = r\n[profile code]\nrole_arn = r\nsource_profile = a\nmfa_serial = m\n\
         [profile env]\nrole_arn = arn:aws:iam::1:role/re\ncredential_source = Environment\n\
         [profile odd]\ncredential_source = Moon\n[profile empty]\nregion = x\n",
    );
    home.check("ID-rc hush-rc hush-t&rc").await;
    // The keys are cached: no service is asked again.
    home.check("ID-rc hush-rc hush-t&rc").await;
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!((field(&asked[0], "ExternalId"), field(&asked[0], "RoleSessionName")), ("x%20y", "me"));
    assert!(header(&asked[0], "authorization").contains("Credential=A/"), "{asked:?}");
    assert!(header(&asked[0], "authorization").contains("/eu-west-1/sts/aws4_request"), "{asked:?}");
    assert_eq!(
        (field(&asked[1], "DurationSeconds"), header(&asked[1], "x-amz-security-token")),
        ("900", "hush-t&rb")
    );
    for (profile, expected) in [
        ("circle", "goes round in circles"),
        ("lost", "neither source_profile nor credential_source"),
        ("code", "wants a code (mfa_serial)"),
        ("env", "AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set"),
        ("odd", "credential_source \"Moon\""),
        ("empty", "does not say where its keys come from"),
    ] {
        home.set("AWS_PROFILE", profile);
        home.fails(expected).await;
    }
    home.set("AWS_PROFILE", "self");
    home.check("ID-rs hush-rs hush-t&rs").await;
    assert!(header(&server.asked()[2], "authorization").contains("Credential=S/"));
}

#[tokio::test]
async fn refusals_of_sts_are_shown() {
    let server = TokenServer::start(|_| {
        (
            403,
            "<E><Error><Code>AccessDenied</Code><Message>Not &lt;you&gt;, hush-web</Message></Error></E>"
                .into(),
        )
    });
    let mut home = Home::new(&[("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")]);
    home.set("AWS_ENDPOINT_URL_STS", server.url("/"));
    home.set("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token");
    home.fails("is not in ~/token").await;
    home.write("token", "hush-web\n");
    home.fails("STS, asked for the role arn:aws:iam::1:role/r, refused with status 403: AccessDenied: Not <you>, [redacted]").await;
    home.set("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1/");
    home.fails("STS (127.0.0.1:1) cannot be reached").await;
    home.set("AWS_ENDPOINT_URL_STS", "nonsense");
    home.fails("AWS_ENDPOINT_URL_STS or the region makes no http or https address").await;
}

#[tokio::test]
async fn tokens_of_an_identity_provider() {
    let server = sts();
    let mut home = Home::new(&[("AWS_ROLE_ARN", "arn:aws:iam::1:role/web")]);
    home.set("AWS_ENDPOINT_URL_STS", server.url("/"));
    let token = home.write("token", " hush-jwt \n");
    home.set("AWS_WEB_IDENTITY_TOKEN_FILE", &token);
    home.check("ID-web hush-web hush-t&web").await;
    let asked = &server.asked()[0];
    assert_eq!(
        (field(asked, "Action"), field(asked, "WebIdentityToken")),
        ("AssumeRoleWithWebIdentity", "hush-jwt")
    );
    assert_eq!(header(asked, "authorization"), "");
    home.write(
        ".aws/config",
        &format!("[profile w]\nrole_arn = arn:aws:iam::1:role/w2\nweb_identity_token_file = {token}\n"),
    );
    home.set("AWS_PROFILE", "w");
    home.check("ID-w2 hush-w2 hush-t&w2").await;
}

#[tokio::test]
async fn keys_are_renewed_before_they_end_and_when_they_are_refused() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // The first keys end too soon to be kept for long, the others in an hour; the fourth question fails.
    let server = TokenServer::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => assumed("k0", 60),
        2 => (500, String::new()),
        number => assumed(&format!("k{number}"), if number == 1 { 60 } else { 3600 }),
    });
    let mut home = Home::new(&[("AWS_ROLE_ARN", "arn")]);
    home.set("AWS_ENDPOINT_URL_STS", server.url("/"));
    home.set("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token");
    home.write("token", "t");
    home.check("ID-k0 hush-k0 hush-t&k0").await;
    home.check("ID-k1 hush-k1 hush-t&k1").await;
    // The service is down: what is good for a minute yet is good enough.
    home.check("ID-k1 hush-k1 hush-t&k1").await;
    home.check("ID-k3 hush-k3 hush-t&k3").await;
    home.check("ID-k3 hush-k3 hush-t&k3").await;
    let refused = Credentials { aws: home.place().await.unwrap().keys, ..Credentials::default() };
    let renewed = home.place_for(Some(&refused)).await.unwrap().keys.unwrap();
    assert_eq!(shown(&renewed), "ID-k4 hush-k4 hush-t&k4");
    // Many at once ask once.
    let (a, b) = tokio::join!(home.place_for(Some(&refused)), home.keys());
    assert_eq!((shown(&a.unwrap().keys.unwrap()), b.unwrap()), (shown(&renewed), shown(&renewed)));
    assert_eq!(count.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn processes_that_print_keys() {
    let mut home = Home::new(&[("AWS_PROFILE", "p")]);
    let script = home.write(
        "keys.sh",
        "echo run >> $HOME/runs\necho '{\"Version\": 1, \"AccessKeyId\": \"P\", \"SecretAccessKey\": \"hush-p\", \"SessionToken\": \"t\"}'\n",
    );
    let profile = |command: &str| format!("[profile p]\ncredential_process = {command}\n");
    home.write(".aws/config", &profile(&format!("sh \"{script}\"")));
    home.check("P hush-p t").await;
    home.check("P hush-p t").await;
    assert_eq!(fs::read_to_string(home.folder.path().join("runs")).unwrap(), "run\n");
    for (command, expected) in [
        ("exit 3", "failed with exit status: 3"),
        ("echo hush", "is no JSON object with \"Version\": 1"),
        ("echo '{\"Version\": 2}'", "is no JSON object with \"Version\": 1"),
        ("echo '{\"Version\": 1, \"AccessKeyId\": \"x\"}'", "has no SecretAccessKey"),
        (
            "echo '{\"Version\": 1, \"AccessKeyId\": \"x\", \"SecretAccessKey\": \"hush\", \"Expiration\": \"soon\"}'",
            "Expiration that is no time",
        ),
    ] {
        home.services = AuthServices::default();
        home.write(".aws/config", &profile(command));
        home.fails(expected).await;
    }
}

#[tokio::test]
async fn containers_hand_out_keys() {
    let server = TokenServer::start(|asked| match header(asked, "authorization") {
        "Bearer hush-file" | "hush-token" => (
            200,
            format!(
                r#"{{"AccessKeyId":"C","SecretAccessKey":"hush-c","Token":"hush-ct","Expiration":"{}","RoleArn":"r"}}"#,
                after(3600)
            ),
        ),
        _ => (403, r#"{"code":"Denied","message":"who are you"}"#.into()),
    });
    let mut home = Home::new(&[]);
    home.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("/creds?x=1"));
    home.fails("refused with status 403: Denied: who are you").await;
    home.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-token");
    home.check("C hush-c hush-ct").await;
    assert_eq!(server.asked()[1].target, "GET /creds?x=1");
    home.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "wrong");
    home.set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home.write("token", "Bearer hush-file\n"));
    home.check("C hush-c hush-ct").await;
    home.write("token", "a\nb");
    home.services = AuthServices::default();
    home.fails("characters that no header may have").await;
}

#[tokio::test]
async fn instances_are_asked_where_a_profile_says_so() {
    let server = TokenServer::start(|asked| {
        let has_token = header(asked, "x-aws-ec2-metadata-token") == "hush-imds";
        match asked.target.as_str() {
            "PUT /latest/api/token" => {
                assert_eq!(header(asked, "x-aws-ec2-metadata-token-ttl-seconds"), "21600");
                (200, "hush-imds".into())
            }
            "GET /latest/meta-data/iam/security-credentials/" if has_token => (200, "my-role\n".into()),
            "GET /latest/meta-data/iam/security-credentials/my-role" if has_token => (
                200,
                format!(
                    r#"{{"Code":"Success","AccessKeyId":"I","SecretAccessKey":"hush-i","Token":"hush-it","Expiration":"{}"}}"#,
                    after(3600)
                ),
            ),
            _ => (401, String::new()),
        }
    });
    let mut home = Home::new(&[]);
    home.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url("/"));
    home.fails("credential_source = Ec2InstanceMetadata").await;
    assert_eq!(server.asked(), []);
    home.write(".aws/config", "[default]\ncredential_source = Ec2InstanceMetadata\n");
    home.check("I hush-i hush-it").await;
    home.set("AWS_EC2_METADATA_DISABLED", "true");
    home.fails("AWS_EC2_METADATA_DISABLED forbids that").await;
}

#[tokio::test]
async fn logins_of_sso() {
    let server = TokenServer::start(|asked| {
        match (asked.target.as_str(), header(asked, "x-amz-sso_bearer_token")) {
        ("GET /federation/credentials?role_name=Dev%20Ops&account_id=123", "hush-live" | "hush-renewed") => (
            200,
            r#"{"roleCredentials":{"accessKeyId":"S","secretAccessKey":"hush-s","sessionToken":"hush-st","expiration":4102444800000}}"#
                .into(),
        ),
        ("POST /token", _) if asked.body.contains("hush-refresh") => {
            (200, r#"{"accessToken":"hush-renewed","expiresIn":3600,"refreshToken":"hush-next"}"#.into())
        }
        ("POST /token", _) => (400, r#"{"error":"invalid_grant","error_description":"hush-old is used"}"#.into()),
        _ => (401, "{}".into()),
    }
    });
    let mut home = Home::new(&[("AWS_PROFILE", "s")]);
    home.set("AWS_ENDPOINT_URL_SSO", server.url(""));
    home.set("AWS_ENDPOINT_URL_SSO_OIDC", server.url("/"));
    let profile = "[profile s]\nsso_session = abc\nsso_account_id = 123\nsso_role_name = Dev Ops\n";
    home.write(".aws/config", profile);
    home.fails("no section [sso-session abc] to go with it").await;
    home.write(
        ".aws/config",
        &format!("{profile}[sso-session abc]\nsso_region = us-east-1\nsso_start_url = https://x\n"),
    );
    home.fails("There is no SSO login for \"abc\". Log in again: aws sso login --profile s").await;
    // The name of the file is the SHA-1 of the session's name.
    let file = ".aws/sso/cache/a9993e364706816aba3e25717850c26c9cd0d89d.json";
    let cached = |token: &str, seconds: i64, more: &str| {
        let end =
            if seconds < 0 { "2020-01-01T00:00:00UTC".to_owned() } else { after(seconds.unsigned_abs()) };
        format!(r#"{{"accessToken":"{token}","expiresAt":"{end}","kept":1{more}}}"#)
    };
    home.write(file, &cached("hush-live", 3600, ""));
    home.check("S hush-s hush-st").await;
    let fresh = |home: &mut Home| home.services = AuthServices::default();
    fresh(&mut home);
    home.write(file, &cached("hush-dead", 3600, ""));
    home.fails("The SSO login is not valid any more. Log in again").await;
    home.write(file, &cached("hush-live", -1, ""));
    home.fails("The SSO login has expired. Log in again").await;
    let client =
        |refresh: &str| format!(r#","clientId":"id","clientSecret":"hush-cs","refreshToken":"{refresh}""#);
    home.write(file, &cached("hush-live", -1, &client("hush-old")));
    home.fails("could not be renewed (SSO refused with status 400: invalid_grant: [redacted] is used)").await;
    home.write(file, &cached("hush-gone", -1, &client("hush-refresh")));
    home.check("S hush-s hush-st").await;
    let stored = fs::read_to_string(home.folder.path().join(file)).unwrap();
    for part in ["hush-renewed", "hush-next", "\"kept\":1", "hush-cs"] {
        assert!(stored.contains(part), "{stored}");
    }
}

/// The way of a session to its keys.
#[tokio::test]
async fn sessions_find_them() {
    let home = Home::new(&[]);
    let agent_dir = AgentDir::at(home.folder.path());
    let auth = |variables: &[(&str, &str)]| {
        let mut environment = home.environment.clone();
        for (name, value) in variables {
            environment.set(*name, *value);
        }
        let registry = Arc::new(ModelRegistry::load(&agent_dir.models_file()));
        Auth::load(AuthSources {
            environment,
            registry,
            services: AuthServices::default(),
            agent_dir: agent_dir.clone(),
        })
    };
    let keys = [("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "hush")];
    for (variables, source) in [
        (&keys[..], "AWS_ACCESS_KEY_ID"),
        (&[("AWS_PROFILE", "x")], "AWS_PROFILE"),
        (&[("AWS_BEARER_TOKEN_BEDROCK", "b"), keys[0], keys[1]], "AWS_BEARER_TOKEN_BEDROCK"),
        (&[("AWS_WEB_IDENTITY_TOKEN_FILE", "f"), ("AWS_ROLE_ARN", "r")], "AWS_WEB_IDENTITY_TOKEN_FILE"),
        (&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")], "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    ] {
        let auth = auth(variables);
        assert!(auth.is_configured(PROVIDER), "{variables:?}");
        assert!(!auth.is_configured("openai"));
        assert_eq!(auth.status(PROVIDER).unwrap().source, KeySource::Variable(source));
    }
    let none = auth(&[keys[0], ("AWS_WEB_IDENTITY_TOKEN_FILE", "f")]);
    assert!(!none.is_configured(PROVIDER) && none.status(PROVIDER).is_none());
    let error = none.credentials(&model()).await.unwrap_err().to_string();
    assert!(error.starts_with("No API key found for amazon-bedrock.\n\nSet AWS_PROFILE"), "{error}");

    let signed = auth(&[keys[0], keys[1], ("AWS_REGION", "eu-west-1")]);
    let found = signed.credentials(&model()).await.unwrap().credentials;
    assert_eq!(found.aws.as_ref().map(shown).as_deref(), Some("ID hush -"));
    assert_eq!(found.account.region.as_deref(), Some("eu-west-1"));
    assert!(signed.renew(&model(), &found).await.is_none());

    let bearer = auth(&[("AWS_BEARER_TOKEN_BEDROCK", "hush-b"), keys[0], keys[1]]);
    let found = bearer.credentials(&model()).await.unwrap().credentials;
    assert_eq!((found.key(), &found.aws), (Some("hush-b"), &None));

    home.write("auth.json", r#"{"amazon-bedrock": {"type": "api_key", "env": {"AWS_ACCESS_KEY_ID": "STORED", "AWS_SECRET_ACCESS_KEY": "hush"}}}"#);
    let stored = auth(&[]);
    assert!(stored.is_configured(PROVIDER));
    let found = stored.credentials(&model()).await.unwrap().credentials;
    assert_eq!(found.aws.as_ref().map(shown).as_deref(), Some("STORED hush -"));
}
