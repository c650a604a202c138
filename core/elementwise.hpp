// Element-wise steps, forwards: the interpreter of programs over strips of a tile.
//
// A strip is a few whole rows of a tile, small enough to stay in the first-level cache while the
// program runs over it.  Padding columns are computed too (they repeat the last real column).
#pragma once
#include "primitives.hpp"

namespace mercer::MERCER_ISA {

constexpr int32_t kMostSlots = 1000;  // as many as a program has steps
constexpr double kPi = 3.141592653589793;

// Rows r0 .. r0+rows of a tile.
struct Strip {
    const Tile& tile;
    int64_t r0, rows;
};

// Column of row r (counted in the strip) that is the same observation, or -1.
template <class T> MERCER_INLINE int64_t own_column(const Call<T>& call, const Strip& s, int64_t r) {
    int64_t j = s.tile.i0 + s.r0 + r - s.tile.j0;
    return call.same && j >= 0 && j < s.tile.cols ? j : -1;
}

template <class T, class F> MERCER_INLINE void map(int64_t count, const T* in, T* out, F f) {
    constexpr int W = kLanes<T>;
    for (int64_t i = 0; i < count; i += W) store(out + i, f(load(in + i)));
}
template <class T, class F> MERCER_INLINE void map2(int64_t count, const T* a, const T* b, T* out, F f) {
    constexpr int W = kLanes<T>;
    for (int64_t i = 0; i < count; i += W) store(out + i, f(load(a + i), load(b + i)));
}
// f(t, u, v) with u of the row and v of the column; on the diagonal held as pairs both run along j.
template <class T, class F>
MERCER_INLINE void map_rows(const Row<T>& row, const Strip& s, const T* in, T* out, F f) {
    constexpr int W = kLanes<T>;
    for (int64_t r = 0; r < s.rows; ++r)
        for (int64_t j = 0; j < s.tile.ld; j += W) {
            Vec<T> v = load(row.v + s.tile.j0 + j);
            Vec<T> u = s.tile.pairs ? v : splat(row.u[s.tile.i0 + s.r0 + r]);
            const int64_t at = r * s.tile.ld + j;
            store(out + at, f(load(in + at), u, v));
        }
}

template <class V> MERCER_INLINE V powi(V t, int32_t e) {
    V y = V{} + 1;
    for (V base = t; e > 0; e >>= 1, base *= base)
        if (e & 1) y *= base;
    return y;
}
// A squared distance that no later product makes infinite; every radial kernel is at its limit there.
// NaN stays.
template <class V> MERCER_INLINE V near(V s) {
    using T = typename Scalar<V>::type;
    const T most = sizeof(T) == 8 ? T(1e300) : T(1e36);
    return s > most ? V{} + most : s;
}
template <class V> MERCER_INLINE V matern32(V s) {
    using T = typename Scalar<V>::type;
    V a = vsqrt(T(3) * near(s));
    return (T(1) + a) * vexp(-a);
}
template <class V> MERCER_INLINE V matern52(V s) {
    using T = typename Scalar<V>::type;
    s = near(s);
    V a = vsqrt(T(5) * s);
    return (T(1) + a + (T(5) / T(3)) * s) * vexp(-a);
}
template <class V> MERCER_INLINE V rational(V t, double alpha) {
    using T = typename Scalar<V>::type;
    return vexp(T(-alpha) * vlog1p(t * T(0.5 / alpha)));
}

// cos of the angle between x and z, kept in [-1, 1]; a zero vector is at a right angle to everything.
template <class V> MERCER_INLINE V cosine(V t, V p) {
    using T = typename Scalar<V>::type;
    V c = t / p;
    c = c > T(1) ? V{} + T(1) : c;
    c = c < T(-1) ? V{} + T(-1) : c;
    return p == T(0) ? V{} : c;
}
// J_n of Cho and Saul at angle theta with cosine c.
template <class V> MERCER_INLINE V arc(V c, V theta, int32_t order) {
    using T = typename Scalar<V>::type;
    V open = T(kPi) - theta;
    if (order == 0) return open;
    V sine = vsqrt((T(1) - c) * (T(1) + c));
    if (order == 1) return sine + open * c;
    return T(3) * sine * c + open * (T(1) + T(2) * c * c);
}
template <class V> MERCER_INLINE V arccos_kernel(V p, V c, int32_t order) {
    using T = typename Scalar<V>::type;
    V scale = V{} + T(1);  // P^n
    if (order == 1) scale = p;
    if (order == 2) scale = p * p;
    return scale * arc(c, vacos(c), order) * T(1 / kPi);
}
template <class T>
static void arccos(const Call<T>& call, const Op& op, const Strip& s, const T* in, T* out) {
    const Row<T>& row = call.rows[op.a];
    const int32_t order = op.b;
    auto diagonal = [order](Vec<T> p) { return arccos_kernel(p, splat<T>(1), order); };
    if (s.tile.pairs) {
        map_rows(row, s, in, out, [&](Vec<T>, Vec<T> u, Vec<T> v) {
            Vec<T> p = u * v;
            return arccos_kernel(p, p == T(0) ? Vec<T>{} : splat<T>(1), order);
        });
        return;
    }
    map_rows(row, s, in, out,
             [&](Vec<T> t, Vec<T> u, Vec<T> v) { return arccos_kernel(u * v, cosine(t, u * v), order); });
    for (int64_t r = 0; r < s.rows; ++r) {  // rounding must not open an angle between x and itself
        const int64_t j = own_column(call, s, r);
        const T p = j < 0 ? T(0) : row.u[s.tile.i0 + s.r0 + r] * row.v[s.tile.j0 + j];
        if (p != T(0)) out[r * s.tile.ld + j] = diagonal(splat(p))[0];
    }
}

template <class T> static void constant(const Call<T>& call, const Op& op, const Strip& s, T* out) {
    const T c = T(call.params[op.a]);
    const bool everywhere = op.code == CONST || s.tile.pairs;
    for (int64_t i = 0; i < s.rows * s.tile.ld; i += kLanes<T>)
        store(out + i, everywhere ? splat(c) : Vec<T>{});
    if (everywhere) return;
    for (int64_t r = 0; r < s.rows; ++r)
        if (int64_t j = own_column(call, s, r); j >= 0) out[r * s.tile.ld + j] = c;
}

// out = op(left, right) over a strip; out may be left.  Primitives are not handled here.
template <class T>
static void step(const Call<T>& call, const Op& op, const Strip& s, const T* left, const T* right, T* out) {
    using V = Vec<T>;
    const int64_t n = s.rows * s.tile.ld;
    const double* p = call.params;
    switch (op.code) {
        case CONST:
        case DELTA: return constant(call, op, s, out);
        case AFFINE: return map(n, left, out, [a = T(p[op.a]), b = T(p[op.b])](V t) { return a * t + b; });
        case EXP: return map(n, left, out, [](V t) { return vexp(t); });
        case LOG: return map(n, left, out, [](V t) { return vlog(t); });
        case LOG1P: return map(n, left, out, [](V t) { return vlog1p(t); });
        case RECIPROCAL: return map(n, left, out, [](V t) { return T(1) / t; });
        case ABS: return map(n, left, out, [](V t) { return vabs(t); });
        case SQRT: return map(n, left, out, [](V t) { return vsqrt(t); });
        case SIN: return map(n, left, out, [](V t) { return vsin(t); });
        case COS: return map(n, left, out, [](V t) { return vcos(t); });
        case TANH: return map(n, left, out, [](V t) { return vtanh(t); });
        case LOGISTIC: return map(n, left, out, [](V t) { return T(1) / (T(1) + vexp(-t)); });
        case POWI: return map(n, left, out, [e = op.b](V t) { return powi(t, e); });
        case POW: return map(n, left, out, [e = splat(T(p[op.a]))](V t) { return vpow(t, e); });
        case RBF: return map(n, left, out, [](V t) { return vexp(T(-0.5) * t); });
        case EXPNEG: return map(n, left, out, [](V t) { return vexp(-vsqrt(t)); });
        case MATERN32: return map(n, left, out, [](V t) { return matern32(t); });
        case MATERN52: return map(n, left, out, [](V t) { return matern52(t); });
        case RQ: return map(n, left, out, [a = p[op.a]](V t) { return rational(t, a); });
        case HORNER:
            return map(n, left, out, [c = p + op.a, k = op.b](V t) {
                V y = splat(T(c[k - 1]));
                for (int32_t i = k - 2; i >= 0; --i) y = y * t + T(c[i]);
                return y;
            });
        case ARCCOS: return arccos(call, op, s, left, out);
        case ROWSCALE:
            return map_rows(call.rows[op.a], s, left, out, [](V t, V u, V v) { return t * (u * v); });
        case ADD: return map2(n, left, right, out, [](V a, V b) { return a + b; });
        case MUL: return map2(n, left, right, out, [](V a, V b) { return a * b; });
        case MAX: return map2(n, left, right, out, [](V a, V b) { return ((a < b) | (b != b)) ? b : a; });
        case MIN: return map2(n, left, right, out, [](V a, V b) { return ((b < a) | (b != b)) ? b : a; });
    }
}

MERCER_INLINE int64_t strip_rows(int64_t strip, int64_t ld) { return strip / ld > 1 ? strip / ld : 1; }

// work.result = K on the tile.
//   cost    the primitives, then one pass per step over strips in cache
//   memory  the buffers of `work`
// The bottom of the stack is never popped, so it lives in the result; a primitive that several steps read
// keeps a place of its own.
template <class T> static void evaluate(const Call<T>& call, const Tile& tile, Work<T>& work) {
    const T* slot[kMostSlots];
    auto home = [&](const Op& op) {
        return op.depth == 0 && !op.shared ? work.result : work.primitives + op.twin * work.area;
    };
    for (int32_t k = 0; k < call.steps; ++k)
        if (const Op& op = call.ops[k]; op.primitive >= 0 && op.twin == op.primitive)
            primitive(call, op, tile, work, home(op));
    const int64_t height = strip_rows(work.strip, tile.ld);
    for (int64_t r0 = 0; r0 < tile.rows; r0 += height) {
        const Strip s{tile, r0, least(height, tile.rows - r0)};
        for (int32_t k = 0; k < call.steps; ++k) {
            const Op& op = call.ops[k];
            if (op.primitive >= 0) {
                const View<T>& v = call.views[op.a];
                if (op.twin == op.primitive && expands(v, op, tile)) expand(v, tile, r0, s.rows, home(op));
                slot[op.depth] = home(op) + r0 * tile.ld;
                continue;
            }
            T* out = op.depth == 0 ? work.result + r0 * tile.ld : work.stack + op.depth * work.strip;
            step(call, op, s, op.left < 0 ? nullptr : slot[op.depth],
                 op.right < 0 ? nullptr : slot[op.depth + 1], out);
            slot[op.depth] = out;
        }
    }
}

}  // namespace mercer::MERCER_ISA
