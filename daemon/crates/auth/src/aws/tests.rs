//! Against stand-ins of the services, and files as users have them.

mod asked_sources;

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
