// How a thread writes four columns of a row of `out`, which starts at a multiple of EPW. The file behind this
// one declares `p` with cols, and FOURS.
//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { for (var k = 0u; k < 4u; k += 1u) { store_out(i + k, vec2<T>(v[k])); } }

fn store_row4(to: u32, c: vec4<u32>, v: vec4<f32>) {
  if (FOURS) {
    if (c.x < p.cols) { store4_out(to + c.x, v); }
  } else if (EPW == 2u) {
    if (c.x < p.cols) { store_out((to + c.x) / 2u, v.xy); }
    if (c.z < p.cols) { store_out((to + c.z) / 2u, v.zw); }
  } else {
    if (c.x < p.cols) { store_out(to + c.x, vec2<f32>(v.x)); }
    if (c.y < p.cols) { store_out(to + c.y, vec2<f32>(v.y)); }
    if (c.z < p.cols) { store_out(to + c.z, vec2<f32>(v.z)); }
    if (c.w < p.cols) { store_out(to + c.w, vec2<f32>(v.w)); }
  }
}
