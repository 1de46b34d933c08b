//! The laws of catalogues; see `fuzz.rs` of the crate.

use super::{
    import,
    stored::{self, CatalogueError},
};

/// Any text is a catalogue that is stored and read with all of its models, or is refused with lines that it has.
pub(crate) fn catalogues(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match import::checked(&text) {
        Ok(bytes) => {
            let catalogue = match stored::parse(&bytes) {
                Ok(catalogue) => catalogue,
                Err(what) => panic!("it {what}"),
            };
            for (place, provider) in catalogue.providers().iter().enumerate() {
                let models = catalogue.models(place);
                let counted: usize = provider.apis.iter().map(|(_, count)| count).sum();
                assert_eq!(models.len(), counted, "all models of {}", provider.id);
                assert!(
                    models.iter().any(|model| model.id == *provider.default),
                    "the default of {}",
                    provider.id
                );
                assert!(
                    models.iter().all(|model| model.provider == *provider.id && provider.may_have(&model.id))
                );
                assert_eq!(catalogue.place_of(&provider.id), Some(place));
            }
            assert_eq!(catalogue.defaults().count(), catalogue.providers().len());
        }
        Err(CatalogueError::Invalid { faults, .. }) => {
            let lines = text.split('\n').count();
            assert!(!faults.is_empty());
            assert!(faults.iter().all(|fault| fault.line as usize <= lines), "{faults:?} of {lines} lines");
        }
        Err(error) => panic!("{error}"),
    }
}

/// A stored catalogue whose checksum is right, whatever it holds, is read or refused.
pub(crate) fn stored_catalogues(input: &[u8]) {
    let _ = stored::parse(input);
    let Ok(catalogue) = stored::parse(&stored::with_checksum(input)) else { return };
    for place in 0..catalogue.providers().len() {
        let _ = catalogue.models(place);
    }
    let _ = catalogue.defaults().count();
}
