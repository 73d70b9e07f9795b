//! Methods and functions as rows of tables: documentation and signature, name and parameters, and the value.
//! Dicts as rows of names and values.

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

/// Methods and properties of a class that read something off what an object holds, without computing.
macro_rules! readings {
    ($class:ident, |$object:ident| $held:expr;
     $($(#[$attribute:meta])* $method:ident -> $type:ty = |$x:ident| $value:expr;)*) => {
        #[pymethods]
        impl $class {
            $(
                $(#[$attribute])*
                fn $method(&self) -> $type {
                    let $object = self;
                    let $x = &$held;
                    $value
                }
            )*
        }
    };
}

/// Functions of the module as rows: documentation and signature, name and parameters, result and value.
macro_rules! functions {
    ($($(#[$attribute:meta])* $name:ident($($parameter:tt)*) $(-> $type:ty)? = $value:expr;)*) => {
        $(
            #[pyfunction]
            $(#[$attribute])*
            fn $name($($parameter)*) $(-> $type)? {
                $value
            }
        )*
    };
}

/// A dict of values by name.
macro_rules! named {
    ($py:ident, $($name:ident = $value:expr,)*) => {{
        let all = PyDict::new($py);
        $(all.set_item(stringify!($name), $value)?;)*
        Ok(all)
    }};
}

pub(crate) use {functions, methods, named, readings, views};
