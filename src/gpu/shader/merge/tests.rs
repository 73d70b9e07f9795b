//! Tests of merged texts.

use super::*;

const SUM: &str = "struct Params { n: u32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;
var<workgroup> part: array<f32, 256>;
fn load_x(i: u32) -> f32 { return bitcast<f32>(x[i]); }
fn store4_out(i: u32, v: vec4<f32>) { out[i >> 2u] = bitcast<vec4<u32>>(v); }
fn twice(p: f32) -> f32 { return 2.0 * p; }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  part[t] = twice(load_x(min(t, p.n)));
  workgroupBarrier();
  if (t == 0u) { store4_out(wid.x * 4u, vec4<f32>(part[0], part[1], part[2], part[3])); }
}
";
const NEGATIVE: &str = "struct Params { count: u32 }
@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;
fn load4_x(i: vec4<u32>) -> vec4<f32> { return bitcast<vec4<f32>>(x[i.x >> 2u]); }
fn store4_out(i: u32, v: vec4<f32>) { out[i >> 2u] = bitcast<vec4<u32>>(v); }
fn make_four(i: u32) { if (i < p.count) { store4_out(i, -load4_x(vec4<u32>(i))); } }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  make_four((wid.x * 256u + t) * 4u);
}
";

/// What is stored otherwise than by one assignment is not given to others, which would take it wrongly.
#[test]
fn stores_of_one_statement_are_given() {
    let gives = |text: &str| Needs::of(text, "main").map(|needs| needs.gives);
    assert_eq!((gives(SUM), gives(NEGATIVE)), (Some(2), Some(2)));
    let two = NEGATIVE.replace("out[i >> 2u] =", "out[0] = vec4<u32>(); out[i >> 2u] =");
    let in_loop = NEGATIVE.replace(
        "{ out[i >> 2u] = bitcast<vec4<u32>>(v); }",
        "{ for (var k = 0u; k < 1u; k += 1u) { out[i >> 2u] = bitcast<vec4<u32>>(v); } }",
    );
    let no_store = NEGATIVE.replace("store4_out", "put");
    assert_eq!([two, in_loop, no_store].map(|text| gives(&text)), [Some(0); 3]);
}

/// A kernel beside itself and one that follows it: what is there once, twice, and not any more.
#[test]
fn texts_become_one() {
    let texts = [SUM, SUM, NEGATIVE];
    let needs = texts.map(|text| Needs::of(text, "main"));
    let member = |i: usize| {
        let link = (i == 2).then_some(Link { member: 1, binding: 1, takes: 1 });
        let (unread, needs) = (if i == 1 { 2 } else { 0 }, needs[i].as_ref()?);
        Some(Member { text: texts[i], entry: "main", needs, bindings: 2, link, unread })
    };
    let members: Option<Vec<Member>> = (0..3).map(member).collect();
    let members = members.unwrap_or_default();
    let text = merged(&members).unwrap_or_default();
    let count = |part: &str| text.matches(part).count();
    assert_eq!((count("fn twice_"), count("fn store4_out_"), count("var<workgroup>")), (1, 3, 1));
    assert_eq!((count("var<storage, read>"), count("var<storage, read_write>")), (2, 2), "{text}");
    assert_eq!((count("if (group <"), words(members.iter().map(|x| x.needs))), (2, 16), "{text}");
    let module = front::wgsl::parse_str(&text).map_err(|error| error.emit_to_string(&text));
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    let flags = wgpu::naga::valid::ValidationFlags::all();
    let mut validator = wgpu::naga::valid::Validator::new(flags, Default::default());
    assert!(validator.validate(&module).is_ok(), "{text}");
}
