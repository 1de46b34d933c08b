//! Messages by reference: each host gets a message once, and its key from then on. A long transcript then costs its size once, not at
//! every model call.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use agentd_protocol::{Json, message::Message};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json, value::to_raw_value};

/// The messages that hosts were sent, with their keys.
#[derive(Default)]
pub(crate) struct MessageRefs(Mutex<Known>);

#[derive(Default)]
struct Known {
    last: u64,
    /// By the address of the message, which is kept: no other can have the address meanwhile.
    by_address: HashMap<usize, (u64, Json<Message>)>,
    by_key: HashMap<u64, usize>,
    /// The keys that each host has, and the epoch in which it got them.
    sent: HashMap<usize, (u64, HashSet<u64>)>,
}

/// A message on its way to a host.
pub(crate) struct MessageRef {
    key: u64,
    /// The message itself, where the host does not have it.
    value: Option<Json<Message>>,
}

impl Serialize for MessageRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(if self.value.is_some() { 2 } else { 1 }))?;
        map.serialize_entry("m", &name(self.key))?;
        if let Some(value) = &self.value {
            map.serialize_entry("v", value.raw())?;
        }
        map.end()
    }
}

fn name(key: u64) -> String {
    format!("m{key}")
}

impl MessageRefs {
    /// The forms of messages for a host. Costs a look at each, and what the host does not have yet is written out with the record.
    pub(crate) fn of(&self, host: usize, epoch: u64, messages: &[Json<Message>]) -> Vec<MessageRef> {
        let mut known = self.lock();
        let mut refs = Vec::with_capacity(messages.len());
        for message in messages {
            let address = message.address();
            let key = match known.by_address.get(&address) {
                Some((key, _)) => *key,
                None => {
                    known.last += 1;
                    let key = known.last;
                    known.by_address.insert(address, (key, message.clone()));
                    known.by_key.insert(key, address);
                    key
                }
            };
            let (of_epoch, sent) = known.sent.entry(host).or_default();
            if *of_epoch != epoch {
                // Another process, or another session: it has nothing.
                (*of_epoch, *sent) = (epoch, HashSet::new());
            }
            let value = sent.insert(key).then(|| message.clone());
            refs.push(MessageRef { key, value });
        }
        refs
    }

    /// The messages of a list that a host has returned: known ones by their keys, others as they are. `None`: one is neither.
    pub(crate) fn read(&self, list: Vec<Value>) -> Option<Vec<Json<Message>>> {
        let known = self.lock();
        let read = |element: Value| match element {
            Value::Object(mut element) => match element.remove("v") {
                Some(value) => to_raw_value(&value).ok().map(Json::from_raw),
                None => {
                    let key = element.get("m")?.as_str()?.strip_prefix('m')?.parse().ok()?;
                    known.by_key.get(&key).and_then(|at| known.by_address.get(at)).map(|(_, it)| it.clone())
                }
            },
            _ => None,
        };
        list.into_iter().map(read).collect()
    }

    /// It is not known what a host has got.
    pub(crate) fn reset(&self, host: usize) {
        self.lock().sent.remove(&host);
    }

    /// Forgets the messages that are in none of these lists any more, where there are many. Gives for each host what it is to forget.
    pub(crate) fn forget_others(&self, messages: &[Json<Message>]) -> Vec<(usize, Value)> {
        let mut known = self.lock();
        // A transcript grows and is cut now and then: a look at every call would cost more than it saves.
        if known.by_address.len() <= 2 * messages.len() + 64 {
            return Vec::new();
        }
        let kept: HashSet<usize> = messages.iter().map(Json::address).collect();
        let Known { by_address, by_key, sent, .. } = &mut *known;
        let mut gone = HashSet::new();
        by_address.retain(|address, (key, _)| {
            let stays = kept.contains(address);
            if !stays {
                gone.insert(*key);
            }
            stays
        });
        by_key.retain(|key, _| !gone.contains(key));
        let told = sent.iter_mut().filter_map(|(host, (_, sent))| {
            let names: Vec<String> = sent.extract_if(|key| gone.contains(key)).map(name).collect();
            (!names.is_empty()).then(|| (*host, json!({"m": names})))
        });
        told.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Json<Message> {
        let value = json!({"role": "user", "content": text, "timestamp": 1});
        Json::from_raw(to_raw_value(&value).unwrap())
    }

    fn shown(refs: &[MessageRef]) -> Value {
        serde_json::to_value(refs).unwrap()
    }

    #[test]
    fn a_host_gets_a_message_once() {
        let refs = MessageRefs::default();
        let (a, b) = (message("a"), message("b"));
        let value = json!({"role": "user", "content": "a", "timestamp": 1});
        assert_eq!(shown(&refs.of(0, 1, std::slice::from_ref(&a))), json!([{"m": "m1", "v": value}]));
        let later = shown(&refs.of(0, 1, &[a.clone(), b.clone()]));
        assert_eq!((&later[0], &later[1]["m"]), (&json!({"m": "m1"}), &json!("m2")));
        // Another host, and one that was started again, have nothing.
        assert_eq!(shown(&refs.of(1, 1, std::slice::from_ref(&a)))[0]["v"], value);
        assert_eq!(shown(&refs.of(0, 2, std::slice::from_ref(&a)))[0]["v"], value);
        let read = refs.read(vec![json!({"m": "m2"}), json!({"v": {"role": "user"}})]).unwrap();
        assert_eq!((read[0].address(), read[1].text()), (b.address(), r#"{"role":"user"}"#));
        assert!(refs.read(vec![json!({"m": "m9"})]).is_none());
        assert!(refs.read(vec![json!("text")]).is_none());
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let refs = MessageRefs::default();
        let messages: Vec<_> = (0..200).map(|n| message(&n.to_string())).collect();
        refs.of(3, 1, &messages);
        assert!(refs.forget_others(&messages).is_empty());
        let told = refs.forget_others(&messages[..10]);
        assert_eq!((told[0].0, told[0].1["m"].as_array().unwrap().len()), (3, 190));
        assert_eq!(refs.lock().by_key.len(), 10);
        assert!(refs.forget_others(&messages[..10]).is_empty());
    }
}
