//! Reads a shader as WGSL and writes it as SPIR-V, as a release build gives it to Vulkan, for
//! `benches/gpu/counts.py`: `cargo run --example spirv < shader.wgsl > shader.spv`.

use naga::back::spv::{Options, write_vec};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use std::error::Error;
use std::io::{Read, Write, stdin, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let module = naga::front::wgsl::parse_str(&text).map_err(|e| e.emit_to_string(&text))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).map_err(|e| e.emit_to_string(&text))?;
    let unchecked = BoundsCheckPolicy::Unchecked;
    let options = Options {
        fake_missing_bindings: true,
        bounds_check_policies: BoundsCheckPolicies {
            index: unchecked,
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..Options::default()
    };
    let words = write_vec(&module, &info, &options, None)?;
    stdout().write_all(bytemuck::cast_slice(&words))?;
    Ok(())
}
