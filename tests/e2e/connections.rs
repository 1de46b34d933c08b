//! Connections to providers, and how long they are kept.

use agentd_e2e::{Home, MockServer, Reply, Service, socket::SocketClient, wires::Wire};
use serde_json::{Value, json};

use crate::support::{answers, text};

fn client(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

fn open(client: &mut SocketClient, home: &Home, model: &str) -> Value {
    let args = ["--model", model];
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
    opened["sessionId"].clone()
}

fn ask(client: &mut SocketClient) {
    client.done(json!({"type": "prompt", "message": "Hi"}));
    assert_eq!(text(answers(&client.settled())[0]), "Hello.");
}

#[test]
fn they_are_closed_with_the_last_session_that_uses_them() {
    let server = |wire: Wire| MockServer::always(Reply::stream(wire.answer("Hello.")));
    let (chat, messages) = (server(Wire::Chat), server(Wire::Messages));
    let home = Home::new();
    home.configure(&json!({"providers": {"chat": Wire::Chat.provider(&chat), "messages": Wire::Messages.provider(&messages)}}));
    let service = Service::start(&home, &[]);
    let (mut one, mut two, mut three) = (client(&service), client(&service), client(&service));
    let first = open(&mut one, &home, "chat/chat");
    let second = open(&mut two, &home, "chat/chat");
    let third = open(&mut three, &home, "messages/messages");
    [&mut one, &mut two, &mut three].into_iter().for_each(ask);
    // Both sessions go by the same one, or by another where that is not free yet.
    chat.wait_for_a_connection();
    messages.wait_for_a_connection();

    one.done(json!({"type": "close_session", "sessionId": first}));
    ask(&mut two);
    chat.wait_for_a_connection();
    two.done(json!({"type": "close_session", "sessionId": second}));
    chat.wait_for_no_connection();
    // What another session uses stays, whoever else has left.
    ask(&mut three);
    messages.wait_for_a_connection();
    assert_eq!((chat.requests().len(), messages.requests().len()), (3, 2));
    three.done(json!({"type": "close_session", "sessionId": third}));
    messages.wait_for_no_connection();

    // Who comes later gets new ones.
    open(&mut one, &home, "chat/chat");
    ask(&mut one);
    chat.wait_for_a_connection();
}
