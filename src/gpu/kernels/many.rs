//! One dispatch over many tensors, each with its own bindings. A workgroup finds its tensor in a parameter
//! table.
//!
//! WGSL cannot index bindings. So a shader file for one tensor (`g0`, `x0`, ...) is expanded to the number of
//! tensors: one binding per tensor and role, and a `switch` in the functions that read and write an element.
//! A whole workgroup takes the same case. If a GPU has too few bindings, the tensors are divided among
//! several dispatches.

use super::params::Params;
use crate::array::buffer::Buffer;
use crate::array::dtype::DType;
use crate::error::Result;
use crate::gpu::shader::template::{Template, load_text};
use crate::gpu::{kernel, launch, max_buffers, variant};
use smallvec::SmallVec;
use std::fmt::Write;

/// The most tensors per dispatch: the size of the table in the window of parameters.
const MOST: usize = 56;
/// Elements per workgroup.
const PER_GROUP: u64 = 1024;

/// The use that a kernel makes of one buffer of each tensor.
#[derive(Clone, Copy)]
pub struct Role {
    /// The name in the shader: `x` for bindings `x0`, `x1`, ...
    pub name: &'static str,
    /// Whether it is written, by a function `put_x`.
    pub written: bool,
}

/// A role that is read.
pub const fn reads(name: &'static str) -> Role {
    Role { name, written: false }
}

/// A role that is written.
pub const fn writes(name: &'static str) -> Role {
    Role { name, written: true }
}

/// One tensor: a flat buffer per role.
pub struct Entry<'a> {
    /// The buffers, in the order of the roles.
    pub buffers: SmallVec<[&'a Buffer; 5]>,
    /// The number of elements of each.
    pub count: usize,
    /// Two words specific to the tensor.
    pub words: [u32; 2],
}

impl Entry<'_> {
    /// The number of its workgroups.
    pub fn groups(&self) -> u64 {
        (self.count as u64).div_ceil(PER_GROUP)
    }
}

/// A shader file for one tensor, and its bindings.
pub struct Family<'a> {
    /// Name of the kernel.
    pub name: &'static str,
    /// The file.
    pub source: &'static str,
    /// The element type of the buffers that are only read.
    pub dtype: DType,
    /// A boolean constant of the file to turn off, and the role that is then absent.
    pub without: Option<(&'static str, &'static str)>,
    /// Buffers bound once, before those of the tensors, with their names in the file.
    pub before: &'a [(&'static str, &'a Buffer)],
    /// The roles of the tensors' buffers.
    pub roles: &'a [Role],
    /// Buffers bound once, after those of the tensors.
    pub after: &'a [(&'static str, &'a Buffer)],
}

impl Family<'_> {
    /// The number of tensors that GPU `index` takes per dispatch.
    pub fn most(&self, index: u8) -> Result<usize> {
        let shared = self.before.len() + self.after.len();
        Ok((max_buffers(index)?.saturating_sub(shared) / self.roles.len()).clamp(1, MOST))
    }

    /// Runs the kernel over `entries` in one dispatch. `header` precedes the table.
    pub fn launch(&self, index: u8, entries: &[Entry], header: &Params) -> Result<()> {
        let form = variant(&[self.dtype as u64, u64::from(self.without.is_some()), entries.len() as u64]);
        let kernel = kernel(index, self.name, form, "main", || self.expand(entries.len()))?;
        let mut buffers: SmallVec<[&Buffer; 64]> = self.before.iter().map(|(_, b)| *b).collect();
        for role in 0..self.roles.len() {
            buffers.extend(entries.iter().map(|e| e.buffers[role]));
        }
        buffers.extend(self.after.iter().map(|(_, b)| *b));
        let mut params = header.clone();
        let mut groups = 0;
        for entry in entries {
            params
                .word(groups as usize)
                .word(entry.count)
                .word(entry.words[0] as usize)
                .word(entry.words[1] as usize);
            groups += entry.groups();
        }
        launch(index, &kernel, &buffers, params.words(), groups)
    }

    /// Expands the file's text to `n` tensors.
    pub(super) fn expand(&self, n: usize) -> Result<String> {
        let mut text = Template::new(self.source, DType::F32);
        text.set("const TENSORS", format!("const TENSORS: u32 = {n}u;"));
        let mut binding = 0;
        let mut bind = |line: &str| {
            binding += 1;
            let declared = line.split_once("var<").map_or(line, |(_, rest)| rest);
            format!("@group(0) @binding({}) var<{declared}", binding - 1)
        };
        let line = |mark: String| (Template::new(self.source, DType::F32).line(&mark).unwrap_or(""), mark);
        for (name, _) in self.before {
            let (declared, mark) = line(format!("tensors {name}"));
            text.set(&mark, bind(declared));
        }
        for Role { name, written } in self.roles {
            let (declared, mark) = line(format!("tensors {name}"));
            let all = copies(declared, name, n).map(|l| bind(&l)).collect::<Vec<_>>();
            text.set(&mark, all.join("\n"));
            for verb in if *written { &["pick", "put"][..] } else { &["pick"] } {
                let (body, mark) = line(format!("{verb} {name}"));
                text.set(&mark, choice(body, name, n));
            }
            if !written {
                let all = (0..n).map(|k| load_text(&format!("{name}{k}"), self.dtype, "f32"));
                text.set(&format!("load {name}0"), all.collect::<Vec<_>>().join("\n"));
            }
        }
        for (name, _) in self.after.iter().map(|(name, b)| (*name, Some(*b))).chain([("params", None)]) {
            let (declared, mark) = line(format!("tensors {name}"));
            text.set(&mark, bind(declared));
        }
        if let Some((flag, role)) = self.without {
            text.flag(flag, false).set(&format!("tensors {role}"), "");
            text.set(
                &format!("pick {role}"),
                format!("fn pick_{role}(k: u32, i: u32) -> f32 {{ return 0.0; }}"),
            );
            text.set(&format!("put {role}"), format!("fn put_{role}(k: u32, i: u32, v: f32) {{ }}"));
        }
        text.build()
    }
}

/// Repeats a line about tensor 0 for each of `n`: `x0` becomes `x1`, `x2`, ...
fn copies<'a>(line: &'a str, name: &'a str, n: usize) -> impl Iterator<Item = String> + 'a {
    (0..n).map(move |k| line.replace(&format!("{name}0"), &format!("{name}{k}")))
}

/// Expands `fn pick_x(k: u32, i: u32) -> f32 { return ...x0...; }` to a switch over `n` tensors.
fn choice(line: &str, name: &str, n: usize) -> String {
    let Some((head, body)) = line.split_once('{') else {
        return String::new();
    };
    let body = body.trim_end().trim_end_matches('}').trim();
    let mut out = format!("{head}{{ switch k {{ ");
    for (k, own) in copies(body, name, n).enumerate() {
        // The last case is the default, so that every path returns.
        let case = if k + 1 == n { "default".into() } else { format!("case {k}u") };
        // Writing to a string cannot fail.
        let _ = write!(out, "{case}: {{ {own} }} ");
    }
    out + "} }"
}
