//! Methods of `Tensor` as rows of tables: documentation and signature, name and parameters, and the value.

/// Methods whose result is a function of the tensor, computed without the interpreter lock if it is large.
macro_rules! methods {
    ($($(#[$attribute:meta])* $method:ident($($parameter:tt)*) = $value:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$attribute])*
                fn $method(&self, py: Python<'_>, $($parameter)*) -> PyResult<PyTensor> {
                    self.apply(py, $value)
                }
            )*
        }
    };
}

/// Methods whose result is a view of the tensor, made by a chain of views.
macro_rules! views {
    ($($(#[$attribute:meta])* $method:ident($($parameter:tt)*) = $value:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$attribute])*
                fn $method(slf: &Bound<'_, Self>, $($parameter)*) -> PyResult<PyTensor> {
                    crate::py::tensor::attach::apply(slf, $value)
                }
            )*
        }
    };
}

/// Methods and properties that read something off the tensor without computing.
macro_rules! readings {
    ($($(#[$attribute:meta])* $method:ident -> $type:ty = $value:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$attribute])*
                fn $method(&self) -> $type {
                    let read: fn(&Tensor) -> $type = $value;
                    read(&self.read().t)
                }
            )*
        }
    };
}

/// Adds functions to a module.
macro_rules! add_functions {
    ($m:ident: $($name:ident),* $(,)?) => {{
        $($m.add_function(wrap_pyfunction!($name, $m)?)?;)*
        PyResult::Ok(())
    }};
}

pub(crate) use {add_functions, methods, readings, views};
