//! The error type of the crate; its kinds map one to one onto Python exceptions (`src/py/error.rs`).
//!
//! A message says what failed, what was got, what was expected and what to do.

use std::fmt;

/// The kind of an error, which decides the Python exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Shapes that do not fit: `ShapeError`, a `ValueError` and a `RuntimeError`.
    Shape,
    /// A value outside its domain: `ValueError`.
    Value,
    /// An integer divided by zero: `ZeroDivisionError`.
    ZeroDivision,
    /// An index or axis out of range: `IndexError`.
    Index,
    /// A dtype or argument type that is not accepted: `TypeError`.
    Type,
    /// An invalid use of the tape or of a transform: `RuntimeError`.
    Autodiff,
    /// A non-finite value found by anomaly detection: `AnomalyError`, a `RuntimeError`.
    Anomaly,
    /// A recomputation that differs from its forward: `CheckpointError`, a `RuntimeError`.
    Checkpoint,
    /// A device that is missing, lost or lacks a feature: `DeviceError`, a `RuntimeError`.
    Device,
    /// Memory that could not be allocated: `MemoryError`.
    Memory,
    /// A matrix without the factorisation asked for: `LinAlgError`, a `ValueError` and a `RuntimeError`.
    LinAlg,
    /// A feature that an operation does not implement: `NotImplementedError`.
    Unsupported,
    /// An error raised by a callback (a Python exception), carried through unchanged.
    Foreign,
}

/// An error: its kind and its message.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    message: String,
    foreign: Option<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($name:ident => $kind:ident,)*) => {
        $(
            #[doc = concat!("An error of kind [`Kind::", stringify!($kind), "`].")]
            #[cold]
            pub fn $name(message: impl Into<String>) -> Error {
                Error::new(Kind::$kind, message.into())
            }
        )*
    };
}

impl Error {
    #[cold]
    fn new(kind: Kind, message: String) -> Error {
        Error(Box::new(Inner { kind, message, foreign: None }))
    }

    constructors! {
        shape => Shape,
        value => Value,
        zero_division => ZeroDivision,
        index => Index,
        dtype => Type,
        autodiff => Autodiff,
        anomaly => Anomaly,
        checkpoint => Checkpoint,
        device => Device,
        memory => Memory,
        linalg => LinAlg,
        unsupported => Unsupported,
    }

    /// Wraps a Python exception so that it passes through the core unchanged.
    #[cold]
    pub fn foreign(payload: std::sync::Arc<dyn std::any::Any + Send + Sync>, message: String) -> Error {
        Error(Box::new(Inner { kind: Kind::Foreign, message, foreign: Some(payload) }))
    }

    /// The kind of this error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The payload given to [`Error::foreign`].
    pub fn payload(&self) -> Option<&std::sync::Arc<dyn std::any::Any + Send + Sync>> {
        self.0.foreign.as_ref()
    }

    /// Replaces the operation named in the message by `function`, which the user called. Errors of the tape
    /// and of callbacks are left unchanged.
    #[cold]
    pub fn named(mut self, function: &str) -> Error {
        use Kind::*;
        if matches!(self.kind(), Shape | Value | ZeroDivision | Index | Type | Device | LinAlg | Unsupported)
        {
            let message = &self.0.message;
            let rest = match message.split_once(": ") {
                Some((operation, rest)) if is_name(operation) => rest,
                _ => message,
            };
            self.0.message = format!("{function}: {rest}");
        }
        self
    }

    /// Puts `prefix` before the message; a foreign error is left unchanged.
    #[cold]
    pub fn context(mut self, prefix: &str) -> Error {
        if self.0.kind != Kind::Foreign {
            self.0.message = format!("{prefix}: {}", self.0.message);
        }
        self
    }
}

/// Whether the part of a message before its first colon is the name of an operation.
pub fn is_name(operation: &str) -> bool {
    operation != "internal" && operation.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Results whose errors can be renamed to the function that the user called.
pub trait Named {
    /// Applies [`Error::named`] to the error.
    fn named(self, function: &str) -> Self;
}

impl<T> Named for Result<T> {
    fn named(self, function: &str) -> Result<T> {
        self.map_err(|error| error.named(function))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}
