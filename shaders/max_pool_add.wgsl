// The transpose of picking the maxima of windows: each element of the input gets the sum of `g` over the
// windows whose maximum it is, in their order.
//
// bindings  0 g (read), 1 index (read, i32), 2 out (write), 3 params
// grid      ceil(quads / 256) workgroups, quads = planes * rows of the input * ceil(width / 4); linear fold
//           over x, y, z
// workgroup 256 threads, each owning four adjacent elements of a row; no workgroup memory
//
// `index` holds the place of a window's maximum in its plane. Only windows over one of the four elements can
// have it there: a thread walks these and reads each once. Axes and parameters are those of max_pool.wgsl; g
// and index are dense as [planes, output..], out is dense as [planes, input..], its width a multiple of EPW.
struct Params {
  input: array<vec4<u32>, 2>, kernel: array<vec4<u32>, 2>, output: array<vec4<u32>, 2>,
  stride: array<vec4<u32>, 2>, dilation: array<vec4<u32>, 2>, padding: array<vec4<u32>, 2>,
  count: u32, g_off: u32, index_off: u32,
}
@group(0) @binding(0) var<storage, read> g: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

// The windows over one of the elements low .. high of axis a: the first, and the one behind the last.
fn over(a: u32, low: u32, high: u32) -> vec2<u32> {
  let reach = (p.kernel[0][a] - 1u) * p.dilation[0][a];
  let low_end = low + p.padding[0][a];
  let first = (max(low_end, reach) - reach + p.stride[0][a] - 1u) / p.stride[0][a];
  return vec2<u32>(first, min((high + p.padding[0][a]) / p.stride[0][a] + 1u, p.output[0][a]));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let quad = group * 256u + t;
  if (quad >= p.count) { return; }
  let lengths = p.input[0].xyz;
  let quads = (lengths.z + 3u) / 4u;
  let row = quad / quads;
  let x = (quad % quads) * 4u;
  let z_y = row / lengths.y;
  let y = row % lengths.y;
  let plane = z_y / lengths.x;
  let z = z_y % lengths.x;
  let own = vec4<u32>((z * lengths.y + y) * lengths.z + x) + vec4<u32>(0u, 1u, 2u, 3u);
  let over_z = over(0u, z, z);
  let over_y = over(1u, y, y);
  let over_x = over(2u, x, x + 3u);
  let first = plane * p.output[0].x * p.output[0].y * p.output[0].z;
  var sums = vec4<T>();
  for (var o_z = over_z.x; o_z < over_z.y; o_z += 1u) {
    for (var o_y = over_y.x; o_y < over_y.y; o_y += 1u) {
      let line = first + (o_z * p.output[0].y + o_y) * p.output[0].z;
      for (var o = line + over_x.x; o < line + over_x.y; o += 1u) {
        let place = vec4<u32>(index[p.index_off + o]);
        sums = select(sums, sums + vec4<T>(load_g(p.g_off + o)), place == own);
      }
    }
  }
  let i = row * lengths.z + x;
  let left = lengths.z - x;
  if (EPW == 2u) {
    store_out(i / 2u, sums.xy);
    if (left > 2u) { store_out(i / 2u + 1u, sums.zw); }
    return;
  }
  store_out(i, sums.xx);
  if (left > 1u) { store_out(i + 1u, sums.yy); }
  if (left > 2u) { store_out(i + 2u, sums.zz); }
  if (left > 3u) { store_out(i + 3u, sums.ww); }
}
