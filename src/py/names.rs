//! Names that follow from the methods of `Tensor`: the function `wengert.exp(x)` of the method `x.exp()`, the
//! in-place method `x.exp_()`, and the names that NumPy and PyTorch have besides.
//!
//! A function is a builtin that hands its arguments on to the method. Where the first one is no tensor, or
//! where there is an `out`, `wengert._calls.general` takes the call. The examples in the docstrings of the
//! module's functions stand in `examples.txt`: below a name, what a session with the interpreter shows.

use crate::ops::pointwise::binary::binary_table;
use crate::ops::pointwise::unary::unary_table;
use crate::py::prelude::*;
use pyo3::ffi::{self, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::panic::PanicException;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// Methods that ask about a tensor, change it, or convert it: they are no functions.
const METHODS_ONLY: &str = "\
    as_subclass astype backward bfloat16 block_until_ready bool byte cdouble cfloat chalf char contiguous \
    copy cpu cuda data_ptr dim double element_size expand expand_as float get_device gpu half int \
    is_contiguous is_pinned item long ndimension nelement new_empty new_empty_strided new_full new_ones \
    new_tensor new_zeros numpy pin_memory polygamma register_hook register_post_accumulate_grad_hook \
    repeat reshape_as retain_grad short storage storage_offset stride sum_to_size to to_device to_sparse \
    tolist type type_as untyped_storage view view_as";

/// Functions whose results are no tensors, or views: they take no `out`.
const WITHOUT_OUT: &[&str] = &[
    "allclose", "chunk", "dsplit", "equal", "frexp", "hsplit", "is_complex", "is_conj", "is_floating_point",
    "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed", "numel", "resolve_conj",
    "resolve_neg", "split", "split_with_sizes", "tensor_split", "unbind", "vsplit",
];

/// Other names of methods and functions, PyTorch's and NumPy's.
const ALIASES: &[(&str, &str)] = &[
    ("absolute", "abs"),
    ("arccos", "acos"),
    ("arccosh", "acosh"),
    ("arcsin", "asin"),
    ("arcsinh", "asinh"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arctanh", "atanh"),
    ("bitwise_invert", "bitwise_not"),
    ("clip", "clamp"),
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("divide", "div"),
    ("fix", "trunc"),
    ("ger", "outer"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("multiply", "mul"),
    ("negative", "neg"),
    ("not_equal", "ne"),
    ("power", "pow"),
    ("row_stack", "vstack"),
    ("subtract", "sub"),
    ("swapdims", "swapaxes"),
    ("trapz", "trapezoid"),
    ("true_divide", "div"),
];

/// In-place methods that are functions too, beside those of functions of one tensor.
const IN_PLACE_FUNCTIONS: &[&str] = &[
    "addmv", "clamp", "clamp_max", "clamp_min", "deg2rad", "gcd", "index_put", "lcm", "ldexp", "logit",
    "nan_to_num", "rad2deg", "xlogy",
];

/// A function of the interpreter: takes an object, a tuple of arguments, and a dict of named ones or null.
type Entry = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;

/// The operations that have an in-place form, each with the function that runs it.
macro_rules! in_place_forms {
    ($table:ident: $($name:ident)*) => {
        const $table: &[(&str, Entry)] = &[$((stringify!($name), {
            unsafe extern "C" fn entry(
                slf: *mut PyObject, args: *mut PyObject, named: *mut PyObject,
            ) -> *mut PyObject {
                in_place(stringify!($name), slf, args, named)
            }
            entry
        })),*];
    };
}

macro_rules! in_place_forms_of_unary {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$($partial:tt)*], $precision:ident, $slope:ident, $integer:tt, $complex:expr;
    )*) => { in_place_forms! { UNARY: $($method)* } };
}

macro_rules! in_place_forms_of_binary {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$($partial:tt)*], $precision:ident, $slope:ident, $integer:tt, $complex:expr;
    )*) => { in_place_forms! { BINARY: $($method)* } };
}

unary_table!(in_place_forms_of_unary);
binary_table!(in_place_forms_of_binary);
in_place_forms! { OTHERS:
    addbmm addmm addmv addr baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor clamp_max clamp_min cumprod cumsum deg2rad eq float_power gcd ge gelu
    gt igamma igammac lcm ldexp le log_softmax logaddexp2 logical_and logical_not logical_or logical_xor
    logit lt masked_scatter nan_to_num ne nextafter polygamma rad2deg renorm softmax softplus tril triu
}

/// Runs the in-place form of the method `name`.
fn in_place(name: &str, slf: *mut PyObject, args: *mut PyObject, named: *mut PyObject) -> *mut PyObject {
    raised(|py| {
        // SAFETY: the interpreter passes a tensor, which the method's descriptor has checked, a tuple, and a
        // dict or null, all of which it holds during the call.
        let (slf, args, named) = unsafe {
            (
                Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<PyTensor>(),
                Bound::from_borrowed_ptr(py, args).cast_into_unchecked::<PyTuple>(),
                Bound::from_borrowed_ptr_or_opt(py, named).map(|d| d.cast_into_unchecked::<PyDict>()),
            )
        };
        PyTensor::_in_place(&slf, name, &args, named.as_ref())
    })
}

/// What a function of the module holds, for the life of the process: the method that it calls, and the class
/// and the word that it compares with at each call.
struct Function {
    name: Py<PyString>,
    method: Py<PyAny>,
    tensor: Py<PyType>,
    out: Py<PyString>,
}

/// Calls the method if the first argument is a tensor and there is no `out`, and what is general otherwise.
///
/// # Safety
///
/// As an [`Entry`] of a builtin whose object is a module made by [`function`].
unsafe extern "C" fn call(slf: *mut PyObject, args: *mut PyObject, named: *mut PyObject) -> *mut PyObject {
    /// `wengert._calls.general`, imported at the first call that needs it.
    static GENERAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // SAFETY: `slf` is such a module, whose state points to a `Function` that lives for ever; `args` is a
    // tuple, `named` a dict or null. The interpreter holds all of them during the call, on an attached
    // thread.
    unsafe {
        let function = &**ffi::PyModule_GetState(slf).cast::<*const Function>();
        let is_direct = ffi::PyTuple_Size(args) > 0
            && ffi::PyObject_TypeCheck(ffi::PyTuple_GetItem(args, 0), function.tensor.as_ptr().cast()) != 0
            && (named.is_null() || ffi::PyDict_GetItemWithError(named, function.out.as_ptr()).is_null());
        if is_direct {
            return ffi::PyObject_Call(function.method.as_ptr(), args, named);
        }
        raised(|py| {
            let (args, named) =
                (Bound::from_borrowed_ptr(py, args), Bound::from_borrowed_ptr_or_opt(py, named));
            let general = GENERAL.import(py, "wengert._calls", "general")?;
            general.call1((&function.name, &function.method, args, named))
        })
    }
}

/// Returns what `f` returns to the interpreter, or null with its error, or its panic, set.
fn raised<T>(f: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, T>>) -> *mut PyObject {
    Python::attach(|py| {
        let panicked = |_| Err(PanicException::new_err("a panic in a function of wengert"));
        match catch_unwind(AssertUnwindSafe(|| f(py))).unwrap_or_else(panicked) {
            Ok(out) => out.into_ptr(),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        }
    })
}

/// A C string that lives for ever.
fn leaked(text: String) -> PyResult<*const c_char> {
    Ok(CString::new(text)?.into_raw())
}

/// A definition that lives for ever, documented with the signature that the interpreter reads off it.
fn definition(
    name: &str, entry: PyMethodDefPointer, flags: c_int, signature: &str, doc: &str,
) -> PyResult<*mut PyMethodDef> {
    Ok(Box::leak(Box::new(PyMethodDef {
        ml_name: leaked(name.to_string())?,
        ml_meth: entry,
        ml_flags: flags,
        ml_doc: leaked(format!("{name}{signature}\n--\n\n{doc}"))?,
    })))
}

/// What [`definition`] takes of a function of positional and named arguments.
fn with_keywords(entry: Entry) -> (PyMethodDefPointer, c_int) {
    let flags = ffi::METH_VARARGS | ffi::METH_KEYWORDS;
    (PyMethodDefPointer { PyCFunctionWithKeywords: entry }, flags)
}

/// Puts another in the place of the builtin `name`: the same function, with `example` behind its docstring.
fn show(m: &Bound<'_, PyModule>, name: &str, example: &str) -> PyResult<()> {
    let old = m.getattr(name)?;
    let doc = format!("{}\n\nExample:\n{example}", text(&old, "__doc__")?.trim_end());
    let (object, home) = (old.getattr("__self__")?, old.getattr("__module__")?);
    // SAFETY: the interpreter says of a builtin what it was made of, and raises for another object.
    let (entry, flags) =
        unsafe { (ffi::PyCFunction_GetFunction(old.as_ptr()), ffi::PyCFunction_GetFlags(old.as_ptr())) };
    let Some(entry) = entry else { return Err(PyErr::fetch(m.py())) };
    let entry = PyMethodDefPointer { PyCFunction: entry };
    let definition = definition(name, entry, flags, &text(&old, "__text_signature__")?, &doc)?;
    // SAFETY: the definition lives for ever, and the flags say how its function is called.
    let made = unsafe {
        let made = ffi::PyCFunction_NewEx(definition, object.as_ptr(), home.as_ptr());
        Bound::from_owned_ptr_or_err(m.py(), made)?
    };
    m.add(name, made)
}

/// A builtin of the module `wengert` that calls `method`.
///
/// A builtin prints, copies and pickles as a function only if its object is a module, so each has one of its
/// own, whose state says what it calls.
fn function<'py>(
    name: &str, method: &Bound<'py, PyAny>, signature: &str, doc: &str,
) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: OnceLock<usize> = OnceLock::new();
    let py = method.py();
    let module = *MODULE.get_or_init(|| {
        let definition = ffi::PyModuleDef {
            m_base: ffi::PyModuleDef_HEAD_INIT,
            m_name: c"wengert".as_ptr(),
            m_doc: null(),
            m_size: size_of::<*const Function>() as ffi::Py_ssize_t,
            m_methods: null_mut(),
            m_slots: null_mut(),
            m_traverse: None,
            m_clear: None,
            m_free: None,
        };
        Box::into_raw(Box::new(definition)) as usize
    });
    let held = Function {
        name: PyString::intern(py, name).unbind(),
        method: method.clone().unbind(),
        tensor: py.get_type::<PyTensor>().unbind(),
        out: PyString::intern(py, "out").unbind(),
    };
    let (entry, flags) = with_keywords(call);
    let definition = definition(name, entry, flags, signature, doc)?;
    // SAFETY: both definitions live for ever; the state of the new module has room for a pointer, and nothing
    // reads it before it is set.
    unsafe {
        let object = ffi::PyModule_Create2(module as *mut ffi::PyModuleDef, ffi::PYTHON_ABI_VERSION);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        *ffi::PyModule_GetState(object.as_ptr()).cast::<*const Function>() = Box::leak(Box::new(held));
        let home = PyString::intern(py, "wengert");
        let made = ffi::PyCFunction_NewEx(definition, object.as_ptr(), home.as_ptr());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// The signature of a function from that of its method, `($self, dim=None)`.
fn of_function(name: &str, method: &str) -> String {
    let rest = method.strip_prefix("($self").and_then(|rest| rest.strip_suffix(')')).unwrap_or(method);
    let out = match (WITHOUT_OUT.contains(&name), rest.contains('*')) {
        (true, _) => "",
        (false, true) => ", out=None",
        (false, false) => ", *, out=None",
    };
    format!("(input{rest}{out})")
}

/// Text that an object may have as an attribute.
fn text(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let found = object.getattr_opt(name)?.filter(|text| !text.is_none());
    found.map_or(Ok(String::new()), |text| text.extract())
}

/// Adds what follows from the method `name`: its function, and its in-place form with the functions of that.
/// Returns the function, or the method where there is none.
fn follow<'py>(
    m: &Bound<'py, PyModule>, name: &str, method: &Bound<'py, PyAny>, signature: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = m.py().get_type::<PyTensor>();
    let form = |table: &[(&str, Entry)]| table.iter().find(|(own, _)| *own == name).map(|&(_, entry)| entry);
    let (of_one, own) = (form(UNARY), &*format!("{name}_"));
    if let Some(entry) = of_one.or_else(|| form(BINARY)).or_else(|| form(OTHERS))
        && !tensor.hasattr(own)?
    {
        let (entry, flags) = with_keywords(entry);
        let doc = format!("Computes `{name}` in place.");
        let definition = definition(own, entry, flags, signature, &doc)?;
        // SAFETY: the definition lives for ever, and its function takes tensors.
        let made = unsafe { ffi::PyDescr_NewMethod(tensor.as_type_ptr(), definition) };
        // SAFETY: a new object, or null with an error set.
        tensor.setattr(own, unsafe { Bound::from_owned_ptr_or_err(m.py(), made)? })?;
    }
    if (of_one.is_some() || IN_PLACE_FUNCTIONS.contains(&name)) && tensor.hasattr(own)? {
        of_in_place(m, own, signature)?;
    }
    if METHODS_ONLY.split(' ').any(|only| only == name) || m.hasattr(name)? {
        return Ok(method.clone());
    }
    let made = function(name, method, &of_function(name, signature), &text(method, "__doc__")?)?;
    m.add(name, &made)?;
    Ok(made)
}

/// Adds the function of the in-place method `name`.
fn of_in_place<'py>(m: &Bound<'py, PyModule>, name: &str, signature: &str) -> PyResult<Bound<'py, PyAny>> {
    let method = m.py().get_type::<PyTensor>().getattr(name)?;
    let made = function(name, &method, &signature.replace("$self", "input"), &text(&method, "__doc__")?)?;
    m.add(name, &made)?;
    Ok(made)
}

/// Adds the names that follow from the methods of the core.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let tensor = m.py().get_type::<PyTensor>();
    let plain = |name: &str| !name.starts_with('_') && !name.ends_with('_');
    for name in tensor.dir()?.iter() {
        let name: String = name.extract()?;
        let method = tensor.getattr(name.as_str())?;
        if plain(&name) && method.is_callable() {
            follow(m, &name, &method, &text(&method, "__text_signature__")?)?;
        }
    }
    for (alias, name) in ALIASES {
        for suffix in ["", "_"] {
            let (alias, name) = (format!("{alias}{suffix}"), format!("{name}{suffix}"));
            if let Some(method) = tensor.getattr_opt(name.as_str())? {
                if !tensor.hasattr(alias.as_str())? {
                    tensor.setattr(alias.as_str(), &method)?;
                }
                let own = text(&method, "__text_signature__")?;
                let own =
                    if suffix.is_empty() { of_function(&name, &own) } else { own.replace("$self", "input") };
                if m.hasattr(name.as_str())? && !m.hasattr(alias.as_str())? {
                    m.add(alias.as_str(), function(&alias, &method, &own, &text(&method, "__doc__")?)?)?;
                }
            } else if let Some(function) = m.getattr_opt(name.as_str())? {
                // Shown below, which makes it a function of its own.
                m.add(alias.as_str(), function)?;
            }
        }
    }
    for block in include_str!("examples.txt").trim_end().split("\n\n") {
        let (name, example) = block.split_once('\n').unwrap_or((block, ""));
        show(m, name, example)?;
        for (alias, _) in ALIASES.iter().filter(|(_, own)| *own == name) {
            show(m, alias, &example.replace(&format!("wg.{name}("), &format!("wg.{alias}(")))?;
        }
    }
    m.add_function(wrap_pyfunction!(_method, m)?)
}

/// Makes a Python function a method of `Tensor`, which has none of that name, and returns the function of the
/// package that calls it; `signature` is that of the method, `($self, dim=None)`.
#[pyfunction]
#[pyo3(pass_module)]
fn _method<'py>(
    m: &Bound<'py, PyModule>, function: &Bound<'py, PyAny>, signature: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let name: String = function.getattr("__name__")?.extract()?;
    let tensor = m.py().get_type::<PyTensor>();
    if tensor.hasattr(name.as_str())? {
        return Err(Error::value(format!("Tensor.{name} is there already; one definition has to go")).into());
    }
    tensor.setattr(name.as_str(), function)?;
    match name.strip_suffix('_') {
        None => follow(m, &name, function, signature),
        Some(stem) if IN_PLACE_FUNCTIONS.contains(&stem) => of_in_place(m, &name, signature),
        Some(_) => Ok(function.clone()),
    }
}
