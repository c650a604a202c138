// Reverse sweep over a tile: from W = dL/dK to the gradients of parameters, row vectors and primitives.
//
// The tape is one strip long: forward values and adjoints of every step stay in cache, and nothing of size
// n*n or n*n*p exists.  Where a slope is singular (sqrt, e^-sqrt, t^p with p < 1, at t = 0; the angle of two
// parallel vectors at order 0) its adjoint is defined as 0: the one-sided limit does not exist, and on the
// diagonal the distance does not move with any parameter.
#pragma once
#include "elementwise.hpp"
#include "slopes.hpp"

namespace mercer::MERCER_ISA {

// sum of f over a strip: lanes in T over one strip, then float64.  A strip is whole panels, two registers
// each, and two running sums hide the time one addition takes.
template <class T, class F> MERCER_INLINE double reduce2(int64_t count, const T* a, const T* b, F f) {
    constexpr int W = kLanes<T>;
    Vec<T> one{}, two{};
    for (int64_t i = 0; i < count; i += 2 * W) {
        one += f(load(a + i), load(b + i));
        two += f(load(a + i + W), load(b + i + W));
    }
    return hsum(one + two);
}

template <class T, class F>
MERCER_INLINE void map3(int64_t count, const T* a, const T* b, const T* c, T* out, F f) {
    constexpr int W = kLanes<T>;
    for (int64_t i = 0; i < count; i += W) store(out + i, f(load(a + i), load(b + i), load(c + i)));
}
// out = the slope f sets, and the sum of what f returns: one pass for a step with a parameter.
template <class T, class F>
MERCER_INLINE double map_reduce(int64_t count, const T* a, const T* b, const T* c, T* out, F f) {
    constexpr int W = kLanes<T>;
    Vec<T> total{};
    for (int64_t i = 0; i < count; i += W) {
        Vec<T> slope{};
        total += f(load(a + i), load(b + i), load(c + i), slope);
        store(out + i, slope);
    }
    return hsum(total);
}
// What the larger of two numbers owes to one that is ahead by `lead`: all, nothing, or half.
template <class V> MERCER_INLINE V share(V lead) {
    using T = typename Scalar<V>::type;
    return lead > T(0) ? V{} + T(1) : (lead < T(0) ? V{} : V{} + T(0.5));
}
// y = c t + b backwards, in one pass.
template <class T>
static void affine_back(int64_t count, const T* A, const T* t, T c, T* out, double& scale, double& offset) {
    constexpr int W = kLanes<T>;
    Vec<T> s[2] = {}, o[2] = {};
    for (int64_t i = 0; i < count; i += 2 * W)
        for (int h = 0; h < 2; ++h) {
            const Vec<T> a = load(A + i + h * W);
            s[h] += a * load(t + i + h * W);
            o[h] += a;
            store(out + i + h * W, a * c);
        }
    scale += hsum(s[0] + s[1]);
    offset += hsum(o[0] + o[1]);
}

// P is the adjoint of u_i v_j: u_i += sum_j P v_j and v_j += sum_i P u_i.
template <class T, class F>
MERCER_INLINE void rows_back(const Row<T>& row, const Strip& s, double* ubar, double* vbar, F P) {
    constexpr int W = kLanes<T>;
    const Tile& t = s.tile;
    for (int64_t j = 0; j < t.ld; j += W) {
        const Vec<T> v = load(row.v + t.j0 + j);
        Vec<T> down{};
        for (int64_t r = 0; r < s.rows; ++r) {
            const Vec<T> u = t.pairs ? v : splat(row.u[t.i0 + s.r0 + r]);
            const Vec<T> p = P(r * t.ld + j, u, v);
            down += p * u;
            if (!t.pairs) {
                ubar[t.i0 + s.r0 + r] += hsum(p * v);
                continue;
            }
            for (int64_t l = 0; l < least(W, t.cols - j); ++l) ubar[t.j0 + j + l] += p[l] * v[l];
        }
        for (int64_t l = 0; l < least(W, t.cols - j); ++l) vbar[t.j0 + j + l] += down[l];
    }
}

// dJ_n/dcos, with the singular end of order 0 set to 0.
template <class V> MERCER_INLINE V arc_slope(V c, V theta, int32_t order) {
    using T = typename Scalar<V>::type;
    if (order == 1) return T(kPi) - theta;
    if (order == 2) return T(4) * arc(c, theta, 1);
    V sine = vsqrt((T(1) - c) * (T(1) + c));
    return sine == T(0) ? V{} : T(1) / sine;
}

// value = P^n J(t/P)/pi with P = u v; adjoints of t and of P, both 0 where P = 0.  For x with itself the
// angle is 0 by definition, so the value is P^n J(0)/pi and moves with P alone.
template <class T>
static void arccos_back(const Call<T>& call, const Op& op, const Strip& s, const T* A, const T* t, T* out,
                        const Gradient& grad) {
    const int32_t order = op.b;
    auto adjoints = [&](int64_t at, Vec<T> u, Vec<T> v) {
        Vec<T> p = u * v, c = cosine(load(t + at), p);
        const int64_t own = s.tile.pairs ? -1 : own_column(call, s, at / s.tile.ld) - at % s.tile.ld;
        const bool here = own >= 0 && own < kLanes<T>;
        if (s.tile.pairs) c = splat<T>(1);
        if (here) c[own] = 1;
        Vec<T> theta = vacos(c), slope = s.tile.pairs ? Vec<T>{} : arc_slope(c, theta, order);
        if (here) slope[own] = 0;
        Vec<T> lower = splat<T>(1);  // P^(n-1)
        if (order == 0) lower = T(1) / p;
        if (order == 2) lower = p;
        Vec<T> a = load(A + at) * lower * T(1 / kPi);
        Mask<T> zero = p == T(0);
        Vec<T> tbar = a * slope, pbar = a * (T(order) * arc(c, theta, order) - slope * c);
        store(out + at, zero ? Vec<T>{} : tbar);
        return zero ? Vec<T>{} : pbar;
    };
    rows_back(call.rows[op.a], s, grad.u[op.a], grad.v[op.a], adjoints);
}

template <class T>
static void delta_back(const Call<T>& call, const Op& op, const Strip& s, const T* A, const Gradient& grad) {
    double total = 0;
    for (int64_t r = 0; r < s.rows; ++r) {
        if (s.tile.pairs)
            for (int64_t j = 0; j < s.tile.cols; ++j) total += A[j];
        else if (int64_t j = own_column(call, s, r); j >= 0) total += A[r * s.tile.ld + j];
    }
    grad.params[op.a] += total;
}

// One unary or constant step backwards: A is the adjoint of its value y, t its operand; writes t's adjoint
// to out and adds to the gradients of the parameters it reads.
template <class T>
static void back(const Call<T>& call, const Op& op, const Strip& s, const T* A, const T* t, const T* y,
                 T* out, const Gradient& grad) {
    using V = Vec<T>;
    const int64_t n = s.rows * s.tile.ld;
    const double* p = call.params;
    switch (op.code) {
        case CONST: grad.params[op.a] += reduce2(n, A, A, [](V a, V) { return a; }); return;
        case DELTA: return delta_back(call, op, s, A, grad);
        case AFFINE: return affine_back(n, A, t, T(p[op.a]), out, grad.params[op.a], grad.params[op.b]);
        case EXP: return map2(n, A, y, out, [](V a, V v) { return a * v; });
        case LOG: return map2(n, A, t, out, [](V a, V x) { return a / x; });
        case LOG1P: return map2(n, A, t, out, [](V a, V x) { return a / (T(1) + x); });
        case RECIPROCAL: return map2(n, A, y, out, [](V a, V v) { return -a * v * v; });
        case ABS: return map2(n, A, t, out, [](V a, V x) { return x == T(0) ? V{} : (x < T(0) ? -a : a); });
        case SQRT: return map2(n, A, y, out, [](V a, V v) { return v == T(0) ? V{} : T(0.5) * a / v; });
        case SIN: return map2(n, A, t, out, [](V a, V x) { return a * vcos(x); });
        case COS: return map2(n, A, t, out, [](V a, V x) { return -a * vsin(x); });
        case TANH: return map2(n, A, y, out, [](V a, V v) { return a * (T(1) - v) * (T(1) + v); });
        case LOGISTIC: return map2(n, A, y, out, [](V a, V v) { return a * v * (T(1) - v); });
        case POWI:
            return map2(n, A, t, out,
                        [e = op.b](V a, V x) { return e == 0 ? V{} : a * T(e) * powi(x, e - 1); });
        case POW: {
            const T e = T(p[op.a]);
            const bool singular = e < T(1);
            const T infinity = T(__builtin_inf());
            grad.params[op.a] += map_reduce(n, A, t, y, out, [=](V a, V x, V v, V& slope) {
                V share = x == T(0) ? V{} : a * v * vlog(x);
                slope = a * e * vpow(x, splat(e - T(1)));
                if (singular) slope = ((x == T(0)) | (vabs(slope) == infinity)) ? V{} : slope;
                return share;
            });
            return;
        }
        case RBF: return map2(n, A, y, out, [](V a, V v) { return T(-0.5) * a * v; });
        // The rest of the radial profiles: the exponential is already in y.
        case EXPNEG:
            return map3(n, A, t, y, out,
                        [](V a, V x, V v) { return x == T(0) ? V{} : T(-0.5) * a * v / vsqrt(x); });
        case MATERN32:
            return map3(n, A, t, y, out,
                        [](V a, V x, V v) { return T(-1.5) * a * v / (T(1) + vsqrt(T(3) * x)); });
        case MATERN52:
            return map3(n, A, t, y, out, [](V a, V x, V v) {
                V r = T(1) + vsqrt(T(5) * x);
                return v == T(0) ? a * v : T(-5.0 / 6.0) * a * v * r / (r + T(5.0 / 3.0) * x);
            });
        case RQ: {
            const T half = T(0.5 / p[op.a]);
            grad.params[op.a] += map_reduce(n, A, t, y, out, [=](V a, V x, V v, V& slope) {
                V h = near(x) * half, av = a * v, q = T(1) / (T(1) + h);
                slope = T(-0.5) * av * q;
                return av * (h * q - vlog1p(h));
            });
            return;
        }
        case HORNER:
            for (int32_t k = 0; k < op.b; ++k)
                grad.params[op.a + k] += reduce2(n, A, t, [k](V a, V x) { return a * powi(x, k); });
            return map2(n, A, t, out, [c = p + op.a, k = op.b](V a, V x) {
                V slope{};
                for (int32_t i = k - 1; i >= 1; --i) slope = slope * x + T(i * c[i]);
                return a * slope;
            });
        case ARCCOS: return arccos_back(call, op, s, A, t, out, grad);
        case ROWSCALE:
            rows_back(call.rows[op.a], s, grad.u[op.a], grad.v[op.a],
                      [&](int64_t at, V, V) { return load(A + at) * load(t + at); });
            return map_rows(call.rows[op.a], s, A, out, [](V a, V u, V v) { return a * (u * v); });
    }
}

// Adds this tile's share of the gradients of sum W*K; work.seeds holds W, zero in the padding columns.
//   cost    the forward pass, about twice that backwards, and one pass over the coordinates per primitive
//   memory  two strips per step and two tiles per primitive
template <class T>
static void differentiate(const Call<T>& call, const Tile& tile, Work<T>& work, const Gradient& grad) {
    const T* value[kMostSlots];
    const T* adjoint[kMostSlots];
    const int32_t last = call.steps - 1;
    for (int32_t k = 0; k <= last; ++k)
        if (const Op& op = call.ops[k]; op.primitive >= 0 && op.twin == op.primitive)
            primitive(call, op, tile, work, work.primitives + op.primitive * work.area);
    const int64_t height = strip_rows(work.strip, tile.ld);
    for (int64_t r0 = 0; r0 < tile.rows; r0 += height) {
        const Strip s{tile, r0, least(height, tile.rows - r0)};
        const int64_t offset = r0 * tile.ld, count = s.rows * tile.ld;
        // Where the adjoint of step k is written: primitives keep a whole tile, others a strip.
        auto home = [&](int32_t k) {
            const Op& op = call.ops[k];
            return op.primitive >= 0 ? work.slopes + op.primitive * work.area + offset
                                     : work.adjoints + k * work.strip;
        };
        auto hand_on = [&](int32_t k, const T* A) {  // the same adjoint, without a copy where possible
            adjoint[k] = A;
            if (call.ops[k].primitive >= 0) map(count, A, home(k), [](Vec<T> a) { return a; });
        };
        for (int32_t k = 0; k <= last; ++k) {
            const Op& op = call.ops[k];
            if (op.primitive >= 0 && op.twin == op.primitive && expands(call.views[op.a], op, tile))
                expand(call.views[op.a], tile, r0, s.rows, work.primitives + op.primitive * work.area);
            value[k] = op.primitive >= 0 ? work.primitives + op.twin * work.area + offset
                                         : work.values + k * work.strip;
            if (op.primitive < 0)
                step(call, op, s, op.left < 0 ? nullptr : value[op.left],
                     op.right < 0 ? nullptr : value[op.right], const_cast<T*>(value[k]));
        }
        hand_on(last, work.seeds + offset);
        for (int32_t k = last; k >= 0; --k) {
            const Op& op = call.ops[k];
            const T* A = adjoint[k];
            if (op.primitive >= 0) continue;
            if (op.code == ADD) {
                hand_on(op.left, A);
                hand_on(op.right, A);
            } else if (op.code == MUL) {
                auto times = [](Vec<T> a, Vec<T> b) { return a * b; };
                map2(count, A, value[op.right], home(op.left), times);
                map2(count, A, value[op.left], home(op.right), times);
                adjoint[op.left] = home(op.left);
                adjoint[op.right] = home(op.right);
            } else if (op.code == MAX || op.code == MIN) {
                const T sign = op.code == MAX ? T(1) : T(-1);
                map3(count, A, value[op.left], value[op.right], home(op.left),
                     [sign](Vec<T> a, Vec<T> l, Vec<T> r) { return a * share((l - r) * sign); });
                map3(count, A, value[op.left], value[op.right], home(op.right),
                     [sign](Vec<T> a, Vec<T> l, Vec<T> r) { return a * share((r - l) * sign); });
                adjoint[op.left] = home(op.left);
                adjoint[op.right] = home(op.right);
            } else {
                T* out = op.left < 0 ? nullptr : home(op.left);
                if (out) adjoint[op.left] = out;
                back(call, op, s, A, out ? value[op.left] : nullptr, value[k], out, grad);
            }
        }
    }
    auto owed = [&](const Op& op) { return op.primitive >= 0 && (grad.x || grad.wanted[op.a]); };
    for (int32_t k = 0; k <= last; ++k)
        if (const Op& op = call.ops[k]; owed(op) && op.twin != op.primitive) {
            T* total = work.slopes + op.twin * work.area;
            map2(tile.rows * tile.ld, total, work.slopes + op.primitive * work.area, total,
                 [](Vec<T> a, Vec<T> b) { return a + b; });
        }
    for (int32_t k = 0; k <= last; ++k)
        if (const Op& op = call.ops[k]; owed(op) && op.twin == op.primitive)
            primitive_back(call, op, tile, work, work.slopes + op.primitive * work.area, grad);
}

}  // namespace mercer::MERCER_ISA
