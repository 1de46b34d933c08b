//! `session/set_mode`, `session/set_config_option`, and changes that others make.

use agentd_protocol::{
    agent_mode::{AgentMode, ModeState as DaemonModeState, SetModeParams as DaemonModeParams},
    command::{NoParams, SetModelParams, SetThinkingLevelParams},
    model::{Model, ThinkingLevel},
    permissions::SetPermissionsParams,
    session::PermissionState,
    settings::PermissionPreset,
};
use serde_json::{Value, json};

use super::{
    calls::{Answer, data, done, failed, tell},
    state::{Agent, DaemonCall, Effects},
};
use crate::{
    options::{MODE, MODEL, ModelChoice, PLAN, THINKING, preset},
    requests::{SetModeParams, SetOptionParams},
    rpc::{RequestId, RpcError, quoted},
    updates::Update,
};

impl Agent {
    pub(super) fn set_mode(
        &mut self,
        id: &RequestId,
        given: SetModeParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        let SetModeParams { session_id, mode_id } = given;
        self.session(&session_id)?;
        self.choose_mode(id, &session_id, &mode_id, "modeId", effects)
    }

    pub(super) fn set_option(
        &mut self,
        id: &RequestId,
        given: SetOptionParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        let SetOptionParams { session_id, config_id, value } = given;
        let session = self.session(&session_id)?;
        let Value::String(value) = value else {
            return Err(RpcError::invalid_params("Invalid params: value: expected a string"));
        };
        match config_id.as_str() {
            MODE => return self.choose_mode(id, &session_id, &value, "value", effects),
            MODEL => {
                let ModelChoice { provider, id: model, .. } =
                    session.options.model_of(&value).ok_or_else(|| not_offered("value", &value))?;
                let params =
                    SetModelParams { provider: Some(provider.clone()), model_id: Some(model.clone()) };
                session.is_changing = true;
                let call = DaemonCall::SetModel { session: session_id.clone(), request: id.clone() };
                self.ask(call, "set_model", Some(&session_id), &params, effects);
            }
            THINKING => {
                let level = ThinkingLevel::from_name(&value);
                if level.is_none_or(|level| !session.options.levels.contains(&level)) {
                    return Err(not_offered("value", &value));
                }
                session.is_changing = true;
                let call = DaemonCall::SetLevel { session: session_id.clone(), request: id.clone() };
                let params = SetThinkingLevelParams { level: value };
                self.ask(call, "set_thinking_level", Some(&session_id), &params, effects);
            }
            other => return Err(not_offered("configId", other)),
        }
        Ok(())
    }

    fn choose_mode(
        &mut self,
        id: &RequestId,
        session: &str,
        name: &str,
        field: &str,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        let (preset, is_option) = (PermissionPreset::named(name), field == "value");
        if preset.is_none() && name != PLAN {
            return Err(not_offered(field, name));
        }
        let found = self.session(session)?;
        found.is_changing = true;
        match preset {
            Some(preset) if !found.options.is_planning => {
                self.set_preset(id, session, preset, is_option, effects);
            }
            // Into plan mode, or out of it and then to the preset.
            preset => {
                let mode = if preset.is_some() { AgentMode::Default } else { AgentMode::Plan };
                let (session, request) = (session.to_owned(), id.clone());
                let params = DaemonModeParams { mode, client: String::new() };
                let call = DaemonCall::SetPlan { session: session.clone(), request, is_option, then: preset };
                self.ask(call, "set_mode", Some(&session), &params, effects);
            }
        }
        Ok(())
    }

    fn set_preset(
        &mut self,
        id: &RequestId,
        session: &str,
        preset: PermissionPreset,
        is_option: bool,
        effects: &mut Effects,
    ) {
        let params = SetPermissionsParams { preset: Some(preset), ..SetPermissionsParams::default() };
        let call = DaemonCall::SetMode {
            session: session.to_owned(),
            request: id.clone(),
            is_option,
            wanted: preset.as_str().to_owned(),
        };
        self.ask(call, "set_permissions", Some(session), &params, effects);
    }

    /// The session is in plan mode, or out of it, and goes on to a preset.
    pub(super) fn plan_set(
        &mut self,
        id: &str,
        request: &RequestId,
        is_option: bool,
        then: Option<PermissionPreset>,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        let state = data::<DaemonModeState>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        match state {
            Ok(state) => session.options.is_planning = state.mode == AgentMode::Plan,
            Err(error) => {
                session.is_changing = false;
                return failed(request, &error, effects);
            }
        }
        match (then, is_option) {
            (Some(preset), _) => self.set_preset(request, id, preset, is_option, effects),
            (None, true) => self.options_changed(id, request, effects),
            (None, false) => {
                session.is_changing = false;
                done(request, &json!({}), effects);
            }
        }
    }

    /// Somebody else, or the approval of a plan, has changed the mode.
    pub(super) fn plan_changed(&mut self, id: &str, mode: AgentMode, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let is_planning = mode == AgentMode::Plan;
        if std::mem::replace(&mut session.options.is_planning, is_planning) != is_planning
            && !session.is_changing
        {
            self.tell_mode(id, effects);
        }
    }

    pub(super) fn mode_set(
        &mut self,
        id: &str,
        request: &RequestId,
        is_option: bool,
        wanted: &str,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        let state = data::<PermissionState>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.is_changing = false;
        let state = match state {
            Ok(state) => state,
            Err(error) => return failed(request, &error, effects),
        };
        session.options.preset = state.preset;
        if state.preset.as_str() != wanted {
            let in_force = state.preset.as_str();
            let text = format!(
                "The mode {wanted} is wider than the project's settings allow: {in_force} is in force"
            );
            failed(request, &RpcError::invalid_params(text), effects);
            return self.tell_mode(id, effects);
        }
        match is_option {
            true => self.options_changed(id, request, effects),
            false => done(request, &json!({}), effects),
        }
    }

    pub(super) fn model_set(
        &mut self,
        id: &str,
        request: RequestId,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        let model = data::<Model>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        match model {
            Ok(model) => {
                session.options.model = ModelChoice::of(&model);
                session.options.window = model.context_window;
                let call = DaemonCall::Levels { session: id.to_owned(), then: Some(request) };
                self.ask(call, "get_available_thinking_levels", Some(id), &NoParams {}, effects);
            }
            Err(error) => {
                session.is_changing = false;
                failed(&request, &error, effects);
            }
        }
    }

    pub(super) fn level_set(
        &mut self,
        id: &str,
        request: &RequestId,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        match answer {
            // The event before the answer has said which level it is.
            Ok(_) => self.options_changed(id, request, effects),
            Err(failure) => {
                if let Some(session) = self.sessions.get_mut(id) {
                    session.is_changing = false;
                }
                failed(request, &super::calls::rpc_error(&failure), effects);
            }
        }
    }

    /// Answers a request that changed an option: with all options, since one changes others.
    pub(super) fn options_changed(&mut self, id: &str, request: &RequestId, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.is_changing = false;
        done(request, &json!({"configOptions": session.options.all()}), effects);
    }

    pub(super) fn level_changed(&mut self, id: &str, level: ThinkingLevel, effects: &mut Effects) {
        if let Some(session) = self.sessions.get_mut(id)
            && session.options.level != level
        {
            session.options.level = level;
            self.tell_options(id, effects);
        }
    }

    pub(super) fn model_changed(&mut self, id: &str, provider: &str, model: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let current = &session.options.model;
        if (current.provider.as_str(), current.id.as_str()) == (provider, model) {
            return;
        }
        let value = format!("{provider}/{model}");
        if let Some(model) = session.options.model_of(&value).cloned() {
            session.options.model = model;
        }
        // A request of the editor asks for the levels itself.
        if !session.is_changing {
            self.ask_levels(id, effects);
        }
    }

    pub(super) fn permissions_changed(&mut self, id: &str, state: &PermissionState, effects: &mut Effects) {
        let now = preset(Some(state));
        if let Some(session) = self.sessions.get_mut(id)
            && session.options.preset != now
        {
            session.options.preset = now;
            if !session.is_changing {
                self.tell_mode(id, effects);
            }
        }
    }

    /// Tells the mode, for clients of modes and those of options.
    fn tell_mode(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get(id) else { return };
        let current_mode_id = session.options.mode();
        tell(id, &Update::CurrentModeUpdate { current_mode_id }, effects);
        self.tell_options(id, effects);
    }

    /// Tells all options, unless the answer to a request is about to.
    pub(super) fn tell_options(&mut self, id: &str, effects: &mut Effects) {
        if let Some(session) = self.sessions.get(id).filter(|it| !it.is_changing && it.opening.is_none()) {
            tell(id, &Update::ConfigOptionUpdate { config_options: session.options.all() }, effects);
        }
    }
}

fn not_offered(field: &str, value: &str) -> RpcError {
    RpcError::invalid_params(format!("Invalid params: {field}: \"{}\" is not offered", quoted(value)))
}
