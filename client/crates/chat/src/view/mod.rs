//! The screen, drawn from the state.

mod below;
mod input;
mod panel;
mod question;
mod screen;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use self::screen::draw;
