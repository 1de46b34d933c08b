//! Sources that have to be asked: programs, containers, instances, logins of SSO.

use super::*;

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
