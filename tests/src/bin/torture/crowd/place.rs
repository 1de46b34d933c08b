//! The sessions that the guests meet in, and what they were told of them.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Mutex,
};

use agentd_e2e::Random;

/// A session with a file.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) id: String,
    pub(crate) file: PathBuf,
}

/// What all guests know.
pub(crate) struct Place {
    /// How many rooms there are at most.
    most: usize,
    project: PathBuf,
    rooms: Mutex<Vec<Room>>,
    /// By the id of a session: its file, and texts of the user that are stored in it.
    stored: Mutex<HashMap<String, (PathBuf, Vec<String>)>>,
    /// Ids of sessions that were deleted.
    deleted: Mutex<HashSet<String>>,
    /// Ids of sessions that somebody wanted to delete, who may have left before he knew.
    doubtful: Mutex<HashSet<String>>,
}

impl Place {
    pub(crate) fn new(most: usize, project: &Path) -> Self {
        Self {
            most,
            project: project.to_owned(),
            rooms: Mutex::default(),
            stored: Mutex::default(),
            deleted: Mutex::default(),
            doubtful: Mutex::default(),
        }
    }

    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// One of the rooms; `None` as long as there are too few.
    pub(crate) fn any(&self, random: &mut Random) -> Option<Room> {
        let rooms = self.rooms.lock().unwrap();
        (rooms.len() == self.most).then(|| random.pick(&rooms).clone())
    }

    /// Another room, in the place of one of those that there are if there are enough.
    pub(crate) fn add(&self, room: Room, random: &mut Random) {
        if self.deleted.lock().unwrap().contains(&room.id) {
            return;
        }
        self.stored.lock().unwrap().entry(room.id.clone()).or_insert_with(|| (room.file.clone(), Vec::new()));
        let mut rooms = self.rooms.lock().unwrap();
        if rooms.iter().any(|other| other.id == room.id) {
            return;
        }
        if rooms.len() < self.most {
            rooms.push(room);
        } else {
            let index = random.index(rooms.len());
            rooms[index] = room;
        }
    }

    /// Somebody is about to delete a session.
    pub(crate) fn doubt(&self, id: &str) {
        self.doubtful.lock().unwrap().insert(id.to_owned());
    }

    /// Whether a session may have been deleted though nobody heard of it.
    pub(crate) fn is_doubtful(&self, id: &str) -> bool {
        self.doubtful.lock().unwrap().contains(id)
    }

    /// A session that nobody is to look for any more.
    pub(crate) fn remove(&self, id: &str) {
        self.deleted.lock().unwrap().insert(id.to_owned());
        self.rooms.lock().unwrap().retain(|room| room.id != id);
        self.stored.lock().unwrap().remove(id);
    }

    /// A client was told that a text is stored in a session.
    pub(crate) fn store(&self, id: &str, text: &str) {
        let mut stored = self.stored.lock().unwrap();
        if let Some((_, texts)) = stored.get_mut(id)
            && !texts.iter().any(|other| other == text)
        {
            texts.push(text.to_owned());
        }
    }

    /// The sessions whose files have to be there, with the texts that have to be in them.
    pub(crate) fn stored(&self) -> Vec<(String, PathBuf, Vec<String>)> {
        let stored = self.stored.lock().unwrap();
        let with_texts = stored.iter().filter(|(_, (_, texts))| !texts.is_empty());
        with_texts.map(|(id, (file, texts))| (id.clone(), file.clone(), texts.clone())).collect()
    }
}
